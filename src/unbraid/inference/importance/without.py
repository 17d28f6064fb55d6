r"""The held-out error of a model without one of its inputs or branches, to first order.

The input or the branch is taken out of the model, a few Gauss–Newton steps let what is left take over as much of it as
it can, with its smoothing as it is, and samples are left out one at a time as in `inference.leave_one_out`. Samples at
the ends of ranges count as all others do, and constraints of branches hold to first order only.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unbraid.bases.constraints import Constraint
from unbraid.data.magnitudes import largest
from unbraid.data.problem import Problem
from unbraid.data.units import Units, positive, spreads
from unbraid.inference.leave_one_out import chosen_samples, leave_out
from unbraid.inference.neighbourhood import Neighbourhood
from unbraid.inference.steps import STEPS, refitted
from unbraid.kernels.arrays import Array
from unbraid.results.branch import FittedBranch
from unbraid.results.carrying import carrying
from unbraid.results.model import DecoupledModel

SAMPLES = 2000
"""Samples that are looked at, at most."""
WORK, ROW_WORK = 1e11, 10
"""Multiplications that are spent on all of it, at most, and those of an entry of the rows."""


def affordable(around: Neighbourhood) -> bool:
    """Whether there is time to take out every input and every branch."""
    U, S, model = around.tangent.size, min(around.problem.S, SAMPLES), around.tangent.model
    return (model.m + model.rank) * STEPS * U * (ROW_WORK * S * around.numbers + U**2) <= WORK


def fewer_samples(around: Neighbourhood) -> Neighbourhood:
    """The same with at most `SAMPLES` samples, which then stand for more."""
    return around.thinned(SAMPLES)


def held_out_error(around: Neighbourhood) -> Array:
    """The error (n,) of samples that are left out one at a time, in % of the spread of each output.

    Without values: of its slopes, in % of their root mean square, inputs in units of their spread.
    """
    nowhere = np.zeros((around.problem.S, around.tangent.model.rank, 2), dtype=bool)
    left = leave_out(around, chosen_samples(around, nowhere[:, 0, 0]), nowhere)
    own = np.ones(around.problem.S) if around.problem.weights is None else around.problem.weights
    own, n = own[left.which], around.problem.n
    if around.problem.F is not None:
        return 100.0 * mean_root(own, left.residual[:, :n, None]) / value_spread(around.problem)
    residual = left.residual.reshape(len(own), n, -1) * around.objective.units.x_scale
    return 100.0 * mean_root(own, residual) / slope_size(around.problem, around.objective.units)


def value_spread(problem: Problem) -> Array:
    """The spread (n,) of the outputs, infinite of those that do not vary but for rounding."""
    assert problem.F is not None
    return positive(spreads(problem.F, problem.weights), otherwise=np.inf, noise=largest(problem.F))


def slope_size(problem: Problem, units: Units) -> Array:
    """The root mean square (n,) of the slopes of each output, inputs in units of their spread."""
    assert problem.J is not None
    weights = np.ones(problem.S) if problem.weights is None else problem.weights
    size = mean_root(weights, problem.J * units.x_scale)
    return np.where(size > 0.0, size, np.inf)


def mean_root(weights: Array, numbers: Array) -> Array:
    """Roots of weighted means over samples and entries of the squares of numbers (S, n, ·) that are known: (n,)."""
    known = ~np.isnan(numbers)
    squares = np.einsum("s,sik->i", weights, np.where(known, numbers, 0.0) ** 2)
    return np.asarray(np.sqrt(squares / np.maximum(np.einsum("s,sik->i", weights, known), np.finfo(float).tiny)))


def error_without_branch(around: Neighbourhood, constraints: tuple[Constraint | None, ...], j: int) -> Array:
    """The held-out error (n,) of the model without branch j."""
    model = around.tangent.model
    kept = [one for one in map(int, carrying(model)) if one != j]
    if not kept:
        return error_of_constant(around)
    fewer = model.changed(W0=model.W0[kept], W1=model.W1[:, kept], branches=[model.branches[one] for one in kept])
    theirs = tuple(constraints[one] if one < len(constraints) else None for one in kept)
    return held_out_error(refitted(around, fewer, theirs))


def error_without_input(around: Neighbourhood, constraints: tuple[Constraint | None, ...], k: int) -> Array:
    """The held-out error (n,) of the model without input k."""
    model, problem, units = around.tangent.model, around.problem, around.objective.units
    others = np.delete(np.arange(model.m), k)
    kept = [int(j) for j in carrying(model) if np.any(model.W0[j, others] != 0.0)]
    if not kept:
        return error_of_constant(around)
    branches = []
    for j in kept:
        branch = model.branches[j]
        assert isinstance(branch, FittedBranch)
        branches.append(branch.shifted(-float(units.center[k] * model.W0[j, k]), branch.coordinates))
    W0 = model.W0[np.ix_(np.array(kept), others)]
    fewer = DecoupledModel(W0, model.W1[:, kept], branches, model.bias)
    theirs = tuple(constraints[j] if j < len(constraints) else None for j in kept)
    J = None if problem.J is None else problem.J[:, :, others]
    left = replace(
        around,
        problem=Problem(problem.X[:, others], problem.F, J, problem.weights, "error" if problem.complete else "mask"),
        objective=replace(around.objective, units=Units(units.center[others], units.x_scale[others], units.f_scale)),
    )
    error = held_out_error(refitted(left, fewer, theirs))
    if problem.F is not None or problem.J is None:
        return error
    size, own = slope_size(problem, units), slope_size(left.problem, left.objective.units)
    weights = np.ones(problem.S) if problem.weights is None else problem.weights
    gone = mean_root(weights, problem.J[:, :, k : k + 1] * units.x_scale[k])  # these slopes are then said to be zero
    m = model.m
    return 100.0 * np.sqrt((m - 1) / m * (0.01 * error * own) ** 2 + gone**2 / m) / size


def error_of_constant(around: Neighbourhood) -> Array:
    """The held-out error (n,) of a model that is constant: its own mean is left out as well."""
    S, problem = around.problem.S * around.standing_for, around.problem
    if problem.F is None:
        return np.full(problem.n, 100.0)
    return np.where(np.isfinite(value_spread(problem)), 100.0 * S / max(S - 1.0, 1.0), 0.0)
