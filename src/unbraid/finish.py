"""The last step: a run becomes a model in the user's units and in a gauge that reads well."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unbraid.arrays import Array
from unbraid.bases import Basis, Placement
from unbraid.constraints import Constraint, NonNegative
from unbraid.iterate import Run
from unbraid.model import DecoupledModel
from unbraid.moments import mean, variance
from unbraid.problem import Problem
from unbraid.projection import Projection
from unbraid.units import Units


def solved_for(constraints: Sequence[Constraint | None], offset: bool) -> list[Constraint | None]:
    """The constraints a solver has to see: with a free offset any branch can be shifted up, so not NonNegative."""
    return [None if offset and isinstance(one, NonNegative) else one for one in constraints]


def finished(
    problem: Problem,
    units: Units,
    basis: Basis,
    run: Run,
    constraints: Sequence[Constraint | None],
    offset: bool,
) -> DecoupledModel:
    """The model of one run in the user's units, in a gauge that reads well.

    Values of a branch have unit standard deviation over the samples, W1 taking up the scale; with a free offset
    their mean is zero (where they must be nonnegative: their least coefficient), the offset taking up the constants.
    """
    one = run.best
    placement, a = one.placement.select(0), one.a[0]
    inner = one.W0[0], units, placement, a
    long = problem.m + 16 * len(a)
    center = mean(problem, branch_values, *inner, entries=long, counted_once=True)
    spread = np.sqrt(variance(problem, center, branch_values, *inner, entries=long, counted_once=True))
    spread = np.where(spread > 0.0, spread, 1.0)
    a = a / spread[:, None]
    if offset:
        a = placement.plus(a, -center / spread)
        least = placement.shape_coefficients(a, 0)[0].min(axis=-1)
        raised = np.array([isinstance(constraint, NonNegative) for constraint in constraints])
        a = placement.plus(a, np.where(raised, -least, 0.0))
    projection = Projection.onto(solved_for(constraints, offset))
    batch = placement.select(None)  # shifted and scaled coefficients are feasible to rounding: now exactly
    a = projection.from_shape_coordinates(batch, projection.shape_coordinates(batch, a[None]))[0]
    model = units.model(one.W0[0], one.W1[0] * spread, basis, placement, a)
    if not offset or problem.F is None:
        return model
    return DecoupledModel(model.W0, model.W1, model.branches, mean(problem, residuals, model))


def branch_values(block: Problem, W0: Array, units: Units, placement: Placement, a: Array) -> Array:
    """What the branches give at a block of samples, in the solver's units, held to the range they were placed on."""
    low, high = np.moveaxis(placement.domain(), -1, 0)[..., None]
    u = W0 @ ((block.X - units.center) / units.x_scale).T
    return placement.evaluate(a, placement.at(np.clip(u, low, high))).T


def residuals(block: Problem, model: DecoupledModel) -> Array:
    """What a model leaves of the values of a block."""
    assert block.F is not None
    return block.F - model(block.X)
