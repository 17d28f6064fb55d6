"""Errors of a model on samples that it was not fitted to: within the range that was seen in training, and outside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unbraid.data.magnitudes import Magnitudes
from unbraid.data.problem import Problem
from unbraid.data.reductions import weighted_sums
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.kernels.ranges import beyond_ends
from unbraid.metrics import percents_of_spread, ratio
from unbraid.results.carrying import carrying, some_branches
from unbraid.results.model import DecoupledModel
from unbraid.results.worth.held_out import percents


@dataclass(frozen=True, repr=False)
class FreshError:
    """What `fit.error_on` gives. An error counts in the spread of all samples given.

    Attributes
    ----------
    output_errors, inside_errors, outside_errors
        e_i in %, (n,), of all samples, of those within the range of every branch, and of those outside; NaN where there
        are none. None without values.
    jacobian_error, jacobian_inside, jacobian_outside
        Error(J) likewise; None without Jacobians.
    samples, outside
        How many samples there are, and how many of them lie outside the range of a branch that was seen in training.
    """

    output_errors: Array | None
    inside_errors: Array | None
    outside_errors: Array | None
    jacobian_error: float | None
    jacobian_inside: float | None
    jacobian_outside: float | None
    samples: int
    outside: int

    @property
    def inside(self) -> int:
        """How many samples lie within the range of every branch."""
        return self.samples - self.outside

    def __repr__(self) -> str:
        lines = [f"Errors on {self.samples} samples, {self.outside} of them outside the range seen in training"]
        kinds = (
            ("all", self.output_errors, self.jacobian_error),
            ("inside", self.inside_errors, self.jacobian_inside),
            ("outside", self.outside_errors, self.jacobian_outside),
        )
        for name, values, slopes in kinds:
            parts = [] if values is None else [f"output errors {percents(values)} %"]
            parts += [] if slopes is None else [f"Error(J) {slopes:.2e}"]
            lines.append(f"  {name:8}{'; '.join(parts)}")
        return "\n".join(lines)


@np.errstate(all="ignore")
def error_on(model: DecoupledModel, problem: Problem) -> FreshError:
    """The errors of a model on samples, those outside the range of a branch apart; in blocks."""
    sizes = Magnitudes.of(problem)  # squares of very large and very small numbers would not be numbers
    model, problem = model.rescaled(-sizes.x, -sizes.f), sizes.problem(problem)
    values, slopes, outside = problem.sum(block_squares, model)
    center = values[2].sum(axis=0) / np.maximum(values[0].sum(axis=0), np.finfo(float).tiny)
    errors: list[Array | None] = [None] * 3
    if problem.F is not None:
        spread = problem.sum(block_spread, center)
        each = [values.sum(axis=1), values[:, 0], values[:, 1]]
        errors = [in_percent_of(one[1], one[0], spread, values[0].sum(axis=0), center) for one in each]
    steep: list[float | None] = [None] * 3
    if problem.J is not None:
        kinds = (slopes.sum(axis=1), *slopes.T)
        steep = [ratio(float(one[0]), float(one[1])) if one[1] > 0.0 else np.nan for one in kinds]
    return FreshError(errors[0], errors[1], errors[2], steep[0], steep[1], steep[2], problem.S, int(outside))


def in_percent_of(residual: Array, count: Array, spread: Array, whole: Array, center: Array) -> Array:
    """Errors in % (n,): mean squares of residuals over those of outputs, NaN where nothing is known."""
    as_all = residual * whole / np.maximum(count, np.finfo(float).tiny)  # as if all were as wrong as these
    return np.where(count > 0.0, percents_of_spread(as_all, spread, center * np.sqrt(whole)), np.nan)


def block_squares(block: Problem, model: DecoupledModel) -> tuple[Array, Array, int]:
    """Of a block, inside and outside: counts, residual squares, totals of values (3, 2, n); slopes (2, 2); outside."""
    outside = beyond_training(model, block.X)
    rows = np.ones(block.S) if block.weights is None else block.weights
    values, slopes = np.zeros((3, 2, block.n)), np.zeros((2, 2))
    for kind, some in enumerate((~outside, outside)):
        w = rows * some
        if block.F is not None:
            known = ~np.isnan(block.F)
            off = np.where(known, block.F - model(block.X), 0.0)
            values[:, kind] = w @ known, w @ off**2, w @ np.where(known, block.F, 0.0)
        if block.J is not None:
            known = ~np.isnan(block.J)
            off = np.where(known, block.J - model.jacobian(block.X), 0.0)
            for i, what in enumerate((off, np.where(known, block.J, 0.0))):
                slopes[i, kind] = float(w @ np.sum(what**2, axis=(1, 2)))
    return values, slopes, int(np.count_nonzero(outside & (rows > 0.0)))


def block_spread(block: Problem, center: Array) -> Array:
    """Weighted squares of the values of a block around a centre, (n,)."""
    assert block.F is not None
    return weighted_sums(np.square(block.F - center), block.weights)[1]


def beyond_training(model: DecoupledModel, X: Array) -> BoolArray:
    """Which points lie outside the training range of any branch that carries something, by more than rounding: (S,)."""
    model = some_branches(model, carrying(model))
    u = X @ model.W0.T
    low, high = np.array([branch.domain for branch in model.branches]).T
    below, above = beyond_ends(u, low, high)
    return np.asarray((below | above).any(axis=1))
