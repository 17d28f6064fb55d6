"""Jacobians from what people have: a NumPy function (central differences), or values alone (local regression)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from unbraid.arrays import Array, blocks
from unbraid.errors import DataError, UnbraidError
from unbraid.kernels.quadratics import pseudo_inverse

Function = Callable[[Array], Any]

RELATIVE_STEP = float(np.finfo(float).eps ** (1.0 / 5.0))
"""The step, in units of an input's scale, that balances rounding against an error of fourth order."""


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


def sample_function(f: Function, X: Array, jacobian: Function | None) -> tuple[Array, Array]:
    """Values (S, n) and Jacobians (S, n, m) of f at X (S, m)."""
    if not callable(f):
        raise DataError(f"f must be a function of a point (m,) or of a batch (S, m), got {type(f).__name__}.")
    evaluate = batch_form(f, X)
    F = evaluate(X)
    if jacobian is None:
        return F, central_differences(evaluate, X)
    J = np.stack([np.asarray(jacobian(x), dtype=np.float64) for x in X])
    return F, J.reshape(len(X), F.shape[1], X.shape[1])


def batch_form(f: Function, X: Array) -> Callable[[Array], Array]:
    """The function of a batch (S, m) -> (S, n) that f is, or that applying f point by point makes.

    What f does with a point (m,) is asked first; it is called with a batch only if it gives, for two
    batches of different length, one row a point and the same numbers as point by point. So a
    function of one point is never mistaken for one of a batch, not even where S = m.
    """
    few = X[: min(3, len(X))]
    rows = None
    with suppress(TypeError, ValueError, IndexError):  # as functions of a batch raise on a point
        given = [f(x) for x in few]
        if given[0] is None:
            raise UnbraidError("f returned None: does it lack a return statement?")
        rows = np.stack([np.atleast_1d(np.asarray(one, dtype=np.float64)) for one in given])
    if rows is not None and rows.ndim != 2:
        rows = None
    if rows is not None and not all(takes_batches(f, few[:size], rows[:size]) for size in {1, len(few)}):
        return lambda points: np.stack([np.atleast_1d(np.asarray(f(x), dtype=np.float64)) for x in points])
    if rows is None:
        try:
            trial = np.asarray(f(few), dtype=np.float64)
        except (TypeError, ValueError, IndexError) as error:
            raise DataError(
                f"f must map a point ({X.shape[1]},) to (n,), or a batch (S, {X.shape[1]}) to (S, n); "
                f"it took neither, and the last error was: {error}"
            ) from error
        if trial.ndim == 0 or len(trial) != len(few):
            raise DataError(
                f"f must map a point ({X.shape[1]},) to (n,), or a batch (S, {X.shape[1]}) to (S, n); "
                f"a batch of {len(few)} points gave shape {trial.shape}."
            )
    return lambda points: as_rows(f(points), len(points))


def takes_batches(f: Function, points: Array, rows: Array) -> bool:
    """Whether f, given several points at once, gives what it gives point by point."""
    try:
        given = as_rows(f(points), len(points))
    except (TypeError, ValueError, IndexError):
        return False
    return given.shape == rows.shape and np.allclose(given, rows, rtol=1e-9, atol=0.0, equal_nan=True)


def as_rows(given: Any, points: int) -> Array:
    """Values of a batch as (S, n)."""
    values = np.asarray(given, dtype=np.float64)
    if values.ndim == 0 or len(values) != points:
        raise DataError(f"f gave shape {values.shape} for {points} points: it must give one row a point.")
    return values.reshape(points, -1)


def central_differences(f: Callable[[Array], Array], X: Array) -> Array:
    """Jacobians (S, n, m) by the five-point formula, with a step for each input after its spread."""
    scale = np.maximum(np.std(X, axis=0), 1e-3 * np.abs(X).max(axis=0))
    columns = []
    for k, step in enumerate(RELATIVE_STEP * np.where(scale > 0.0, scale, 1.0)):
        h = np.zeros(X.shape[1])
        h[k] = step
        near, far = f(X + h) - f(X - h), f(X + 2.0 * h) - f(X - 2.0 * h)
        columns.append((8.0 * near - far) / (12.0 * step))
    return np.stack(columns, axis=-1)
