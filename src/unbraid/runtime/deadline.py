"""When work is to be over: steps that take long look at it, and end with what they have by then."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

DEADLINE: ContextVar[float | None] = ContextVar("deadline", default=None)
"""A moment of `time.perf_counter`, or None where there is no hurry."""


@contextmanager
def until(moment: float | None) -> Iterator[None]:
    """Inside, work is to be over by a moment of `time.perf_counter`; None: whenever it is done."""
    token = DEADLINE.set(moment)
    try:
        yield
    finally:
        DEADLINE.reset(token)


def is_late() -> bool:
    """Whether work should have been over by now."""
    moment = DEADLINE.get()
    return moment is not None and time.perf_counter() >= moment
