"""Samples in memory, in a solver's units: a block of them, or all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Concatenate, Self

import numpy as np

from unbraid.data.estimates import fill_gaps
from unbraid.data.problem import Problem
from unbraid.data.reductions import Summand
from unbraid.data.sample_set import SampleSet, sum_blocks
from unbraid.data.units import Scaling, Units
from unbraid.kernels.arrays import Array, BoolArray, IndexArray, block_length, even_blocks

KEPT_ENTRIES = 1 << 20
"""Entries of (starts, r, S) up to which branches at the samples are kept from sum to sum."""


@dataclass(frozen=True, eq=False)
class Samples(SampleSet):
    """Samples in memory: a block of them, or all, for all starts or `stacked` for each.

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
    rows
        (S,), weights of the samples, of mean one over all; None: all the same.
    known_values, known_jacobian
        (S, n) and (S, n·m), which entries count; None: all. Those that do not hold finite numbers all the same.
    given_norm
        ‖J‖² where it is known already; None: it is computed when asked for.
    """

    X: Array
    F: Array | None
    J: Array | None
    weight: Array
    rows: Array | None = None
    known_values: BoolArray | None = None
    known_jacobian: BoolArray | None = None
    given_norm: Array | None = None

    @property
    def size(self) -> int:
        return int(self.X.shape[-2])

    @property
    def m(self) -> int:
        return int(self.X.shape[-1])

    @property
    def has_values(self) -> bool:
        return self.F is not None

    @property
    def has_jacobians(self) -> bool:
        return self.J is not None

    @property
    def complete(self) -> bool:
        return self.known_values is None and self.known_jacobian is None

    def sum(self, function: Callable[Concatenate[Samples, ...], Summand], *arguments: Any, width: int) -> Summand:
        return sum_blocks(self.blocks(width), function, arguments)

    def blocks(self, width: int) -> Sequence[Samples]:
        """The samples cut into blocks at which so many branches are evaluated: views."""
        length = block_length(width)
        if self.size <= length or self.X.ndim > 2:
            return (self,)
        return [self.part(part) for part in even_blocks(self.size, length)]

    def kept_blocks(self, starts: int, width: int) -> Sequence[Samples] | None:
        return self.blocks(width) if starts * width * self.size <= KEPT_ENTRIES else None

    def part(self, part: slice | IndexArray) -> Samples:
        """Some of the samples: views where `part` is a slice."""
        arrays = (self.F, self.J, self.rows, self.known_values, self.known_jacobian)
        F, J, rows, values, jacobian = (None if array is None else array[part] for array in arrays)
        return Samples(self.X[part], F, J, self.weight, rows, values, jacobian)  # type: ignore[arg-type]

    def gathered(self) -> Samples:
        return self

    def with_values_less(self, center: Array) -> Samples:
        return replace(self, F=self.values - center, given_norm=self.jacobian_norm)

    def without_values(self) -> Samples:
        return replace(self, F=None, known_values=None)

    def without_jacobians(self) -> Samples:
        """These samples without their Jacobians."""
        return replace(self, J=None, known_jacobian=None, given_norm=None)

    @cached_property
    def knot_inputs(self) -> Array:
        return self.X if self.knot_samples is None else self.X[..., self.knot_samples, :]

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
        """Residuals of some of the Jacobians (..., part, n·m) times their weights, zero where they are not known."""
        if self.rows is not None:
            residual = residual * self.rows[part, None]
        return residual if self.known_jacobian is None else residual * self.known_jacobian[part]

    def jacobian(self, part: slice) -> Array:
        """J of some samples in the solver's units: a copy, (part, n·m)."""
        return self.jacobians[part] * self.weight

    @property
    def jacobians(self) -> Array:
        """The Jacobians J (S, n·m) in the user's units; there must be some."""
        assert self.J is not None
        return self.J

    @property
    def values(self) -> Array:
        """The values F (S, n) in the solver's units; there must be some."""
        assert self.F is not None
        return self.F

    def as_filled(self, weighted: bool) -> Samples:
        """The same samples with what fills their gaps counting like all else, and without weights if so wished."""
        rows = self.rows if weighted else None
        if rows is self.rows and self.complete:
            return self
        return Samples(self.X, self.F, self.J, self.weight, rows)

    @classmethod
    def stacked(cls, several: Sequence[Self]) -> Self:
        """Several problems of one shape as one, with a leading axis: every start has samples of its own."""
        F = None if several[0].F is None else np.stack([one.F for one in several if one.F is not None])
        J = None if several[0].J is None else np.stack([one.J for one in several if one.J is not None])
        return cls(np.stack([one.X for one in several]), F, J, np.stack([one.weight for one in several]))

    def take(self, index: IndexArray) -> Self:
        if self.X.ndim == 2:
            return self
        return type(self)(
            self.X[index],
            None if self.F is None else self.F[index],
            None if self.J is None else self.J[index],
            self.weight[index],
        )

    def with_jacobians(self, J: Array) -> Samples:
        """These samples with other Jacobians (S, n, m), given in the solver's units."""
        flat = J.reshape(len(J), -1)
        return replace(self, J=flat, weight=np.ones(flat.shape[1]), known_jacobian=None, given_norm=None)

    @classmethod
    def of(cls, problem: Problem, units: Units) -> Samples:
        """The problem in those units, in memory. J is not copied unless it has gaps."""
        return cls.scaled(problem if problem.complete else fill_gaps(problem), Scaling.of(problem, units), problem)

    @classmethod
    def scaled(cls, problem: Problem, scaling: Scaling, with_gaps: Problem | None = None) -> Samples:
        """A problem in memory, of all samples or some, as the scaling has it; what is known is that of `with_gaps`."""
        J = None if problem.J is None else problem.J.reshape(problem.S, -1)
        F = None if problem.F is None or not scaling.values else scaling.outputs(problem.F)
        rows = None if problem.weights is None else problem.weights / scaling.mean_weight
        values = jacobian = None
        if not scaling.complete:
            gaps = problem if with_gaps is None else with_gaps
            values, jacobian = None if F is None else which_known(gaps.F), which_known(gaps.J)
            F, J = (None if array is None else np.nan_to_num(array) for array in (F, J))  # where gaps are not filled
        return cls(scaling.inputs(problem.X), F, J, scaling.weight, rows, values, jacobian)


def which_known(array: Array | None) -> BoolArray | None:
    """Which entries (S, ·) are not NaN; None where all are."""
    known = None if array is None else ~np.isnan(array.reshape(len(array), -1))
    return None if known is None or known.all() else known
