"""Batches of starts: take some of them, put others in their place, join several batches into one.

A `Batch` is a frozen dataclass. What its fields are says how they are treated:

- arrays, placements, samples and other batches have the starts as their first axis;
- a tuple has one entry a start (its generator of random numbers, say);
- anything else (None, a number, a setting) holds for all starts; what is None in one of several batches is so in all;
- what is `derived` from the other fields is left out of other batches and of files, and so is all that was computed
  from the fields since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np

from unbraid.bases import Placement
from unbraid.data.sample_set import SampleSet
from unbraid.kernels.arrays import BoolArray, IndexArray

Generators = tuple[np.random.Generator, ...]
"""One generator of random numbers a start, so that starts do not depend on each other."""


DERIVED = "derived"
"""What marks a field that follows from the others."""


def derived() -> Any:
    """A field of a batch that follows from the others, and is None where it has not been computed."""
    return field(default=None, repr=False, metadata={DERIVED: True})


@dataclass(frozen=True)
class Batch:
    """A mixin for frozen dataclasses that hold a batch of starts, field by field."""

    def take(self, index: IndexArray) -> Self:
        """The starts at the positions `index`, in that order."""
        return type(self)(**{name: take_starts(one, index) for name, one in self.__getstate__().items()})

    def merge(self, which: BoolArray, other: Self) -> Self:
        """The batch with the starts of `other` at the positions where `which` (B,) is true."""
        ours, theirs = self.__getstate__(), other.__getstate__()
        return type(self)(**{name: merge_starts(which, one, theirs[name]) for name, one in ours.items()})

    @classmethod
    def join(cls, batches: Sequence[Self]) -> Self:
        """Several batches as one, in their order."""
        every = [batch.__getstate__() for batch in batches]
        return cls(**{name: join_starts([one[name] for one in every]) for name in every[0]})

    def __getstate__(self) -> dict[str, Any]:
        """The fields that are not derived, by name: what goes into other batches, and into files."""
        return {one.name: getattr(self, one.name) for one in fields(self) if DERIVED not in one.metadata}


def take_starts(one: Any, index: IndexArray) -> Any:
    """The part of a field of a batch that belongs to the starts at `index`."""
    if isinstance(one, np.ndarray):
        return one[index]
    if isinstance(one, Placement):
        return one.select(index)
    if isinstance(one, Batch | SampleSet):
        return one.take(index)
    return tuple(one[i] for i in index) if isinstance(one, tuple) else one


def merge_starts(which: BoolArray, one: Any, other: Any) -> Any:
    """A field of a batch with the entries of `other` for the starts where `which` (B,) is true."""
    if one is None or other is None:
        return None
    if isinstance(one, np.ndarray):
        return np.where(which.reshape(-1, *[1] * (one.ndim - 1)), other, one)
    if isinstance(one, Placement):
        return one.merged(which, other)
    if isinstance(one, Batch):
        return one.merge(which, other)
    if isinstance(one, tuple):
        return tuple(new if chosen else old for chosen, old, new in zip(which, one, other, strict=True))
    return one


def join_starts(several: Sequence[Any]) -> Any:
    """One field of several batches as that of all their starts."""
    first = None if any(one is None for one in several) else several[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(several)
    if isinstance(first, Placement):
        return first.joined(several[1:])
    if isinstance(first, Batch):
        return first.join(several)
    return tuple(entry for one in several for entry in one) if isinstance(first, tuple) else first
