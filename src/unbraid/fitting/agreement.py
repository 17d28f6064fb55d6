r"""Have two starts found the same? Judged in the canonical form, where lines belong to no branch.

Of a branch with values g_j and weights w1_j counts what is left of it without the line nearest to it, the remainder
ρ_j = ‖w1_j‖ · rms(g_j - line) of all that the model gives. Starts that differ in the direction of a straight branch
have found the same function in the same form: `results.canonical`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbraid.data.units import Units
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.kernels.decompositions import finite_or_zero
from unbraid.metrics import angles_between
from unbraid.results.canonical import nearest_line
from unbraid.solvers.iterates import Run

POINTS = 256
"""Points of a domain at which branches are looked at."""
ROUNDING, LARGEST = 1e-6, 0.05
"""A remainder up to the first share is always, one from the second on never nothing."""
ABOVE_NOISE = 3.0
"""Times what the noise makes of as many unknowns as a branch has, up to which its remainder is nothing."""
PLAINLY = 3.0
"""Times that from which on a branch that the other start has not counts as one."""


class FoundByStart(NamedTuple):
    """What a start found: directions W0 (r, m), weights W1 (r, n), shares ρ (r,) of remainders, what is nothing."""

    W0: Array
    W1: Array
    remainders: Array
    nothing: float

    @property
    def bent(self) -> BoolArray:
        """Which branches are more than a line, (r,)."""
        return np.asarray(self.remainders > self.nothing)


class Agreement(NamedTuple):
    """The largest angle in degrees between matched directions of bent branches, and the mean factor match score."""

    angle: float
    match: float


@np.errstate(all="ignore")  # a start that has lost its way has infinite branches, which are nothing here
def found_by(run: Run, samples: int) -> FoundByStart:
    """What a start found in so many samples, in the solver's units."""
    one = run.best
    W0, W1, placement, a = finite_or_zero(one.W0[0]), finite_or_zero(one.W1[0]), one.placement.select(0), one.a[0]
    low, high = np.moveaxis(placement.domain(), -1, 0)[..., None]
    t = (np.arange(POINTS) + 0.5) / POINTS
    u = low + (high - low) * t  # (r, P)
    values = finite_or_zero(placement.evaluate(a, placement.at(u)))
    weights = t * (1.0 - t)  # few samples lie at the ends
    lines = np.array([nearest_line(inputs, own, weights) for inputs, own in zip(u, values, strict=True)])
    lines = finite_or_zero(lines)
    W1 = W1 / (np.abs(W1).max(initial=0.0) or 1.0)
    lines /= np.abs(lines[:, 3]).max(initial=0.0) or 1.0
    lengths = np.linalg.norm(W1, axis=0)
    total = float(np.linalg.norm(lengths * lines[:, 3])) or 1.0
    left = np.sqrt(run.objective) if np.isfinite(run.objective) else 1.0
    noise = ABOVE_NOISE * left * np.sqrt((1.0 + a.shape[-1]) / samples)
    return FoundByStart(W0, W1.T, lengths * lines[:, 2] / total, float(np.clip(noise, ROUNDING, LARGEST)))


def agreement(best: FoundByStart, other: FoundByStart, units: Units) -> Agreement:
    """How near what a start found is to what the best one found; angles are in the user's units."""
    from scipy.optimize import linear_sum_assignment

    bent = np.flatnonzero(best.bent)
    scores = np.cos(np.radians(angles_between(best.W0, other.W0))) * np.cos(
        np.radians(angles_between(best.W1, other.W1))
    )
    angles = angles_between(best.W0 / units.x_scale, other.W0 / units.x_scale)
    rows, columns = linear_sum_assignment(-scores[bent])
    surplus = np.setdiff1d(np.flatnonzero(other.remainders > PLAINLY * max(best.nothing, other.nothing)), columns)
    off = [*angles[bent[rows], columns], *angles[:, surplus].min(axis=0)]
    count = len(bent) + len(surplus)
    match = float(np.sum(scores[bent[rows], columns])) / count if count else 1.0
    return Agreement(float(max(off, default=0.0)), match)
