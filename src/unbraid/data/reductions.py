"""Sums over blocks of samples, and the means, variances and extremes that are made of them.

A fit looks at its samples only through sums Σ_blocks function(block, …), which makes the same code run on arrays,
memory maps and clusters. What a block gives is an array, a number, None where there is nothing, anything else that can
be added, or a tuple (named or not) of these.

Means and variances are weighted, over what is known. The variance is the mean of squares about the mean, which a second
pass takes; the difference of the mean square and the square of the mean would lose every digit where the mean is large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from unbraid.kernels.arrays import Array

if TYPE_CHECKING:
    from unbraid.data.problem import Problem

Summand = TypeVar("Summand")


def total(parts: Iterable[Summand]) -> Summand:
    """The sum of what blocks gave, in their order; there is at least one."""
    return reduce(add, parts)


def add(one: Any, other: Any) -> Any:
    """Add what two blocks gave, entry by entry where it is a tuple; None is nothing."""
    if one is None:
        return other
    if not isinstance(one, tuple):
        return one if other is None else one + other
    entries = [add(*pair) for pair in zip(one, other, strict=True)]
    return type(one)(*entries) if hasattr(one, "_fields") else tuple(entries)


Values = Callable[..., Array]
"""Numbers (S, k) of a block of samples; a function of a module, so that workers can find it."""


def mean(
    problem: Problem, values: Values, *arguments: Any, entries: int | None = None, counted_once: bool = False
) -> Array:
    """The weighted mean of values(block, *arguments) over the samples: (k,), 0 where nothing is known.

    `counted_once`: all samples that count, those of weight above 0, count the same.
    """
    count, total = problem.sum(first_moments, values, arguments, counted_once, entries=entries)
    return np.asarray(total / np.maximum(count, np.finfo(float).tiny))


def variance(
    problem: Problem,
    about: Array,
    values: Values,
    *arguments: Any,
    entries: int | None = None,
    counted_once: bool = False,
) -> Array:
    """The weighted mean of (values(block, *arguments) - about)²: (k,)."""
    given = about, values, arguments, counted_once
    count, total = problem.sum(second_moments, *given, entries=entries)
    return np.asarray(total / np.maximum(count, np.finfo(float).tiny))


def first_moments(
    block: Problem, values: Values, arguments: tuple[Any, ...], counted_once: bool
) -> tuple[Array, Array]:
    """Σ w and Σ w · values of a block."""
    return weighted_sums(values(block, *arguments), sample_weights(block, counted_once))


def second_moments(
    block: Problem, about: Array, values: Values, arguments: tuple[Any, ...], counted_once: bool
) -> tuple[Array, Array]:
    """Σ w and Σ w · (values - about)² of a block."""
    return weighted_sums((values(block, *arguments) - about) ** 2, sample_weights(block, counted_once))


def sample_weights(block: Problem, counted_once: bool) -> Array | None:
    """The weights of the samples of a block; None: all the same."""
    if block.weights is None or not counted_once:
        return block.weights
    return (block.weights > 0.0).astype(np.float64)


def weighted_sums(values: Array, weights: Array | None) -> tuple[Array, Array]:
    """Σ w and Σ w · values over the entries of each column of values (S, k) that are not NaN: (k,) and (k,)."""
    known = ~np.isnan(values)
    w = known.astype(np.float64) if weights is None else known * weights[:, None]
    return w.sum(axis=0), np.sum(w * np.where(known, values, 0.0), axis=0)


@dataclass(frozen=True)
class Extremes:
    """Least and largest values (k,) of some samples; those of others can be added."""

    least: Array
    largest: Array

    def __add__(self, other: Extremes) -> Extremes:
        return Extremes(np.fmin(self.least, other.least), np.fmax(self.largest, other.largest))


def extremes(problem: Problem, values: Values, *arguments: Any, entries: int | None = None) -> Array:
    """The least and the largest of values(block, *arguments) over the samples: (2, k), NaN where nothing is known."""
    found = problem.sum(block_extremes, values, arguments, entries=entries)
    return np.stack([found.least, found.largest])


def block_extremes(block: Problem, values: Values, arguments: tuple[Any, ...]) -> Extremes:
    """The least and the largest of values(block, *arguments) over the samples of a block, (k,) each."""
    given = values(block, *arguments)
    return Extremes(np.fmin.reduce(given, axis=0), np.fmax.reduce(given, axis=0))


def inputs(block: Problem) -> Array:
    """The points X (S, m) of a block."""
    return block.X


def outputs(block: Problem) -> Array:
    """The values F (S, n) of a block."""
    assert block.F is not None
    return block.F
