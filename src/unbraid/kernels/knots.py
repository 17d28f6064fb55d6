r"""Where the breakpoints go: by the samples, evenly, or between the two; and what to do when values of u repeat.

Evenly means: in a scale that is linear over the bulk of the samples and logarithmic in long tails. With c in the middle
of the bulk and w half of what still belongs to it,

    t = (u - c) / w                          where |u - c| ≤ w,
    t = ± (1 + log(|u - c| / w))             beyond,

so that a few far samples, of lognormal or Cauchy inputs, say, do not take the knots away from all others. Mostly there
are no such tails, and evenly means what it says.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np

from unbraid.kernels.arrays import Array, BoolArray, IndexArray

SMALLEST_GAP = 1e-6
"""Breakpoints closer than this share of the range count as repeated: slopes there would be noise."""


FEW_ROWS = 16
"""Up to so many rows are searched one by one, more of them at once."""


LEAST_BULK = 1e-100
"""A bulk narrower than this share of the range is none."""
BULK = 0.1, 0.9
"""Quantiles between which the middle of the samples lies; the bulk is three times as wide."""


def breakpoints(u: Array, intervals: int, evenness: float = 0.0) -> Array:
    """Breakpoints for u (..., S), strictly increasing, (..., I + 1), from its least to its largest value.

    They are the 0, 1/I, …, 1 quantiles of a mixture: of the samples with weight 1 - evenness, of the uniform
    distribution over their range with weight evenness, in the scale above. Where quantiles coincide (discrete inputs,
    few distinct values) those of the distinct values are taken; where u is constant, an interval of width 1 (or |u|)
    around it.
    """
    ordered = np.sort(u, axis=-1)
    result = spaced(ordered, intervals, evenness)
    if evenness > 0.0:
        for row in map(tuple, np.argwhere(has_long_tails(ordered))):
            scale = TailScale.of_bulk(ordered[row])
            inner = scale.back(spaced(scale.of(ordered[row]), intervals, 0.5 * evenness)[1:-1])
            result[row][1:-1] = inner
            result[row] = kept_apart(np.maximum.accumulate(result[row]))
    return result


def bulk_of(ordered: Array) -> tuple[Array, Array]:
    """The c and w (...) of values sorted along the last axis."""
    last = ordered.shape[-1] - 1
    low, high = (ordered[..., round(share * last)] for share in BULK)
    return 0.5 * (low + high), 1.5 * (high - low)


def has_long_tails(ordered: Array) -> BoolArray:
    """Whether some of the sorted values (..., S) lie beyond the bulk, which has to have a width beside them: (...)."""
    center, half = bulk_of(ordered)
    low, high = ordered[..., 0], ordered[..., -1]
    return ((low < center - half) | (high > center + half)) & (half > LEAST_BULK * (high - low))


@dataclass(frozen=True)
class TailScale:
    """The scale t, for values whose bulk is center ± half."""

    center: float
    half: float

    @classmethod
    def of_bulk(cls, ordered: Array) -> Self:
        """The scale for sorted values (S,)."""
        center, half = bulk_of(ordered)
        return cls(float(center), float(half) / 3.0)

    def of(self, u: Array) -> Array:
        """The t of u."""
        far = (u - self.center) / self.half
        size = np.maximum(np.abs(far), 1.0)
        return np.where(size > 1.0, np.sign(far) * (1.0 + np.log(size)), far)

    def back(self, t: Array) -> Array:
        """The u of t."""
        beyond = np.maximum(np.abs(t) - 1.0, 0.0)
        return np.asarray(self.center + self.half * np.where(beyond > 0.0, np.sign(t) * np.exp(beyond), t))


def spaced(ordered: Array, intervals: int, evenness: float) -> Array:
    """Breakpoints of values sorted along the last axis, with even spacing in these values themselves."""
    result = mixture_quantiles(ordered, intervals, evenness)
    gaps = result[..., 1:] - result[..., :-1]
    span = result[..., -1:] - result[..., :1]
    apart = gaps > SMALLEST_GAP * span
    if not apart.all():
        for row in map(tuple, np.argwhere(~apart.all(axis=-1))):
            result[row] = distinct_breakpoints(ordered[row], intervals, evenness)
    return result


def mixture_quantiles(ordered: Array, intervals: int, evenness: float) -> Array:
    """Quantiles of the mixture that `breakpoints` describes, from values sorted along the last axis."""
    if evenness == 0.0:
        below, above, share = quantile_positions(ordered.shape[-1], intervals)
        low = ordered.take(below, axis=-1)
        return low + (ordered.take(above, axis=-1) - low) * share
    span = ordered[..., -1:] - ordered[..., :1]
    S = ordered.shape[-1]
    rank = evenness * (ordered - ordered[..., :1]) / np.where(span > 0.0, span, 1.0)
    rank += (1.0 - evenness) * np.linspace(0.0, 1.0, S)  # the mixture's distribution function at the samples
    level = np.linspace(0.0, 1.0, intervals + 1)[1:-1]
    below = last_not_above(rank, level)
    above = np.minimum(below + 1, S - 1)
    rank_below, low = np.take_along_axis(rank, below, -1), np.take_along_axis(ordered, below, -1)
    rise = np.take_along_axis(rank, above, -1) - rank_below
    share = np.divide(level - rank_below, rise, where=rise > 0.0, out=np.zeros_like(rise))
    inner = low + (np.take_along_axis(ordered, above, -1) - low) * share
    return np.concatenate([ordered[..., :1], inner, ordered[..., -1:]], axis=-1)


def last_not_above(ascending: Array, level: Array) -> IndexArray:
    """The last position along the last axis of `ascending` (..., S) whose entry is ≤ each level (L,): (..., L)."""
    S = ascending.shape[-1]
    if ascending.size <= FEW_ROWS * S:
        rows = ascending.reshape(-1, S)
        found = np.stack([row.searchsorted(level, side="right") for row in rows]) - 1
        return found.reshape(*ascending.shape[:-1], len(level))
    position = np.zeros((*ascending.shape[:-1], len(level)), dtype=np.intp)
    for step in 1 << np.arange(S.bit_length())[::-1]:  # binary search, all rows and levels at once
        further = np.minimum(position + step, S - 1)
        np.copyto(position, further, where=np.take_along_axis(ascending, further, -1) <= level)
    return position


@lru_cache(maxsize=64)
def quantile_positions(count: int, intervals: int) -> tuple[IndexArray, IndexArray, Array]:
    """Between which of `count` sorted values the quantiles lie, and how far along."""
    position = np.linspace(0.0, count - 1.0, intervals + 1)
    below = np.minimum(position.astype(np.intp), count - 1)
    return below, np.minimum(below + 1, count - 1), position - below


def distinct_breakpoints(ordered: Array, intervals: int, evenness: float) -> Array:
    """Breakpoints for one row of sorted values with many repetitions."""
    low, high = ordered[0], ordered[-1]
    span = high - low
    if not span > 1e-12 * max(abs(low), abs(high)):
        half = 0.5 * (abs(low) or 1.0)
        return np.linspace(low - half, high + half, intervals + 1)
    # far from zero a gap must also leave room for all breakpoints between two numbers
    smallest_gap = max(SMALLEST_GAP * span, 4.0 * intervals * np.spacing(max(abs(low), abs(high))))
    distinct = ordered[np.diff(ordered, prepend=-np.inf) > smallest_gap]
    if distinct.size < 2 or high - distinct[-1] > smallest_gap:
        return np.linspace(low, high, intervals + 1)
    distinct[-1] = high
    return mixture_quantiles(distinct, intervals, evenness)


def kept_apart(points: Array) -> Array:
    """Increasing points (..., k), moved apart by a few last digits where rounding has made some of them the same."""
    gaps = points[..., 1:] - points[..., :-1]
    if np.all(gaps > 0.0):
        return points
    least = 4.0 * np.spacing(np.abs(points).max(axis=-1, keepdims=True))
    return np.concatenate([points[..., :1], points[..., :1] + np.cumsum(np.maximum(gaps, least), axis=-1)], axis=-1)
