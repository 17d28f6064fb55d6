"""What tests of checkpoints share: callbacks that end a fit, and fits that nobody disturbed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from killed_fits import bits, fitted


class KilledError(Exception):
    """Stands in for the end of a process: nothing is written on its way."""


class Counting:
    """A callback that raises when it has been called so often; 0: never."""

    def __init__(self, last: int = 0, error: type[BaseException] = KilledError) -> None:
        self.last, self.error, self.calls = last, error, 0

    def __call__(self, progress: object, *_: object) -> None:
        self.calls += 1
        if self.calls == self.last:
            raise self.error


class CtrlC(Counting):
    """Ctrl-C at the first call from the given one on at which starts are at work, or at which none is any more."""

    def __init__(self, first: int, at_work: bool = True) -> None:
        super().__init__()
        self.first, self.at_work = first, at_work

    def __call__(self, progress: Any, *_: object) -> None:
        self.calls += 1
        if self.calls >= self.first and (progress.running > 0) == self.at_work:
            self.first = sys.maxsize  # once
            raise KeyboardInterrupt


@cache
def undisturbed(name: str) -> dict[str, str]:
    return bits(fitted(name))


def killed(work: Callable[[Counting], Any], after: int) -> bool:
    """Whether the work was not over by then."""
    try:
        work(Counting(after))
    except KilledError:
        return True
    return False


@cache
def finished_file() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder, "fit.checkpoint")
        fitted("dejonghe2025", path)
        return path.read_bytes()
