"""Derivatives from values: the five-point formula, with a step for each input that is tried out before it is used.

Along a direction d,

    D(t) = (8 δ(t) − δ(2t)) / 12t,    δ(t) = f(x + t d) − f(x − t d),

differs from the derivative by t⁴ f⁽⁵⁾/30 and by a rounding error of about ε |f| / t. How large f⁽⁵⁾ is nobody knows
beforehand, so D(t) is compared with D(2t) at a few samples: the step is the one at which

    |D(t) − D(2t)| + ε |f| / t

is least, or the first that is as good as can be expected.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from unbraid.arrays import Array, IndexArray
from unbraid.errors import DataError
from unbraid.functions.forms import Form
from unbraid.functions.hosts import quiet
from unbraid.functions.scales import sizes, spreads

PILOTS = 6
"""Samples at which steps are tried out."""
UNSETTLED = 0.05
"""Differences that change by this share when the step is doubled are no derivatives."""


class Step(NamedTuple):
    """A step t along a direction, the estimated error of D(t) as a share of the derivative's size, and D(t) itself."""

    t: float
    error: float
    slopes: Array


@dataclass(frozen=True)
class Differences:
    """Jacobians of f at points of X by differences, `steps` (m,) apart."""

    f: Form
    steps: Array

    @property
    def batched(self) -> bool:
        """Whether many points are as easy as one."""
        return self.f.batched

    def __call__(self, points: Array, rows: IndexArray) -> Array:
        """(k, n, m)."""
        m = points.shape[1]
        return np.stack([slope(self.f, points, rows, np.eye(m)[k], self.steps[k]) for k in range(m)], axis=-1)


def differences(f: Form, X: Array, F: Array) -> Differences:
    """Differences with a step for each input; refused if f has no derivatives to be found this way."""
    scale, steps = spreads(X), np.empty(X.shape[1])
    for k, column in enumerate(X.T):
        few = np.linspace(0, len(X) - 1, PILOTS - 2).astype(int)
        rows = np.unique([np.argmin(column), np.argmax(column), *few])
        t, error, _ = settled_step(f, X, F, rows, scale[k] * np.eye(X.shape[1])[k])
        if error == np.inf:  # f is undefined beside one of these samples: this says where
            slope(f, X[rows], rows, scale[k] * np.eye(X.shape[1])[k], t)
        if error > UNSETTLED:
            raise DataError(
                f"The derivatives of f with respect to input {k} cannot be found by differences: they change by "
                f"{100 * error:.0f} % or more when the step is doubled, so f is noisy or has jumps. Pass jacobian=, or "
                "use its values alone, Problem(X, F)."
            )
        steps[k] = scale[k] * t
    return Differences(f, steps)


def slope(f: Form, points: Array, rows: IndexArray, direction: Array, t: float) -> Array:
    """D(t), the derivative (k, n) of f along a direction (m,)."""
    moved = [points + far * t * direction for far in (1.0, -1.0, 2.0, -2.0)]
    values = f(np.concatenate(moved), np.tile(rows, 4), beside=True)
    right, left, far_right, far_left = values.reshape(4, len(points), -1)
    return np.asarray((8.0 * (right - left) - (far_right - far_left)) / (12.0 * t))


def settled_step(f: Form, X: Array, F: Array, rows: IndexArray, direction: Array) -> Step:
    """The step along a direction at which differences at X[rows] settle best.

    Steps are powers of two: with a direction of such lengths x + t d is exact. They begin at what suits a function
    that varies as slowly as the samples spread, and go to both sides in turn.
    """
    points, eps = X[rows], f.resolution
    moving = direction != 0.0
    far = max(eps, float(np.max(sizes(X)[moving] / np.abs(direction[moving]))))  # from zero, in units of t

    @cache
    def odd(j: int) -> Array:
        """δ(2^j), NaN where f is undefined."""
        with quiet():
            moved = np.concatenate([points + 2.0**j * direction, points - 2.0**j * direction])
            try:
                right, left = f(moved, np.tile(rows, 2), beside=True).reshape(2, len(points), -1)
            except DataError:
                return np.full((len(points), F.shape[1]), np.nan)
            return np.asarray(right - left)

    def estimate(j: int) -> Array:
        return (8.0 * odd(j) - odd(j + 1)) / (12.0 * 2.0**j)

    first = round(np.log2(eps) / 5.0)
    lowest, highest = int(np.log2(64.0 * eps * far)), max(0, int(np.log2(far))) - 2
    size, spread = np.abs(F).max(axis=0), np.std(F, axis=0)
    best, too_short = Step(2.0**first, np.inf, estimate(first)), False
    for j in alternating(first, lowest, highest):
        if too_short and j < first:
            continue
        slopes = estimate(j)
        unit = np.maximum(spread, np.abs(slopes).max(axis=0))
        unit = np.where(unit > 0.0, unit, np.inf)  # an output that does not change has no error
        rounding = eps / 2.0**j * np.max(size / unit)
        error = float(np.max(np.abs(slopes - estimate(j + 1)) / unit) + rounding)
        too_short = too_short or rounding > best.error
        if error < best.error:
            best = Step(2.0**j, error, slopes)
        if error < 30.0 * eps**0.8:
            break
    return best


def alternating(first: int, lowest: int, highest: int) -> list[int]:
    """`first`, and on both sides of it every other number within the bounds: 0, -2, 2, -4 and so on."""
    others = [*range(first - 2, lowest - 1, -2), *range(first + 2, highest + 1, 2)]
    return [first, *sorted(others, key=lambda j: abs(j - first))]
