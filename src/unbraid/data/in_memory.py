"""Samples in memory, in a solver's units: a block of them, or all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Concatenate, NamedTuple, Self, TypeVar

import numpy as np

from unbraid.bases import Placement
from unbraid.data import blocks as sizes
from unbraid.data.estimates import filled
from unbraid.data.problem import Problem
from unbraid.data.reductions import total
from unbraid.data.sample_set import SampleSet
from unbraid.data.scaling import Scaling
from unbraid.data.units import Units
from unbraid.kernels.arrays import Array, BoolArray, IndexArray, spread_out

Summand = TypeVar("Summand")
Kept = TypeVar("Kept")


class AtSamples(NamedTuple):
    """Branches at the samples of a block: u (B, r, S), as it is and prepared, slopes and values (B, S, r)."""

    u: Array
    prepared: Any
    slopes: Array
    values: Array


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
    among
        How many samples there are in all, this block's among them; None: these.
    """

    X: Array
    F: Array | None
    J: Array | None
    weight: Array
    rows: Array | None = None
    known_values: BoolArray | None = None
    known_jacobian: BoolArray | None = None
    among: int | None = None
    _memory: dict[str, Any] = field(default_factory=dict, repr=False)

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
        return total(function(block, *arguments) for block in self.blocks(width))

    def blocks(self, width: int) -> Sequence[Samples]:
        """The samples as blocks for so many branches: views, and the same ones whenever they are asked for."""
        length = sizes.block_length(width)
        if self.size <= length or self.X.ndim > 2:
            return (self,)
        kept: dict[int, Sequence[Samples]] = self._memory.setdefault("blocks", {})
        if length not in kept:
            kept[length] = [self.part(part) for part in sizes.slices(self.size, length)]
        return kept[length]

    def part(self, part: slice | IndexArray) -> Samples:
        """Some of them."""
        arrays = (self.F, self.J, self.rows, self.known_values, self.known_jacobian)
        F, J, rows, values, jacobian = (None if array is None else array[part] for array in arrays)
        return Samples(self.X[part], F, J, self.weight, rows, values, jacobian, self.among or self.size)  # type: ignore[arg-type]

    def gathered(self) -> Samples:
        return self

    def with_values_less(self, center: Array) -> Samples:
        return replace(self, F=self.values - center, _memory={})

    def without_values(self) -> Samples:
        return replace(self, F=None, known_values=None, _memory={})

    def without_jacobians(self) -> Samples:
        """The same samples with values only."""
        return replace(self, J=None, known_jacobian=None, _memory={})

    @cached_property
    def knot_inputs(self) -> Array:
        return self.X if self.size <= sizes.KNOT_SAMPLES else self.X[..., spread_out(self.size, sizes.KNOT_SAMPLES), :]

    def at(self, W0: Array, placement: Placement, a: Array) -> AtSamples:
        """Branches at these samples; the last ones asked for are remembered where the samples are few."""

        def compute() -> AtSamples:
            u, prepared = self.inputs(W0, placement)
            values, slopes = placement.value_and_slope(a, prepared)
            return AtSamples(u, prepared, slopes.mT, values.mT)

        return self._remembered("at", W0, a, compute)

    def inputs(self, W0: Array, placement: Placement) -> tuple[Array, Any]:
        """Branch inputs u = W0 x (B, r, S), as they are and prepared; remembered likewise."""

        def compute() -> tuple[Array, Any]:
            u = W0 @ self.X.mT
            return u, placement.at(u)

        return self._remembered("inputs", W0, placement, compute)

    def curvature(self, W0: Array, placement: Placement, a: Array) -> Array:
        """Second derivatives of branches at these samples, (B, S, r); remembered likewise."""
        return self._remembered("curvature", W0, a, lambda: placement.evaluate(a, self.inputs(W0, placement)[1], 2).mT)

    def _remembered(self, name: str, W0: Array, of: object, compute: Callable[[], Kept]) -> Kept:
        """What was computed last under that name, if it was for this very W0 and `of`; else computed, and kept."""
        kept = self._memory.get(name)
        if kept is not None and kept[0] is of and kept[1] is W0:
            found: Kept = kept[2]
            return found
        found = compute()
        if self._keeps(W0):
            self._memory[name] = (of, W0, found)
        return found

    def _keeps(self, W0: Array) -> bool:
        """Whether what branches are at the samples is little enough to be remembered."""
        return bool(W0.shape[0] * W0.shape[1] * (self.among or self.size) <= sizes.KEPT_ENTRIES)

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
        """J, in the user's units."""
        assert self.J is not None
        return self.J

    @property
    def values(self) -> Array:
        """F."""
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
        """The same with Jacobians (S, n, m), given in the solver's units."""
        flat = J.reshape(len(J), -1)
        return replace(self, J=flat, weight=np.ones(flat.shape[1]), known_jacobian=None, _memory={})

    @classmethod
    def of(cls, problem: Problem, units: Units) -> Samples:
        """The problem in those units, in memory. J is not copied unless it has gaps."""
        return cls.scaled(filled(problem), Scaling.of(problem, units), problem)

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
        return cls(scaling.inputs(problem.X), F, J, scaling.weight, rows, values, jacobian, scaling.size)


def which_known(array: Array | None) -> BoolArray | None:
    """Which entries (S, ·) are not NaN; None where all are."""
    known = None if array is None else ~np.isnan(array.reshape(len(array), -1))
    return None if known is None or known.all() else known
