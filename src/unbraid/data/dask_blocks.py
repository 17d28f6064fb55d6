"""Blocks of samples on the workers of a Dask cluster: they stay there, and only small results travel.

A sum is one task for every thread of every worker, over the blocks that are there. What each block gives is added here,
in the order of the blocks, so it does not matter who computes what. The recipe of every block stays with the scheduler:
where a worker dies, others make its blocks again.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from unbraid.data.reductions import Summand, total
from unbraid.errors import TaskError, UnbraidError
from unbraid.kernels.arrays import IndexArray
from unbraid.runtime import cluster_waits
from unbraid.runtime.cluster_waits import Roll, Watch, ask, check_connected, loss_errors, within
from unbraid.runtime.process import keep_freed_arrays, single_blas_thread

if TYPE_CHECKING:
    from unbraid.data.dask_arrays import Chunks
    from unbraid.data.problem import Problem


ATTEMPTS = 5
"""How often blocks are made and asked again where workers die or data get lost."""
LARGE = 1 << 20
"""Bytes of arguments from which on they are sent once, to be passed on among workers, instead of with every task."""


def holder_of(arrays: Iterable[Any]) -> Any:
    """The client on whose workers Dask arrays are, as those that were persisted; None where they are on none."""
    distributed = sys.modules.get("distributed")
    values = () if distributed is None else (value for array in arrays for value in dict(array.dask).values())
    return next((value.client for value in values if isinstance(value, distributed.Future)), None)  # type: ignore[union-attr]


def default_client() -> Any:
    """The client that Dask uses unless told otherwise; None where there is none."""
    distributed = sys.modules.get("distributed")
    if distributed is not None:
        with suppress(ValueError):
            return distributed.default_client()
    return None


class Held:
    """The blocks of Dask arrays, computed once and held by the workers of a cluster."""

    def __init__(self, client: Any, chunks: Chunks) -> None:
        self.client, self.chunks, self.lengths = client, chunks, chunks.lengths
        self.roll = Roll(client)
        self.futures: list[Any] = request_blocks(client, chunks.recipes)
        self.groups: list[list[int]] | None = None

    def __reduce__(self) -> Any:
        return restore, (self.chunks,)  # elsewhere there is no such client

    def sum(self, function: Callable[..., Summand], arguments: tuple[Any, ...], entries: int | None) -> Summand:
        """Σ function(part, *arguments): blocks are summed where they are, and the results in their order."""
        import cloudpickle  # unlike pickle, it takes what a script of the user's defines along

        common: bytes = cloudpickle.dumps((function, arguments, entries))
        sums: list[Summand] = self.each(partial_sums, dict.fromkeys(range(len(self.lengths))), common)
        return total(sums)

    def take(self, picks: Sequence[tuple[int, IndexArray]]) -> list[Problem]:
        """Some samples of some blocks, brought into this process."""
        return self.each(parts_of, dict(picks))

    def each(self, function: Callable[..., list[Any]], wanted: dict[int, Any], common: bytes = b"") -> list[Any]:
        """What the function gives for the wanted blocks, in their order; what gets lost with a worker is made again.

        It is called as function(blocks, own, common) with what is wanted of each block, and gives a list.
        """
        results: dict[int, Any] = {}
        made_again = True
        for attempt in range(ATTEMPTS):
            check_connected(self.client)
            tasks: dict[Any, list[int]] = {}
            with suppress(OSError, *loss_errors()):  # blocks or results are lost, or nobody answers in time
                tasks = self.submitted(function, {i: own for i, own in wanted.items() if i not in results}, common)
                self.wait_for(list(tasks))
                done = [task for task in tasks if task.status == "finished"]
                answers = within(2**attempt * cluster_waits.ANSWERING, partial(self.client.gather, done))
                for task, given in zip(done, answers, strict=True):
                    results.update(zip(tasks[task], given, strict=True))
            if len(results) == len(wanted):
                return [results[i] for i in wanted]
            made_again = self.mend(list(tasks))
        raise TaskError(ENDED if made_again else LOST)

    def lost(self) -> frozenset[str]:
        """The addresses of workers that were lost since blocks were asked for."""
        return self.roll.lost()

    def submitted(self, function: Callable[..., Any], wanted: dict[int, Any], common: Any) -> dict[Any, list[int]]:
        """Submit tasks for the wanted blocks; each task, and the numbers of the blocks that it is about."""
        if len(common) > LARGE:  # a task of its own, whose result workers pass on, and any of them can make again
            common = self.client.submit(bytes, common, pure=False)
        tasks = {}
        for group in self.grouped():
            if some := [i for i in group if i in wanted]:
                blocks, own = [self.futures[i] for i in some], [wanted[i] for i in some]
                tasks[self.client.submit(function, blocks, own, common, pure=False)] = some
        return tasks

    def grouped(self) -> list[list[int]]:
        """Numbers of blocks in groups, one for every thread of every worker that has some."""
        if self.groups is None:
            self.wait_for(self.futures)
            threads, where = self.roll.threads(), ask(self.client, partial(self.client.who_has, self.futures))
            at: dict[str, list[int]] = {}
            for i, future in enumerate(self.futures):
                at.setdefault(next(iter(where.get(future.key, ())), ""), []).append(i)
            self.groups = [
                own[k::count]
                for worker, own in at.items()
                for count in [min(len(own), threads.get(worker, 1))]
                for k in range(count)
            ]
        return self.groups

    def wait_for(self, futures: Sequence[Any]) -> None:
        """Wait until all futures have ended, one way or another; those that nobody works on any more are cancelled."""
        from distributed import wait

        watch = Watch(self.roll)
        while pending := [future for future in futures if future.status == "pending"]:
            with suppress(TimeoutError, CancelledError), self.client.as_current():
                wait(pending, timeout=cluster_waits.LOOKING)
                return
            if watch.stalled():
                ask(self.client, partial(self.client.cancel, pending))

    def mend(self, tasks: Sequence[Any]) -> bool:
        """Ask again for blocks that are lost, and return whether there were none; what would fail again is raised."""
        self.groups = None
        for i, future in enumerate((*self.futures, *tasks)):
            if future.status == "error":
                raise failure(future.exception(), block_name(self.lengths, i) if i < len(self.futures) else None)
        whole = not any(future.status in ("cancelled", "lost") for future in self.futures)
        if not whole:
            self.futures = request_blocks(self.client, self.chunks.recipes)
        return whole


def request_blocks(client: Any, recipes: Sequence[Any]) -> list[Any]:
    """Ask a cluster to compute blocks from their recipes, and return their futures.

    Each time under keys of their own: the news that a key was cancelled may come after the key was asked for again,
    and would cancel it once more.
    """
    from dask import delayed

    check_connected(client)
    try:
        anew = [delayed(unchanged, pure=False)(one) for one in recipes]
        futures: list[Any] = client.compute(anew, optimize_graph=False)
    except CancelledError as error:
        raise TaskError(LOST) from error
    return futures


def unchanged(block: Problem) -> Problem:
    """The block itself, as the result of another task."""
    return block


def block_name(lengths: Sequence[int], i: int) -> str:
    """What to call the i-th of blocks of so many samples."""
    first = sum(lengths[:i])
    return f"The block of samples {first} to {first + lengths[i] - 1}"


def failure(error: BaseException, block: str | None) -> BaseException:
    """An error on a worker, or of a block, as a user should see it."""
    told = f"{type(error).__name__}: {str(error).rstrip('.')}"
    said: BaseException = error
    if type(error).__name__ == "KilledWorker":
        said = TaskError(ENDED)
    elif isinstance(error, ModuleNotFoundError):
        said = TaskError(f"A worker could not begin ({told}): install there what is installed here.")
    elif block is not None and not isinstance(error, UnbraidError):
        said = TaskError(f"{block} could not be computed ({told}).")
    said.__cause__ = None if said is error else error
    return said


ENDED = (
    "Workers that had a block of the samples were ended again and again, perhaps for want of memory: use smaller "
    "chunks (array.rechunk), or give workers more memory."
)
LOST = (
    "Samples were lost with a worker, and the cluster does not know how to make them again: give Dask arrays that are "
    "read from files or computed on the workers, instead of arrays that were scattered to them."
)


def partial_sums(blocks: Sequence[Problem], own: Sequence[None], common: bytes) -> list[Any]:
    """The sums over each of a worker's blocks, by a function that its cluster's client has sent (see `helpers`)."""
    function, arguments, entries = pickle.loads(common)
    keep_freed_arrays()
    with single_blas_thread():
        return [block.sum(function, *arguments, entries=entries) for block in blocks]


def parts_of(blocks: Sequence[Problem], own: Sequence[IndexArray], common: bytes) -> list[Problem]:
    """Some of the samples of each of a worker's blocks."""
    return [block.part(index) for block, index in zip(blocks, own, strict=True)]


def restore(chunks: Chunks) -> Chunks:
    """What is left of held blocks in another process: their recipes."""
    return chunks
