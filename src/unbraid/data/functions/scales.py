"""How far inputs reach, in powers of two: steps of such lengths add to a number without rounding."""

from __future__ import annotations

import numpy as np

from unbraid.kernels.arrays import EPS, Array

CONSTANT = 64.0 * EPS
"""A column whose spread is less than this share of its size is constant."""


def binary_spreads(X: Array) -> Array:
    """(m,), for each column the power of two nearest to its spread; to its size if constant, and 1 if that is zero."""
    size = sizes(X)
    size = np.where(size > 0.0, size, 1.0)
    share = np.std(X / size, axis=0)
    scale = np.where(share > CONSTANT, share, 1.0) * size
    return np.asarray(np.exp2(np.round(np.log2(scale))))


def sizes(X: Array) -> Array:
    """(m,), the largest absolute value of each column."""
    return np.asarray(np.abs(X).max(axis=0))
