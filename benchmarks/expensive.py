"""Expensive functions: calls, wall time, and what a kill loses.

    python benchmarks/expensive.py [seconds a call]

A function of 6 inputs and 4 outputs, of 0.05 s a call, at 100 points: how many calls it takes without Jacobians, with
forward and with central differences, and how long with one caller and with two, where it waits and where it computes.
Then the same with a cache, in a process that is killed in the middle (SIGKILL), and again to its end: how many calls
both made, and how many points were computed twice. Last, `ub.sample` with a target of 1 %.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import unbraid as ub
from unbraid.kernels.arrays import Array

RNG = np.random.default_rng(0)
W0, W1, X = RNG.standard_normal((3, 6)), RNG.standard_normal((4, 3)), RNG.uniform(-1.0, 1.0, (100, 6))
KILLED = 0.4
"""Of the calls, when the process is killed."""


def exact(x: Array) -> Array:
    """The function, which costs nothing."""
    return np.asarray(W1 @ np.sin(W0 @ x))


def waiting(seconds: float, log: Path) -> Callable[[Array], Array]:
    """The function, which waits, and writes down the points of calls that have come to their end."""

    def f(x: Array) -> Array:
        time.sleep(seconds)
        answer = exact(x)
        with log.open("a", encoding="ascii") as file:
            file.write(x.tobytes().hex() + "\n")
        return answer

    return f


def computing(seconds: float) -> Callable[[Array], Array]:
    """The function, which computes in Python."""

    def f(x: Array) -> Array:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            sum(range(1000))
        return exact(x)

    return f


def table(seconds: float, folder: Path) -> None:
    """Calls and wall time."""
    print(f"{'derivatives':12}{'jobs':>5}{'calls':>7}{'s':>8}{'  error of J':12}")
    J = (W1 * np.cos(X @ W0.T)[:, None]) @ W0
    ways: list[Any] = [None, "forward", "central"]
    for derivatives in ways:
        for jobs in (1, 2):
            log = folder / f"{derivatives}-{jobs}"
            began = time.perf_counter()
            problem = ub.Problem.from_function(waiting(seconds, log), X, derivatives=derivatives, jobs=jobs)
            took = time.perf_counter() - began
            error = "" if problem.J is None else f"{np.abs(problem.J - J).max():12.1e}"
            print(f"{derivatives!s:12}{jobs:5}{len(log.read_text().split()):7}{took:8.2f}{error}", flush=True)
    for jobs in (1, 2):
        began = time.perf_counter()
        ub.Problem.from_function(computing(seconds), X, derivatives="forward", jobs=jobs)
        print(f"forward, computing, jobs={jobs}: {time.perf_counter() - began:.2f} s", flush=True)


def kill(seconds: float, folder: Path) -> None:
    """Kill a process in the middle, and go on."""
    for jobs in (1, 2):
        log, cache = folder / f"log-{jobs}", folder / f"samples-{jobs}.npz"
        program = [sys.executable, __file__, "--one", str(seconds), str(log), str(cache), str(jobs)]
        with subprocess.Popen(program) as process:
            while not log.exists() or len(log.read_text().split()) < KILLED * 700:
                time.sleep(0.01)
            os.kill(process.pid, signal.SIGKILL)
        before = len(log.read_text().split())
        subprocess.run(program, check=True)
        calls = log.read_text().split()
        print(
            f"jobs={jobs}: killed after {before} calls, {len(calls) - before} more; computed twice: "
            f"{len(calls) - len(set(calls))}; {cache.stat().st_size / 1024:.0f} KB",
            flush=True,
        )


def main() -> None:
    """All of it, or one sampling for the process that kills."""
    if sys.argv[1:2] == ["--one"]:
        given, log, cache, jobs = sys.argv[2:]
        f = waiting(float(given), Path(log))
        ub.Problem.from_function(f, X, derivatives="forward", jobs=int(jobs), cache=cache)
        return
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0.05
    with tempfile.TemporaryDirectory() as folder:
        table(seconds, Path(folder))
        kill(seconds, Path(folder))
        began = time.perf_counter()
        found = ub.sample(waiting(seconds, Path(folder, "log")), [(-1.0, 1.0)] * 6, target=1.0, jobs=2, rng=0)
        print(found)
        print(f"{time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
