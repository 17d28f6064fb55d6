"""Starts by many workers: a chunk each, and the same result to the last bit as from one.

Clocks of two machines have nothing in common but the time of day, so that is what time limits travel in.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import deepcopy
from functools import partial
from typing import Any, TypeVar

import numpy as np

from unbraid.iterate import Run, iterate
from unbraid.journal import NOTHING_KEPT, Journal
from unbraid.progress import Callback, Progress
from unbraid.starts import BATCH_ENTRIES, Search, run_starts
from unbraid.status import Status
from unbraid.stopping import Stopping
from unbraid.threads import single_blas_thread
from unbraid.workers import Workers

Part = TypeVar("Part")


def search_starts(
    solver: Search[Any],
    rank: int,
    rngs: Sequence[np.random.Generator],
    stopping: Stopping,
    callback: Callback | None = None,
    journal: Journal = NOTHING_KEPT,
    workers: Workers | None = None,
) -> tuple[list[Run], Status | None]:
    """As `run_starts`, and by workers where there are some: progress then is told as chunks of starts come back.

    Ctrl-C leaves what has come back by then. A journal keeps the search of workers as a whole.
    """
    if workers is None:
        return run_starts(solver, rank, rngs, stopping, callback, journal)
    began = time_of_day(journal.began(time.perf_counter()))
    return journal.unit(partial(spread_starts, solver, rank, rngs, stopping, began, callback, workers))


def spread_starts(
    solver: Search[Any],
    rank: int,
    rngs: Sequence[np.random.Generator],
    stopping: Stopping,
    began: float,
    callback: Callback | None,
    workers: Workers,
) -> tuple[list[Run], Status | None]:
    """Run one random start per generator, as many at a time as suit the workers."""
    batch = max(1, BATCH_ENTRIES // (rank * solver.samples.size))
    chunks = parts(rngs, min(batch, -(-len(rngs) // workers.count)))
    found: dict[int, list[Run]] = {}

    def enter(k: int, runs: list[Run]) -> None:
        found[k] = runs
        if callback is not None:
            done = [run.objective for some in found.values() for run in some]
            most, left = stopping.max_sweeps, len(rngs) - len(done)
            callback(Progress("search", len(done) * most, len(rngs) * most, left, min(done)))

    cut = None
    try:
        workers.each(run_some, [(rank, chunk, stopping, began) for chunk in chunks], enter, shared=(solver,))
    except KeyboardInterrupt:
        if not found:
            raise
        cut = Status.INTERRUPTED
    runs = [run for k in sorted(found) for run in found[k]]
    if cut is None and any(run.status is Status.OUT_OF_TIME for run in runs):
        cut = Status.OUT_OF_TIME
    return runs, cut


def run_some(
    solver: Search[Any], rank: int, rngs: Sequence[np.random.Generator], stopping: Stopping, began: float
) -> list[Run]:
    """A chunk of starts, wherever this is; `began` is a time of day.

    A generator may be that of a caller in the same process, and the chunk may be run once more.
    """
    with single_blas_thread():
        start = partial(solver.random_start, rank, deepcopy(rngs))
        return [solver.finish(run) for run in iterate(solver, start, len(rngs), stopping, on_this_clock(began))]


def parts(several: Sequence[Part], size: int) -> list[Sequence[Part]]:
    """The items in groups of a size, but for the last, which may be smaller."""
    return [several[first : first + size] for first in range(0, len(several), size)]


def time_of_day(began: float) -> float:
    """A moment of this machine's `time.perf_counter` as one of `time.time`."""
    return time.time() - (time.perf_counter() - began)


def on_this_clock(began: float) -> float:
    """And back, on any machine."""
    return time.perf_counter() - (time.time() - began)
