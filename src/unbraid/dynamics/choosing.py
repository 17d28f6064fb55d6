r"""What is chosen from the data: the basis of the branches, their number, the order of a linear model.

Records are cut into blocks. Some of them do not count while candidates are fitted, and tell how good they are: those
with the largest outputs, A, and as many others, B. The record is simulated as a whole, so nothing has to be known of
states where a block begins. Of the candidates that do about as well as the best within what was seen, on B, the one is
chosen that does best beyond it, on A: a dynamic model has to go on sensibly, or its simulation leaves for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from unbraid.bases import Basis, BSpline, Polynomial, SmoothingSpline
from unbraid.bases.constraints import Constraint
from unbraid.dynamics.models.feedback import Course, Feedback
from unbraid.dynamics.models.trajectory import Trajectory
from unbraid.kernels.arrays import Array

BLOCKS, HELD = 16, 3
"""Into so many blocks the samples are cut; so many of each kind are held out."""
AS_GOOD = 1.03
"""Candidates whose error on B is at most so many times the least are as good as the best there."""
WORTH = 0.97
"""A further branch, or state, is worth it where the error on B falls to at most so many times what it was."""
FREE_LADDER: tuple[Basis, ...] = (
    Polynomial(3),
    Polynomial(5),
    Polynomial(7),
    BSpline(6),
    BSpline(10),
    BSpline(16),
)
"""What branches may be made of, where nothing is asked for."""
SHAPED_LADDER: tuple[Basis, ...] = (BSpline(3), BSpline(5), BSpline(8), BSpline(12), BSpline(18))
"""The same, where branches are constrained."""
STRENGTHS = tuple(10.0 ** np.arange(-9.0, 0.0, 1.5))
"""Of the penalty of a `SmoothingSpline`, where it is open."""


class Errors(NamedTuple):
    """Mean squared errors of a candidate, in units of the spread: on B, inside, and on A, beyond."""

    inside: float
    beyond: float


@dataclass(frozen=True)
class Split:
    """Courses of which some blocks do not count, and these blocks.

    Attributes
    ----------
    courses
        With weight 0 where they are held out.
    inside, beyond
        One a course: the weights (T, ny) of B and of A.
    """

    courses: tuple[Course, ...]
    inside: tuple[Array, ...]
    beyond: tuple[Array, ...]

    @classmethod
    def of(cls, courses: Sequence[Course]) -> Split:
        """Hold out some of the blocks of courses."""
        total = sum(len(course) for course in courses)
        length = max(1, -(-total // BLOCKS))
        places = [
            (k, slice(begin, min(begin + length, len(course))))
            for k, course in enumerate(courses)
            for begin in range(0, len(course), length)
        ]
        peaks = np.array([np.abs(courses[k].y[some] * courses[k].weight[some]).max(initial=0.0) for k, some in places])
        held = min(HELD, len(places) // 4)
        high = set(np.argsort(-peaks, kind="stable")[:held].tolist())
        others = [i for i in range(len(places)) if i not in high]
        low = {others[round((j + 0.5) * len(others) / max(held, 1))] for j in range(held)}
        inside, beyond = ([np.zeros_like(course.weight) for course in courses] for _ in range(2))
        kept = [course.weight.copy() for course in courses]
        for which, weights in ((low, inside), (high, beyond)):
            for i in which:
                k, some = places[i]
                weights[k][some] = courses[k].weight[some]
                kept[k][some] = 0.0
        cut = tuple(replace(course, weight=own) for course, own in zip(courses, kept, strict=True))
        return cls(cut, tuple(inside), tuple(beyond))

    def errors(self, trajectories: Sequence[Trajectory] | None, feedback: Feedback) -> Errors:
        """The errors of a candidate on what is held out; infinite where it cannot be simulated."""
        if trajectories is None:
            return Errors(np.inf, np.inf)
        return Errors(*(self._error(trajectories, feedback, weights) for weights in (self.inside, self.beyond)))

    def _error(self, trajectories: Sequence[Trajectory], feedback: Feedback, weights: Sequence[Array]) -> float:
        ny, square, count = feedback.observed, 0.0, 0.0
        for course, one, weight in zip(self.courses, trajectories, weights, strict=True):
            square += float(np.sum((weight * (one.values.f[:, -ny:] - course.y)) ** 2))
            count += float(np.count_nonzero(weight))
        return square / max(count, 1.0)


def ladder(basis: Basis | None, constraints: Sequence[Constraint | None]) -> tuple[Basis, ...]:
    """The bases to choose from: all that may be where None was asked for, strengths where that is open."""
    if basis is None:
        return FREE_LADDER if all(one is None for one in constraints) else SHAPED_LADDER
    if isinstance(basis, SmoothingSpline) and basis.smoothing is None:
        return tuple(replace(basis, smoothing=strength) for strength in STRENGTHS[::-1])
    return (basis,)


def choose(errors: Sequence[Errors]) -> int:
    """Which candidate: of those that are as good as the best inside, the one that is best beyond; the first of equals."""
    inside, beyond = np.sqrt(np.array(errors).T)
    as_good = inside <= AS_GOOD * inside.min()
    least = beyond[as_good].min()
    return int(np.flatnonzero(as_good & (beyond <= 1.01 * least))[0])


def some_stretches(lengths: Sequence[int], peaks: Sequence[Array], most: int) -> list[tuple[int, slice]]:
    """Which stretches of which records to work on first, of so many samples in all: those with the largest outputs.

    `peaks` has for each record the size of its outputs (T,).
    """
    if sum(lengths) <= most:
        return [(k, slice(0, length)) for k, length in enumerate(lengths)]
    each = max(most // len(lengths), min(most, 500))
    windows = []
    for k, (length, peak) in enumerate(zip(lengths, peaks, strict=True)):
        begin = int(np.clip(int(np.argmax(peak)) - each // 2, 0, max(length - each, 0)))
        windows.append((float(peak.max(initial=0.0)), k, slice(begin, min(begin + each, length))))
    windows.sort(key=lambda window: -window[0])
    chosen = [(k, some) for _, k, some in windows[: max(1, most // each)]]
    return sorted(chosen, key=lambda window: window[0])
