"""A problem in a solver's units: what the linear steps work on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Concatenate, Self, TypeVar

import numpy as np

from unbraid.arrays import Array, BoolArray, IndexArray, blocks
from unbraid.gaps import filled
from unbraid.problem import Problem
from unbraid.units import Units

Summand = TypeVar("Summand")


@dataclass(frozen=True)
class Samples:
    """The data as the solver's equations see them, for all starts, or `stacked` for each.

    Attributes
    ----------
    X
        (S, m), in the solver's units.
    F
        (S, n), in the solver's units, or None.
    J
        (S, n·m): the user's own memory, or None. J · weight is what the equations call J.
    weight
        (n·m,).
    jacobian_norm
        ‖J‖² in the solver's units, 0 without Jacobians; every sum over samples is weighted, and over what is known.
    rows
        (S,), weights of the samples, of mean one; None: all the same.
    known_values, known_jacobian
        (S, n) and (S, n·m), which entries count; None: all. Those that do not hold finite numbers all the same.
    """

    X: Array
    F: Array | None
    J: Array | None
    weight: Array
    jacobian_norm: Array | float
    rows: Array | None = None
    known_values: BoolArray | None = None
    known_jacobian: BoolArray | None = None

    @cached_property
    def norm(self) -> Array:
        """What objectives are measured in: ‖J‖², or without Jacobians ‖F - mean F‖²; 1 where that is 0."""
        square = np.asarray(self.jacobian_norm)
        if self.J is None and self.F is not None:
            residual = self.F - self.mean_residual(self.F)
            square = np.sum(residual * self.weighted_values(residual), axis=(-2, -1))
        return np.where(square > 0.0, square, 1.0)

    def weighted(self, by_sample: Array) -> Array:
        """Numbers (..., S, ·) times the weights of the samples."""
        return by_sample if self.rows is None else by_sample * self.rows[:, None]

    def rooted(self, by_sample: Array) -> Array:
        """Numbers (..., S, ·) times the roots of the weights: their squares add up to weighted sums."""
        return by_sample if self.rows is None else by_sample * np.sqrt(self.rows)[:, None]

    def weighted_values(self, residual: Array) -> Array:
        """Residuals of the values (..., S, n) times their weights, zero where values are not known."""
        residual = self.weighted(residual)
        return residual if self.known_values is None else residual * self.known_values

    def weighted_jacobian(self, residual: Array, part: slice) -> Array:
        """Residuals of a block of Jacobians (..., block, n·m) times their weights, zero where they are not known."""
        if self.rows is not None:
            residual = residual * self.rows[part, None]
        return residual if self.known_jacobian is None else residual * self.known_jacobian[part]

    def mean(self, values: Array) -> Array:
        """The weighted mean of values (..., S, ·) over samples: (..., 1, ·)."""
        return np.asarray(self.weighted(values).mean(axis=-2, keepdims=True))

    def mean_residual(self, residual: Array) -> Array:
        """The weighted mean of residuals (..., S, n) over the values that are known: (..., 1, n)."""
        if self.known_values is None:
            return self.mean(residual)
        counts = self.mean(self.known_values.astype(np.float64))
        return self.mean(residual * self.known_values) / np.where(counts > 0.0, counts, 1.0)

    def as_filled(self, weighted: bool) -> Self:
        """The same samples with what fills their gaps counting like all else, and without weights if so wished."""
        rows = self.rows if weighted else None
        if rows is self.rows and self.known_values is None and self.known_jacobian is None:
            return self
        norm = 0.0 if self.J is None else square_norm(self.J, self.weight, rows)
        return type(self)(self.X, self.F, self.J, self.weight, norm, rows)

    @classmethod
    def stacked(cls, several: Sequence[Self]) -> Self:
        """Several problems of one shape as one, with a leading axis: every start has samples of its own."""
        F = None if several[0].F is None else np.stack([one.F for one in several if one.F is not None])
        J = None if several[0].J is None else np.stack([one.J for one in several if one.J is not None])
        norms = np.array([one.jacobian_norm for one in several])
        return cls(np.stack([one.X for one in several]), F, J, np.stack([one.weight for one in several]), norms)

    def take(self, index: IndexArray) -> Self:
        """The samples of some of the starts: the same for all unless they are stacked."""
        if self.X.ndim == 2:
            return self
        return type(self)(
            self.X[index],
            None if self.F is None else self.F[index],
            None if self.J is None else self.J[index],
            self.weight[index],
            np.asarray(self.jacobian_norm)[index],
        )

    def sum(self, function: Callable[Concatenate[Samples, ...], Summand], *arguments: Any) -> Summand:
        """Σ function(block, *arguments) over blocks of the samples: all of them are one block."""
        return function(self, *arguments)

    def jacobian(self, part: slice) -> Array:
        """J of a block of samples in the solver's units: a copy, (block, n·m)."""
        return self.jacobians[part] * self.weight

    @property
    def jacobians(self) -> Array:
        """J, for solvers that cannot do without."""
        assert self.J is not None
        return self.J

    def with_jacobians(self, J: Array) -> Self:
        """The same with Jacobians (S, n, m), given in the solver's units."""
        flat = J.reshape(len(J), -1)
        one = np.ones(flat.shape[1])
        return replace(self, J=flat, weight=one, jacobian_norm=square_norm(flat, one, self.rows))

    @classmethod
    def of(cls, problem: Problem, units: Units) -> Self:
        """The problem in those units. J is not copied unless it has gaps."""
        whole = filled(problem)
        J = None if whole.J is None else whole.J.reshape(problem.S, -1)
        weight = (units.x_scale / units.f_scale[:, None]).ravel()
        X = (problem.X - units.center) / units.x_scale
        constant = np.abs(X).max(axis=0) <= 1e-12 * np.abs(units.center / units.x_scale)
        X[:, constant] = 0.0  # what centring leaves of a constant input is rounding, not data
        F = None if whole.F is None else whole.F / units.f_scale
        rows = None if problem.weights is None else problem.weights / problem.weights.mean()
        known = [None if problem.complete else which_known(array) for array in (problem.F, problem.J)]
        norm = 0.0 if J is None else square_norm(J, weight, rows, known[1])
        return cls(X, F, J, weight, norm, rows, *known)


def which_known(array: Array | None) -> BoolArray | None:
    """Which entries (S, ·) are not NaN; None where all are."""
    known = None if array is None else ~np.isnan(array.reshape(len(array), -1))
    return None if known is None or known.all() else known


def square_norm(J: Array, weight: Array, rows: Array | None = None, known: BoolArray | None = None) -> float:
    """‖J · weight‖², with weights of the rows, over known entries."""
    total = 0.0
    for part in blocks(*J.shape):
        square = J[part] ** 2 if known is None else np.where(known[part], J[part] ** 2, 0.0)
        by_entry = square.sum(axis=0) if rows is None else rows[part] @ square
        total += float(by_entry @ weight**2)
    return total
