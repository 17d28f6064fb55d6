"""Models at the samples: what goes into the branches there, and what comes out.

Sums over samples take what is here as arguments (`PerBlock`): a function of blocks gets the part that belongs to its
block. Where samples are few (`SampleSet.kept_blocks`) the parts are kept for as long as the object lives, so that one
evaluation serves several sums, and the next sweep. Otherwise every sum evaluates block by block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from unbraid.bases import Placement
from unbraid.data.in_memory import Samples
from unbraid.data.sample_set import PerBlock, SampleSet
from unbraid.kernels.arrays import Array
from unbraid.solvers.batch import Batch, derived
from unbraid.solvers.iterates import Iterates


@dataclass(frozen=True, eq=False)
class BranchInputs:
    """What goes into branches at the samples X (S, m) of one block; computed when it is first asked for."""

    X: Array
    W0: Array
    placement: Placement

    @cached_property
    def u(self) -> Array:
        """W0 x, (B, r, S)."""
        return self.W0 @ self.X.mT

    @cached_property
    def prepared(self) -> Any:
        """The inputs u as the placement has prepared them for evaluation and normal equations."""
        return self.placement.at(self.u)


@dataclass(frozen=True, eq=False)
class BranchOutputs:
    """What comes out of the branches of models at the samples of one block; computed when it is first asked for."""

    inputs: BranchInputs
    iterates: Iterates

    @cached_property
    def _values_and_slopes(self) -> tuple[Array, Array]:
        values, slopes = self.iterates.placement.value_and_slope(self.iterates.a, self.inputs.prepared)
        return values.mT, slopes.mT

    @property
    def values(self) -> Array:
        """R = g(u), (B, S, r)."""
        return self._values_and_slopes[0]

    @property
    def slopes(self) -> Array:
        """G = g'(u), (B, S, r)."""
        return self._values_and_slopes[1]

    @cached_property
    def curvature(self) -> Array:
        """g''(u), (B, S, r)."""
        return self.iterates.placement.evaluate(self.iterates.a, self.inputs.prepared, 2).mT


@dataclass(frozen=True, eq=False)
class Placed(PerBlock):
    """Branches that have directions W0 (B, r, m) and a placement but no functions yet: `BranchInputs` at each block.

    `parts` are those of all blocks, where they are kept.
    """

    W0: Array
    placement: Placement
    parts: tuple[BranchInputs, ...] | None

    @classmethod
    def on(cls, samples: SampleSet, W0: Array, placement: Placement) -> Self:
        """Place branches on all samples."""
        kept = samples.kept_blocks(*W0.shape[:2])
        parts = None if kept is None else tuple(BranchInputs(block.X, W0, placement) for block in kept)
        return cls(W0, placement, parts)

    def at_blocks(self, blocks: Sequence[Samples]) -> Iterable[BranchInputs]:
        """The inputs at each of the blocks; those that are kept belong to all blocks of the samples."""
        if self.parts is not None:
            return self.parts
        return (BranchInputs(block.X, self.W0, self.placement) for block in blocks)

    def evaluate(self, W1: Array, a: Array) -> Evaluated:
        """The models with outer weights W1 (B, n, r) and functions a (B, r, K), on the same inputs."""
        it = Iterates(self.W0, W1, self.placement, a)
        return Evaluated(it, None if self.parts is None else tuple(BranchOutputs(one, it) for one in self.parts))


@dataclass(frozen=True, eq=False)
class Evaluated(Batch, PerBlock):
    """Models at the samples: `BranchOutputs` at each block, of which `parts` are those of all blocks, where kept."""

    iterates: Iterates
    parts: tuple[BranchOutputs, ...] | None = derived()

    @classmethod
    def on(cls, samples: SampleSet, iterates: Iterates) -> Evaluated:
        """Evaluate models on all samples: when they are asked for, block by block."""
        return Placed.on(samples, iterates.W0, iterates.placement).evaluate(iterates.W1, iterates.a)

    def at_blocks(self, blocks: Sequence[Samples]) -> Iterable[BranchOutputs]:
        """The outputs at each of the blocks; those that are kept belong to all blocks of the samples."""
        return self.parts if self.parts is not None else (outputs_at(block, self.iterates) for block in blocks)


def outputs_at(block: Samples, iterates: Iterates) -> BranchOutputs:
    """What comes out of the branches of models at the samples of a block."""
    return BranchOutputs(BranchInputs(block.X, iterates.W0, iterates.placement), iterates)
