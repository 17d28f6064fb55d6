"""Many calls of a slow function: one after another, or several at a time.

Each of several callers is a thread. A function that waits (for a simulation of another program, say) or computes in
NumPy leaves other threads their time. One that computes in Python does not: where it can be sent to other processes,
each thread has a helper (`helpers`) that makes its calls.
"""

from __future__ import annotations

import contextvars
import pickle
import queue
import secrets
import threading
from collections import deque
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, Generic, Self, TypeVar

from unbraid.runtime.helpers import IDLE, Answer, Helper, Message, next_helper

GONE = Answer("unread", None)
"""In place of the answer of a process that has ended."""
Piece = TypeVar("Piece")
Result = TypeVar("Result")


def call_each(
    call: Callable[[Piece], Result],
    pieces: Sequence[Piece],
    jobs: int,
    enter: Callable[[int, Result | Exception], object],
) -> None:
    """Call a function with each piece, and `enter` the number of the piece and the result, or the exception, at once.

    `enter` is called in this thread. Where it raises, and at Ctrl-C, no further call is begun, and those under way in
    other threads are not waited for.
    """
    if jobs == 1 or len(pieces) < 2:
        for k, piece in enumerate(pieces):
            enter(k, tried(call, piece))
        return
    todo = deque(range(len(pieces)))
    results: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            try:
                k = todo.popleft()
            except IndexError:
                return
            try:
                results.put((k, tried(call, pieces[k])))
            except BaseException as error:  # such as sys.exit() in the function
                results.put((-1, error))
                return

    for _ in range(min(jobs, len(pieces))):  # with NumPy's settings of this thread
        threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True).start()
    try:
        for _ in pieces:
            k, result = results.get()
            if k < 0:
                raise result
            enter(k, result)
    finally:
        over.set()


def tried(call: Callable[[Piece], Result], piece: Piece) -> Result | Exception:
    """The result of a call, or the exception that it raised."""
    try:
        return call(piece)
    except Exception as error:
        return error


class Elsewhere(Generic[Piece, Result]):
    """A function whose calls other processes make, at most `jobs` at the same time; a call waits for its answer.

    Leaving the `with` block ends processes that still compute.
    """

    def __init__(self, call: Callable[[Piece], Result], helpers: Sequence[Helper], name: str) -> None:
        self.call, self.name, self.trusted = call, name, True
        self.all = list(helpers)
        self.free: queue.SimpleQueue[Helper] = queue.SimpleQueue()
        for helper in helpers:
            self.free.put(helper)

    def __call__(self, piece: Piece) -> Result:
        """The result of a call; what fails elsewhere is done here, and then so are all calls that follow."""
        if self.trusted:
            answer = self.ask(piece)
            if answer.kind == "done":
                result: Result = answer.value
                return result
            self.trusted = answer.kind != "failed"  # the function may need what is only here; or it fails here as well
        return self.call(piece)

    def ask(self, piece: Piece) -> Answer:
        """What another process answers."""
        helper = self.free.get()
        question = Message.of((call_known, (self.name, piece), None))
        answer = helper.ask(question) if helper.there else GONE
        self.free.put(helper)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while not self.free.empty():
            helper = self.free.get()
            self.all.remove(helper)
            if helper.there:
                IDLE.append(helper)
            else:
                helper.end()
        for helper in self.all:
            helper.end()


def elsewhere(call: Callable[[Piece], Result], jobs: int) -> Elsewhere[Piece, Result] | None:
    """The function with its calls made by other processes; None where it cannot be sent to them."""
    try:
        content = pickled(call)
    except Exception:  # a lock, an open file, a generator: whatever it is, it stays here
        return None
    name = secrets.token_hex(8)
    helpers: list[Helper] = []
    for _ in range(jobs):
        helpers.append(next_helper())
    for helper in helpers:
        if not helper.wait() or helper.ask(Message.of((make_known, (name, content), None))).kind != "done":
            IDLE.extend(one for one in helpers if one.there)
            return None
    return Elsewhere(call, helpers, name)


def pickled(call: object) -> bytes:
    """A function as bytes: also one of a script or a lambda, where cloudpickle is installed, which Dask brings."""
    if find_spec("cloudpickle") is None:
        return pickle.dumps(call)
    import cloudpickle

    content: bytes = cloudpickle.dumps(call)
    return content


KNOWN: dict[str, Callable[[Any], Any]] = {}
"""In a helper: the function that it was sent last, by its name."""


def make_known(name: str, content: bytes) -> None:
    """In a helper: read a function that calls will be asked of, from the process that started it (see `helpers`)."""
    KNOWN.clear()
    KNOWN[name] = pickle.loads(content)


def call_known(name: str, piece: Any) -> Any:
    """In a helper: call the function."""
    return KNOWN[name](piece)
