"""Where the breakpoints go: quantiles of u, and what to do when values of u repeat."""

from functools import lru_cache

import numpy as np

from unbraid.arrays import Array, IndexArray

SMALLEST_GAP = 1e-6
"""Breakpoints closer than this share of the range count as repeated: slopes there would be noise."""


def quantile_breakpoints(u: Array, intervals: int) -> Array:
    """Breakpoints at the 0, 1/I, …, 1 quantiles of u (..., S): strictly increasing, (..., I + 1).

    Where quantiles coincide (discrete inputs, few distinct values) the quantiles of the distinct
    values are taken; where u is constant, an interval of width 1 (or |u|) around it.
    """
    ordered = np.sort(u, axis=-1)
    breakpoints = sorted_quantiles(ordered, intervals)
    gaps = breakpoints[..., 1:] - breakpoints[..., :-1]
    span = breakpoints[..., -1:] - breakpoints[..., :1]
    apart = gaps > SMALLEST_GAP * span
    if not apart.all():
        for row in map(tuple, np.argwhere(~apart.all(axis=-1))):
            breakpoints[row] = distinct_breakpoints(ordered[row], intervals)
    return breakpoints


def sorted_quantiles(ordered: Array, intervals: int) -> Array:
    """Linearly interpolated quantiles of values sorted along the last axis."""
    below, above, share = quantile_positions(ordered.shape[-1], intervals)
    low = ordered.take(below, axis=-1)
    high = ordered.take(above, axis=-1)
    return low + (high - low) * share


@lru_cache(maxsize=64)
def quantile_positions(count: int, intervals: int) -> tuple[IndexArray, IndexArray, Array]:
    """Between which of `count` sorted values the quantiles lie, and how far along."""
    position = np.linspace(0.0, count - 1.0, intervals + 1)
    below = np.minimum(position.astype(np.intp), count - 1)
    return below, np.minimum(below + 1, count - 1), position - below


def distinct_breakpoints(ordered: Array, intervals: int) -> Array:
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
    return sorted_quantiles(distinct, intervals)
