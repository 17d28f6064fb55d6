"""Legendre polynomials and their derivatives on [-1, 1], by recurrence."""

import numpy as np

from unbraid.kernels.arrays import Array


def legendre(t: Array, degree: int, derivative: int = 0) -> Array:
    """P_0 … P_degree, or a derivative of theirs, at t (..., S): (..., S, degree + 1).

    (k + 1) P_{k+1} = (2k + 1) t P_k - k P_{k-1}, and P'_{k+1} = P'_{k-1} + (2k + 1) P_k.
    """
    values = np.zeros((*t.shape, degree + 1))
    if derivative == 0:
        values[..., 0] = 1.0
        if degree:
            values[..., 1] = t
        for k in range(1, degree):
            values[..., k + 1] = ((2 * k + 1) * t * values[..., k] - k * values[..., k - 1]) / (k + 1)
        return values
    lower = legendre(t, degree, derivative - 1)
    for k in range(degree):
        before = values[..., k - 1] if k else 0.0
        values[..., k + 1] = before + (2 * k + 1) * lower[..., k]
    return values
