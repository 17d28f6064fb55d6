"""A problem in a solver's units: what the linear steps work on, through sums over blocks of samples.

Solvers ask a `SampleSet` for sums Σ_blocks function(block, …) and for a few numbers about all samples, and never for
an array over all of them. A block is a `Samples`: arrays in memory. Few samples are one block, and then the
whole set is that block; many are `Streamed` from where they lie.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Concatenate, NamedTuple, Self, TypeVar

import numpy as np

from unbraid.arrays import BLOCK_ENTRIES as BLOCK_OF_ONE
from unbraid.arrays import Array, BoolArray, IndexArray, blocks, spread_out
from unbraid.bases import Placement
from unbraid.gaps import filled
from unbraid.moments import Extremes, extremes, inputs
from unbraid.problem import Problem
from unbraid.sums import total
from unbraid.units import Units

BLOCK_ENTRIES = 1 << 15
"""Entries of (r, samples) in a block: what a sweep computes of them stays in a core's cache."""
LEAST_BLOCK = 256
"""Samples in a block at least: below, calling takes longer than computing."""
KNOT_SAMPLES = 1 << 12
"""So many samples, and the ends of the range of all, say where knots go."""
KEPT_ENTRIES = 1 << 20
"""Entries of (starts, r, S) up to which branches at the samples are remembered until others are asked for."""
IN_MEMORY_ENTRIES = 1 << 22
"""Entries of X and F up to which they are kept in the solver's units: 32 MB of float64."""

Summand = TypeVar("Summand")


class ValueSums(NamedTuple):
    """Sums over samples of the values: weighted, and the weights of those that are known; (..., 1, n) each."""

    values: Array
    weight: Array


class AtSamples(NamedTuple):
    """Branches at the samples of a block: u (B, r, S), as it is and prepared, slopes and values (B, S, r)."""

    u: Array
    prepared: Any
    slopes: Array
    values: Array


class SampleSet(ABC):
    """All samples of a fit, in the solver's units.

    Attributes
    ----------
    weight
        (n·m,), turns Jacobians in the user's units into the solver's.
    has_values, has_jacobians
        What is given.
    """

    weight: Array

    @property
    @abstractmethod
    def size(self) -> int:
        """How many samples: S."""

    @property
    @abstractmethod
    def m(self) -> int:
        """How many inputs."""

    @property
    def n(self) -> int:
        """How many outputs."""
        return int(self.weight.shape[-1]) // self.m

    @property
    @abstractmethod
    def has_values(self) -> bool:
        """Whether there is F."""

    @property
    @abstractmethod
    def has_jacobians(self) -> bool:
        """Whether there is J."""

    @abstractmethod
    def sum(self, function: Callable[Concatenate[Samples, ...], Summand], *arguments: Any, width: int) -> Summand:
        """Σ function(block, *arguments); `width` is how many branches the function looks at."""

    @abstractmethod
    def gathered(self) -> Samples:
        """All samples in memory, for solvers that cannot do with sums."""

    @abstractmethod
    def without_values(self) -> SampleSet:
        """The same samples with Jacobians only."""

    @property
    @abstractmethod
    def knot_inputs(self) -> Array:
        """X of the samples that say where knots go, (..., at most KNOT_SAMPLES, m)."""

    def take(self, index: IndexArray) -> SampleSet:
        """The samples of some of the starts: the same for all unless they are stacked."""
        return self

    @cached_property
    def jacobian_norm(self) -> Array:
        """‖J‖², 0 without Jacobians; like every sum over samples it is weighted, and over what is known."""
        return self.sum(jacobian_square, width=1) if self.has_jacobians else np.zeros(())

    @cached_property
    def _value_sums(self) -> ValueSums:
        return self.sum(value_sums, width=1)

    @cached_property
    def mean_values(self) -> Array:
        """The mean of F over what is known of it, (..., 1, n)."""
        sums = self._value_sums
        return sums.values / np.where(sums.weight > 0.0, sums.weight, 1.0)

    @property
    def known_weight(self) -> Array:
        """The weight of the values that are known, by outputs: (..., 1, n), at least 1."""
        return np.where(self._value_sums.weight > 0.0, self._value_sums.weight, 1.0)

    @cached_property
    def values_norm(self) -> Array:
        """‖F - mean F‖², (...)."""
        return self.sum(values_square, self.mean_values, width=1)

    @cached_property
    def raw_values_norm(self) -> Array:
        """‖F‖², (...)."""
        return self.sum(values_square, 0.0, width=1)

    @cached_property
    def norm(self) -> Array:
        """What objectives are measured in: ‖J‖², or without Jacobians ‖F - mean F‖²; 1 where that is 0."""
        square = self.jacobian_norm if self.has_jacobians or not self.has_values else self.values_norm
        return np.where(square > 0.0, square, 1.0)

    def inputs_for_knots(self, W0: Array) -> Array:
        """Branch inputs u (B, r, ·) for placing knots on: of all samples, or of some and the ends of all."""
        u = W0 @ self.knot_inputs.mT
        if u.shape[-1] == self.size:
            return u
        ends = self.sum(input_ends, W0, width=W0.shape[-2])
        return np.concatenate([u, ends.least[..., None], ends.largest[..., None]], axis=-1)


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

    def sum(self, function: Callable[Concatenate[Samples, ...], Summand], *arguments: Any, width: int) -> Summand:
        return total(function(block, *arguments) for block in self.blocks(width))

    def blocks(self, width: int) -> Sequence[Samples]:
        """The samples as blocks for so many branches: views, and the same ones whenever they are asked for."""
        length = block_length(width)
        if self.size <= length or self.X.ndim > 2:
            return (self,)
        kept: dict[int, Sequence[Samples]] = self._memory.setdefault("blocks", {})
        if length not in kept:
            kept[length] = [self.part(part) for part in slices(self.size, length)]
        return kept[length]

    def part(self, part: slice | IndexArray) -> Samples:
        """Some of them."""
        arrays = (self.F, self.J, self.rows, self.known_values, self.known_jacobian)
        F, J, rows, values, jacobian = (None if array is None else array[part] for array in arrays)
        return Samples(self.X[part], F, J, self.weight, rows, values, jacobian, self.among or self.size)  # type: ignore[arg-type]

    def gathered(self) -> Samples:
        return self

    def without_values(self) -> Samples:
        return replace(self, F=None, known_values=None, _memory={})

    def without_jacobians(self) -> Samples:
        """The same samples with values only."""
        return replace(self, J=None, known_jacobian=None, _memory={})

    @property
    def knot_inputs(self) -> Array:
        return self.X if self.size <= KNOT_SAMPLES else self.X[..., spread_out(self.size, KNOT_SAMPLES), :]

    def at(self, W0: Array, placement: Placement, a: Array) -> AtSamples:
        """Branches at these samples; the last ones asked for are remembered where the samples are few."""
        kept = self._memory.get("at")
        if kept is not None and kept[0] is a and kept[1] is W0:
            return kept[2]  # type: ignore[no-any-return]
        u, prepared = self.inputs(W0, placement)
        values, slopes = placement.value_and_slope(a, prepared)
        here = AtSamples(u, prepared, slopes.mT, values.mT)
        if self._keeps(W0):
            self._memory["at"] = (a, W0, here)
        return here

    def inputs(self, W0: Array, placement: Placement) -> tuple[Array, Any]:
        """Branch inputs u = W0 x (B, r, S), as they are and prepared; remembered likewise."""
        kept = self._memory.get("inputs")
        if kept is not None and kept[0] is placement and kept[1] is W0:
            return kept[2]  # type: ignore[no-any-return]
        u = W0 @ self.X.mT
        here = u, placement.at(u)
        if self._keeps(W0):
            self._memory["inputs"] = (placement, W0, here)
        return here

    def curvature(self, W0: Array, placement: Placement, a: Array) -> Array:
        """Second derivatives of branches at these samples, (B, S, r); remembered likewise."""
        kept = self._memory.get("curvature")
        if kept is not None and kept[0] is a and kept[1] is W0:
            return kept[2]  # type: ignore[no-any-return]
        here = placement.evaluate(a, self.inputs(W0, placement)[1], 2).mT
        if self._keeps(W0):
            self._memory["curvature"] = (a, W0, here)
        return here

    def _keeps(self, W0: Array) -> bool:
        """Whether what branches are at the samples is little enough to be remembered."""
        return bool(W0.shape[0] * W0.shape[1] * (self.among or self.size) <= KEPT_ENTRIES)

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
        if rows is self.rows and self.known_values is None and self.known_jacobian is None:
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
        return Scaling.of(problem, units).applied(filled(problem), problem)


@dataclass(frozen=True)
class Scaling:
    """How samples in the user's units become those of a solver.

    `constant` (m,) says which inputs do not vary: what centring leaves of these is rounding, not data. `mean_weight` is
    that of the samples' weights; without `values` they are left out.
    """

    units: Units
    constant: BoolArray
    mean_weight: float
    complete: bool
    size: int
    values: bool = True

    @classmethod
    def of(cls, problem: Problem, units: Units) -> Self:
        """For all of a problem's samples."""
        largest = np.abs(extremes(problem, inputs) - units.center).max(axis=0) / units.x_scale
        constant = largest <= 1e-12 * np.abs(units.center / units.x_scale)
        weight = 1.0 if problem.weights is None else problem.sum(weight_of) / problem.S
        return cls(units, constant, weight, problem.complete, problem.S)

    @property
    def weight(self) -> Array:
        """(n·m,), of the entries of a Jacobian."""
        return np.asarray((self.units.x_scale / self.units.f_scale[:, None]).ravel())

    def inputs(self, X: Array) -> Array:
        """X (·, m) in the solver's units."""
        scaled = (X - self.units.center) / self.units.x_scale
        scaled[:, self.constant] = 0.0
        return np.asarray(scaled)

    def applied(self, problem: Problem, with_gaps: Problem | None = None) -> Samples:
        """Samples in memory in the solver's units; which entries are known is that of `with_gaps`."""
        J = None if problem.J is None else problem.J.reshape(problem.S, -1)
        F = None if problem.F is None or not self.values else problem.F / self.units.f_scale
        rows = None if problem.weights is None else problem.weights / self.mean_weight
        gaps = problem if with_gaps is None else with_gaps
        known = [None if self.complete else which_known(array) for array in (gaps.F, gaps.J)]
        if F is None:
            known[0] = None
        if with_gaps is None and not self.complete:  # zeros will do where gaps do not count
            F, J = (None if array is None else np.nan_to_num(array) for array in (F, J))
        return Samples(self.inputs(problem.X), F, J, self.weight, rows, known[0], known[1], self.size)


@dataclass(frozen=True, eq=False)
class Streamed(SampleSet):
    """Samples that lie in a file, on other machines, or are too many to be kept in other units as well.

    Every sum makes its blocks anew.
    """

    problem: Problem
    scaling: Scaling

    @property
    def weight(self) -> Array:  # type: ignore[override]
        return self.scaling.weight

    @property
    def size(self) -> int:
        return self.problem.S

    @property
    def m(self) -> int:
        return self.problem.m

    @property
    def has_values(self) -> bool:
        return self.problem.F is not None and self.scaling.values

    @property
    def has_jacobians(self) -> bool:
        return self.problem.J is not None

    def sum(self, function: Callable[Concatenate[Samples, ...], Summand], *arguments: Any, width: int) -> Summand:
        entries = BLOCK_OF_ONE // block_length(width)
        result: Summand = self.problem.sum(in_units, self.scaling, function, arguments, entries=entries)
        return result

    def gathered(self) -> Samples:
        return self.scaling.applied(self.problem.take(slice(None)))

    def without_values(self) -> Streamed:
        return Streamed(self.problem, replace(self.scaling, values=False))

    @cached_property
    def knot_inputs(self) -> Array:
        return self.scaling.inputs(self.problem.take(spread_out(self.size, KNOT_SAMPLES)).X)


def sample_set(problem: Problem, units: Units) -> SampleSet:
    """The problem's samples in those units: in memory where they are few."""
    if isinstance(problem.X, np.ndarray) and problem.S * (problem.m + problem.n) <= IN_MEMORY_ENTRIES:
        return Samples.of(problem, units)
    return Streamed(problem, Scaling.of(problem, units))


def block_length(width: int) -> int:
    """How many samples a block has for so many branches."""
    return max(LEAST_BLOCK, BLOCK_ENTRIES // width)


def slices(samples: int, length: int) -> list[slice]:
    """Slices of about equal length, at most so long, that cover the samples."""
    count = -(-samples // length)
    return [slice(samples * k // count, samples * (k + 1) // count) for k in range(count)]


def in_units(block: Problem, scaling: Scaling, function: Callable[..., Summand], arguments: tuple[Any, ...]) -> Summand:
    """What a function of samples gives for a block in the user's units."""
    return function(scaling.applied(block), *arguments)


def weight_of(block: Problem) -> float:
    """The weight of all samples of a block."""
    assert block.weights is not None
    return float(block.weights.sum())


def input_ends(block: Samples, W0: Array) -> Extremes:
    """The range of u = W0 x, (B, r) each."""
    u = W0 @ block.X.mT
    return Extremes(u.min(axis=-1), u.max(axis=-1))


def jacobian_square(block: Samples) -> Array:
    """‖J‖² of a block, (...)."""
    J, squares = block.jacobians, np.zeros((*block.jacobians.shape[:-2], block.weight.shape[-1]))
    for part in blocks(block.size, J.shape[-1]):
        some = J[..., part, :]
        squares += np.einsum("...si,...si->...i", some, block.weighted_jacobian(some, part))
    return np.asarray(np.sum(squares * block.weight**2, axis=-1))


def value_sums(block: Samples) -> ValueSums:
    """Of a block's values."""
    F = block.values
    return ValueSums(
        block.weighted_values(F).sum(axis=-2, keepdims=True),
        block.weighted_values(np.ones_like(F)).sum(axis=-2, keepdims=True),
    )


def values_square(block: Samples, center: Array | float) -> Array:
    """‖F - center‖² of a block, (...)."""
    residual = block.values - center
    return np.asarray(np.sum(residual * block.weighted_values(residual), axis=(-2, -1)))


def which_known(array: Array | None) -> BoolArray | None:
    """Which entries (S, ·) are not NaN; None where all are."""
    known = None if array is None else ~np.isnan(array.reshape(len(array), -1))
    return None if known is None or known.all() else known
