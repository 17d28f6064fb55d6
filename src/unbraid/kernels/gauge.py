"""Algorithm 2 of CMTF-BSD (docs/method.md): fix the scale between W0 and W1, and wake branches without a direction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unbraid.kernels.arrays import Array, BoolArray

VANISHED = 1e-10
"""A row of W0 shorter than this share of the longest one has no direction any more."""


def row_lengths(W0: Array) -> Array:
    """The lengths of the rows of W0 (..., r, m): (..., r)."""
    lengths: Array = np.sqrt(np.sum(W0 * W0, axis=-1))
    return lengths


def directions(W0: Array) -> Array:
    """Rows of W0 (..., r, m) of length one, where values do not tell their lengths; a row of zeros stays."""
    length = row_lengths(W0)
    return W0 / np.where(length > 0.0, length, 1.0)[..., None]


def unit_rows(W0: Array, W1: Array, length: Array) -> tuple[Array, Array]:
    """Rows of W0 (..., r, m) of length one, their lengths moved into the columns of W1 (..., n, r)."""
    length = np.where(length > 0.0, length, 1.0)
    return W0 / length[..., None], W1 * length[..., None, :]


def vanished(length: Array) -> BoolArray:
    """Which rows of W0 are zero, or nothing beside the others, by their lengths (..., r)."""
    gone: BoolArray = length <= VANISHED * length.max(axis=-1, keepdims=True)
    return gone


def revive(W0: Array, W1: Array, dead: BoolArray, rngs: Sequence[np.random.Generator]) -> tuple[Array, Array]:
    """Give dead rows (starts, r) a random direction, and no weight until the next W1 step.

    Each start draws from its own generator, so that starts do not depend on each other.
    """
    W0, W1 = W0.copy(), W1.copy()
    for start, branch in zip(*np.nonzero(dead), strict=True):
        direction = rngs[start].standard_normal(W0.shape[-1])
        W0[start, branch] = direction / np.linalg.norm(direction)
        W1[start, :, branch] = 0.0
    return W0, W1
