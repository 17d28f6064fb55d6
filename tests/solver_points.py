"""Points at which tests look at the second-order solver: random models, and models near them."""

from __future__ import annotations

import numpy as np

import unbraid as ub
from unbraid.bases import Basis
from unbraid.bases.projection import Projection
from unbraid.data.in_memory import Samples
from unbraid.data.units import Units
from unbraid.kernels.arrays import Array
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Iterates


def a_point(
    problem: ub.Problem, basis: Basis, rank: int, coupling: float, offset: bool
) -> tuple[GaussNewton, Iterates]:
    """A solver and a random model (a batch of one), well inside the smooth region."""
    rng = np.random.default_rng(0)
    samples = Samples.of(problem, Units.balanced(problem))
    solver = GaussNewton(samples, basis, Projection.onto([None] * rank), coupling, offset)
    W0 = rng.standard_normal((1, rank, problem.m))
    W0 /= np.linalg.norm(W0, axis=-1, keepdims=True)
    a = rng.standard_normal((1, rank, basis.size))
    return solver, Iterates(W0, rng.standard_normal((1, problem.n, rank)), basis.place(W0 @ samples.X.T), a)


def moved(it: Iterates, x: Array) -> Iterates:
    """The model whose unknowns, branch by branch (w1, w0, a), are x away from `it`."""
    n, r = it.W1.shape[1:]
    m = it.W0.shape[-1]
    d = x.reshape(1, r, -1)
    return Iterates(it.W0 + d[..., n : n + m], it.W1 + d[..., :n].mT, it.placement, it.a + d[..., n + m :])
