"""The paper's measures of error, and how near decouplings are to each other."""

import numpy as np
import numpy.typing as npt

from unbraid.data.checks import numbers
from unbraid.errors import DataError
from unbraid.kernels.arrays import Array, blocks

__all__ = [
    "direction_angles",
    "factor_match",
    "jacobian_error",
    "output_errors",
]


def __dir__() -> list[str]:
    return __all__


MEAN_ROUNDING = 1e-13
"""An output that varies by less than this share of its mean does not vary."""


@np.errstate(over="ignore")  # of an estimate that is too large to be squared the error is infinite
def jacobian_error(J: npt.ArrayLike, J_hat: npt.ArrayLike) -> float:
    """Error(J) = ‖J - Ĵ‖² / ‖J‖².

    Examples
    --------
    >>> jacobian_error([[[2.0]]], [[[1.0]]])
    0.25
    """
    truth, estimate = in_ordinary_sizes(*same_shape("J", J, J_hat), None)
    residual = sum(float(np.sum(np.square(truth[part] - estimate[part]))) for part in blocks(len(truth), truth[0].size))
    norm = sum(float(np.sum(np.square(truth[part]))) for part in blocks(len(truth), truth[0].size))
    return ratio(residual, norm)


@np.errstate(over="ignore")
def output_errors(F: npt.ArrayLike, F_hat: npt.ArrayLike) -> Array:
    """e_i = 100 · RMS of f_i - f̂_i over the standard deviation of f_i, in %: (n,).

    A constant output has no standard deviation: its error is 0 where it is met and infinite otherwise.

    Examples
    --------
    >>> output_errors([[0.0], [2.0]], [[0.1], [2.1]])
    array([10.])
    """
    truth, estimate = same_shape("F", F, F_hat)
    truth, estimate = in_ordinary_sizes(truth.reshape(len(truth), -1), estimate.reshape(len(truth), -1), 0)
    residual = np.mean(np.square(truth - estimate), axis=0)
    center = truth.mean(axis=0)
    spread = np.mean(np.square(truth - center), axis=0)
    return percents_of_spread(residual, spread, center)


def direction_angles(W: npt.ArrayLike, W_hat: npt.ArrayLike) -> Array:
    """Angles in degrees between the rows of W (r, m) and the rows of Ŵ matched to them: (r,).

    Rows are directions, so sign and length do not count; the matching (one to one) makes the sum of
    the angles smallest.

    Examples
    --------
    >>> direction_angles([[1.0, 0.0], [0.0, 1.0]], [[0.0, -3.0], [2.0, 0.0]])
    array([0., 0.])
    """
    from scipy.optimize import linear_sum_assignment

    truth, estimate = same_shape("W", W, W_hat)
    between = angles_between(truth, estimate)
    rows, columns = linear_sum_assignment(between)
    angles: Array = between[rows, columns]
    return angles


def factor_match(W0: npt.ArrayLike, W1: npt.ArrayLike, W0_hat: npt.ArrayLike, W1_hat: npt.ArrayLike) -> float:
    """The factor match score of two decouplings, 1 where they are the same.

    The mean over branches of abs(cos) between rows of W0 (r, m) times abs(cos) between columns of W1 (n, r), branches
    matched one to one so that it is largest.

    Examples
    --------
    >>> factor_match([[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0]], [[0.0, -3.0], [2.0, 0.0]], [[5.0, 1.0]])
    1.0
    """
    from scipy.optimize import linear_sum_assignment

    inner, outer = same_shape("W0", W0, W0_hat), same_shape("W1", W1, W1_hat)
    cosines = [np.cos(np.radians(angles_between(*pair))) for pair in (inner, (outer[0].T, outer[1].T))]
    rows, columns = linear_sum_assignment(-cosines[0] * cosines[1])
    return float(np.mean((cosines[0] * cosines[1])[rows, columns]))


def angles_between(A: Array, B: Array) -> Array:
    """The angle in degrees between every row of A (p, m) and every row of B (q, m), as lines: (p, q)."""
    a = A / np.maximum(np.linalg.norm(A, axis=-1, keepdims=True), np.finfo(float).tiny)
    b = B / np.maximum(np.linalg.norm(B, axis=-1, keepdims=True), np.finfo(float).tiny)
    difference = np.linalg.norm(a[:, None] - b, axis=-1)
    total = np.linalg.norm(a[:, None] + b, axis=-1)
    # 2 atan of the half-angle's tangent: exact for small angles, where arccos loses half the digits
    smaller, larger = np.minimum(difference, total), np.maximum(difference, total)
    angles: Array = np.degrees(2.0 * np.arctan2(smaller, larger))
    return angles


def percents_of_spread(residual: Array, spread: Array, center: Array) -> Array:
    """e_i in %, (n,), from mean squares of residuals and of outputs around their mean, `center`.

    What is rounding beside an output's mean counts as 0. Sums over S samples will do, with √S times the mean.
    """
    floor = np.square(MEAN_ROUNDING * center)
    varies = spread > floor
    left = np.where(varies | (residual > floor), residual, 0.0)
    shares = [ratio(float(a), float(b)) for a, b in zip(left, np.where(varies, spread, 0.0), strict=True)]
    return 100.0 * np.sqrt(shares)


def ratio(residual: float, scale: float) -> float:
    """Residual / scale, with 0 / 0 = 0."""
    if scale > 0.0:
        return residual / scale
    return 0.0 if residual == 0.0 else np.inf


def in_ordinary_sizes(truth: Array, estimate: Array, axis: int | None) -> tuple[Array, Array]:
    """Both over a power of two, of all numbers or of each column (axis 0), so that squares of the truth are numbers."""
    powers = -np.frexp(np.abs(truth).max(axis=axis))[1]
    return np.ldexp(truth, powers), np.ldexp(estimate, powers)


def same_shape(name: str, truth: npt.ArrayLike, estimate: npt.ArrayLike) -> tuple[Array, Array]:
    """A truth and its estimate as float arrays, refused where their shapes differ."""
    first, second = numbers(name, truth), numbers(f"The estimate of {name}", estimate)
    if first.shape != second.shape:
        raise DataError(f"{name} and its estimate must have the same shape, got {first.shape} and {second.shape}.")
    return first, second
