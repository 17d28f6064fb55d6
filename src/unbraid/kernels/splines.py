r"""Splines piece by piece: evaluation, and normal equations from power moments.

Breakpoints b_0 < … < b_I carry a clamped B-spline basis of degree d with K = I + d functions. On
interval i, with t = (2u - b_i - b_{i+1}) / h_i ∈ [-1, 1] and h_i = b_{i+1} - b_i, the d + 1 functions
that do not vanish are polynomials in t,

    N_{i+k}(u) = Σ_p M[i, p, k] t^p,        k = 0 … d,

so a spline Σ_k a_k N_k is, piece by piece, the polynomial with coefficients M[i] a[i : i+d+1]. The
Gram matrix of the basis over samples needs of them only the moments Σ t^p in each interval:
no design matrix, no sort, one pass over the samples whatever d is.

Leading axes "..." (starts, branches) are the same for all arguments.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from unbraid.arrays import Array, IndexArray


@dataclass(frozen=True, slots=True)
class Located:
    """Where samples lie among breakpoints.

    Attributes
    ----------
    interval
        (..., S), the interval of each sample, numbered through all leading axes.
    t
        (..., S), the position in it, in [-1, 1] for samples inside the breakpoints.
    intervals
        I, how many intervals one row of breakpoints has.
    """

    interval: IndexArray
    t: Array
    intervals: int


def locate(u: Array, breakpoints: Array) -> Located:
    """Find the interval of every u (..., S) among breakpoints (..., I + 1).

    Intervals are closed on the left; the last one is closed on both sides. Samples outside belong
    to the nearest interval.
    """
    intervals = breakpoints.shape[-1] - 1
    count = np.zeros(u.shape, dtype=np.uint8 if intervals < 256 else np.uint32)
    for k in range(1, intervals):
        count += u >= breakpoints[..., k, None]
    rows = np.arange(breakpoints[..., 0].size, dtype=np.intp).reshape(breakpoints.shape[:-1])
    interval = count + (rows * intervals)[..., None]
    slope = 2.0 / np.diff(breakpoints)
    middle = -0.5 * (breakpoints[..., 1:] + breakpoints[..., :-1]) * slope
    t = u * slope.ravel().take(interval)
    t += middle.ravel().take(interval)
    return Located(interval, t, intervals)


def clamped_knots(breakpoints: Array, degree: int) -> Array:
    """The knot vector with both ends repeated degree + 1 times: (..., I + 1 + 2 degree)."""
    lead = breakpoints.shape[:-1]
    first = np.broadcast_to(breakpoints[..., :1], (*lead, degree))
    last = np.broadcast_to(breakpoints[..., -1:], (*lead, degree))
    return np.concatenate([first, breakpoints, last], axis=-1)


def pieces(breakpoints: Array, degree: int) -> Array:
    """The matrices M of the module's first equation: (..., I, degree + 1, degree + 1).

    The triangular scheme of Cox and de Boor with polynomials in t in place of numbers: u - τ and
    τ - u are linear in t, and the denominators, which do not contain u, are never zero on an
    interval of positive length.
    """
    half = 0.5 * np.diff(breakpoints)
    middle = 0.5 * (breakpoints[..., 1:] + breakpoints[..., :-1])
    around = sliding_window_view(clamped_knots(breakpoints, degree), 2 * degree + 2, axis=-1)
    M = np.zeros((*half.shape, degree + 1, degree + 1))
    M[..., 0, 0] = 1.0
    for q in range(1, degree + 1):
        saved = np.zeros((*half.shape, degree + 1))
        for k in range(q):
            left, right = around[..., degree + 1 - q + k], around[..., degree + 1 + k]
            scaled = M[..., :, k] / (right - left)[..., None]
            M[..., :, k] = saved + times_linear(scaled, right - middle, -half)
            saved = times_linear(scaled, middle - left, half)
        M[..., :, q] = saved
    return M


def times_linear(p: Array, constant: Array, slope: Array) -> Array:
    """The polynomials p (..., d + 1) times constant + slope · t, whose top coefficient vanishes."""
    product = p * constant[..., None]
    product[..., 1:] += p[..., :-1] * slope[..., None]
    return product


def differentiate_pieces(M: Array, breakpoints: Array) -> Array:
    """d/du of pieces whose powers run along the axis before the last: one power less."""
    powers = np.arange(1, M.shape[-2])[:, None]
    return M[..., 1:, :] * powers * (2.0 / np.diff(breakpoints))[..., None, None]


def windows(a: Array, degree: int) -> Array:
    """The coefficients that act on each interval: a (..., K) -> (..., I, degree + 1), a view."""
    return sliding_window_view(a, degree + 1, axis=-1)


def horner(P: Array, at: Located) -> Array:
    """Σ_p P[..., i, p] t^p at located samples: P (..., I, q) -> (..., S)."""
    by_power = np.ascontiguousarray(np.moveaxis(P, -1, 0)).reshape(P.shape[-1], -1)
    value = by_power[-1].take(at.interval)
    for p in range(P.shape[-1] - 2, -1, -1):
        value *= at.t
        value += by_power[p].take(at.interval)
    return value


def evaluate(a: Array, M: Array, at: Located) -> Array:
    """The splines with coefficients a (..., K) at located samples (..., S).

    M is from `pieces` (values) or `differentiate_pieces` (slopes, second derivatives).
    """
    degree = M.shape[-1] - 1
    return horner((M @ windows(a, degree)[..., None])[..., 0], at)


def basis(M: Array, at: Located) -> tuple[Array, IndexArray]:
    """The d + 1 functions that do not vanish at each sample, and the index of the first.

    Returns values (..., S, d + 1) and first (..., S): the banded form of the design matrix.
    """
    values = np.stack([horner(M[..., k], at) for k in range(M.shape[-1])], axis=-1)
    return values, at.interval % at.intervals


def moments(at: Located, count: int, weights: Array | None = None) -> Array:
    """Σ over the samples of each interval of w t^p, p = 0 … count - 1: (..., I, count)."""
    lead = at.t.shape[:-1]
    cells = at.intervals * int(np.prod(lead))
    where = at.interval.ravel()
    power = np.ones(at.t.size) if weights is None else weights.reshape(-1).copy()
    t = at.t.ravel()
    sums = np.empty((count, cells))
    for p in range(count):
        if p:
            power *= t
        sums[p] = np.bincount(where, power, minlength=cells)
    return np.ascontiguousarray(sums.T).reshape(*lead, at.intervals, count)


def weighted_gram(M: Array, sums: Array) -> Array:
    """Mᵀ H M with H[p, q] = sums[p + q]: each interval's share of a Gram matrix, (..., I, d+1, d+1)."""
    q = np.arange(M.shape[-2])
    return M.mT @ sums[..., q[:, None] + q] @ M


def weighted_sum(M: Array, sums: Array) -> Array:
    """Mᵀ sums: each interval's share of Σ_s w_s N(u_s), (..., I, d + 1)."""
    return (M.mT @ sums[..., : M.shape[-2], None])[..., 0]


def assemble_matrix(shares: Array) -> Array:
    """Add up the intervals' shares (..., I, d+1, d+1) to a symmetric (..., K, K)."""
    intervals, order = shares.shape[-3], shares.shape[-1]
    size = intervals + order - 1
    matrix = np.zeros((*shares.shape[:-3], size, size))
    i = np.arange(intervals)
    for k in range(order):
        for j in range(order):
            matrix[..., i + k, i + j] += shares[..., k, j]
    return matrix


def assemble_vector(shares: Array) -> Array:
    """Add up the intervals' shares (..., I, d + 1) to a (..., K)."""
    intervals, order = shares.shape[-2:]
    vector = np.zeros((*shares.shape[:-2], intervals + order - 1))
    for k in range(order):
        vector[..., k : k + intervals] += shares[..., k]
    return vector
