r"""The last stage: how far beyond its range the data let each branch go on as a polynomial.

At an end e of its domain a branch g departs from its tangent by

    b(h) = Σ_{2 ≤ k ≤ q} g^(k)(e) h^k / k!

where it goes on as its Taylor polynomial of degree q, the basis's `continued_degree`. That is linear in the
coefficients a of the branch, so their covariance gives its variance. The polynomial is followed up to the largest h, at
most `REACH` of the domain, below which the standard deviation of b is at most `DOUBT` of b itself, in the mean square;
from there on the branch is linear, with the slope that it has there, so that at `REACH`, H of the domain, it departs
from the tangent by b(h) + b'(h) (H - h). The standard deviation of that is to be at most `RISK` of the heights that the
branch covers inside; where samples are few, H is larger, because others lie farther outside. This second bound is for
steep polynomials, which a few samples far out, or branches too stiff for what they are to follow, leave behind: a small
doubt about a large number. It is lowered where branches nearly cancel each other, so that outputs cover less than the
branches do. What is not finite, or not determined by the data, is not followed, and nothing is beyond the end of a long
tail (`kernels.knots`), where samples are few and far between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from unbraid.bases.smoothing import PlacedSmoothing
from unbraid.data.in_memory import Samples
from unbraid.fitting.levels import Levels
from unbraid.fitting.session import Found, Session
from unbraid.kernels.arrays import Array
from unbraid.kernels.knots import bulk_of
from unbraid.kernels.quadratics import balanced_inverse
from unbraid.solvers.evaluated import BranchOutputs, Evaluated
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Iterates
from unbraid.solvers.surroundings import Surroundings, count_equations

REACH = 0.125
"""How far beyond its domain, in shares of its length, a branch goes on as a polynomial at most."""
DOUBT, RISK = (0.5, 0.15), (3e-2, 3e-3)
"""Extrapolate as a polynomial while its nonlinear part has a relative standard deviation of at most `DOUBT`, and what
becomes of it at `REACH` one of at most `RISK` of the range of the branch's values, where branches do not cancel each
other: of penalised splines, and of others, whose standard deviations know nothing of what their few knots cannot
follow."""
GAPS_BEYOND = 4.0
"""Where samples are few, others lie farther outside: what is looked at then is so many mean distances of them away."""
HEIGHTS = 32
"""Points at which a continuation is looked at: a power of two, so that reaches are numbers that files hold exactly."""
RIDGE = 1e-12
"""Share of a unit diagonal that settles what is not determined."""


@dataclass(frozen=True)
class ContinueBranches:
    """Stage: the best run, its branches going on as polynomials, as far as the data support it or they may."""

    levels: Levels
    solver: GaussNewton
    always: bool

    def __call__(self, session: Session, found: Found) -> Found:
        """The best run with reaches; one that found nothing finite stays linear."""
        run = found.best
        solver = self.levels.solver_at(self.solver, found.level)
        if found.basis is not None:
            solver = replace(solver, basis=found.basis)
        if found.smoothing is not None and found.smoothing.coupling is not None:
            solver = replace(solver, coupling=found.smoothing.coupling)
        if not np.isfinite(run.objective) or solver.basis.continued_degree < 2:
            return found
        far = np.full((*run.best.W0.shape[:2], 2), REACH)
        reach = far if self.always else supported_reaches(solver, run.best)
        return found.narrow(replace(run, best=replace(run.best, reach=reach)), found.level, found.cut)


@np.errstate(all="ignore")  # what is not finite is not believed
def supported_reaches(solver: GaussNewton, iterates: Iterates) -> Array:
    """How far the branches of a batch of one are known as polynomials beyond their domains: (1, r, 2)."""
    placement, a = iterates.placement.select(0), iterates.a[0]
    ends = placement.domain()
    share = np.linspace(0.0, REACH, HEIGHTS + 1)[1:]
    h = share * (np.diff(ends) * np.array([-1.0, 1.0]))[..., None]  # (r, 2, H)
    far = max(1.0, GAPS_BEYOND / (REACH * solver.samples.size))
    bends = np.zeros((*h.shape, a.shape[-1]))
    farthest = np.zeros_like(bends)
    for k in range(2, solver.basis.continued_degree + 1):
        derivative = placement.design(ends, k)[..., None, :]
        bends += derivative * (h**k / math.factorial(k))[..., None]
        farthest += derivative * (h ** (k - 1) / math.factorial(k - 1) * (far * h[..., -1:] - h))[..., None]
    farthest += bends
    covariance = coefficient_covariances(solver, iterates)[:, None]
    doubt, risk = (np.abs(np.sum((one @ covariance) * one, axis=-1)) for one in (bends, farthest))
    inside = ends[:, :1] + np.diff(ends) * np.linspace(0.0, 1.0, HEIGHTS + 1)
    heights = np.ptp(placement.evaluate(a, placement.at(inside)), axis=-1)[:, None, None]
    size = np.cumsum((bends @ a[:, None, :, None])[..., 0] ** 2, axis=-1)
    kind = 0 if isinstance(iterates.placement, PlacedSmoothing) else 1
    known = (np.cumsum(doubt, axis=-1) <= DOUBT[kind] ** 2 * size) & (size > 0.0)
    known &= np.maximum.accumulate(risk, axis=-1) <= (RISK[kind] * heights * outputs_share(solver, iterates)) ** 2
    center, half = bulk_of(np.sort(solver.samples.inputs_for_knots(iterates.W0)[0], axis=-1))
    in_tail = np.stack([ends[:, 0] < center - half, ends[:, 1] > center + half], axis=-1)
    return np.asarray(np.where(in_tail, 0.0, np.max(np.where(known, share, 0.0), axis=-1))[None])


def outputs_share(solver: GaussNewton, iterates: Iterates) -> float:
    """The spread of a model's outputs over that which they had if its branches did not cancel each other; at most 1."""
    samples, r = solver.samples, iterates.W0.shape[1]
    squares, total = samples.sum(value_moments, Evaluated.on(samples, iterates), width=r)
    shares = (iterates.W1[0].T @ iterates.W1[0]) * (squares[0] - np.outer(total[0], total[0]) / samples.size)
    return float(np.sqrt(np.clip(shares.sum() / np.trace(shares), 0.0, 1.0)))


def value_moments(block: Samples, at: BranchOutputs) -> tuple[Array, Array]:
    """Sums over samples of Rᵀ R (B, r, r) and of R (B, r), R being the branches' values."""
    weighted = block.weighted(at.values)
    return at.values.mT @ weighted, weighted.sum(axis=-2)


def coefficient_covariances(solver: GaussNewton, iterates: Iterates) -> Array:
    """The covariance of the coefficients of each branch of a batch of one, with directions and W1 given: (r, K, K).

    It is σ² N⁻¹, N being the normal matrix of the coefficients; σ² is what is left of the data over the degrees of
    freedom that are left, infinite where none are. Beyond the solver's `dense_limit` each branch is looked at with the
    others given. Of penalised splines directions and W1 are as uncertain as they are (`solvers.surroundings`).
    """
    at = solver.linearised(iterates)
    if isinstance(iterates.placement, PlacedSmoothing):
        return Surroundings.of(solver, at).covariances(iterates.W0.shape[1])
    (n, r), m, K = iterates.W1.shape[1:], iterates.W0.shape[-1], iterates.a.shape[-1]
    coefficients, every = slice(n + m, None), np.arange(r)
    if r * (n + m + K) <= solver.dense_limit:
        N = at.normal_matrix()[0, :, coefficients, :, coefficients].reshape(1, r * K, r * K)
    else:
        N = at.branch_matrices()[:, 0, coefficients, 0, coefficients]
    inverse = balanced_inverse(N, RIDGE)  # constants are not determined
    blocks = inverse if len(inverse) == r else inverse.reshape(r, K, r, K)[every, :, every]
    freedom = np.sum(inverse * N)
    jacobian, values = at.misfits()
    data = solver.samples
    left = count_equations(data) - r * (n + m - 1) - freedom
    variance = float(jacobian[0] + solver.coupling * values[0]) / left if left >= 1.0 else np.inf
    return np.asarray(variance * blocks)
