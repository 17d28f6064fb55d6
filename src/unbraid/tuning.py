"""The last part of a polish where a basis leaves its smoothing open: strengths by cross-validation, then more steps.

With directions and W1 given, the model is linear in the coefficients of all branches together, and the strengths of
their penalties are those of least generalised cross-validation score of the whole fit. Steps on all unknowns follow,
and so on for some rounds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unbraid.arrays import Array
from unbraid.bases.smoothing import PlacedSmoothing
from unbraid.iterate import Iterates, Run, iterate
from unbraid.kernels.cross_validation import cross_validated
from unbraid.polish import joined_traces
from unbraid.progress import Callback
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.linearised import Linearised
from unbraid.starts import observer
from unbraid.status import Status
from unbraid.stopping import Stopping

ROUNDS, STEPS = 4, 20
"""How often strengths are chosen, and steps after each choice."""


def tuned(
    solver: GaussNewton, run: Run, max_seconds: float | None, began: float, callback: Callback | None = None
) -> Run:
    """The run with smoothing chosen for each branch; in the last round directions stay, so that knots end in place.

    Ctrl-C leaves the run as it is by then.
    """
    stopping = Stopping(max_sweeps=STEPS, tolerance=1e-5, max_seconds=max_seconds)
    for k in range(ROUNDS):
        final = replace(solver, directions_fixed=k == ROUNDS - 1, place_knots_at=frozenset())
        observe = observer(callback, "smooth", range(1), 1, stopping, [], k * STEPS, (ROUNDS - k - 1) * STEPS)
        try:
            if observe is not None:
                observe(0, 1, run.objective)  # what comes first takes longest
            chosen = with_strengths(run.best, strengths(final, run.best))
            [after] = iterate(final, final.start(final.placed_anew(chosen)), 1, stopping, began, observe)
        except KeyboardInterrupt:
            return replace(run, status=Status.INTERRUPTED)
        cut = after.status in (Status.INTERRUPTED, Status.OUT_OF_TIME)
        run = replace(after, status=after.status if cut else run.status, trace=joined_traces(run, after))
        if cut:
            break
    return run


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
    alpha = cross_validated(N, right, square, placement.omega, max(equations - others, 1.0)).reshape(B, r)
    size = np.sum(iterates.W1**2, axis=-2)
    return np.asarray(np.divide(alpha, size, where=size > 0.0, out=np.ones_like(alpha)))


def jacobian_and_values(at: Linearised) -> Array:
    """The objective without penalties, (B,)."""
    jacobian, values = at.misfits()
    return jacobian + at.coupling * values
