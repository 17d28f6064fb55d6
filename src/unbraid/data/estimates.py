"""What is not given, estimated from what is: Jacobians from values, and missing entries of F and J from neighbours.

Estimates start a search; the fit itself uses only what is given. Slopes come from local linear fits, or from a smooth
surrogate: polyharmonic splines with few centres.
"""

from __future__ import annotations

import numpy as np

from unbraid.data.problem import Problem
from unbraid.kernels.arrays import Array, blocks
from unbraid.kernels.cross_validation import GAMMA
from unbraid.kernels.decompositions import eigen, pseudo_inverse, svd


def local_slopes(X: Array, F: Array, neighbours: int) -> Array:
    """Rough Jacobians (S, n, m) from values alone: at each point the slopes of a linear fit to its neighbours.

    X (S, m) in units in which distances mean something. Directions in which the neighbours do not differ get
    the slope zero.
    """
    from scipy.spatial import KDTree

    S, m = X.shape
    n, k = F.shape[1], min(neighbours, S)
    J = np.empty((S, n, m))
    tree = KDTree(X)
    for part in blocks(S, k * (m + n)):
        _, near = tree.query(X[part], k)
        near = near.reshape(-1, k)
        dX, dF = X[near], F[near]
        dX -= dX.mean(axis=1, keepdims=True)
        dF -= dF.mean(axis=1, keepdims=True)
        J[part] = (pseudo_inverse(dX.mT @ dX) @ (dX.mT @ dF)).mT
    return J


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
    W, V = fit_surrogate(X[some], F[some], centres)
    J = np.empty((S, n, m))
    for part in blocks(S, len(centres) * m):
        away = X[part, None] - centres
        rate = 3.0 * np.linalg.norm(away, axis=-1)
        J[part] = np.einsum("sk,kn,skm->snm", rate, W, away, optimize=True) + V[1:].T
    return J


def fit_surrogate(X: Array, F: Array, centres: Array) -> tuple[Array, Array]:
    """Fit a polyharmonic spline to F (S, n): weights W (k, n) of its centres, and V (1 + m, n) of its linear part."""
    free = np.linalg.qr(with_ones(centres), mode="complete")[0][:, centres.shape[1] + 1 :]
    energy = free.T @ cubed_distances(centres, centres) @ free
    values, vectors = eigen(0.5 * (energy + energy.T))
    if not values[-1] > 0.0:  # the centres lie so that only a linear part is left
        return np.zeros((len(centres), F.shape[1])), np.asarray(np.linalg.lstsq(with_ones(X), F)[0], dtype=np.float64)
    values = np.maximum(values, 1e-12 * values[-1])
    coordinates = free @ (vectors / np.sqrt(values))  # in which the energy is a sum of squares
    A = cubed_distances(X, centres) @ coordinates
    Q = np.linalg.qr(with_ones(X))[0]
    U, s, rows = svd(A - Q @ (Q.T @ A))
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
    """X (S, m) with a column of ones before it."""
    return np.column_stack([np.ones(len(X)), X])


GAP_NEIGHBOURS = 8
"""Samples that a missing entry is taken from."""


def fill_gaps(problem: Problem) -> Problem:
    """Fill the gaps of a problem: what is missing comes from the nearest samples that have it.

    Jacobians come from the values around a sample where there are values, else, as values do, from neighbours' own.
    """
    if problem.complete:
        return problem
    spread = np.std(problem.X, axis=0)
    points = (problem.X - problem.X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    F, J = problem.F, problem.J
    if F is not None:
        F = from_neighbours(points, F)
    if J is not None and np.isnan(J).any():
        if F is None:
            J = from_neighbours(points, J.reshape(problem.S, -1)).reshape(J.shape)
        else:
            slopes = local_slopes(points, F, 3 * (problem.m + 1)) / np.where(spread > 0.0, spread, 1.0)
            J = np.where(np.isnan(J), slopes, J)
    return Problem(problem.X, F, J, problem.weights, input_names=problem.input_names, output_names=problem.output_names)


def from_neighbours(points: Array, rows: Array) -> Array:
    """Rows (S, k) with the mean of the nearest known entries of a column in place of NaN; 0 where none is known."""
    from scipy.spatial import KDTree

    result = rows.copy()
    for column in result.T:
        gaps = np.isnan(column)
        if gaps.all():
            column[:] = 0.0
        elif gaps.any():
            known = np.flatnonzero(~gaps)
            tree, count = KDTree(points[known]), min(GAP_NEIGHBOURS, known.size)
            here = np.flatnonzero(gaps)
            for part in blocks(here.size, count):
                _, near = tree.query(points[here[part]], count)
                column[here[part]] = column[known[near.reshape(-1, count)]].mean(axis=-1)
    return result
