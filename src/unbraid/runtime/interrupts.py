"""Ctrl-C: the one place where the library catches it, to go on with the best so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Result = TypeVar("Result")

PASSED_ON: ContextVar[bool] = ContextVar("interrupts_passed_on", default=False)
"""Whether Ctrl-C is passed on by `attempt`, because the work is a part of something larger."""


def attempt(work: Callable[[], Result], otherwise: Callable[[], Result | None]) -> Result:
    """What `work` gives; where Ctrl-C ends it, what there is by then, and Ctrl-C is passed on where that is None."""
    try:
        return work()
    except KeyboardInterrupt:
        kept = None if PASSED_ON.get() else otherwise()
        if kept is None:
            raise
        return kept


@contextmanager
def passing_interrupts_on() -> Iterator[None]:
    """Inside, Ctrl-C ends every `attempt`, so that what is half done is not mistaken for a finished result."""
    token = PASSED_ON.set(True)
    try:
        yield
    finally:
        PASSED_ON.reset(token)
