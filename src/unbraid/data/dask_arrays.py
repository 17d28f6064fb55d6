"""Samples in Dask arrays: chunked along samples alike, and computed when they are needed, one block at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from unbraid.data.checks import ARRAYS, check_kind, real_array
from unbraid.data.dask_blocks import Held, block_name, default_client, failure, holder_of
from unbraid.data.reductions import Summand, total
from unbraid.errors import DataError, shown
from unbraid.kernels.arrays import Array, BoolArray, IndexArray

if TYPE_CHECKING:
    from unbraid.data.problem import Problem


def is_lazy(given: Any) -> bool:
    """Whether something comes from Dask; Dask is not imported to find out."""
    return type(given).__module__.partition(".")[0] in ("dask", "dask_expr")


def lazy_samples(name: str, given: Any) -> Any:
    """A Dask array of real numbers with known chunks, whose blocks are held to them; a sentence for anything else."""
    if not type(given).__module__.startswith("dask.array"):
        raise DataError(
            f"{name} must be an array, got a Dask {type(given).__name__}: of a data frame, pass "
            f"{name}.to_dask_array(lengths=True)."
        )
    if any(np.isnan(size) for axis in given.chunks for size in axis):
        raise DataError(
            f"{name} is a Dask array with chunks of unknown size: call {name}.compute_chunk_sizes() on it first."
        )
    check_kind(name, given)
    nothing = np.empty((0,) * given.ndim, given.dtype)
    return given.map_blocks(as_declared, label=name, meta=nothing, dtype=given.dtype)


def as_declared(block: Any, label: str, block_info: Any = None) -> Any:
    """A block of real numbers, of the shape that its Dask array declares; a sentence for any other.

    Dask looks at neither, and what is too long would be cut off, or move the rows after it.
    """
    place = block_info[0]["array-location"]
    own, declared = f"{label}[{place[0][0]}:{place[0][1]}]", tuple(end - first for first, end in place)
    array = block if getattr(block, "shape", None) == declared and 0 in declared else real_array(own, block)
    if array.shape != declared:
        raise DataError(
            f"{own}, a block of a Dask array, has shape {array.shape}, and the array declares {declared} there: make "
            "the array again with the chunks that its blocks have."
        )
    return array


def align(arrays: dict[str, Any]) -> dict[str, Any]:
    """Arrays of samples, Dask's and NumPy's, as Dask arrays in the same chunks, split along samples only.

    The largest Dask array decides which, unless it is split along other axes and its blocks would get too long.
    """
    import dask.array as da
    from dask import config
    from dask.utils import parse_bytes

    lead = max((array for array in arrays.values() if is_lazy(array)), key=lambda array: array.size)
    split = any(len(sizes) > 1 for sizes in lead.chunks[1:])
    whole = dict.fromkeys(range(1, lead.ndim), -1)
    longest = max(lead.chunks[0]) * lead.dtype.itemsize * (lead.size // lead.shape[0])
    if split and longest > parse_bytes(config.get("array.chunk-size")):
        lead = lead.rechunk({0: "auto", **whole})
    rows = tuple(size for size in lead.chunks[0] if size)
    return {
        name: array.rechunk((rows, *array.shape[1:]))
        if is_lazy(array)
        else da.from_array(array, chunks=(rows, *array.shape[1:]), name=False)
        for name, array in arrays.items()
    }


class Chunks:
    """Blocks of samples as Dask would compute them: `lengths` of samples each.

    Parameters
    ----------
    arrays
        Aligned Dask arrays.
    block_of
        Makes a problem in memory of the arrays of one block, given by name; a function of a module, or a partial one.
    """

    def __init__(self, arrays: dict[str, Any], block_of: Callable[..., Problem]) -> None:
        import dask

        self.lengths: tuple[int, ...] = arrays["X"].chunks[0]
        self.holder = holder_of(arrays.values())
        parts = {name: array.to_delayed().ravel() for name, array in arrays.items()}
        make = dask.delayed(block_of, pure=False)
        every = [make(**{name: parts[name][i] for name in parts}) for i in range(len(self.lengths))]
        self.recipes = [dask.optimize(one)[0] for one in every]

    def block(self, i: int) -> Problem:
        """One block, in memory."""
        try:
            block: Problem = self.recipes[i].compute(optimize_graph=False)
        except Exception as error:
            raise failure(error, block_name(self.lengths, i)) from None
        return block

    @property
    def client(self) -> Any:
        """The client of the cluster that holds the arrays, or Dask's default one; None: they are computed here."""
        return self.holder if self.holder is not None else default_client()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "holder": None}  # elsewhere there is no such client

    def sum(self, function: Callable[..., Summand], arguments: tuple[Any, ...], entries: int | None) -> Summand:
        """Σ function(part, *arguments), one block in memory at a time; or where the arrays are, on a cluster."""
        if (client := self.client) is not None:
            return self.on(client).sum(function, arguments, entries)
        every = range(len(self.lengths))
        return total(self.block(i).sum(function, *arguments, entries=entries) for i in every)

    def take(self, picks: Sequence[tuple[int, IndexArray]]) -> list[Problem]:
        """Some samples of some blocks, in memory."""
        if (client := self.client) is not None:
            return self.on(client).take(picks)
        return [self.block(i).part(index) for i, index in picks]

    def on(self, client: Any) -> Held:
        """The same blocks, computed once and held by a cluster's workers."""
        return Held(client, self)


def indices(index: Sequence[int] | IndexArray | BoolArray | slice, S: int) -> IndexArray:
    """The numbers of the samples that an index means."""
    if isinstance(index, slice):
        return np.arange(*index.indices(S))
    given = np.asarray(index)
    if given.dtype == bool and given.shape == (S,):
        return np.flatnonzero(given)
    if given.ndim != 1 or given.dtype.kind not in "iu" or not ((given >= -S) & (given < S)).all():
        raise DataError(
            f"index must be a slice, a mask (S,) = ({S},) or numbers of samples below {S}, got {shown(index)}."
        )
    return np.where(given < 0, given + S, given).astype(np.intp)


def gather(home: Chunks | Held, index: IndexArray) -> dict[str, Array]:
    """The arrays of some samples, in any order, of blocks that are elsewhere."""
    if index.size == 0:
        raise DataError("No sample was asked for: a problem needs at least one.")
    order = np.argsort(index, kind="stable")
    edges = np.cumsum([0, *home.lengths])
    cuts = np.searchsorted(index[order], edges)
    picks = [(i, index[order[low:high]] - edges[i]) for i, (low, high) in enumerate(pairwise(cuts)) if low < high]
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    parts = home.take(picks)
    return {
        name: np.concatenate([getattr(part, name) for part in parts])[back]
        for name in ARRAYS
        if getattr(parts[0], name) is not None
    }
