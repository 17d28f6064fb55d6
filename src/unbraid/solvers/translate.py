"""Between the user's units and the solver's: a given model to start from, and a run as a finished model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from unbraid.bases import Basis, Placement
from unbraid.bases.constraints import Constraint, NonNegative
from unbraid.bases.projection import Projection
from unbraid.data.problem import Problem
from unbraid.data.reductions import mean, variance
from unbraid.data.units import Units, positive
from unbraid.kernels.arrays import Array
from unbraid.kernels.gauge import row_lengths
from unbraid.results.branch import FittedBranch
from unbraid.results.model import DecoupledModel
from unbraid.solvers.iterates import Iterates, Run


@dataclass(frozen=True)
class GivenModel:
    """A model in the solver's units: W0 (r, m), W1 (n, r), and what gives slopes and values (S, r) at inputs (S, m)."""

    W0: Array
    W1: Array
    at: Callable[[Array], tuple[Array, Array]]

    @classmethod
    def of(cls, model: DecoupledModel, units: Units, frame: Array | None = None) -> Self:
        """A model in the user's units; `frame` (m, q) is the basis of the solver's inputs, None: all of them.

        With V = W0 x_scale and β the lengths of its rows, the solver's branch inputs are V z / β, in which slopes
        are β times as large.
        """
        V = model.W0 * units.x_scale
        V = V if frame is None else V @ frame
        length = row_lengths(V)
        length = np.where(length > 0.0, length, 1.0)
        return cls(V / length[:, None], model.W1 / units.f_scale[:, None], Branches(model, units, length, frame))


@dataclass(frozen=True)
class Branches:
    """Slopes and values of a model's branches at inputs in the solver's units."""

    model: DecoupledModel
    units: Units
    length: Array
    frame: Array | None = None

    def __call__(self, X: Array) -> tuple[Array, Array]:
        """Both (S, r), at X (S, m), or (S, q) in the frame."""
        X = X if self.frame is None else X @ self.frame.T
        u = (X * self.units.x_scale + self.units.center) @ self.model.W0.T
        G = np.stack([g.derivative(u[:, j]) for j, g in enumerate(self.model.branches)], axis=-1)
        R = np.stack([g(u[:, j]) for j, g in enumerate(self.model.branches)], axis=-1)
        return G * self.length, R


def finish_run(
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
    A run that found nothing finite gives branches of zero.
    """
    one = run.best
    placement, a, W0, W1 = one.placement.select(0), one.a[0], one.W0[0], one.W1[0]
    reach = np.zeros((len(a), 2)) if one.reach is None else one.reach[0]
    if not np.isfinite(run.objective):
        a, W0, W1 = np.zeros_like(a), np.nan_to_num(W0), np.zeros_like(W1)
    powers = np.frexp(np.abs(a).max(axis=-1))[1]  # of two: squares of what was found need not be finite
    a, W1 = np.ldexp(a, -powers[:, None]), np.ldexp(W1, powers)
    inner = W0, units, placement, a
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
    projection = Projection.onto(constraints, offset)
    batch = placement.select(None)  # shifted and scaled coefficients are feasible to rounding: now exactly
    a = projection.from_shape_coordinates(batch, projection.shape_coordinates(batch, a[None]))[0]
    model = in_user_units(units, W0, W1 * spread, FittedBranches(basis, placement, a, reach))
    if not offset or problem.F is None:
        return model
    return model.changed(bias=mean(problem, value_residuals, model))


class FittedBranches(NamedTuple):
    """The branches of one model: a basis, where it is placed, coordinates a (r, K), and reaches (r, 2)."""

    basis: Basis
    placement: Placement
    a: Array
    reach: Array


def in_user_units(units: Units, W0: Array, W1: Array, branches: FittedBranches) -> DecoupledModel:
    """Lift one iterate into the user's units, with unit rows of W0.

    From u = W0 z to u' = W0' x: u' = (u + V center) / β with V = W0 / x_scale and β the lengths of
    its rows. Placements move along; their coordinates a, and reaches, stay.
    """
    basis, placement, a, reach = branches
    V = W0 / units.x_scale
    length = positive(np.linalg.norm(V, axis=-1), otherwise=1.0, noise=0.0)
    moved = placement.moved(1.0 / length, (V @ units.center) / length)
    fitted = [FittedBranch(basis, moved.select(j), a[j], reach[j]) for j in range(len(W0))]
    return DecoupledModel(V / length[:, None], W1 * units.f_scale[:, None], fitted)


def in_solver_units(model: DecoupledModel, units: Units) -> Iterates:
    """A fitted model as a batch of one in a solver's units: the inverse of `in_user_units`, but for the bias.

    From u' = W0' x to u = V z / β with V = W0' x_scale and β the lengths of its rows: u = (u' - W0' center) / β.
    """
    branches = [branch for branch in model.branches if isinstance(branch, FittedBranch)]
    assert len(branches) == model.rank
    V = model.W0 * units.x_scale
    length = row_lengths(V)
    length = np.where(length > 0.0, length, 1.0)
    first, *others = [branch.placement.select(None) for branch in branches]
    placement = first.joined(others).moved(1.0 / length, -(model.W0 @ units.center) / length)
    a, reach = (
        np.stack(every)[None] for every in zip(*((one.coordinates, one.reach) for one in branches), strict=True)
    )
    W0, W1 = (V / length[:, None])[None], (model.W1 / units.f_scale[:, None])[None]
    return Iterates(W0, W1, placement.select(None), a, reach)


def branch_values(block: Problem, W0: Array, units: Units, placement: Placement, a: Array) -> Array:
    """What the branches give at a block of samples, in the solver's units, held to the range they were placed on."""
    low, high = np.moveaxis(placement.domain(), -1, 0)[..., None]
    u = W0 @ ((block.X - units.center) / units.x_scale).T
    return placement.evaluate(a, placement.at(np.clip(u, low, high))).T


def value_residuals(block: Problem, model: DecoupledModel) -> Array:
    """What a model leaves of the values of a block."""
    assert block.F is not None
    return block.F - model(block.X)
