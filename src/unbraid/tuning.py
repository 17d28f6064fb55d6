"""The last part of a polish where a basis leaves its smoothing open: strengths by cross-validation, then more steps.

With directions and W1 given, the model is linear in the coefficients of all branches together, and the strengths of
their penalties are those of least generalised cross-validation score of the whole fit. The score counts all equations
the same, so λ first weighs them by their noise, as the residuals show it,

    λ = (‖J - Ĵ‖² / S n m) / (‖F - F̂‖² / S n).

Steps on all unknowns follow, and so on for some rounds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unbraid.arrays import Array
from unbraid.bases.smoothing import PlacedSmoothing
from unbraid.iterate import Iterates, Run, iterate
from unbraid.kernels.cross_validation import cross_validated
from unbraid.polish import joined_traces
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.linearised import Linearised
from unbraid.status import Status
from unbraid.stopping import Stopping

COUPLINGS = (1e-6, 1e6)
"""Least and largest λ: exact values or Jacobians should not make the others' weight vanish."""
ROUNDS, STEPS = 6, 20
"""How often strengths are chosen, and steps after each choice."""


def tuned(solver: GaussNewton, run: Run, coupling_open: bool, max_seconds: float | None, began: float) -> Run:
    """The run with smoothing chosen for each branch, and λ where it is open.

    In the last round directions stay, so that knots end in place.
    """
    stopping = Stopping(max_sweeps=STEPS, tolerance=1e-5, max_seconds=max_seconds)
    for last in [False] * (ROUNDS - 1) + [True]:
        coupling = weighed(solver, run.best) if coupling_open else solver.coupling
        final = replace(solver, coupling=coupling, directions_fixed=last, place_knots_at=frozenset())
        chosen = with_strengths(run.best, strengths(final, run.best))
        [after] = iterate(final, final.start(final.placed_anew(chosen)), 1, stopping, began)
        cut = after.status in (Status.INTERRUPTED, Status.OUT_OF_TIME)
        run = replace(after, status=after.status if cut else run.status, trace=joined_traces(run, after))
        if cut:
            break
    return run


def weighed(solver: GaussNewton, iterates: Iterates) -> float:
    """λ = σ_J² / σ_F² from the residuals; what it was where there are values or Jacobians only."""
    if solver.samples.J is None or solver.samples.F is None:
        return solver.coupling
    jacobian, values = (float(one[0]) for one in solver.linearised(iterates).misfits())
    least, most = COUPLINGS
    each = jacobian / iterates.W0.shape[-1]
    return most if each >= most * values else max(each / values, least)


def with_strengths(iterates: Iterates, strength: Array) -> Iterates:
    """The same models with other strengths (B, r) of their penalties."""
    assert isinstance(iterates.placement, PlacedSmoothing)
    return replace(iterates, placement=replace(iterates.placement, strength=strength))


def strengths(solver: GaussNewton, iterates: Iterates) -> Array:
    """Strengths (B, r) by cross-validation; beyond the solver's `dense_limit`, of each branch with the others given."""
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
    misfit = jacobian_and_values(at)
    right = g + np.einsum("...jklm,...lm->...jk", N, a)  # the equations' right side: N a is what is modelled
    square = (misfit if together else misfit[:, None]) + np.sum(a * (g + right), axis=(-2, -1))
    S = len(solver.samples.X)
    equations = S * n * ((0 if solver.samples.J is None else m) + (0 if solver.samples.F is None else 1))
    others = r * (n + m - 1) if together else r * (n + m - 1) + (r - 1) * K
    alpha = cross_validated(N, right, square, placement.omega_root, max(equations - others, 1.0)).reshape(B, r)
    size = np.sum(iterates.W1**2, axis=-2)
    return np.asarray(np.divide(alpha, size, where=size > 0.0, out=np.ones_like(alpha)))


def jacobian_and_values(at: Linearised) -> Array:
    """The objective without penalties, (B,)."""
    jacobian, values = at.misfits()
    return jacobian + at.coupling * values
