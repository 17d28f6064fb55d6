r"""Small quadratic problems, many at a time: min ½ xᵀ A x - bᵀ x, free or with x ≥ 0.

A is symmetric positive semidefinite, (..., K, K); b is (..., K). Leading axes are independent problems.
"""

import numpy as np

from unbraid.kernels.arrays import Array, BoolArray
from unbraid.kernels.decompositions import eigen, some_inverse, spectral_pseudo_inverse

PIVOTS, PIVOTS_PER_UNKNOWN = 30, 2
"""Exchanges after which pivoting is given up: where it ends it mostly does so after a few."""


def unit_diagonal(A: Array) -> Array:
    """The factors s (..., K) for which s A s has ones on its diagonal (or zeros where A has)."""
    diagonal = np.diagonal(A, axis1=-2, axis2=-1)
    return 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))


def balanced_inverse(A: Array, ridge: float = 0.0) -> Array:
    """The inverse of each A, found with ones on its diagonal, plus a ridge, so that units of unknowns do not matter."""
    s = unit_diagonal(A)
    both = s[..., :, None] * s[..., None, :]
    return some_inverse(A * both + ridge * np.eye(A.shape[-1])) * both


def minimise(A: Array, b: Array) -> Array:
    """The minimiser of ½ xᵀ A x - bᵀ x; the one of least norm where A is exactly singular."""
    try:
        return np.asarray(np.linalg.solve(A, b[..., None])[..., 0], dtype=np.float64)
    except np.linalg.LinAlgError:
        if A.ndim == 2:
            return (spectral_pseudo_inverse(A) @ b[..., None])[..., 0]
        return np.stack([minimise(*one) for one in zip(A, b, strict=True)])


def minimise_definite(A: Array, b: Array) -> Array:
    """The same for a few large A (B, K, K), one after another: positive definite ones take half the work."""
    from scipy.linalg.lapack import dposv

    result = np.empty_like(b)
    for k, (matrix, right) in enumerate(zip(A, b, strict=True)):
        _, x, failed = dposv(matrix.T, right, lower=1)
        result[k] = minimise(matrix, right) if failed else x
    return result


def minimise_nonnegative(A: Array, b: Array, free: BoolArray, positive: BoolArray | None = None) -> Array:
    """The minimiser of ½ xᵀ A x - bᵀ x over x ≥ 0, where `free` (K,) entries may have any sign.

    `positive` (..., K) is a guess at which entries are: the better it is, the sooner it ends; all if None.

    Block principal pivoting [1]_: guess which entries are positive, solve for them, exchange all that
    have the wrong sign, and fall back to exchanging one at a time where the number of wrong ones does
    not go down, which ends for every positive definite A. All problems advance together.

    References
    ----------
    .. [1] J. Júdice, F. Pires, "A block principal pivoting algorithm for large-scale strictly
       monotone linear complementarity problems", Computers & Operations Research 21 (1994).
    """
    size = b.shape[-1]
    s = unit_diagonal(A).reshape(-1, size)
    matrix = A.reshape(-1, size, size) * s[:, :, None] * s[:, None, :]
    linear = b.reshape(-1, size) * s
    x = np.zeros_like(linear)
    tolerance = 1e-13 * size * np.abs(linear).max(axis=-1, keepdims=True)

    todo = np.arange(linear.shape[0])
    passive = np.ones(linear.shape, dtype=bool) if positive is None else positive.reshape(linear.shape) | free
    fewest = np.full(linear.shape[0], size + 1)
    patience = np.full(linear.shape[0], 3)
    for _ in range(PIVOTS + PIVOTS_PER_UNKNOWN * size):
        x[todo] = solve_passive(matrix[todo], linear[todo], passive[todo])
        slack = (matrix[todo] @ x[todo, :, None])[..., 0] - linear[todo]
        wrong = np.where(passive[todo], x[todo] < 0.0, slack < -tolerance[todo]) & ~free
        count = wrong.sum(axis=-1)
        unfinished = count > 0
        todo, wrong, count = todo[unfinished], wrong[unfinished], count[unfinished]
        if todo.size == 0:
            return (x * s).reshape(b.shape)
        fewer = count < fewest[todo]
        fewest[todo] = np.minimum(count, fewest[todo])
        patience[todo] = np.where(fewer, 3, patience[todo] - 1)
        one_at_a_time = patience[todo] < 0
        last = size - 1 - np.argmax(wrong[:, ::-1], axis=-1)
        wrong[one_at_a_time] &= np.arange(size) == last[one_at_a_time, None]
        passive[todo] ^= wrong
    for row in todo:
        x[row] = nonnegative_by_factor(matrix[row], linear[row], free)
    return (x * s).reshape(b.shape)


def solve_passive(A: Array, b: Array, passive: BoolArray) -> Array:
    """Minimise ½ xᵀ A x - bᵀ x over the passive entries of x, the others being zero."""
    restricted = np.where(passive[:, :, None] & passive[:, None, :], A, 0.0)
    diagonal = np.einsum("...kk->...k", restricted)
    diagonal[~passive] = 1.0
    x = minimise(restricted, np.where(passive, b, 0.0))
    return np.where(passive, x, 0.0)


def nonnegative_by_factor(A: Array, b: Array, free: BoolArray) -> Array:
    """The last resort for one problem so badly conditioned that pivoting cycles on rounding errors.

    With A = V diag(w) Vᵀ it is min ‖√w Vᵀ x - Vᵀ b / √w‖ over x ≥ 0, half the digits of which survive; a
    free entry is the difference of two nonnegative ones.
    """
    from scipy.optimize import nnls

    w, V = eigen(A)
    kept = w > 1e-15 * w[-1]
    if not kept.any() or not np.isfinite(b).all():
        return np.zeros_like(b)
    factor = np.sqrt(w[kept])[:, None] * V[:, kept].T
    target = (V[:, kept].T @ b) / np.sqrt(w[kept])
    try:
        x, _ = nnls(np.hstack([factor, -factor[:, free]]), target, maxiter=100 * b.size)
    except RuntimeError:  # not even so: zero is feasible, and a sweep later the problem is another one
        return np.zeros_like(b)
    result: Array = x[: b.size].copy()
    result[free] -= x[b.size :]
    return result
