"""Gauss–Newton steps on a model as it is, whatever its branches are: to let it follow a change that was made to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unbraid.bases.constraints import Constraint
from unbraid.inference.neighbourhood import Neighbourhood
from unbraid.inference.tangent import Tangent
from unbraid.kernels.arrays import Array
from unbraid.results.branch import FittedBranch
from unbraid.results.model import DecoupledModel

STEPS, HALVINGS, ENOUGH = 2, 4, 1e-2
"""Gauss–Newton steps, halvings of each, and the share of the objective from which on a further one is worth it."""


def refitted(around: Neighbourhood, model: DecoupledModel, constraints: tuple[Constraint | None, ...]) -> Neighbourhood:
    """The neighbourhood of a model after a few Gauss–Newton steps, on the samples of another one."""
    here = replace(around, tangent=Tangent.of(model, around.objective, constraints))
    value = objective_of(here)
    for _ in range(STEPS):
        theta, reached = gauss_newton_step(here), None
        for halving in range(HALVINGS):
            moved = here.tangent.moved(0.5**halving * theta)
            there = replace(around, tangent=Tangent.of(moved, around.objective, constraints))
            lower = objective_of(there)
            if lower < value:
                reached = there
                break
        if reached is None:
            break
        worth = value - lower > ENOUGH * value
        here, value = reached, lower
        if not worth:
            break
    return here


def gauss_newton_step(around: Neighbourhood) -> Array:
    """The minimiser θ of the objective to second order: V θ = Aᵀ ρ less the slope of the penalties."""
    return around.solved(descent(around))


def descent(around: Neighbourhood) -> Array:
    """Aᵀ ρ less the slope of the penalties: half of the direction in which the objective falls, (U,)."""
    tangent, total = around.tangent, np.zeros(around.tangent.size)
    for block in around.blocks():
        A, residual = around.rows(block)
        total += around.standing_for * (A.reshape(-1, tangent.size).T @ residual.ravel())
    for k, root, a in penalised(tangent):
        weight = branch_weight(around, k)
        total[tangent.parts(k)[2]] -= weight * (root @ tangent.moves[k].curves).T @ (root @ a)
    return total


def objective_of(around: Neighbourhood) -> float:
    """What is minimised: squares of weighted residuals, and penalties."""
    residual = around.residuals() * np.sqrt(around.sample_weights)[:, None] * around.row_scales
    penalty = sum(branch_weight(around, k) * float(np.sum((root @ a) ** 2)) for k, root, a in penalised(around.tangent))
    return around.standing_for * float(np.nansum(residual**2)) + penalty


def penalised(tangent: Tangent) -> list[tuple[int, Array, Array]]:
    """Which of the moves are of branches with penalties, their roots and the branches' coordinates."""
    found = []
    for k, one in enumerate(tangent.moves):
        branch = tangent.model.branches[one.branch]
        if isinstance(branch, FittedBranch) and (root := branch.placement.penalty_root()) is not None:
            found.append((k, root, branch.coordinates))
    return found


def branch_weight(around: Neighbourhood, k: int) -> float:
    """How much the penalty of a branch weighs: the square of its column of W1, outputs in their units."""
    W1 = around.tangent.model.W1[:, around.tangent.moves[k].branch] / around.objective.units.f_scale
    return float(np.sum(W1**2))
