"""Ctrl-C: the one place where the library catches it, to go on with the best so far."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import TypeVar

Result = TypeVar("Result")

PASSED_ON: ContextVar[bool] = ContextVar("interrupts_passed_on", default=False)
"""Whether Ctrl-C is passed on by `attempt`, because the work is a part of something larger."""
PATIENCE = 3
"""So often Ctrl-C may come while it is kept back: who presses it once more does not want to wait."""


class Listener:
    """Hears Ctrl-C in Python's place, and keeps it back where it would lose what an attempt has found.

    That is from the end of one attempt to the beginning of the next: there it comes, late, or, where none follows, the
    result tells of it (`take`). Where an attempt around has something to fall back on, nothing is kept back.
    """

    def __init__(self) -> None:
        self.held = self.safe = False
        self.waiting = 0
        self.before: Callable[[int, FrameType | None], object] = signal.default_int_handler

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-C, now: as a signal handler is called."""
        self.waiting += 1
        if not self.held or self.waiting > PATIENCE:
            self.waiting = 0
            self.before(number, frame)

    def take(self) -> bool:
        """Whether Ctrl-C was kept back; it no longer is."""
        waited, self.waiting = bool(self.waiting), 0
        return waited

    def begin(self, safe: bool) -> None:
        """Let Ctrl-C come from now on, and first the one that was kept back."""
        self.held, self.safe = False, safe
        if self.take():
            self.before(signal.SIGINT, None)

    def end(self, safe: bool) -> None:
        """Keep Ctrl-C back from now on, unless an attempt around is safe."""
        self.held, self.safe = not safe, safe


LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)
"""The listener of the work that is under way."""


@contextmanager
def listening() -> Iterator[Listener]:
    """Inside, attempts keep Ctrl-C back between them; what nobody took by the end comes then.

    Only Python's main thread hears Ctrl-C; in others, and where somebody has it ignored, nothing changes.
    """
    listener = Listener()
    before = signal.getsignal(signal.SIGINT)
    hears = callable(before) and threading.current_thread() is threading.main_thread()
    token = LISTENER.set(listener)
    if hears:
        listener.before = before  # type: ignore[assignment]
        signal.signal(signal.SIGINT, listener.hear)
    try:
        yield listener
    finally:
        LISTENER.reset(token)
        if hears:
            signal.signal(signal.SIGINT, before)
    if listener.take():
        listener.before(signal.SIGINT, None)


@contextmanager
def keeping_interrupts_back() -> Iterator[None]:
    """Inside, Ctrl-C waits until the end: for short work that must not be lost."""
    with listening() as listener:
        listener.held = True
        yield


def attempt(work: Callable[[], Result], otherwise: Callable[[], Result | None], safe: bool = False) -> Result:
    """What `work` gives; where Ctrl-C ends it, what there is by then, and Ctrl-C is passed on where that is None.

    `safe` says that it will not be None, whatever happens inside.
    """
    if PASSED_ON.get():
        return work()
    listener = LISTENER.get() or Listener()
    outside = listener.safe
    try:
        listener.begin(outside or safe)
        result = work()
    except KeyboardInterrupt:
        listener.held = True
        kept = otherwise()
        if kept is None:
            raise
        result = kept
    listener.end(outside)
    return result


@contextmanager
def passing_interrupts_on(passed: bool = True) -> Iterator[None]:
    """Inside, Ctrl-C ends every `attempt`, so that what is half done is not mistaken for a finished result.

    Not `passed`: inside of that again, attempts keep what there is, for a piece whose result says how far it came.
    """
    token = PASSED_ON.set(passed)
    try:
        yield
    finally:
        PASSED_ON.reset(token)
