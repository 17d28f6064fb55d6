"""Who does many independent pieces of work: this process, several processes, or a cluster.

Nothing depends on who does it, nor on which piece ends first.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from unbraid.errors import SettingError, TaskError, check_whole
from unbraid.runtime.interrupts import Result, passing_interrupts_on

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from types import TracebackType

Value = TypeVar("Value")


@dataclass
class Shared(Generic[Value]):
    """A value that all pieces of some work need, and that may be large: a cluster is sent it once.

    `sent` is where it is on the cluster, which the cluster's workers keep up to date; None: nowhere yet.
    """

    value: Value
    sent: Any = None


class Workers(ABC):
    """Some that do pieces of work, for several rounds.

    Leaving the `with` block by an exception, such as Ctrl-C, ends what they have begun, as far as that can be.
    """

    @property
    @abstractmethod
    def count(self) -> int:
        """How many pieces they do at the same time, by now."""

    @abstractmethod
    def each(
        self,
        function: Callable[..., Result],
        pieces: Sequence[tuple[Any, ...]],
        enter: Callable[[int, Result], object],
        shared: Shared[Any] | None = None,
        enough: Callable[[], bool] = lambda: False,
    ) -> None:
        """Call the function with each piece, and `enter` number and result as they come, until there are enough.

        The function is of a module, so that other processes can find it.
        """

    def lost(self) -> frozenset[str]:
        """Those that were lost on the way, and whose work others have done again, by their addresses."""
        return frozenset()

    def __enter__(self) -> Self:
        return self

    def __exit__(  # noqa: B027 - some have nothing to end
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass


class Crew(Workers):
    """Workers that are handed all pieces at once, and tell by futures which have ended."""

    losses: ClassVar[tuple[type[BaseException], ...]] = ()
    """Errors of a piece that was lost with its worker, and can be done again."""

    @abstractmethod
    def submit(
        self, function: Callable[..., Result], piece: tuple[Any, ...], shared: Shared[Any] | None
    ) -> Future[Result]:
        """Have function(shared.value, *piece) called, or function(*piece) where nothing is shared."""

    @abstractmethod
    def ended(self, pending: Collection[Future[Result]]) -> Collection[Future[Result]]:
        """Wait until some of the pieces have ended, one way or another; raise where nobody works any more."""

    def check_hope(self, losses: int, error: BaseException) -> None:
        """Raise where something that was lost for so many times is not worth another try: here, at once."""
        raise error

    def each(
        self,
        function: Callable[..., Result],
        pieces: Sequence[tuple[Any, ...]],
        enter: Callable[[int, Result], object],
        shared: Shared[Any] | None = None,
        enough: Callable[[], bool] = lambda: False,
    ) -> None:
        """Hand all pieces out, and what was lost with a worker once more; those that are left over are cancelled."""
        losses: Counter[int] = Counter()
        pending: dict[Future[Result], int] = {}
        try:
            for k, piece in enumerate(pieces):  # Ctrl-C may come while they are handed out
                pending[self.submit(function, piece, shared)] = k
            while pending and not enough():
                for future in self.ended(pending):
                    k = pending.pop(future)
                    try:
                        result = future.result()
                    except self.losses as error:
                        losses[k] += 1
                        self.check_hope(losses[k], error)
                        pending[self.submit(function, pieces[k], shared)] = k
                    else:
                        enter(k, result)
        finally:
            for future in pending:
                future.cancel()


def workers_for(jobs: int, client: Any = None) -> Workers | None:
    """Those of a cluster where a client is given, so many processes otherwise; None: all is done in this process."""
    check_whole("jobs", jobs, 1)
    if client is None:
        return None if jobs == 1 else Processes(jobs)
    if jobs != 1:
        raise SettingError(f"jobs counts processes here, and client is a cluster: leave out jobs={jobs}.")
    from unbraid.runtime.dask_cluster import ClusterWorkers  # which most never need

    return ClusterWorkers(client)


def do_here(function: Callable[..., Result], piece: tuple[Any, ...], shared: Shared[Any] | None = None) -> Result:
    """Do a piece in this process; Ctrl-C ends it, also where it could go on with the best so far."""
    with passing_interrupts_on():
        return function(*piece) if shared is None else function(shared.value, *piece)


class Processes(Crew):
    """Workers that are processes of this machine, `jobs` of them."""

    def __init__(self, jobs: int) -> None:
        self.jobs, self.pool = jobs, new_pool(jobs)

    @property
    def count(self) -> int:
        """How many processes there are."""
        return self.jobs

    def submit(
        self, function: Callable[..., Result], piece: tuple[Any, ...], shared: Shared[Any] | None
    ) -> Future[Result]:
        """Have a piece done in whichever process is free."""
        return self.pool.submit(do_here, function, piece, shared)

    def ended(self, pending: Collection[Future[Result]]) -> Collection[Future[Result]]:
        """Wait for the first; a process that was ended from outside takes all others with it."""
        from concurrent.futures import FIRST_COMPLETED, wait
        from concurrent.futures.process import BrokenProcessPool

        done = wait(pending, return_when=FIRST_COMPLETED).done
        if any(isinstance(future.exception(), BrokenProcessPool) for future in done):
            raise TaskError("A process was ended from outside, perhaps for want of memory: lower `jobs`.")
        return done

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            for process in list((self.pool._processes or {}).values()):  # they would finish what they have begun
                process.terminate()
        self.pool.shutdown(wait=kind is None, cancel_futures=True)


def new_pool(jobs: int) -> ProcessPoolExecutor:
    """A pool of `jobs` processes; what it needs is imported here, which those who never ask for one are spared."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(jobs, mp_context=context, initializer=begin_worker, initargs=(os.getpid(),))


def begin_worker(parent: int) -> None:
    """In a new process: leave Ctrl-C to the parent, and end with it even where it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(parent)


def end_with_parent(parent: int) -> None:
    """End this process when its parent has, even where that was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
