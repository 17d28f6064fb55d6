"""Batches of starts: take some of them, put others in their place, join several batches into one.

A `Batch` is a frozen dataclass. What its fields are says how they are treated:

- arrays, placements, samples and other batches have the starts as their first axis;
- a tuple has one entry a start (its generator of random numbers, say);
- anything else (None, a number, a setting) holds for all starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from unbraid.bases import Placement
from unbraid.data.sample_set import SampleSet
from unbraid.kernels.arrays import BoolArray, IndexArray

Generators = tuple[np.random.Generator, ...]
"""One generator of random numbers a start, so that starts do not depend on each other."""


@dataclass(frozen=True)
class Batch:
    """A mixin for frozen dataclasses that hold a batch of starts, field by field."""

    def take(self, index: IndexArray) -> Self:
        """The starts at the positions `index`, in that order."""
        return type(self)(*(take_starts(getattr(self, one.name), index) for one in fields(self)))

    def merge(self, which: BoolArray, other: Self) -> Self:
        """The batch with the starts of `other` at the positions where `which` (B,) is true."""
        pairs = ((getattr(self, one.name), getattr(other, one.name)) for one in fields(self))
        return type(self)(*(merge_starts(which, *pair) for pair in pairs))

    @classmethod
    def join(cls, batches: Sequence[Self]) -> Self:
        """Several batches as one, in their order."""
        return cls(*(join_starts([getattr(batch, one.name) for batch in batches]) for one in fields(cls)))


def take_starts(field: Any, index: IndexArray) -> Any:
    """The part of a field of a batch that belongs to the starts at `index`."""
    if isinstance(field, np.ndarray):
        return field[index]
    if isinstance(field, Placement):
        return field.select(index)
    if isinstance(field, Batch | SampleSet):
        return field.take(index)
    return tuple(field[i] for i in index) if isinstance(field, tuple) else field


def merge_starts(which: BoolArray, field: Any, other: Any) -> Any:
    """A field of a batch with the entries of `other` for the starts where `which` (B,) is true."""
    if isinstance(field, np.ndarray):
        return np.where(which.reshape(-1, *[1] * (field.ndim - 1)), other, field)
    if isinstance(field, Placement):
        return field.merged(which, other)
    if isinstance(field, Batch):
        return field.merge(which, other)
    if isinstance(field, tuple):
        return tuple(new if chosen else old for chosen, old, new in zip(which, field, other, strict=True))
    return field


def join_starts(several: Sequence[Any]) -> Any:
    """One field of several batches as that of all their starts."""
    first = several[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(several)
    if isinstance(first, Placement):
        return first.joined(several[1:])
    if isinstance(first, Batch):
        return first.join(several)
    return tuple(entry for one in several for entry in one) if isinstance(first, tuple) else first
