"""A clock that moves only when a test says so."""

from __future__ import annotations

import time

import pytest


class Clock:
    """In place of this process's clocks, as long as the test lasts: no machine is too slow or too fast for it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        for name in ("perf_counter", "time"):
            monkeypatch.setattr(time, name, lambda: self.now)

    def advance(self, seconds: float) -> None:
        self.now += seconds
