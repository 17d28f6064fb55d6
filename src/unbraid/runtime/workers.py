"""Who does many independent pieces of work: this process, several processes, or a cluster.

Nothing depends on who does it, nor on which piece ends first.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from unbraid.errors import SettingError, TaskError, check_whole
from unbraid.runtime.journal import NOTHING_KEPT, Journal

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from types import FrameType, TracebackType

    from unbraid.runtime.dask_cluster import ClusterWorkers

Result = TypeVar("Result")


class Workers(ABC):
    """Some that work for several rounds.

    Leaving the `with` block by an exception, such as Ctrl-C, ends what they have begun, as far as that can be. A
    journal keeps what `map` has given.
    """

    def __init__(self, journal: Journal = NOTHING_KEPT) -> None:
        self.journal = journal

    @property
    @abstractmethod
    def count(self) -> int:
        """How many pieces they do at the same time, by now."""

    def engaged(self) -> int:
        """How many pieces to begin together: as many as in an earlier run, where the journal is of one."""
        return self.journal.unit(lambda: self.count)

    @abstractmethod
    def each(
        self,
        function: Callable[..., Result],
        arguments: Sequence[tuple[Any, ...]],
        enter: Callable[[int, Result], object],
        shared: tuple[Any, ...] = (),
    ) -> None:
        """Call function(*shared, *one) with each one of the arguments, and `enter` number and result as they come.

        The function is of a module, so that other processes can find it. What is shared may be large.
        """

    def map(
        self,
        function: Callable[..., Result],
        arguments: Sequence[tuple[Any, ...]],
        tick: Callable[[], object],
        shared: tuple[Any, ...] = (),
    ) -> list[Result]:
        """The results of all, in the order of the arguments; `tick` is called as each comes."""
        results: dict[int, Result] = {}

        def enter(k: int, result: Result) -> None:
            results[k] = result
            tick()

        def compute() -> list[Result]:
            self.each(function, arguments, enter, shared)
            return [results[k] for k in range(len(arguments))]

        every = self.journal.unit(compute)
        for _ in range(len(arguments) - len(results)):  # which the journal had
            tick()
        return every

    def __enter__(self) -> Self:
        return self

    def __exit__(  # noqa: B027 - some have nothing to end
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass


def workers_for(jobs: int, client: Any = None, journal: Journal = NOTHING_KEPT) -> Workers:
    """Those of a cluster where a client is given, so many processes otherwise; for one job, this process."""
    check_whole("jobs", jobs, 1)
    if client is None:
        return ThisProcess(journal) if jobs == 1 else Processes(jobs, journal)
    if jobs != 1:
        raise SettingError(f"jobs counts processes here, and client is a cluster: leave out jobs={jobs}.")
    from unbraid.runtime.dask_cluster import ClusterWorkers  # which most never need

    return ClusterWorkers(client, journal)


@contextmanager
def on_cluster(client: Any) -> Iterator[ClusterWorkers | None]:
    """The workers of a cluster, or None where no client was given."""
    if client is None:
        yield None
        return
    from unbraid.runtime.dask_cluster import ClusterWorkers

    with ClusterWorkers(client) as workers:
        yield workers


class ThisProcess(Workers):
    """The work is done here, one piece after another.

    Ctrl-C is passed on even where the piece it came upon went on with the best so far. A journal keeps each result.
    """

    @property
    def count(self) -> int:
        """One."""
        return 1

    def each(
        self,
        function: Callable[..., Result],
        arguments: Sequence[tuple[Any, ...]],
        enter: Callable[[int, Result], object],
        shared: tuple[Any, ...] = (),
    ) -> None:
        """In turn."""
        for k, one in enumerate(arguments):
            enter(k, self.journal.unit(partial(minding, function, *shared, *one)))


def minding(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call the function; Ctrl-C is passed on also where it went on with the best so far."""
    with minding_interrupts():
        return function(*arguments)


@contextmanager
def minding_interrupts() -> Iterator[None]:
    """Ctrl-C ends the block, and, where something in it went on with the best so far, is passed on after it."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield  # it is not heard here
        return
    heard = []

    def hear(number: int, frame: FrameType | None) -> None:
        try:
            before(number, frame)
        except KeyboardInterrupt:
            heard.append(number)
            raise

    signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if heard:
        raise KeyboardInterrupt


class Processes(Workers):
    """So many processes of this machine."""

    def __init__(self, jobs: int, journal: Journal = NOTHING_KEPT) -> None:
        super().__init__(journal)
        self.jobs, self.pool = jobs, new_pool(jobs)

    @property
    def count(self) -> int:
        """As many as were asked for."""
        return self.jobs

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            for process in list((self.pool._processes or {}).values()):  # they would finish what they have begun
                process.terminate()
        self.pool.shutdown(wait=kind is None, cancel_futures=True)

    def each(
        self,
        function: Callable[..., Result],
        arguments: Sequence[tuple[Any, ...]],
        enter: Callable[[int, Result], object],
        shared: tuple[Any, ...] = (),
    ) -> None:
        """In whichever process is free."""
        from concurrent.futures import FIRST_COMPLETED, wait
        from concurrent.futures.process import BrokenProcessPool

        try:
            pending: dict[Future[Result], int] = {
                self.pool.submit(function, *shared, *one): k for k, one in enumerate(arguments)
            }
            while pending:
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    enter(pending.pop(future), future.result())
        except BrokenProcessPool as error:
            raise TaskError("A process was ended from outside, perhaps for want of memory: lower `jobs`.") from error


def new_pool(jobs: int) -> ProcessPoolExecutor:
    """So many processes; what they need takes time to import, which those who never ask for them are spared."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(jobs, mp_context=context, initializer=begin_worker, initargs=(os.getpid(),))


def begin_worker(parent: int) -> None:
    """Leave Ctrl-C to the parent, and end with it even where it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
