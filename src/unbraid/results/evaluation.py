"""Models at points: one by one in numbers of Python, many in blocks, so that temporary arrays stay in the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from unbraid.errors import DataError, SettingError, shown
from unbraid.kernels.arrays import TEMPORARY_ENTRIES, Array, block_length, blocks, even_blocks
from unbraid.kernels.factors import khatri_rao
from unbraid.results.branch import Branch

if TYPE_CHECKING:
    from unbraid.results.model import DecoupledModel

FEW = 24
"""Up to so many inputs of branches in all, numbers are quicker than arrays."""
WIDE_JACOBIAN = 1000
"""Entries of a Jacobian from which on it is faster to form each by itself than all by one product."""
Floats = npt.NDArray[np.floating]


def prepare_out(out: object, shape: tuple[int, ...], dtype: npt.DTypeLike | None) -> Floats:
    """The array that results go to: the one that was given, if it can hold them, or a new one."""
    if out is None:
        kind = np.dtype(np.float64) if dtype is None else np.dtype(dtype)
        if kind.kind != "f":
            raise SettingError(f"dtype must be one of floating point, such as np.float32, got {shown(dtype)}.")
        return np.empty(shape, dtype=kind)
    if dtype is not None:
        raise SettingError("Give out or dtype, not both: results have the type of out.")
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype.kind != "f" or not out.flags.writeable:
        got = f"one of {out.dtype} and shape {out.shape}" if isinstance(out, np.ndarray) else shown(out)
        read_only = ", which cannot be written to" if isinstance(out, np.ndarray) and not out.flags.writeable else ""
        raise DataError(f"out must be an array of floating point of shape {shape}, got {got}{read_only}.")
    return out


def branch_values(branches: Sequence[Branch], u: Array) -> Array:
    """g_j(u_j) of inputs u (r, S): (r, S)."""
    if 0 < u.size <= FEW:
        return np.array([values_one_by_one(g, row) for g, row in zip(branches, u, strict=True)])
    return evaluate_each([g.__call__ for g in branches], u)


def branch_slopes(branches: Sequence[Branch], u: Array) -> Array:
    """g_j'(u_j) of inputs u (r, S): (r, S)."""
    if 0 < u.size <= FEW:
        return np.array([slopes_one_by_one(g, row) for g, row in zip(branches, u, strict=True)])
    return evaluate_each([g.derivative for g in branches], u)


def values_at_point(branches: Sequence[Branch], u: Array) -> Array:
    """g_j(u_j) of the inputs u (r,) of branches at one point: (r,)."""
    if len(u) > FEW:
        return branch_values(branches, u[:, None])[:, 0]
    pairs = zip(branches, u.tolist(), strict=True)
    return np.array([float(g(one)) if g.pieces is None else g.pieces.value_at(one) for g, one in pairs])


def slopes_at_point(branches: Sequence[Branch], u: Array) -> Array:
    """g_j'(u_j) of the inputs u (r,) of branches at one point: (r,)."""
    if len(u) > FEW:
        return branch_slopes(branches, u[:, None])[:, 0]
    pairs = zip(branches, u.tolist(), strict=True)
    return np.array([float(g.derivative(one)) if g.pieces is None else g.pieces.slope_at(one) for g, one in pairs])


def values_one_by_one(branch: Branch, u: Array) -> Array | list[float]:
    """The values at u (S,), a few numbers."""
    pieces = branch.pieces
    return branch(u) if pieces is None else [pieces.value_at(one) for one in u.tolist()]


def slopes_one_by_one(branch: Branch, u: Array) -> Array | list[float]:
    """The slopes at u (S,), a few numbers."""
    pieces = branch.pieces
    return branch.derivative(u) if pieces is None else [pieces.slope_at(one) for one in u.tolist()]


def evaluate_each(functions: Sequence[Callable[[Array], Array]], u: Array) -> Array:
    """Each function at its row of u (r, S)."""
    result = np.empty_like(u)
    for j, function in enumerate(functions):
        result[j] = function(u[j])
    return result


def in_blocks(points: npt.NDArray[np.generic], width: int, out: Floats, function: Callable[[Array], Array]) -> Floats:
    """function(block) for blocks of points (S, m) in `out` (S, ...), whose rows have so many entries at most."""
    length = max(1, min(block_length(width), TEMPORARY_ENTRIES // max(1, out[:1].size)))
    for part in even_blocks(len(points), length) if len(points) else ():
        out[part] = function(np.asarray(points[part], dtype=np.float64))
    return out


def jacobian_blocks(model: DecoupledModel, X: npt.NDArray[np.generic]) -> Iterator[tuple[slice, Array]]:
    """The Jacobians of a model at points X (S, m), a few MB at a time: (which, (·, n, m)).

    Branches are evaluated at many points at once, however large a Jacobian is: of a few, calls take all the time.
    """
    for many in even_blocks(len(X), block_length(model.rank)) if len(X) else ():
        G = branch_slopes(model.branches, model.W0 @ np.asarray(X[many], dtype=np.float64).T).T
        for few in blocks(len(G), 8 * model.n * model.m):  # what is made of them takes as much, and more
            yield slice(many.start + few.start, many.start + few.stop), jacobians(model.W0, model.W1, G[few])


def jacobians(W0: Array, W1: Array, G: Array) -> Array:
    """W1 diag(g') W0 for slopes g' of branches, the rows of G (S, r): (S, n, m)."""
    if len(G) > 1 and len(W1) * W0.shape[1] <= WIDE_JACOBIAN:
        with np.errstate(over="ignore"):
            directions = khatri_rao(W1, W0)
        if np.isfinite(directions).all():
            return np.asarray((G @ directions.T).reshape(-1, len(W1), W0.shape[1]))
    return np.asarray((W1 * G[:, None, :]) @ W0)
