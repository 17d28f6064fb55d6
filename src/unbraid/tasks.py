"""Many independent pieces of work: in parallel processes, with progress, and kept on disk as they are done.

A finished task is one small file, written whole or not at all. Killed at any moment and started again, the same
tasks are read back where they are there and computed where they are not. Nothing depends on how many processes
there are, nor on which task ends first.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from unbraid.errors import FileError, TaskError
from unbraid.files import reason, replacing
from unbraid.journal import NOTHING_KEPT, Journal
from unbraid.threads import single_blas_thread

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from types import FrameType, TracebackType

Rows = list[dict[str, Any]]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Task:
    """One piece of work: `function(**settings)` gives rows of numbers and texts.

    Parameters
    ----------
    name
        Readable, unique among the tasks, and fit for a file's name.
    function
        A function of a module, so that another process can find it.
    settings
        Its arguments: numbers and texts. Other settings are another task, whatever the name.
    made_of
        Text of whatever else its rows depend on, and that may change: the source of a plug-in, say.
    """

    name: str
    function: Callable[..., Rows]
    settings: dict[str, Any]
    made_of: str = ""

    @property
    def file_name(self) -> str:
        """Where its rows are kept: the name, and a digest of everything that the rows depend on."""
        parts = [self.function.__module__, self.function.__qualname__, self.settings, *filter(None, [self.made_of])]
        whole = json.dumps(parts, sort_keys=True)
        return f"{self.name}-{hashlib.sha256(whole.encode()).hexdigest()[:12]}.json"


class Done(NamedTuple):
    """What a progress callback is told: tasks done (those found on disk among them), in all, and seconds left.

    `seconds_left` is None as long as nothing was computed.
    """

    done: int
    total: int
    seconds_left: float | None


def run_tasks(
    tasks: Sequence[Task], folder: Path | None, jobs: int = 1, callback: Callable[[Done], object] | None = None
) -> list[Rows]:
    """The rows of every task, in the order of the tasks; with a folder, kept there and read back from there.

    Ctrl-C leaves finished tasks in the folder and is passed on.
    """
    kept = {} if folder is None else {i: rows for i, task in enumerate(tasks) if (rows := read_rows(folder, task))}
    todo = [i for i in range(len(tasks)) if i not in kept]
    began, computed = time.perf_counter(), 0

    def enter(i: int, rows: Rows) -> None:
        nonlocal computed
        if folder is not None:
            write_rows(folder, tasks[i], rows)
        kept[i] = rows
        computed += 1
        if callback is not None:
            left = (len(tasks) - len(kept)) * (time.perf_counter() - began) / computed
            callback(Done(len(kept), len(tasks), left))

    if callback is not None:
        callback(Done(len(kept), len(tasks), None))
    if jobs == 1 or len(todo) < 2:
        for i in todo:
            with minding_interrupts():
                rows = execute(tasks[i])
            enter(i, rows)
    else:
        in_processes([tasks[i] for i in todo], min(jobs, len(todo)), lambda k, rows: enter(todo[k], rows))
    return [kept[i] for i in range(len(tasks))]


@contextmanager
def minding_interrupts() -> Iterator[None]:
    """Ctrl-C ends the block, and, where something in it went on with the best so far, is passed on after it."""
    if threading.current_thread() is not threading.main_thread():  # which alone hears it
        yield
        return
    heard = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if heard:
        raise KeyboardInterrupt


def in_processes(tasks: Sequence[Task], jobs: int, enter: Callable[[int, Rows], None]) -> None:
    """Execute the tasks in so many processes, and `enter` each result as it comes."""
    with Workers(jobs) as workers:
        workers.each(execute, [(task,) for task in tasks], enter)


class Workers:
    """So many processes, for several rounds of work; with one job the work is done in this process.

    Leaving the `with` block by an exception, such as Ctrl-C, ends what they have begun. A journal keeps what `map` has
    given, and with one job each result.
    """

    def __init__(self, jobs: int, journal: Journal = NOTHING_KEPT) -> None:
        self.pool = None if jobs == 1 else new_pool(jobs)
        self.journal = journal

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.pool is None:
            return
        if kind is not None:
            for process in list((self.pool._processes or {}).values()):  # they would finish what they have begun
                process.terminate()
        self.pool.shutdown(wait=kind is None, cancel_futures=True)

    def each(
        self,
        function: Callable[..., Result],
        arguments: Sequence[tuple[Any, ...]],
        enter: Callable[[int, Result], object],
    ) -> None:
        """Call a function of a module with each of the arguments, and `enter` number and result as they come."""
        if self.pool is None:
            for k, one in enumerate(arguments):
                enter(k, self.journal.unit(partial(function, *one)))
            return
        from concurrent.futures import FIRST_COMPLETED, wait
        from concurrent.futures.process import BrokenProcessPool

        try:
            pending: dict[Future[Result], int] = {
                self.pool.submit(function, *one): k for k, one in enumerate(arguments)
            }
            while pending:
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    enter(pending.pop(future), future.result())
        except BrokenProcessPool as error:
            raise TaskError("A process was ended from outside, perhaps for want of memory: lower `jobs`.") from error

    def map(
        self, function: Callable[..., Result], arguments: Sequence[tuple[Any, ...]], tick: Callable[[], object]
    ) -> list[Result]:
        """The results of all, in the order of the arguments; `tick` is called as each comes."""
        results: dict[int, Result] = {}

        def enter(k: int, result: Result) -> None:
            results[k] = result
            tick()

        def compute() -> list[Result]:
            self.each(function, arguments, enter)
            return [results[k] for k in range(len(arguments))]

        every = self.journal.unit(compute)
        for _ in range(len(arguments) - len(results)):  # which the journal had
            tick()
        return every


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


def execute(task: Task) -> Rows:
    """Do the work, on one core."""
    with single_blas_thread():
        return task.function(**task.settings)


def read_rows(folder: Path, task: Task) -> Rows | None:
    """The rows that an earlier run has kept, or None; a file that cannot be read counts as not there."""
    try:
        rows = json.loads((folder / task.file_name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return rows if isinstance(rows, list) and all(isinstance(row, dict) for row in rows) else None


def write_rows(folder: Path, task: Task, rows: Rows) -> None:
    """Keep the rows of a finished task."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder} cannot be written: {reason(error)}.") from error
    with replacing(folder / task.file_name) as file:
        file.write(json.dumps(rows).encode())
