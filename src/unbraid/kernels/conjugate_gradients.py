r"""Large quadratic problems, min ½ xᵀ A x - bᵀ x, where A is known only by its products: free or with bounds.

A is symmetric positive definite; b is (B, P), each of the B problems on its own. `Product` maps (B, P) to (B, P).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unbraid.kernels.arrays import Array, BoolArray

Product = Callable[[Array], Array]
Question = Callable[[], bool]


def never() -> bool:
    """Nobody is in a hurry."""
    return False


PASSES = 12
"""How often the guess of which entries lie at their bounds is revised."""


def minimise_free(
    A: Product,
    b: Array,
    precondition: Product,
    free: BoolArray,
    tolerance: float,
    max_iterations: int,
    is_late: Question = never,
) -> Array:
    """Preconditioned conjugate gradients over the entries that are `free` (B, P), the others being zero.

    Ends where the residual, measured by the preconditioner, has fallen to `tolerance` of that of zero, or after
    `max_iterations` products, or where it `is_late`, after one at least: then with the last iterate, which is better
    than zero all the same.
    """
    x, residual = np.zeros_like(b), np.where(free, b, 0.0)
    z = np.where(free, precondition(residual), 0.0)
    direction, size = z, np.sum(residual * z, axis=-1, keepdims=True)
    enough = tolerance**2 * size
    for k in range(max_iterations):
        going_on = (size > enough) & (size > 0.0)
        if not going_on.any() or (k > 0 and is_late()):
            break
        image = np.where(free, A(direction), 0.0)
        curvature = np.sum(direction * image, axis=-1, keepdims=True)
        going_on &= curvature > 0.0
        step = np.divide(size, curvature, where=going_on, out=np.zeros_like(size))
        x = x + step * direction
        residual = residual - step * image
        z = np.where(free, precondition(residual), 0.0)
        before, size = size, np.where(going_on, np.sum(residual * z, axis=-1, keepdims=True), 0.0)
        direction = z + np.divide(size, before, where=going_on, out=np.zeros_like(size)) * direction
    return x


def minimise_bounded(
    A: Product,
    b: Array,
    precondition: Product,
    lower: Array,
    tolerance: float,
    max_iterations: int,
    is_late: Question = never,
) -> Array:
    """Minimise over x ≥ lower (B, P), with lower ≤ 0 and -inf where there is no bound.

    Guess which entries lie at their bounds, minimise over the others, exchange those with the wrong sign: block
    pivoting, a few times, or until it `is_late`. What is left of wrong signs then is clipped, so the result is always
    feasible.
    """
    bounded = np.isfinite(lower)
    held = bounded & (lower >= 0.0) & (b <= 0.0)
    x = np.zeros_like(b)
    for _ in range(PASSES):
        fixed = np.where(held, np.where(bounded, lower, 0.0), 0.0)
        right = b - A(fixed) if fixed.any() else b
        x = fixed + minimise_free(A, right, precondition, ~held, tolerance, max_iterations, is_late)
        slack = A(x) - b
        margin = tolerance * np.abs(b).max(axis=-1, keepdims=True)
        wrong = np.where(held, slack < -margin, bounded & (x < lower))
        if not wrong.any() or is_late():
            break
        held = held ^ wrong
    return np.maximum(x, lower)
