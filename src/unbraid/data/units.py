"""The units a fit is made in, so that results do not depend on the user's, and how samples are brought into them.

Inputs are centred and divided by their standard deviation (with long tails, by that of their bulk), outputs divided by
the root mean square of their Jacobian in those inputs: z = (x - center) / x_scale, y = f / f_scale. The model is given
back in the user's units. A shift of x is no change of the model's form: it moves the branches' knots.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np

from unbraid.data.problem import Problem
from unbraid.data.reductions import extremes, inputs, mean, outputs, variance, weighted_sums
from unbraid.kernels.arrays import Array, BoolArray, spread_out

CONSTANT_SHARE = 1e-6
"""The unit of an input that does not vary, as a share of it where it is large: 1 would be lost in its rounding."""
BULK, BULK_WIDTH = (0.1, 0.9), 2.563
"""Quantiles between which the bulk of an input lies, and how far apart they are where it is standard normal."""
FAR, FARTHEST = 3.0, 1e4
"""The largest ratio of an input's unit to what the bulk alone would make of it; and of its spread to its unit, so that
squares of far points stay numbers that one can calculate with."""
BULK_SAMPLES = 2048
"""So many samples say where the bulk lies."""
WRITTEN_OUT_ENTRIES = 1 << 18
"""Entries of a block up to which the scales of its rows are written out."""


@dataclass(frozen=True)
class Units:
    """Units of a fit: z = (x - center) / x_scale and y = f / f_scale, with center and x_scale (m,), f_scale (n,)."""

    center: Array
    x_scale: Array
    f_scale: Array

    @classmethod
    def as_given(cls, problem: Problem) -> Self:
        """The user's own units."""
        return cls(np.zeros(problem.m), np.ones(problem.m), np.ones(problem.n))

    @classmethod
    def balanced(cls, problem: Problem) -> Self:
        """Units in which inputs have unit spread and outputs unit slope."""
        center = mean(problem, inputs)
        spread = held_by_bulk(problem, np.sqrt(variance(problem, center, inputs)))
        far = np.abs(center)
        x_scale = positive(spread, otherwise=np.maximum(1.0, CONSTANT_SHARE * far), noise=far)
        if problem.J is not None:
            total, count = problem.sum(row_squares, x_scale)
            f_scale, rounded = np.sqrt(total / np.maximum(count, np.finfo(float).tiny)), np.zeros(problem.n)
        else:
            rounded = mean(problem, outputs)
            f_scale = np.sqrt(variance(problem, rounded, outputs))
        return cls(center, x_scale, positive(f_scale, otherwise=1.0, noise=np.abs(rounded)))


def held_by_bulk(problem: Problem, spread: Array) -> Array:
    """The spreads (m,) of the inputs, hardly larger than `FAR` times what they would be if only their bulk counted.

    The bulk lies between two quantiles of some samples; a factor from these quantiles to the standard deviation is that
    of the normal distribution. Far points count as all others do, but do not set the unit in which the others are seen.
    """
    some = spread_out(problem.S, BULK_SAMPLES) if problem.S > BULK_SAMPLES else slice(None)
    X = problem.X[some] if problem.home is None else problem.take(some).X
    low, high = np.quantile(np.asarray(X, dtype=np.float64), BULK, axis=0)
    bulk = (high - low) / BULK_WIDTH
    return np.where(bulk > 0.0, np.clip(FAR * bulk, spread / FARTHEST, spread), spread)


def positive(scale: Array, otherwise: Array | float, noise: Array | float) -> Array:
    """The scale, with `otherwise` where it is zero or not above the rounding of `noise`."""
    return np.where(scale > 1e-13 * np.asarray(noise), np.where(scale > 0.0, scale, otherwise), otherwise)


def spreads(F: Array, weights: Array | None) -> Array:
    """The weighted standard deviations of the columns of an array F (S, n), of what is known of them: (n,)."""
    count, total = weighted_sums(F, weights)
    count = np.maximum(count, np.finfo(float).tiny)
    return np.asarray(np.sqrt(weighted_sums((F - total / count) ** 2, weights)[1] / count))


def row_squares(block: Problem, x_scale: Array) -> tuple[Array, Array]:
    """Weighted sums over samples and inputs of (J[s, i, k] x_scale[k])² and of 1, of what is known: (n,) and (n,)."""
    assert block.J is not None
    rows = np.ones(block.S) if block.weights is None else block.weights
    if block.complete:
        return np.einsum("s,sik,k->i", rows, block.J**2, x_scale**2), np.full(block.n, block.m * rows.sum())
    known = ~np.isnan(block.J)
    squares = np.where(known, block.J, 0.0) ** 2
    return np.einsum("s,sik,k->i", rows, squares, x_scale**2), np.einsum("s,sik->i", rows, known)


class RowScale:
    """(row - center) / scale for the rows of blocks: written out for a whole block, which is several times faster."""

    def __init__(self, center: Array, scale: Array) -> None:
        self.center, self.scale = center, scale
        self.written_out = np.empty((2, 0))

    def of(self, rows: Array) -> Array:
        """(row - center) / scale for rows (·, k)."""
        if rows.size > WRITTEN_OUT_ENTRIES:
            return np.asarray((rows - self.center) / self.scale)
        if rows.size > self.written_out.shape[1]:
            self.written_out = np.tile(np.stack([self.center, self.scale]), len(rows))
        center, scale = self.written_out[:, : rows.size]
        scaled = rows.reshape(-1) - center
        scaled /= scale
        return np.asarray(scaled.reshape(rows.shape))


@dataclass(frozen=True)
class Scaling:
    """How samples in the user's units become those of a solver.

    `constant` (m,) says which inputs do not vary: what centring leaves of these is rounding, not data. `mean_weight` is
    that of the samples' weights; `center` (n,), in the solver's units, is taken off the values, and without `values`
    they are left out.
    """

    units: Units
    constant: BoolArray
    mean_weight: float
    complete: bool
    center: Array
    values: bool = True

    @classmethod
    def of(cls, problem: Problem, units: Units) -> Self:
        """The scaling that brings all samples of a problem into given units."""
        largest = np.abs(extremes(problem, inputs) - units.center).max(axis=0) / units.x_scale
        constant = largest <= 1e-12 * np.abs(units.center / units.x_scale)
        weight = 1.0 if problem.weights is None else problem.sum(weight_of) / problem.S
        return cls(units, constant, weight, problem.complete, np.zeros(problem.n))

    @property
    def weight(self) -> Array:
        """What entries of a Jacobian in the user's units are multiplied by, (n·m,)."""
        return np.asarray((self.units.x_scale / self.units.f_scale[:, None]).ravel())

    @property
    def input_scale(self) -> Array:
        """What centred inputs are divided by, (m,); infinite where they do not vary."""
        return np.where(self.constant, np.inf, self.units.x_scale)

    def inputs(self, X: Array) -> Array:
        """X (·, m) in the solver's units."""
        return self._input_rows.of(X)

    def outputs(self, F: Array) -> Array:
        """F (·, n) in the solver's units."""
        return self._value_rows.of(F)

    @cached_property
    def _input_rows(self) -> RowScale:
        return RowScale(self.units.center, self.input_scale)

    @cached_property
    def _value_rows(self) -> RowScale:
        return RowScale(self.center * self.units.f_scale, self.units.f_scale)

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}  # what follows from them is not sent along


def weight_of(block: Problem) -> float:
    """The weight of all samples of a block."""
    assert block.weights is not None
    return float(block.weights.sum())
