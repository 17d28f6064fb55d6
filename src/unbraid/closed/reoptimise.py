r"""All unknowns of a model, parameters of formulas among them, re-optimised together on the data.

Levenberg and Marquardt's steps (V + μ diag V) θ = Aᵀ ρ - P a in the unknowns of `inference.tangent`; penalties of
curves stay as they are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unbraid.inference.neighbourhood import Neighbourhood
from unbraid.inference.steps import descent, objective_of
from unbraid.inference.tangent import Tangent
from unbraid.kernels.arrays import Array
from unbraid.results.model import DecoupledModel

STEPS, STILL, ENOUGH = 100, 1e-10, 3
"""Steps at most, and the share of the objective that so many steps in a row gain less than at the end."""
FIRST, LARGEST = 1e-3, 1e8
"""The damping μ to begin with, and the one from which on nothing is to be gained."""


def reoptimise(around: Neighbourhood, model: DecoupledModel, steps: int = STEPS) -> Neighbourhood:
    """The neighbourhood of a model after its steps, on the samples of another one."""
    with np.errstate(all="ignore"):
        here = replace(around, tangent=Tangent.of(model, around.objective, ()))
        value, damping, still = defined_objective(here), FIRST, 0
        for _ in range(steps):
            V, b = here.data_matrix + here.penalty, descent(here)
            moved, lower = None, np.inf
            while not lower < value and damping <= LARGEST:
                moved, lower = after_step(here, V, b, damping)
                damping *= 0.1 if lower < value else 6.0
            if moved is None or not lower < value:
                break
            still = still + 1 if value - lower < STILL * value else 0
            here, value, damping = moved, lower, max(damping, 1e-12)
            if still == ENOUGH:
                break
        return here


def after_step(here: Neighbourhood, V: Array, b: Array, damping: float) -> tuple[Neighbourhood | None, float]:
    """The neighbourhood after a step with some damping, and its objective; infinite where there is no such step."""
    size = np.sqrt(np.maximum(np.diag(V), 0.0))
    size = np.where(size > 0.0, size, 1.0)
    scaled = V / np.outer(size, size)
    scaled[np.diag_indices_from(scaled)] += damping + 1e-13
    theta = np.linalg.solve(scaled, b / size) / size
    if not np.isfinite(theta).all():
        return None, np.inf
    there = replace(here, tangent=Tangent.of(here.tangent.moved(theta), here.objective, ()))
    return there, defined_objective(there)


def defined_objective(around: Neighbourhood) -> float:
    """What is minimised; infinite where a formula has no value at a sample."""
    model, X = around.tangent.model, around.problem.X
    defined = all(np.isfinite(branch(X @ w0)).all() for branch, w0 in zip(model.branches, model.W0, strict=True))
    return objective_of(around) if defined else np.inf
