r"""What state-space models and NARX models have in common: a function whose outputs come back as inputs.

    f_t = f(φ_t),        φ_t = [z_{t - l_1}; z_{t - l_2}; …; v_t],        z_t = the first q entries of f_t

with signals v_t from outside. In a state-space model z_t is the state x_{t+1}, there is one lag, 1, and the other
entries of f_t are the outputs y_t. In a NARX model all of f_t is y_t, and v_t has inputs u of several moments. What
came before the first moment, z_{-1}, z_{-2}, …, is the *past* of a course: the initial state, or the first outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.kernels.arrays import Array


@dataclass(frozen=True)
class Feedback:
    """Which outputs come back, when, and which ones are observed.

    Attributes
    ----------
    fed
        q: the first so many outputs of f are fed back.
    lags
        After how many moments each time, increasing.
    observed
        How many of the last outputs of f are observed, ny.
    outputs
        How many outputs f has, n.
    """

    fed: int
    lags: tuple[int, ...]
    observed: int
    outputs: int

    @property
    def width(self) -> int:
        """How many entries of φ are fed back."""
        return self.fed * len(self.lags)

    @property
    def longest(self) -> int:
        """The longest lag: so many moments the past has."""
        return self.lags[-1]

    def gather(self, z: Array, past: Array) -> Array:
        """The part of φ that is fed back, (..., T, width), from z (..., T, q) and a past (..., longest, q)."""
        whole = np.concatenate([past, z], axis=-2)
        T, longest = z.shape[-2], self.longest
        return np.concatenate([whole[..., longest - lag : longest - lag + T, :] for lag in self.lags], axis=-1)

    def last(self, z: Array, past: Array) -> Array:
        """The past (..., longest, q) of what follows."""
        return np.concatenate([past, z], axis=-2)[..., -self.longest :, :]


@dataclass(frozen=True)
class Course:
    """A record as a solver sees it, in balanced units.

    Attributes
    ----------
    v
        (T, p), what comes from outside.
    y
        (T, ny), what was measured; zero where it was not.
    weight
        (T, ny), 1 where an error counts, 0 where y is not known or not to count.
    past
        (longest, q), a first guess at what came before.
    """

    v: Array
    y: Array
    weight: Array
    past: Array

    def __len__(self) -> int:
        return len(self.v)


def count_equations(courses: Sequence[Course]) -> float:
    """How many numbers were measured and count."""
    return float(sum(np.count_nonzero(course.weight) for course in courses))
