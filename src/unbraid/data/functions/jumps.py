"""Jumps of a function, and functions that move in steps: rounded, quantised, looked up in a table.

Over a short distance such a function does not change at all, and differences settle on zero, or on a jump over a
length that has nothing to do with it. Whether f jumps between two points is found by halving: towards a jump the change
stays what it is however short the piece, while that of a continuous function, kinks included, shrinks with the piece.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from unbraid.data.functions.forms import Form
from unbraid.data.functions.hosts import quiet
from unbraid.errors import DataError
from unbraid.kernels.arrays import Array, BoolArray, IndexArray

HALVINGS, COMPARED = 60, 8
"""A piece is halved so often, or until floating point ends; a change that did not fall to a quarter over the last 8
of these halvings belongs to a jump. With a slope it falls to 1/256, at the tip of √|x| to 1/16; that of sign(x), which
is 0 at 0, to 1/2."""


def jumps(f: Form, rows: IndexArray, low: Array, high: Array, unit: Array) -> Array:
    """By how much each output jumps (k, n) between points low and high (k, m), which lie beside X[rows].

    Outputs count in these units (n,), or (k, n). Of several jumps one of the largest is found. Where f is continuous,
    0; where it is undefined, an error says so.
    """
    trail: list[Array] = []
    below, above = f(np.concatenate([low, high]), np.tile(rows, 2), beside=True).reshape(2, len(rows), -1)
    for _ in range(HALVINGS):
        middle = low + 0.5 * (high - low)
        if (((middle == low) | (middle == high)).all(axis=1)).any():
            break
        between = f(middle, rows, beside=True)
        first = (np.abs(between - below) / unit).max(axis=1) >= (np.abs(above - between) / unit).max(axis=1)
        first = first[:, None]
        low, high = np.where(first, low, middle), np.where(first, middle, high)
        below, above = np.where(first, below, between), np.where(first, between, above)
        trail.append((np.abs(above - below) / unit).max(axis=1))
    change = np.abs(above - below)
    if len(trail) <= COMPARED:
        return np.asarray(change)
    return np.where((trail[-1] > 0.25 * trail[-1 - COMPARED])[:, None], change, 0.0)


class Plateaus:
    """Where f is flat around samples X[rows] along a direction, and how high the step is that ends it.

    An output that does not change at all, or leaves its flat piece without a jump, as max(0, x) does, has none.
    """

    def __init__(self, f: Form, X: Array, rows: IndexArray, direction: Array) -> None:
        self.f, self.rows, self.points, self.direction = f, rows, X[rows], direction
        margin = np.where(X.min(axis=0) < X.max(axis=0), 0.0, np.abs(direction))  # what happens elsewhere is no matter
        self.lowest, self.highest = X.min(axis=0) - margin, X.max(axis=0) + margin
        self.heights = np.full((len(rows), *f.shape), np.nan)  # NaN: not asked for yet

    def steps(self, flat: BoolArray, t: float, unit: Array) -> Array:
        """The heights (k, n) of the steps beside flat pieces that reach from x - t d to x + t d; 0 elsewhere."""
        asked = flat & np.isnan(self.heights)
        self.heights[asked] = 0.0
        with quiet(), suppress(DataError):  # f is undefined on the way: then nothing more is known
            self.search(asked, t, unit)
        return np.where(flat, self.heights, 0.0)

    def search(self, asked: BoolArray, t: float, unit: Array) -> None:
        """Go away from the samples, four times as far each time, until an output that is asked for changes."""
        pending = np.flatnonzero(asked.any(axis=1))
        while pending.size:
            x, rows = self.points[pending], self.rows[pending]
            sides = [np.clip(x + far * self.direction, self.lowest, self.highest) for far in (t, -t)]
            here, *there = self.f(np.concatenate([x, *sides]), np.tile(rows, 3), beside=True).reshape(3, len(x), -1)
            change = np.stack([np.where(asked[pending], np.abs(side - here) / unit, 0.0).max(axis=1) for side in there])
            found = change.max(axis=0) > 0.0
            if found.any():
                end = np.where((change[0] >= change[1])[:, None], *sides)[found]
                only = np.where(asked[pending[found]], unit, np.inf)
                height = jumps(self.f, rows[found], x[found], end, only)
                at = pending[found]
                self.heights[at] = np.where(asked[at], height, self.heights[at])
            at_ends = [(side == self.lowest) | (side == self.highest) | (self.direction == 0.0) for side in sides]
            pending = pending[~found & ~np.logical_and(*at_ends).all(axis=1)]
            t *= 4.0
