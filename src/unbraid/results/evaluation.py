"""Models at points: one by one in numbers of Python, many in blocks, so that temporary arrays stay in the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from unbraid.errors import DataError, SettingError, shown
from unbraid.kernels.arrays import TEMPORARY_ENTRIES, Array, block_length, even_blocks
from unbraid.results.branch import Branch

FEW = 24
"""Up to so many inputs of branches in all, numbers are quicker than arrays."""
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
