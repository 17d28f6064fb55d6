"""The stage where a basis leaves its smoothing open: strengths by cross-validation, then more steps.

With directions and W1 given, the model is linear in the coefficients of all branches together, and the strengths of
their penalties are those of least generalised cross-validation score of the whole fit. The score counts all equations
the same, so λ first weighs them by their noise, as the residuals show it,

    λ = (‖J - Ĵ‖² / S n m) / (‖F - F̂‖² / S n).

Steps on all unknowns follow, and so on for some rounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from unbraid.bases.smoothing import REACH, PlacedSmoothing
from unbraid.fitting.levels import Levels
from unbraid.fitting.polish import join_traces, start_anew
from unbraid.fitting.session import Found, ProgressSpan, Session, cut_of
from unbraid.kernels.arrays import Array
from unbraid.kernels.cross_validation import cross_validate
from unbraid.kernels.decompositions import some_inverse
from unbraid.kernels.quadratics import unit_diagonal
from unbraid.runtime.progress import Progress
from unbraid.solvers.gauss_newton import GaussNewton, GaussNewtonState
from unbraid.solvers.iterates import Iterates
from unbraid.solvers.loop import Stopping

COUPLINGS = (1e-6, 1e6)
"""Least and largest λ: exact values or Jacobians should not make the others' weight vanish."""
ROUNDS, STEPS = 6, 20
"""How often strengths are chosen, and steps after each choice."""
DOUBT = 0.25
"""Extrapolate as a polynomial while its nonlinear part has a relative standard deviation of at most this."""
HEIGHTS = 33
"""Points at which a continuation is looked at."""
RIDGE = 1e-12
"""Share of a unit diagonal that settles what is not determined."""


@dataclass(frozen=True)
class ChooseSmoothing:
    """Stage: the best run with smoothing chosen for each branch, and λ where it is `coupling_open`."""

    levels: Levels
    solver: GaussNewton
    coupling_open: bool
    max_seconds: float | None

    def __call__(self, session: Session, found: Found) -> Found:
        """Round after round; Ctrl-C leaves the run as it is by then."""
        for k in range(ROUNDS):
            if found.cut is None:
                found = session.run(partial(self.choose, k), found)
        return found

    def choose(self, k: int, session: Session, found: Found) -> Found:
        """One round: strengths and λ anew, then steps. In the last one directions stay, so that knots end in span."""
        solver, run, last = self.levels.solver_at(self.solver, found.level), found.best, k == ROUNDS - 1
        stopping = Stopping(max_sweeps=STEPS, tolerance=1e-5, max_seconds=self.max_seconds)
        span = ProgressSpan("smooth", before=k * STEPS, after=(ROUNDS - k - 1) * STEPS)
        coupling = balance_noise(solver, run.best) if self.coupling_open else solver.coupling
        final = replace(solver, coupling=coupling, directions_fixed=last, place_knots_at=frozenset())

        def begin() -> GaussNewtonState:
            total = ROUNDS * STEPS
            session.tell(lambda: Progress(span.phase, span.before, total, 1, run.objective))  # this takes longest
            return start_anew(final, with_strengths(run.best, choose_strengths(final, run.best)))

        [after] = session.loop(final, begin, stopping, span)
        cut = cut_of([after])
        after = replace(after, status=run.status if cut is None else cut, trace=join_traces(run, after))
        if last and cut is None:
            after = replace(after, best=with_reaches(final, after.best))
        return found.narrow(after, found.level, cut)


@np.errstate(all="ignore")
def balance_noise(solver: GaussNewton, iterates: Iterates) -> float:
    """λ = σ_J² / σ_F² from the residuals; what it was where there are values or Jacobians only."""
    if not (solver.samples.has_jacobians and solver.samples.has_values):
        return solver.coupling
    jacobian, values = (float(one[0]) for one in solver.linearised(iterates).misfits())
    least, most = COUPLINGS
    each = jacobian / iterates.W0.shape[-1]
    return most if each >= most * values else max(each / values, least)


def with_strengths(iterates: Iterates, strength: Array) -> Iterates:
    """The same models with other strengths (B, r) of their penalties."""
    assert isinstance(iterates.placement, PlacedSmoothing)
    return replace(iterates, placement=replace(iterates.placement, strength=strength))


@dataclass(frozen=True)
class LinearModel:
    """Least squares in the coefficients alone: N a = b, for all branches together, or for each beside the others.

    N is (..., R, K, R, K) and b (..., R, K), R being r or 1; `square` (...) is the sum of squares of the data and
    `equations` how many they are, less the unknowns that are not in a. `misfit` (...) is what is left of it today.
    """

    N: Array
    b: Array
    square: Array
    misfit: Array
    equations: float

    @classmethod
    def at(cls, solver: GaussNewton, iterates: Iterates) -> LinearModel:
        """All branches together; beyond the solver's `dense_limit` each of them with the others given."""
        placement = iterates.placement
        assert isinstance(placement, PlacedSmoothing)
        at = solver.linearised(replace(iterates, placement=replace(placement, strength=None)))
        (B, n, r), m, K = iterates.W1.shape, iterates.W0.shape[-1], iterates.a.shape[-1]
        together = r * K <= solver.dense_limit
        coefficients = slice(n + m, None)
        if together:
            N = at.normal_matrix()[:, :, coefficients, :, coefficients]
            a, g = iterates.a, at.descent()[..., coefficients]
        else:
            N = at.branch_matrices()[:, :, coefficients, :, coefficients].reshape(B, r, 1, K, 1, K)
            a, g = iterates.a[:, :, None], at.descent()[:, :, None, coefficients]
        jacobian, values = at.misfits()
        misfit = jacobian + at.coupling * values if together else (jacobian + at.coupling * values)[:, None]
        b = g + np.einsum("...jklm,...lm->...jk", N, a)  # the equations' right side: N a is what is modelled
        square = misfit + np.sum(a * (g + b), axis=(-2, -1))
        data = solver.samples
        given = data.size * n * (m * data.has_jacobians + data.has_values)
        others = r * (n + m - 1) if together else r * (n + m - 1) + (r - 1) * K
        return cls(N, b, square, misfit, max(given - others, 1.0))

    def covariances(self, penalty: Array) -> Array:
        """σ² (N + P)⁻¹ with penalties P (..., R, K, K), its blocks of each branch: (..., R, K, K)."""
        R, K = self.b.shape[-2:]
        V, every = self.N.copy(), np.arange(R)
        V[..., every, :, every, :] += np.moveaxis(penalty, -3, 0)
        flat = V.reshape(*V.shape[:-4], R * K, R * K)
        scale = unit_diagonal(flat)
        flat = flat * scale[..., None] * scale[..., None, :] + RIDGE * np.eye(R * K)  # constants are not determined
        inverse = some_inverse(flat) * scale[..., None] * scale[..., None, :]
        freedom = np.einsum("...pq,...pq->...", inverse, self.N.reshape(flat.shape))
        variance = self.misfit / np.maximum(self.equations - freedom, 1.0)
        blocks = inverse.reshape(V.shape)[..., every, :, every, :]
        return np.asarray(variance[..., None, None, None] * np.moveaxis(blocks, 0, -3))


def choose_strengths(solver: GaussNewton, iterates: Iterates) -> Array:
    """Strengths (B, r) by cross-validation."""
    placement = iterates.placement
    assert isinstance(placement, PlacedSmoothing)
    linear = LinearModel.at(solver, iterates)
    alpha = cross_validate(linear.N, linear.b, linear.square, placement.omega_root, linear.equations)
    alpha = alpha.reshape(iterates.a.shape[:2])
    size = np.sum(iterates.W1**2, axis=-2)
    return np.asarray(np.divide(alpha, size, where=size > 0.0, out=np.ones_like(alpha)))


@np.errstate(all="ignore")  # what is not finite is not believed
def with_reaches(solver: GaussNewton, iterates: Iterates) -> Iterates:
    r"""The same models, continued as polynomials only as far as these are known.

    Beyond an end e the polynomial departs from a straight line by Σ_{k ≥ 2} g^(k)(e) h^k / k!, which is linear in a.
    It is believed up to the largest h below which its standard deviation is, in the mean square, at most `DOUBT` of it.
    """
    placement = iterates.placement
    assert isinstance(placement, PlacedSmoothing)
    (B, r, K), d = iterates.a.shape, placement.degree
    penalty = placement.penalty()
    assert penalty is not None
    linear = LinearModel.at(solver, iterates)
    size = np.sum(iterates.W1**2, axis=-2)[..., None, None]
    covariance = linear.covariances((size * penalty).reshape(*linear.b.shape, K)).reshape(B, r, K, K)
    ends = placement.domain()
    length = ends[..., 1] - ends[..., 0]
    share = np.linspace(0.0, REACH, HEIGHTS)[1:]
    h = share * length[..., None, None] * np.array([-1.0, 1.0])[:, None]  # (B, r, 2, H)
    bends = sum(placement.design(ends, k)[..., None, :] * (h**k / math.factorial(k))[..., None] for k in range(2, d))
    assert isinstance(bends, np.ndarray)
    bend = (bends @ iterates.a[..., None, :, None])[..., 0]
    variance = np.einsum("brehk,brkl,brehl->breh", bends, covariance, bends, optimize=True)
    known = np.cumsum(variance, axis=-1) <= DOUBT**2 * np.cumsum(bend**2, axis=-1)
    reach = np.max(np.where(known, share, 0.0), axis=-1)
    return replace(iterates, placement=replace(placement, reach=reach))
