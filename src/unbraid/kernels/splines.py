r"""Splines piece by piece: evaluation, and normal equations from power moments.

Breakpoints b_0 < … < b_I carry a clamped B-spline basis of degree d with K = I + d functions. On
interval i, with t = (2u - b_i - b_{i+1}) / h_i ∈ [-1, 1] and h_i = b_{i+1} - b_i, the d + 1 functions
that do not vanish are polynomials in t,

    N_{i+k}(u) = Σ_p M[k, p, i] t^p,        k = 0 … d,

so a spline Σ_k a_k N_k is, piece by piece, a polynomial in t with coefficients Σ_k M[k, p, i] a_{i+k}. The
Gram matrix of the basis over samples needs of the samples only their moments Σ t^p in each interval:
no design matrix, no sort, one pass over the samples whatever d is.

Leading axes "..." (starts, branches) are the same for all arguments. Small axes (functions k, powers p)
come before them, so that every operation runs over all pieces of all splines at once: M is
(d + 1, d + 1, ..., I).
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from unbraid.kernels.arrays import Array, IndexArray


@dataclass(frozen=True, slots=True)
class Located:
    """Where samples lie among breakpoints.

    Attributes
    ----------
    interval
        (..., S), the interval of each sample, numbered through all leading axes.
    t
        (..., S), the position in it, in [-1, 1] for samples inside the breakpoints.
    rate
        (..., S), dt/du = 2 / h there.
    intervals
        I, how many intervals one row of breakpoints has.
    """

    interval: IndexArray
    t: Array
    rate: Array
    intervals: int


@dataclass(frozen=True)
class Lookup:
    """Even cells, of which none has two breakpoints inside: what finds intervals of many samples.

    Attributes
    ----------
    scale, shift, least, most
        (..., 1): the cell of u is scale · u + shift, kept between least and most, without its fraction.
    interval
        (cells,), the interval of samples in that cell that lie before its breakpoint.
    breakpoint
        (cells,), the one breakpoint inside; NaN where there is none, beyond which not even infinity lies.
    """

    scale: Array
    shift: Array
    least: Array
    most: Array
    interval: IndexArray
    breakpoint: Array

    def cells(self, u: Array) -> IndexArray:
        """The cells of u (..., S). Rounding does no harm: they increase with u, and so do the breakpoints' own."""
        position = u * self.scale
        position += self.shift
        np.fmin(position, self.most, out=position)
        np.fmax(position, self.least, out=position)
        return position.astype(np.intp)

    def intervals(self, u: Array) -> IndexArray:
        """The intervals of u (..., S), numbered through all leading axes."""
        cells = self.cells(u)
        found = self.interval.take(cells)
        found += u >= self.breakpoint.take(cells)
        return found


CELLS = 512
"""Cells of a `Lookup` for one spline."""


def lookup(breakpoints: Array) -> Lookup | None:
    """The cells for breakpoints (..., I + 1); None where two breakpoints are so close that they share one."""
    lead, intervals = breakpoints.shape[:-1], breakpoints.shape[-1] - 1
    row = np.arange(math.prod(lead), dtype=np.intp).reshape(*lead, 1)
    scale = CELLS / (breakpoints[..., -1:] - breakpoints[..., :1])
    least = (row * CELLS).astype(np.float64)
    shift = least - scale * breakpoints[..., :1]
    found = Lookup(scale, shift, least, least + (CELLS - 1), row, row)  # type: ignore[arg-type]
    inner = breakpoints[..., 1:-1]
    cells = found.cells(inner)
    if not (cells[..., 1:] > cells[..., :-1]).all():
        return None
    inside, following = np.zeros((*lead, CELLS), dtype=np.intp), np.full(row.size * CELLS, np.nan)
    inside.ravel()[cells] = 1
    following[cells] = inner
    before = np.cumsum(inside, axis=-1) - inside + row * intervals
    return Lookup(scale, shift, least, least + (CELLS - 1), before.ravel(), following)


def find_intervals(u: Array, breakpoints: Array) -> IndexArray:
    """The intervals of u (..., S), numbered through all leading axes, by comparison with every breakpoint."""
    intervals = breakpoints.shape[-1] - 1
    count = np.zeros(u.shape, dtype=np.uint8 if intervals < 256 else np.uint32)
    for k in range(1, intervals):
        count += (u >= breakpoints[..., k, None]).view(np.uint8)  # adding booleans would convert them first
    rows = np.arange(breakpoints[..., 0].size, dtype=np.intp).reshape(breakpoints.shape[:-1])
    found: IndexArray = count + (rows * intervals)[..., None]
    return found


def locate(u: Array, breakpoints: Array, by: Lookup | None = None) -> Located:
    """Find the interval of every u (..., S) among breakpoints (..., I + 1), with their `lookup` where samples are many.

    Intervals are closed on the left; the last one is closed on both sides. Samples outside belong
    to the nearest interval.
    """
    intervals = breakpoints.shape[-1] - 1
    interval = find_intervals(u, breakpoints) if by is None else by.intervals(u)
    rate = (2.0 / widths(breakpoints)).ravel().take(interval)
    middle = 0.5 * (breakpoints[..., 1:] + breakpoints[..., :-1])
    t = u - middle.ravel().take(interval)
    t *= rate
    return Located(interval, t, rate, intervals)


def widths(breakpoints: Array) -> Array:
    """The lengths h of the intervals: (..., I)."""
    return breakpoints[..., 1:] - breakpoints[..., :-1]


def clamped_knots(breakpoints: Array, degree: int) -> Array:
    """The knot vector with both ends repeated degree + 1 times: (..., I + 1 + 2 degree)."""
    inner = breakpoints.shape[-1]
    knots = np.empty((*breakpoints.shape[:-1], inner + 2 * degree))
    knots[..., :degree] = breakpoints[..., :1]
    knots[..., degree : degree + inner] = breakpoints
    knots[..., degree + inner :] = breakpoints[..., -1:]
    return knots


def pieces(breakpoints: Array, degree: int) -> Array:
    """The polynomials M of the module's first equation: (degree + 1, degree + 1, ..., I).

    The triangular scheme of Cox and de Boor with polynomials in t in place of numbers: u - τ and
    τ - u are linear in t, and the denominators, which do not contain u, are never zero on an
    interval of positive length.
    """
    half = 0.5 * widths(breakpoints)
    middle = 0.5 * (breakpoints[..., 1:] + breakpoints[..., :-1])
    knots = clamped_knots(breakpoints, degree)
    intervals = half.shape[-1]
    around = np.stack([knots[..., j : j + intervals] for j in range(1, 2 * degree + 1)]) - middle
    M = np.ones((1, 1, *half.shape))
    for q in range(1, degree + 1):
        left, right = around[degree - q : degree], around[degree : degree + q]
        scaled = M / (right - left)[:, None]
        M = np.empty((q + 1, q + 1, *half.shape))
        np.multiply(scaled, right[:, None], out=M[:q, :q])
        M[q], M[:, q] = 0.0, 0.0
        M[1:, :q] -= scaled * left[:, None]
        scaled *= half
        M[:q, 1:] -= scaled
        M[1:, 1:] += scaled
    return M


def combine(a: Array, M: Array) -> Array:
    """The polynomial pieces P[p, ..., i] = Σ_k M[k, p, ..., i] a[..., i + k] of splines a (..., K)."""
    intervals = M.shape[-1]
    P: Array = M[0] * a[..., :intervals]
    for k in range(1, M.shape[0]):
        P += M[k] * a[..., k : k + intervals]
    return P


@cache
def exponents(powers: int, axes: int) -> Array:
    """1, 2, …, powers - 1 along the first of so many axes."""
    return np.arange(1.0, powers).reshape(-1, *[1] * (axes - 1))


def differentiate(P: Array, breakpoints: Array) -> Array:
    """d/du of pieces P (q, ..., I), or of basis functions by `differentiate_basis`: one power less."""
    if len(P) == 1:
        return np.zeros_like(P)
    return P[1:] * exponents(len(P), P.ndim) * (2.0 / widths(breakpoints))


def differentiate_basis(M: Array, breakpoints: Array) -> Array:
    """d/du of the basis functions M (d + 1, q, ..., I)."""
    return np.stack([differentiate(function, breakpoints) for function in M])


def horner(P: Array, at: Located) -> Array:
    """Σ_p P[p, ..., i] t^p at located samples: P (q, ..., I) -> (..., S)."""
    by_power = P.reshape(len(P), -1)
    value: Array = by_power[-1].take(at.interval)
    for p in range(len(P) - 2, -1, -1):
        value *= at.t
        value += by_power[p].take(at.interval)
    return value


def horner_with_slope(P: Array, at: Located) -> tuple[Array, Array]:
    """The values that `horner` gives, and d/du of them, from one look at the coefficients: (..., S) each."""
    by_power = P.reshape(len(P), -1)
    value: Array = by_power[-1].take(at.interval)
    slope = np.zeros_like(value)
    for p in range(len(P) - 2, -1, -1):
        slope *= at.t
        slope += value
        value *= at.t
        value += by_power[p].take(at.interval)
    slope *= at.rate
    return value, slope


def write_basis(out: Array, rows: IndexArray, M: Array, at: Located, column: int = 0) -> None:
    """Write the d + 1 functions that do not vanish at each sample into its row of `out` (·, ·), C-contiguous.

    Rows are of the shape of the samples, (..., S), or as many in one axis; the first function is in `column`.
    """
    flat = out.reshape(-1)
    where = (rows * out.shape[-1]).reshape(at.t.shape) + at.interval % at.intervals
    where += column
    for function in M:
        flat[where] = horner(function, at)
        where += 1


def moments(at: Located, count: int, weight: Array | None = None) -> Array:
    """Σ over the samples of each interval of t^p, p = 0 … count - 1: (count, ..., I), samples weighted by (S,)."""
    lead = at.t.shape[:-1]
    cells = at.intervals * math.prod(lead)
    where, t = at.interval.ravel(), at.t.ravel()
    power = t.copy() if weight is None else (at.t * weight).ravel()
    sums = np.empty((count, cells))
    counted = None if weight is None else np.broadcast_to(weight, at.t.shape).ravel()
    sums[0] = np.bincount(where, counted, minlength=cells)
    for p in range(1, count):
        if p > 1:
            power *= t
        sums[p] = np.bincount(where, power, minlength=cells)
    return sums.reshape(count, *lead, at.intervals)


def gram_shares(M: Array, sums: Array, breakpoints: Array, coupling: float) -> Array:
    """Each interval's share of B'ᵀ B' + λ B̃ᵀ B̃, slopes and values at once: (d+1, d+1, ..., I).

    Σ_pq M[k, p] C[p, q] M[j, q] with C[p, q] = λ A[p + q] + p q (2/h)² A[p + q - 2], A = sums (2d + 1, ..., I).
    """
    powers = M.shape[1]
    p = np.arange(powers)
    C = (coupling * sums)[p[:, None] + p]
    slopes = sums[: 2 * powers - 3] * (2.0 / widths(breakpoints)) ** 2
    inner = exponents(powers, sums.ndim)
    C[1:, 1:] += inner[:, None] * inner * slopes[p[:-1, None] + p[:-1]]
    return contract("kp...,jp...->kj...", M, contract("pq...,jq...->jp...", C, M))


def right_moments(at: Located, degree: int, G: Array, R: Array | None, coupling: float) -> Array:
    """Moments (d + 1, ..., I) whose `basis_sums` are B'ᵀ G + λ B̃ᵀ R.

    A power t^p counts λ R t^p as a value and p (2/h) G t^(p-1) as a slope.
    """
    cells = at.intervals * math.prod(at.t.shape[:-1])
    where, t = at.interval.ravel(), at.t.ravel()
    slopes = (at.rate * G).ravel()
    values = np.zeros_like(slopes) if R is None else (coupling * R).ravel()
    sums = np.empty((degree + 1, cells))
    sums[0] = np.bincount(where, values, minlength=cells)
    for p in range(1, degree + 1):
        values *= t
        if p > 1:
            slopes *= t
        sums[p] = np.bincount(where, values + p * slopes, minlength=cells)
    return sums.reshape(degree + 1, *at.t.shape[:-1], at.intervals)


def basis_sums(M: Array, sums: Array) -> Array:
    """Σ_p M[k, p] sums[p]: each interval's share of Σ_s w_s N(u_s), (d + 1, ..., I)."""
    return contract("kp...,p...->k...", M, sums[: M.shape[1]])


def contract(subscripts: str, A: Array, B: Array) -> Array:
    """`einsum` over small axes of A and B, for all pieces (..., I) at once.

    A single piece is computed beside a copy of itself: alone, NumPy would add up in another order, and a
    spline's last bits would depend on whether it has company.
    """
    if math.prod(A.shape[2:]) == 1:
        return contract(subscripts, A.repeat(2, axis=-1), B.repeat(2, axis=-1))[..., :1]
    result: Array = np.einsum(subscripts, A, B)
    return result


def assemble_matrix(shares: Array) -> Array:
    """Add up the intervals' shares (d+1, d+1, ..., I) to a (..., K, K)."""
    order, intervals = shares.shape[0], shares.shape[-1]
    size = intervals + order - 1
    flat = np.zeros((*shares.shape[2:-1], size * size))
    for k in range(order):
        for j in range(order):  # entries (i + k, i + j), i = 0 … I - 1, lie size + 1 apart
            flat[..., k * size + j :: size + 1][..., :intervals] += shares[k, j]
    return flat.reshape(*shares.shape[2:-1], size, size)


def assemble_vector(shares: Array) -> Array:
    """Add up the intervals' shares (d + 1, ..., I) to a (..., K)."""
    order, intervals = shares.shape[0], shares.shape[-1]
    vector = np.zeros((*shares.shape[1:-1], intervals + order - 1))
    for k in range(order):
        vector[..., k : k + intervals] += shares[k]
    return vector
