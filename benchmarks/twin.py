"""The plain twin: Algorithms 1 to 3 as one would first write them with NumPy and SciPy.

One start, one branch at a time, dense design matrices, `lstsq` everywhere. It is what the fast
implementation is measured against, and checked against in the tests.
"""

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import khatri_rao
from scipy.optimize import nnls

from unbraid.kernels.arrays import Array


def lstsq(A: Array, b: Array) -> Array:
    """The least-squares solution of least norm."""
    return np.asarray(np.linalg.lstsq(A, b)[0], dtype=np.float64)


def knots_of(u: Array, df: int, degree: int) -> Array:
    """Clamped knots with df - degree interior ones at quantiles."""
    inner = np.quantile(u, np.linspace(0.0, 1.0, df - degree + 2))
    return np.concatenate([[inner[0]] * degree, inner, [inner[-1]] * degree])


def design(u: Array, df: int, degree: int) -> tuple[Array, Array]:
    """Slopes B and values B̃ of the paper's representation (value), each (S, df + 1)."""
    knots = knots_of(u, df, degree)
    spline = BSpline(knots, np.eye(df + 1), degree)
    values, slopes = spline(u), spline.derivative()(u)
    values[:, 0], slopes[:, 0] = 1.0, 0.0  # the first function makes room for the constant
    return slopes, values


def slope_design(u: Array, df: int, degree: int) -> tuple[Array, Array]:
    """Slopes B and values B̃ of the paper's representation (slope), each (S, df + 1)."""
    knots = knots_of(u, df, degree)[1:-1]
    spline = BSpline(knots, np.eye(df), degree - 1)
    integral = spline.antiderivative()
    values = np.column_stack([np.ones(len(u)), integral(u) - integral(knots[0])])
    return np.column_stack([np.zeros(len(u)), spline(u)]), values


def project(G: Array, R: Array, u: Array, df: int, degree: int, coupling: float, increasing: bool) -> None:
    """Algorithm 3, in place."""
    for j in range(G.shape[1]):
        slopes, values = (slope_design if increasing else design)(u[:, j], df, degree)
        A = np.vstack([slopes, np.sqrt(coupling) * values])
        b = np.concatenate([G[:, j], np.sqrt(coupling) * R[:, j]])
        if increasing:  # the constant is free: a difference of two nonnegative numbers
            c, _ = nnls(np.column_stack([A, -A[:, 0]]), b)
            c[0] -= c[-1]
            c = c[:-1]
        else:
            c = lstsq(A, b)
        G[:, j], R[:, j] = slopes @ c, values @ c


def cmtf_bsd(
    X: Array,
    F: Array,
    J: Array,
    start: tuple[Array, Array, Array],
    df: int,
    degree: int,
    coupling: float,
    sweeps: int,
    increasing: bool = False,
    target: float = 0.0,
) -> tuple[Array, Array, Array, Array]:
    """Algorithm 1 from start = (W0, G, R), as printed, until a target or the last sweep: W1, W0, G, R."""
    W0, G, R = (array.copy() for array in start)
    S, n, m = J.shape
    first = J.transpose(1, 0, 2).reshape(n, S * m)
    second = J.transpose(2, 0, 1).reshape(m, S * n)
    third = J.reshape(S, n * m)
    for _ in range(sweeps):
        A = np.vstack([khatri_rao(G, W0.T), np.sqrt(coupling) * R])
        b = np.hstack([first, np.sqrt(coupling) * F.T])
        W1 = lstsq(A, b.T).T
        W0 = lstsq(khatri_rao(G, W1), second.T)
        length = np.linalg.norm(W0, axis=1)
        W0, W1 = W0 / length[:, None], W1 * length
        G = lstsq(khatri_rao(W1, W0.T), third.T).T
        R = lstsq(W1, F.T).T
        project(G, R, X @ W0.T, df, degree, coupling, increasing)
        misfit = np.sum((third - G @ khatri_rao(W1, W0.T).T) ** 2) + coupling * np.sum((F - R @ W1.T) ** 2)
        if misfit < target:
            break
    return W1, W0, G, R
