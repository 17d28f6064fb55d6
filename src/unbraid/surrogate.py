r"""Jacobians from values alone, by a smooth surrogate: polyharmonic splines with few centres.

With centres c_1, …, c_k among the samples the surrogate of one output is

    s(x) = Σ_j w_j ‖x - c_j‖³ + v_0 + vᵀ x,        Σ_j w_j = 0,  Σ_j w_j c_j = 0,

which minimises ‖F - s‖² + α wᵀ E w, E_ij = ‖c_i - c_j‖³ being positive definite on such w, with α by generalised
cross-validation. Its slopes have a closed form. In few dimensions they are several times nearer to the truth than those
of local linear fits.
"""

from __future__ import annotations

import numpy as np

from unbraid.arrays import Array, blocks
from unbraid.kernels.cross_validation import GAMMA

CENTRES, ROWS = 400, 4000
"""How many centres and samples the surrogate is made from at most; of more samples, every second, third, … is taken."""
STRENGTHS = np.logspace(-12.0, 4.0, 65)
"""α, in units of the largest eigenvalue of the design's normal matrix."""


def surrogate_slopes(X: Array, F: Array) -> Array:
    """Jacobians (S, n, m) of a surrogate of the values; X (S, m) in units in which distances mean something."""
    (S, m), n = X.shape, F.shape[1]
    some = slice(None, None, -(-S // ROWS))
    centres = X[:: -(-S // CENTRES)]
    if len(centres) <= m + 1 or not np.ptp(X, axis=0).any():
        return np.broadcast_to(np.linalg.lstsq(with_ones(X), F)[0][1:].T, (S, n, m)).copy()
    W, V = fitted(X[some], F[some], centres)
    J = np.empty((S, n, m))
    for part in blocks(S, len(centres) * m):
        away = X[part, None] - centres
        rate = 3.0 * np.linalg.norm(away, axis=-1)
        J[part] = np.einsum("sk,kn,skm->snm", rate, W, away, optimize=True) + V[1:].T
    return J


def fitted(X: Array, F: Array, centres: Array) -> tuple[Array, Array]:
    """The weights W (k, n) of the centres, and V (1 + m, n) of the linear part."""
    free = np.linalg.qr(with_ones(centres), mode="complete")[0][:, centres.shape[1] + 1 :]
    energy = free.T @ cubed_distances(centres, centres) @ free
    values, vectors = np.linalg.eigh(0.5 * (energy + energy.T))
    values = np.maximum(values, 1e-12 * values[-1])
    coordinates = free @ (vectors / np.sqrt(values))  # in which the energy is a sum of squares
    A = cubed_distances(X, centres) @ coordinates
    Q = np.linalg.qr(with_ones(X))[0]
    U, s, rows = np.linalg.svd(A - Q @ (Q.T @ A), full_matrices=False)
    along = U.T @ F
    left = np.sum((F - Q @ (Q.T @ F)) ** 2, axis=0) - np.sum(along**2, axis=0)
    kept = s**2 / (s**2 + STRENGTHS[:, None] * s[0] ** 2)  # (α, k)
    rss = np.maximum(left, 0.0) + ((1.0 - kept) ** 2) @ along**2
    freedom = kept.sum(axis=1) + Q.shape[1]
    room = (len(X) - GAMMA * freedom)[:, None]
    score = np.where(room > 0.1 * len(X), rss / room**2, np.inf)  # what nearly interpolates cannot be judged
    chosen = STRENGTHS[np.argmin(score, axis=0)] * s[0] ** 2
    W = coordinates @ (rows.T @ (s[:, None] / (s[:, None] ** 2 + chosen) * along))
    return W, np.linalg.lstsq(with_ones(X), F - cubed_distances(X, centres) @ W)[0]


def cubed_distances(X: Array, centres: Array) -> Array:
    """‖x_s - c_j‖³, (S, k)."""
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(X, centres) ** 3)


def with_ones(X: Array) -> Array:
    """A column of ones before X."""
    return np.column_stack([np.ones(len(X)), X])
