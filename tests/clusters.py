"""What tests on clusters share: who the workers are, how one of them dies, and when two fits are the same."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import distributed
import numpy as np
from click.testing import CliRunner

import unbraid as ub
from unbraid.cli import app
from unbraid.kernels.arrays import Array
from unbraid.runtime.progress import Progress
from unbraid.studies.tasks import Done

ANY_PORT = ":0"
"""Of the dashboard: other clusters may run beside this one."""
QUICK = ub.methods.default(max_sweeps=10, polish=False)
"""For selections, which make many fits: who makes them does not depend on how long they take."""


def pids(client: distributed.Client) -> list[int]:
    return list(client.run(os.getpid).values())


def kill_one(client: distributed.Client) -> Callable[[Progress], None]:
    """A callback that kills a worker, the first time."""
    killed: list[int] = []

    def callback(progress: Progress) -> None:
        if progress.done and not killed:
            killed.append(pids(client)[0])
            os.kill(killed[0], signal.SIGKILL)

    return callback


def once(ready: Callable[[], object], then: Callable[[], object]) -> None:
    """Do something in another thread as soon as something is so, however long that takes."""

    def wait() -> None:
        deadline = time.monotonic() + 300.0
        while not ready() and time.monotonic() < deadline:
            time.sleep(0.01)
        then()

    threading.Thread(target=wait, daemon=True).start()


def assert_same(one: ub.Fit, other: ub.Fit) -> None:
    """Bit for bit, but for the time it took."""
    points = np.random.default_rng(1).standard_normal((7, one.model.m))
    assert np.array_equal(one.model.W0, other.model.W0)
    assert np.array_equal(one.model.W1, other.model.W1)
    assert np.array_equal(one.model(points), other.model(points))
    assert np.array_equal(one.trace.objective, other.trace.objective)
    assert one.starts == other.starts
    assert one.status is other.status


def given(problem: ub.Problem) -> tuple[Array, Array, Array]:
    assert problem.F is not None
    assert problem.J is not None
    return problem.X, problem.F, problem.J


def run(*words: str | Path) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


# Ctrl-C.


def interrupted_after(done: int) -> Callable[[Progress | Done], None]:
    """Ctrl-C while more is awaited."""

    def callback(progress: Progress | Done) -> None:
        if progress.done >= done:
            signal.raise_signal(signal.SIGINT)

    return callback
