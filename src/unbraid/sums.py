"""Sums over blocks of samples: what makes the same code run on arrays, memory maps and clusters.

A fit looks at its samples only through sums Σ_blocks function(block, …). What a block gives is an array, a number, None
where there is nothing, anything else that can be added, or a tuple (named or not) of these.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, TypeVar

Summand = TypeVar("Summand")


def total(parts: Iterable[Summand]) -> Summand:
    """The sum of what blocks gave, in their order; there is at least one."""
    return reduce(added, parts)


def added(one: Any, other: Any) -> Any:
    """One and other, entry by entry where they are tuples."""
    if one is None:
        return other
    if not isinstance(one, tuple):
        return one if other is None else one + other
    entries = [added(*pair) for pair in zip(one, other, strict=True)]
    return type(one)(*entries) if hasattr(one, "_fields") else tuple(entries)
