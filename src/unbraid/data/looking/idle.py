"""Directions along which samples do not differ: inputs that are constant, and sums of inputs that are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unbraid.kernels.arrays import Array
from unbraid.kernels.decompositions import eigen

if TYPE_CHECKING:
    from unbraid.data.problem import Problem
    from unbraid.data.units import Units

MOST_INPUTS = 1000
"""Of more inputs nothing is told."""
ROUNDING = 1e-13
"""Squares of differences below this share of the largest are rounding."""


def idle_directions(problem: Problem, units: Units) -> Array:
    """Orthonormal directions (m, k), in a solver's units, along which samples do not differ; k is 0 as a rule.

    Values alone say nothing about what a function does along them. Jacobians do, so that there are none then. Fewer
    samples than inputs are fitted without them.
    """
    if problem.J is not None or problem.m >= problem.S or problem.m > MOST_INPUTS:
        return np.zeros((problem.m, 0))
    values, vectors = eigen(problem.sum(input_products, units, entries=problem.m))
    return vectors[:, values <= ROUNDING * values[-1]] if values[-1] > 0.0 else np.zeros((problem.m, 0))


def input_products(block: Problem, units: Units) -> Array:
    """Zᵀ Z (m, m) of the inputs of a block, in a solver's units."""
    Z = (block.X - units.center) / units.x_scale
    return Z.T @ Z


def without_idle(W0: Array, idle: Array) -> Array:
    """Rows (..., r, m) less what is idle in them; a row that is nothing else stays."""
    rest = W0 - (W0 @ idle) @ idle.T
    length, before = (np.sum(one**2, axis=-1, keepdims=True) for one in (rest, W0))
    return np.where(length > ROUNDING * before, rest, W0)
