"""Processes of this machine that help with pieces of work, beside this one, which does its share.

A helper is Python itself, started anew: it imports this library and nothing of the user's program, so scripts need no
``if __name__ == "__main__":``, and takes pickled pieces from a pipe. What it cannot read, a class of the user's script
for one, is done here. Helpers are kept for the next time, and leave when nothing was asked of them for a while.

Pickles can run code, so the library unpickles only what a process of its own has written: a helper what the process
that started it sends, and that process what the helper answers, through pipes without a name that no other process
can write to (here and in `callers`); and a worker of a Dask cluster what a client of that cluster submits, as Dask
itself does (`data.dask_blocks`). Nothing that comes from a file is unpickled.
"""

from __future__ import annotations

import atexit
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import IO, Any, NamedTuple, Self

from unbraid.errors import check_whole
from unbraid.runtime.interrupts import Result
from unbraid.runtime.memory import CONTROL
from unbraid.runtime.process import import_scipy
from unbraid.runtime.workers import Shared, Workers, do_here, end_with_parent, workers_for

IDLE_SECONDS = 60.0
"""After so long without work a helper leaves."""
PATIENCE_SECONDS = 2.0
"""How long a helper may take to lay down a piece that is not wanted any more, before it is ended."""
BEGIN = """
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
import unbraid.selection.supported
from unbraid.runtime.helpers import serve
serve()
"""
"""What a helper runs: all that fits need is imported before it says that it is ready."""
SMALL, LONG = 1e8, 1e9
"""Multiplications up to which a fit is done sooner than its pieces are sent; and from which on it is worth having
helpers begin, for one fit or for several."""
READY = b"ready"
"""The first that comes from a helper."""


class Answer(NamedTuple):
    """What a helper answers: `done` with a result, `failed` with an error, or `unread` where it could not begin."""

    kind: str
    value: Any


class Message(NamedTuple):
    """Something pickled, and the arrays in it, which are written as they are: they may be large, and are not copied."""

    head: bytes
    arrays: list[memoryview]

    @classmethod
    def of(cls, content: object) -> Self:
        """What stands for something."""
        arrays: list[pickle.PickleBuffer] = []
        head = pickle.dumps(content, protocol=5, buffer_callback=arrays.append)
        return cls(head, [one.raw() for one in arrays])

    def write(self, pipe: IO[bytes]) -> None:
        """Write it, to be read by `read_message`."""
        pickle.dump((self.head, [one.nbytes for one in self.arrays]), pipe, protocol=5)
        for one in self.arrays:
            pipe.write(one)
        pipe.flush()


def read_message(pipe: IO[bytes]) -> Any:
    """What was written as a message."""
    head, sizes = pickle.load(pipe)
    arrays = [bytearray(pipe.read(size)) for size in sizes]
    return pickle.loads(head, buffers=arrays)


class Helper:
    """One process, which does one piece at a time."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", BEGIN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the process that asked
        )
        assert self.process.stdin is not None
        pickle.dump(sys.path, self.process.stdin)
        self.process.stdin.flush()
        self.ready, self.lock = False, threading.Lock()

    def wait(self) -> bool:
        """Wait until it has imported what it needs; whether it is there then."""
        with self.lock:
            if not self.ready and self.process.stdout is not None:
                with suppress(OSError, ValueError):  # it was ended meanwhile
                    self.ready = self.process.stdout.read(len(READY)) == READY
        return self.ready

    def ask(self, message: Message) -> Answer:
        """Have a piece done, and wait for the answer; `unread` where the helper is gone."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            message.write(self.process.stdin)
            answer: Answer = read_message(self.process.stdout)
        except Exception:  # it is gone, or its answer, such as an error of the user's own class, cannot be read here
            self.end()
            return Answer("unread", None)
        return answer

    @property
    def there(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def interrupt(self) -> None:
        """Ask for the piece under way to be laid down."""
        if os.name == "posix" and self.there:
            self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Kill the process, and those that it has begun."""
        if os.name == "posix" and self.there:
            with suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)  # it began a group of its own
        self.process.kill()

    def end(self) -> None:
        """End the process."""
        self.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


IDLE: list[Helper] = []
"""Helpers that nobody uses at the moment."""


@atexit.register
def end_helpers() -> None:
    """Leave no process behind."""
    while IDLE:
        IDLE.pop().end()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=IDLE.clear)  # they belong to the parent


class Helpers(Workers):
    """`jobs` processes: the one that asks, and helpers, which take pieces from the front whenever they are free."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    @property
    def count(self) -> int:
        """How many pieces are done at the same time."""
        return self.jobs

    def __enter__(self) -> Self:
        """Let helpers begin already: by the time that they are needed they have imported what they need."""
        while len(IDLE) < self.jobs - 1:
            IDLE.append(Helper())
        return self

    def each(
        self,
        function: Callable[..., Result],
        pieces: Sequence[tuple[Any, ...]],
        enter: Callable[[int, Result], object],
        shared: Shared[Any] | None = None,
        enough: Callable[[], bool] = lambda: False,
    ) -> None:
        """Share pieces out: what helpers cannot do, or lay down, comes back to this process."""
        share = Share(function, pieces, shared, enter, enough)
        share.begin(min(self.jobs, len(pieces)) - 1)
        token = SHARE.set(share)
        try:
            share.work_along()
        except NoLongerWanted:
            pass
        finally:
            SHARE.reset(token)
            share.end()


class NoLongerWanted(BaseException):
    """Raised inside a piece of this process, to lay it down."""


class Share:
    """Pieces that are shared out: the first and what helpers cannot do to this process, the others to whoever is free.

    Each helper is looked after by a thread of its own, which puts what it answers into a queue.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        pieces: Sequence[tuple[Any, ...]],
        shared: Shared[Any] | None,
        enter: Callable[[int, Any], object],
        enough: Callable[[], bool],
    ) -> None:
        self.function, self.pieces, self.shared, self.enter, self.enough = function, pieces, shared, enter, enough
        self.left = len(pieces)
        first, *others = range(len(pieces))
        self.own, self.todo = deque([first]), deque(others)
        self.answers: queue.SimpleQueue[tuple[int, Answer]] = queue.SimpleQueue()
        self.over = False
        self.threads: list[tuple[threading.Thread, Helper]] = []

    def begin(self, helpers: int) -> None:
        """Let so many helpers take pieces."""
        for _ in range(helpers):
            helper = next_helper()
            thread = threading.Thread(target=self.look_after, args=(helper,), daemon=True)
            self.threads.append((thread, helper))
            thread.start()

    def work_along(self) -> None:
        """Do pieces in this process for as long as there are any, and wait for those that helpers have."""
        while self.left and not self.enough():
            try:
                k = (self.own or self.todo).popleft()
            except IndexError:
                self.take(*self.answers.get())
            else:
                self.take(k, Answer("done", do_here(self.function, self.pieces[k], self.shared)))
            self.hear()

    def hear(self) -> None:
        """Take what helpers have answered by now."""
        while not self.answers.empty():
            self.take(*self.answers.get())

    def take(self, k: int, answer: Answer) -> None:
        """Take an answer; what a helper could not do is left to this process."""
        if answer.kind == "failed":
            raise answer.value
        if answer.kind == "unread":
            self.own.append(k)
            return
        self.left -= 1
        self.enter(k, answer.value)

    def look_after(self, helper: Helper) -> None:
        """Hand pieces to a helper as soon as it is ready, one after another, and its answers on."""
        while helper.wait() and not self.over:
            try:
                k = self.todo.popleft()
            except IndexError:
                return
            try:
                message = Message.of((self.function, self.pieces[k], self.shared and self.shared.value))
            except Exception:  # whatever cannot be sent is done here
                answer = Answer("unread", None)
            else:
                answer = helper.ask(message)
            self.answers.put((k, answer))

    def end(self) -> None:
        """Have what is under way laid down, and keep the helpers for the next time, also those that only begin."""
        self.over = True
        for thread, helper in self.threads:
            if thread.is_alive() and helper.ready:
                helper.interrupt()
        for thread, helper in self.threads:
            if helper.ready:
                thread.join(PATIENCE_SECONDS)
            if helper.there and not (helper.ready and thread.is_alive()):
                IDLE.append(helper)
            else:
                helper.end()


SHARE: ContextVar[Share | None] = ContextVar("share", default=None)
"""What a piece that is done in this process is one of."""


def look_up() -> None:
    """In a piece that is done in this process: look whether helpers have made it superfluous, and lay it down then."""
    share = SHARE.get()
    if share is not None:
        share.hear()
        if share.enough():
            raise NoLongerWanted


def next_helper() -> Helper:
    """One that is there already, or a new one."""
    while IDLE:
        helper = IDLE.pop()
        if helper.there:
            return helper
        helper.end()  # it left for want of work
    return Helper()


def serve() -> None:
    """In a helper: do the pieces that come, until none come any more."""
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a piece prints is no answer
    busy = False

    def hear(number: int, frame: Any) -> None:
        if busy:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, hear)
    end_with_parent(os.getppid())
    import_scipy()
    sink.write(READY)
    sink.flush()
    while True:
        leave = threading.Timer(IDLE_SECONDS, os._exit, (0,))
        leave.daemon = True
        leave.start()
        try:
            function, piece, shared = read_message(source)
        except EOFError:
            return
        except Exception as error:
            leave.cancel()
            answer = Answer("unread", repr(error))
        else:
            leave.cancel()
            try:
                busy = True
                answer = Answer("done", do_here(function, piece, None if shared is None else Shared(shared)))
            except KeyboardInterrupt:
                answer = Answer("unread", None)
            except BaseException as error:
                answer = Answer("failed", error)
            finally:
                busy = False
        try:
            message = Message.of(answer)
        except Exception as error:
            message = Message.of(Answer("unread", repr(error)))
        try:
            message.write(sink)
        except OSError:
            return


def helpers_for(jobs: int | None, client: Any, work: float) -> Workers | None:
    """Those of a cluster where a client is given; else so many processes, this one among them, or None where it is one.

    `jobs` None: as many as there are cores where that gains something for so much `work`, in multiplications, and this
    is no process or thread that somebody else has begun, beside others perhaps.
    """
    if client is not None:
        return workers_for(1 if jobs is None else jobs, client)
    if jobs is None:
        import multiprocessing

        alone = multiprocessing.parent_process() is None and threading.current_thread() is threading.main_thread()
        jobs = cores() if alone and DEMAND.gains(work) else 1
    check_whole("jobs", jobs, 1)
    return None if jobs == 1 else Helpers(jobs)


@dataclass
class Demand:
    """The work that this process was asked for so far, in multiplications: helpers begin when it has become much."""

    so_far: float = 0.0

    def gains(self, work: float) -> bool:
        """Whether further work gains by helpers: what is small does not, nor what is over before they have begun."""
        self.so_far += work if work > SMALL else 0.0
        return work > SMALL and self.so_far > LONG


DEMAND = Demand()


def told_of(workers: Workers | None, client: Any) -> dict[str, object]:
    """What a journal has to know of who does the work: its units are other ones."""
    return {"cluster": client is not None, "jobs": workers.count if isinstance(workers, Helpers) else 1}


def cores() -> int:
    """How many cores this process may use: those it is allowed to run on, and what its control group grants it."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([allowed, *granted()]))


def granted() -> list[int]:
    """Whole cores that the control group of this process grants, of version 1 or 2, where it limits them."""
    version_1 = [CONTROL / "cpu" / f"cpu.cfs_{name}_us" for name in ("quota", "period")]
    found = []
    for files in ([CONTROL / "cpu.max"], version_1):
        with suppress(OSError, ValueError):
            quota, period = (int(word) for file in files for word in file.read_text().split())
            found += [max(1, quota // period)] if quota > 0 and period > 0 else []
    return found
