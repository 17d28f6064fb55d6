r"""Is a decoupling unique? A bound for generic Jacobians, and a test at the model that was found.

As a tensor (S, n, m), Jacobians determine W0, W1 and the slopes, for generic factors, if

    2 r (r - 1) ≤ m (m - 1) n (n - 1)   and   r ≤ S

(De Lathauwer 2006, used by Dreesen et al. 2015). Branches are smooth functions of u, which determines much more. So
the test asks, to first order: which changes of (W1, W0, a) leave everything at the samples as it is? They are the null
space of the Gauss–Newton matrix. Rows of W0 turn there and do not stretch, and an output offset is free, so 2 r of its
dimensions are no ambiguity: the scale of each branch, which W1 takes up, and its constant, which the offset takes up.
Any further dimension is a *flat direction*. Those in which W0 and W1 stay only trade curves among branches: straight
lines, say, where r > n m.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from unbraid.data.in_memory import Samples
from unbraid.data.problem import Problem
from unbraid.data.units import Units
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.kernels.decompositions import eigen
from unbraid.results.model import DecoupledModel
from unbraid.solvers.gauss_newton import DENSE_LIMIT
from unbraid.solvers.linearised import Linearised
from unbraid.solvers.local_models import Coordinates, turning_frames
from unbraid.solvers.translate import in_solver_units

FLAT = 1e-12
"""Eigenvalues of the Gauss–Newton matrix, scaled to a unit diagonal, that count as zero: rounding leaves 1e-15, and
systems that are hard but unique have 1e-8."""


class Flat(NamedTuple):
    """How many flat directions there are, and how many of them leave W0 and W1 as they are."""

    directions: int
    curves: int


def generically_unique(problem: Problem, rank: int) -> bool | None:
    """Whether generic Jacobians of this size determine a decoupling of this rank as tensors; None without Jacobians."""
    if problem.J is None:
        return None
    n, m = problem.n, problem.m
    return 2 * rank * (rank - 1) <= m * (m - 1) * n * (n - 1) and rank <= problem.S


def flat_directions(problem: Problem, model: DecoupledModel) -> Flat | None:
    """The test at a fitted model, constraints aside; None where there are too many unknowns for it."""
    r, n, m = model.rank, problem.n, problem.m
    units = Units.balanced(problem)
    iterates = in_solver_units(model, units)
    iterates = replace(iterates, placement=iterates.placement.loosened(problem.S))
    K = iterates.a.shape[-1]
    if r * (n + m + K) > DENSE_LIMIT:
        return None
    at = Linearised(Samples.of(problem, units), 1.0, True, iterates)
    N = Coordinates(n, turning_frames(iterates.W0), None).matrix(at.normal_matrix())[0]
    free = np.delete(np.arange(n + m + K), n)  # the length of a row of W0 is held
    everything, curves = (null_dimensions(N, which) for which in (free, free[n + m - 1 :]))
    return Flat(everything - 2 * r, curves - r)


def null_dimensions(N: Array, which: IndexArray) -> int:
    """The dimension of the null space of N (r, q, r, q) in the unknowns `which` of every branch."""
    size = len(N) * len(which)
    part = N[:, which][:, :, :, which].reshape(size, size)
    diagonal = np.diagonal(part)
    counts = diagonal > 1e-14 * diagonal.max()
    scale = np.where(counts, 1.0 / np.sqrt(np.where(counts, diagonal, 1.0)), 0.0)
    return int(np.sum(eigen(part * scale[:, None] * scale)[0] <= FLAT))
