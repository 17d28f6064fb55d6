"""How samples in the user's units become those of a solver."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np

from unbraid.data.problem import Problem
from unbraid.data.reductions import extremes, inputs
from unbraid.data.units import Units
from unbraid.kernels.arrays import Array, BoolArray

WRITTEN_OUT_ENTRIES = 1 << 18
"""Entries of a block up to which the scales of its rows are written out."""


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
