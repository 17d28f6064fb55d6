"""What solvers ask of samples: sums over blocks, and a few numbers about all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple

import numpy as np

from unbraid.data.reductions import Extremes, Summand, total
from unbraid.kernels.arrays import Array, IndexArray, blocks, spread_out

if TYPE_CHECKING:
    from unbraid.data.in_memory import Samples

KNOT_SAMPLES = 1 << 11
"""So many samples, and the ends of the range of all, say where knots go."""


class PerBlock(ABC):
    """An argument of sums over samples that stands for something else at every block."""

    @abstractmethod
    def at_blocks(self, blocks: Sequence[Samples]) -> Iterable[Any]:
        """What the argument stands for at each of the blocks, in their order."""


def sum_blocks(
    blocks: Sequence[Samples], function: Callable[Concatenate[Samples, ...], Summand], arguments: Sequence[Any]
) -> Summand:
    """Σ function(block, *arguments), an argument that is `PerBlock` being replaced by what it stands for."""
    columns = [one.at_blocks(blocks) if isinstance(one, PerBlock) else [one] * len(blocks) for one in arguments]
    return total(function(block, *own) for block, *own in zip(blocks, *columns, strict=True))


class ValueSums(NamedTuple):
    """Sums over samples of the values: weighted, and the weights of those that are known; (..., 1, n) each."""

    values: Array
    weight: Array


class Entries(NamedTuple):
    """How many numbers samples have: entries of Jacobians, and values."""

    jacobians: int
    values: int


class SampleSet(ABC):
    """All samples of a fit, in the solver's units.

    Attributes
    ----------
    weight
        (n·m,), turns Jacobians in the user's units into the solver's.
    given_norm
        ‖J‖² where it is known already, from samples with the same Jacobians; None: it is computed when asked for.
    """

    weight: Array
    given_norm: Array | None

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

    @property
    @abstractmethod
    def complete(self) -> bool:
        """Whether all entries are known."""

    @abstractmethod
    def sum(self, function: Callable[Concatenate[Samples, ...], Summand], *arguments: Any, width: int) -> Summand:
        """Σ function(block, *arguments); `width` is how many branches the function looks at.

        An argument that is `PerBlock` is replaced by what it stands for at the block.
        """

    def kept_blocks(self, starts: int, width: int) -> Sequence[Samples] | None:
        """The blocks that sums are made over, where what so many branches give at all of them is little enough to be
        kept; else None.
        """
        return None

    @abstractmethod
    def gathered(self) -> Samples:
        """All samples in memory, for solvers that cannot do with sums."""

    @abstractmethod
    def with_values_less(self, center: Array) -> SampleSet:
        """These samples with F - center in place of F, center being (..., 1, n)."""

    @cached_property
    def centred(self) -> SampleSet:
        """These samples with values less their mean, as an output offset leaves them."""
        if not self.has_values:
            return self
        return self.with_values_less(self.mean_values)

    @abstractmethod
    def without_values(self) -> SampleSet:
        """These samples without their values."""

    @property
    def knot_samples(self) -> IndexArray | None:
        """The numbers of the samples that say where knots go, at most `KNOT_SAMPLES`; None: all."""
        return None if self.size <= KNOT_SAMPLES else spread_out(self.size, KNOT_SAMPLES)

    @property
    @abstractmethod
    def knot_inputs(self) -> Array:
        """X of the samples that say where knots go, (..., at most `KNOT_SAMPLES`, m)."""

    def take(self, index: IndexArray) -> SampleSet:
        """The samples of some of the starts: the same for all unless they are stacked."""
        return self

    @cached_property
    def jacobian_norm(self) -> Array:
        """‖J‖², 0 without Jacobians; like every sum over samples it is weighted, and over what is known."""
        if self.given_norm is not None:
            return self.given_norm
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
        """‖F‖², (...)."""
        return self.sum(values_square, width=1)

    @cached_property
    def norm(self) -> Array:
        """What objectives are measured in: ‖J‖², or without Jacobians ‖F - mean F‖²; 1 where that is 0, or rounding."""
        if self.has_jacobians or not self.has_values:
            square, rounding = self.jacobian_norm, np.zeros(())
        else:
            square, rounding = self.centred.values_norm, 1e-26 * self.values_norm
        return np.where(square > rounding, square, 1.0)

    @cached_property
    def entries(self) -> Entries:
        """How many entries of J and of F are known."""
        if not self.complete:
            return Entries(*self.sum(known_entries, width=1))
        values = self.size * self.n
        return Entries(values * self.m * self.has_jacobians, values * self.has_values)

    def inputs_for_knots(self, W0: Array) -> Array:
        """Branch inputs u (B, r, ·) for placing knots on: of all samples, or of some and the ends of all."""
        u = W0 @ self.knot_inputs.mT
        if u.shape[-1] == self.size:
            return u
        ends = self.input_ends(W0)
        return np.concatenate([u, ends.least[..., None], ends.largest[..., None]], axis=-1)

    def input_ends(self, W0: Array) -> Extremes:
        """The range of u = W0 x over all samples, (B, r) each."""
        return self.sum(input_ends, W0, width=W0.shape[-2])


def input_ends(block: Samples, W0: Array) -> Extremes:
    """The range of u = W0 x over the samples of a block, (B, r) each."""
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
    """Sums over the values of a block, and over their weights."""
    F = block.values
    return ValueSums(
        block.weighted_values(F).sum(axis=-2, keepdims=True),
        block.weighted_values(np.ones_like(F)).sum(axis=-2, keepdims=True),
    )


def known_entries(block: Samples) -> tuple[int, int]:
    """How many entries of J and of F are known in a block."""
    each, known = block.size * block.n, (block.known_jacobian, block.known_values)
    every = each * block.m * block.has_jacobians, each * block.has_values
    jacobians, values = (all_ if one is None else int(one.sum()) for one, all_ in zip(known, every, strict=True))
    return jacobians, values


def values_square(block: Samples) -> Array:
    """‖F‖² of a block, (...)."""
    return np.asarray(np.sum(block.values * block.weighted_values(block.values), axis=(-2, -1)))
