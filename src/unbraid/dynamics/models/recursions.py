r"""Linear recursions over time, for many right-hand sides at once.

    z_t = Σ_k M_k(t) z_{t - l_k} + b_t,        t = 0 … T - 1,        z_t (q,), lags l_k ≥ 1, z_t = 0 for t < 0.

That is a triangular system with a band below its diagonal, of width l_max q + q - 1, which LAPACK solves without a loop
over time in Python. What came before t = 0 goes into b.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unbraid.kernels.arrays import Array


def recursion_band(M: Array, lags: Sequence[int]) -> Array:
    """The band of the system, for M (T, q, len(lags) q), whose last axis has the columns of M_1, M_2 and so on.

    Row d, column s of the result is the entry of the matrix at row s + d, column s, as LAPACK has it.
    """
    T, q, _ = M.shape
    band = np.zeros((max(lags) * q + q, T * q), order="F")
    band[0] = 1.0
    columns = band.reshape(band.shape[0], T, q)
    for k, lag in enumerate(lags):
        for i in range(q):
            for j in range(q):
                columns[lag * q + i - j, : max(T - lag, 0), j] -= M[lag:, i, k * q + j]
    return np.asfortranarray(band)


def solve_recursion(band: Array, b: Array) -> Array:
    """The solutions z (P, T, q) for right-hand sides b (P, T, q), which may be written to."""
    from scipy.linalg.lapack import dtbtrs

    P, T, q = b.shape
    z, _ = dtbtrs(band, b.reshape(P, T * q).T, uplo="L", diag="U", overwrite_b=1)
    return np.asarray(z.T.reshape(P, T, q))
