"""Samples that tests of blocks share, and the same in Dask arrays."""

from typing import Any

import dask.array as da
import numpy as np
from hypothesis import strategies as st

from unbraid.data.problem import Problem

S, M, N = 57, 3, 2


def samples(weighted: bool = False, gaps: bool = False, seed: int = 0) -> dict[str, Any]:
    """The arguments of a problem, far from zero, so that a careless variance would show."""
    rng = np.random.default_rng(seed)
    X, F, J = rng.normal(1e4, 1.0, (S, M)), rng.normal(-1e4, 2.0, (S, N)), rng.normal(size=(S, N, M))
    if gaps:
        F[rng.random(F.shape) < 0.3] = np.nan
        J[rng.random(J.shape) < 0.3] = np.nan
    weights = rng.choice([0.0, 0.5, 1.0, 7.0], S) if weighted else None
    return {"X": X, "F": F, "J": J, "weights": weights, "missing": "mask" if gaps else "error"}


def lazy(given: dict[str, Any], lengths: tuple[int, ...]) -> dict[str, Any]:
    """The same with Dask arrays in chunks of those lengths."""
    return {
        name: da.from_array(value, chunks=(lengths, *value.shape[1:])) if isinstance(value, np.ndarray) else value
        for name, value in given.items()
    }


def moments_of_block(block: Problem, factor: float) -> tuple[Any, ...]:
    assert block.J is not None
    for array in (block.X, block.F, block.J, block.weights):
        assert array is None or (type(array) is np.ndarray and array.dtype == np.float64 and array.flags.c_contiguous)
    rows = np.ones(block.S) if block.weights is None else block.weights
    return factor * (rows @ block.X), float(rows @ np.nansum(block.J**2, axis=(1, 2))), block.S, None


def chunkings(draw: st.DataObject) -> tuple[int, ...]:
    cuts = sorted(draw.draw(st.sets(st.integers(1, S - 1), max_size=6)))
    return tuple(int(size) for size in np.diff([0, *cuts, S]))
