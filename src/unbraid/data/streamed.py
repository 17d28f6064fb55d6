"""Samples that lie elsewhere, or are too many: seen block by block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Concatenate

import numpy as np

from unbraid.data.in_memory import Samples
from unbraid.data.problem import Problem
from unbraid.data.reductions import Extremes, Summand
from unbraid.data.sample_set import SampleSet, sum_blocks
from unbraid.data.units import Scaling, Units
from unbraid.kernels.arrays import TEMPORARY_ENTRIES, Array, block_length

IN_MEMORY_ENTRIES = 1 << 22
"""Entries of X and F up to which they are kept in the solver's units: 32 MB of float64."""


@dataclass(frozen=True, eq=False)
class Streamed(SampleSet):
    """Samples that lie in a file, on other machines, or are too many to be kept in other units as well.

    Every sum makes its blocks anew.
    """

    problem: Problem
    scaling: Scaling
    given_norm: Array | None = None

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

    @property
    def complete(self) -> bool:
        return self.scaling.complete

    def sum(self, function: Callable[Concatenate[Samples, ...], Summand], *arguments: Any, width: int) -> Summand:
        result: Summand = self.problem.sum(sum_in_units, self.scaling, function, arguments, entries=entries_for(width))
        return result

    def gathered(self) -> Samples:
        return Samples.scaled(self.problem.take(slice(None)), self.scaling)

    def with_values_less(self, center: Array) -> Streamed:
        return Streamed(self.problem, replace(self.scaling, center=self.scaling.center + center[0]), self.jacobian_norm)

    def without_values(self) -> Streamed:
        return Streamed(self.problem, replace(self.scaling, values=False))

    def input_ends(self, W0: Array) -> Extremes:
        """The range of u = W0 x over all samples, found without putting them into other units first."""
        V = W0 / self.scaling.input_scale
        ends = self.problem.sum(raw_ends, V, entries=entries_for(W0.shape[-2]))
        shift = V @ self.scaling.units.center
        return Extremes(ends.least - shift, ends.largest - shift)

    @cached_property
    def knot_inputs(self) -> Array:
        some = slice(None) if self.knot_samples is None else self.knot_samples
        return self.scaling.inputs(self.problem.take(some).X)


def sample_set(problem: Problem, units: Units) -> SampleSet:
    """The problem's samples in those units: in memory where they are few, and J can be used as it lies."""
    if problem.S * (problem.m + problem.n) <= IN_MEMORY_ENTRIES and usable(problem.X) and usable(problem.J):
        return Samples.of(problem, units)
    return Streamed(problem, Scaling.of(problem, units))


def usable(array: Array | None) -> bool:
    """Whether an array is one of float64 in C order, in memory or a file."""
    if array is None:
        return True
    return isinstance(array, np.ndarray) and array.dtype == np.float64 and array.flags.c_contiguous


def entries_for(width: int) -> int:
    """Entries a sample that make a problem's blocks as long as those of samples in memory, for so many branches."""
    return TEMPORARY_ENTRIES // block_length(width)


def raw_ends(block: Problem, V: Array) -> Extremes:
    """The range of V x of a block, in the user's units."""
    u = V @ block.X.T
    return Extremes(u.min(axis=-1), u.max(axis=-1))


def sum_in_units(
    block: Problem, scaling: Scaling, function: Callable[..., Summand], arguments: tuple[Any, ...]
) -> Summand:
    """What a function of samples gives for a block in the user's units."""
    return sum_blocks([Samples.scaled(block, scaling)], function, arguments)
