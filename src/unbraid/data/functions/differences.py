"""Derivatives from values: the five-point formula, with a step for each input that is tried out before it is used.

Along a direction d,

    D(t) = (8 δ(t) − δ(2t)) / 12t,    δ(t) = f(x + t d) − f(x − t d),

differs from the derivative by t⁴ f⁽⁵⁾/30 and by a rounding error of about ε |f| / t. How large f⁽⁵⁾ is nobody knows
beforehand, so D(t) is compared with D(2t) at a few samples: the step is the one at which

    |D(t) − D(2t)| + ε |f| / t

is least, or the first that is as good as can be expected. Where f does not move at all, it may be rounded: then the
height of its steps takes the place of ε |f| (`jumps`), and the step becomes longer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from unbraid.data.functions.forms import Form
from unbraid.data.functions.hosts import quiet
from unbraid.data.functions.jumps import Plateaus, jumps
from unbraid.data.functions.scales import binary_spreads, sizes
from unbraid.errors import DataError
from unbraid.kernels.arrays import Array, BoolArray, IndexArray

PILOTS = 6
"""Samples at which steps are tried out."""
UNSETTLED = 0.05
"""Differences that change by this share when the step is doubled are no derivatives."""
DOUBTFUL, SUSPECTS = 0.1, 3
"""How far, as a share of the slope, the two halves of the formula may be apart before a jump is suspected between them;
and at how many samples of a chunk it is looked for."""


class Step(NamedTuple):
    """A step t along a direction, D(t), and its estimated error as a share of `unit` (n,), the derivative's size."""

    t: float
    error: float
    slopes: Array
    unit: Array


@dataclass(frozen=True)
class Differences:
    """Jacobians of f at points of X by differences, `steps` (m,) apart; slopes of f are about `units` (n, m) large."""

    f: Form
    steps: Array
    units: Array

    @property
    def batched(self) -> bool:
        """Whether many points are as easy as one."""
        return self.f.batched

    def __call__(self, points: Array, rows: IndexArray) -> Array:
        """The Jacobians (k, n, m) at points (k, m), which are the samples with these numbers."""
        J = np.empty((len(points), *self.f.shape, points.shape[1]))
        for k, t in enumerate(self.steps):
            near, far = quotients(self.f, points, rows, np.eye(points.shape[1])[k], t)
            J[:, :, k] = (4.0 * near - far) / 3.0
            doubt = np.abs(near - far) / np.maximum(self.units[:, k], np.abs(J[:, :, k]))
            self.refuse_jumps(points, rows, k, doubt.max(axis=1))
        return J

    def refuse_jumps(self, points: Array, rows: IndexArray, k: int, doubt: Array) -> None:
        """Refuse jumps at samples where the two halves of the formula contradict each other; kinks are no jumps."""
        worst = np.argsort(-doubt)[:SUSPECTS]
        worst = worst[doubt[worst] > DOUBTFUL]
        if not worst.size:
            return
        away, unit = 2.0 * self.steps[k] * np.eye(points.shape[1])[k], self.units[:, k]
        with quiet():
            heights = jumps(self.f, rows[worst], points[worst] - away, points[worst] + away, unit)
        harm = heights / (4.0 * self.steps[k] * unit)
        if harm.max() <= DOUBTFUL:
            return
        at, output = np.unravel_index(int(np.argmax(harm)), harm.shape)
        row = rows[worst[at]]
        raise DataError(
            f"The derivatives of f with respect to input {k} cannot be found by differences: beside X[{row}], "
            f"closer than the step of {self.steps[k]:.2g}, output {output} jumps by {heights[at, output]:.3g}. Remove "
            "such samples, pass jacobian=, or use its values alone, Problem(X, F)."
        )


def by_differences(f: Form, X: Array, F: Array) -> Differences:
    """Differences with a step for each input; refused if f has no derivatives to be found this way."""
    scale, steps, spread = binary_spreads(X), np.empty(X.shape[1]), np.std(F, axis=0)
    units = np.empty((F.shape[1], X.shape[1]))
    for k, column in enumerate(X.T):
        few = np.linspace(0, len(X) - 1, PILOTS - 2).astype(int)
        rows = np.unique([np.argmin(column), np.argmax(column), *few])
        t, error, slopes, _ = settled_step(f, X, F, rows, scale[k] * np.eye(X.shape[1])[k])
        if error == np.inf:  # f is undefined beside one of these samples: this says where
            quotients(f, X[rows], rows, scale[k] * np.eye(X.shape[1])[k], t)
        if error > UNSETTLED:
            raise DataError(
                f"The derivatives of f with respect to input {k} cannot be found by differences: whatever the step, "
                f"they are off by {100 * error:.0f} % or more, so f is noisy, rounded or has jumps. Pass jacobian=, or "
                "use its values alone, Problem(X, F)."
            )
        steps[k], units[:, k] = scale[k] * t, np.maximum(spread, np.abs(slopes).max(axis=0)) / scale[k]
    return Differences(f, steps, np.where(units > 0.0, units, np.inf))


def quotients(f: Form, points: Array, rows: IndexArray, direction: Array, t: float) -> tuple[Array, Array]:
    """δ(t) / 2t and δ(2t) / 4t along a direction (m,), both (k, n); D(t) is (4 times the one - the other) / 3."""
    moved = [points + far * t * direction for far in (1.0, -1.0, 2.0, -2.0)]
    values = f(np.concatenate(moved), np.tile(rows, 4), beside=True)
    right, left, far_right, far_left = values.reshape(4, len(points), -1)
    return np.asarray((right - left) / (2.0 * t)), np.asarray((far_right - far_left) / (4.0 * t))


def settled_step(f: Form, X: Array, F: Array, rows: IndexArray, direction: Array) -> Step:
    """The step along a direction at which differences at X[rows] settle best.

    Steps are powers of two: with a direction of such lengths x + t d is exact. They begin at what suits a function
    that varies as slowly as the samples spread, and go to both sides in turn.
    """
    points, eps = X[rows], f.resolution
    moving = direction != 0.0
    far = max(eps, float(np.max(sizes(X)[moving] / np.abs(direction[moving]))))  # from zero, in units of t

    @cache
    def sides(j: int) -> Array:
        """F at both ends of a step 2^j, (2, k, n); NaN where f is undefined."""
        with quiet():
            moved = np.concatenate([points + 2.0**j * direction, points - 2.0**j * direction])
            try:
                return f(moved, np.tile(rows, 2), beside=True).reshape(2, len(points), -1)
            except DataError:
                return np.full((2, len(points), F.shape[1]), np.nan)

    def odd(j: int) -> Array:
        """δ(2^j)."""
        right, left = sides(j)
        return np.asarray(right - left)

    def estimate(j: int) -> Array:
        return (8.0 * odd(j) - odd(j + 1)) / (12.0 * 2.0**j)

    def flat(j: int) -> BoolArray:
        """Where nothing has moved at any of the points that D(t) and D(2t) are made of."""
        values = np.concatenate([sides(j), sides(j + 1), sides(j + 2)])
        return np.asarray((values == values[0]).all(axis=0))

    first = round(np.log2(eps) / 5.0)
    lowest, highest = int(np.log2(64.0 * eps * far)), max(0, int(np.log2(far))) - 2
    size, spread = np.abs(F).max(axis=0), np.std(F, axis=0)
    plateaus = Plateaus(f, X, rows, direction)
    tried = [Step(2.0**first, np.inf, estimate(first), np.ones(F.shape[1]))]
    best, too_short = tried[0], False
    for j in alternating(first, lowest, highest):
        if too_short and j < first:
            continue
        slopes = estimate(j)
        unit = np.maximum(spread, np.abs(slopes).max(axis=0))
        unit = np.where(unit > 0.0, unit, np.inf)  # an output that does not change has no error
        rounding = eps / 2.0**j * np.max(size / unit)
        error = float(np.max(np.abs(slopes - estimate(j + 1)) / unit) + rounding)
        too_short = too_short or rounding > best.error
        if error < UNSETTLED and flat(j).any():
            height = plateaus.steps(flat(j), 2.0 ** (j + 2), np.where(unit < np.inf, unit, 1.0))
            share = height / np.where((unit == np.inf) & (height > 0.0), height, unit)
            error += float(np.max(share)) / 2.0**j
        tried.append(Step(2.0**j, error, slopes, unit))
        best = most_exact(tried)
        if best.error < 30.0 * eps**0.8:
            break
    return best


def most_exact(tried: list[Step]) -> Step:
    """The step of least error, of those that no shorter one plainly contradicts: too long a step misses a fast wave."""

    def contradicted(step: Step) -> bool:
        return any(
            bool((np.abs(step.slopes - other.slopes) > (UNSETTLED + 4.0 * other.error) * other.unit).any())
            for other in tried
            if other.t < step.t and other.error < UNSETTLED
        )

    by_error = sorted(tried, key=lambda step: step.error)
    return next((step for step in by_error if not contradicted(step)), by_error[0])


def alternating(first: int, lowest: int, highest: int) -> list[int]:
    """`first`, and on both sides of it every other number within the bounds: 0, -2, 2, -4 and so on."""
    others = [*range(first - 2, lowest - 1, -2), *range(first + 2, highest + 1, 2)]
    return [first, *sorted(others, key=lambda j: abs(j - first))]
