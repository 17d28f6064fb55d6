"""Many random starts: batched where the samples are few, one after another where they are many, or spread over workers.

The result does not depend on how starts are batched, nor on who runs them. Clocks of two machines have nothing in
common but the time of day, so that is what time limits travel in.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import deepcopy
from functools import partial
from typing import Any, TypeVar

import numpy as np

from unbraid.results.outcome import Status
from unbraid.runtime.journal import NOTHING_KEPT, Journal
from unbraid.runtime.process import single_blas_thread
from unbraid.runtime.progress import Callback, Progress
from unbraid.runtime.workers import Workers
from unbraid.solvers.iterates import Run, Search
from unbraid.solvers.loop import Observe, Stopping, iterate
from unbraid.solvers.translate import GivenModel

BATCH_ENTRIES = 1 << 17
"""Entries of (starts, r, S) in one batch: 1 MB of float64. Beyond a core's cache batching gains nothing."""


def run_starts(
    solver: Search[Any],
    rank: int,
    rngs: Sequence[np.random.Generator],
    stopping: Stopping,
    callback: Callback | None = None,
    journal: Journal = NOTHING_KEPT,
) -> tuple[list[Run], Status | None]:
    """Run one random start per generator. The result does not depend on how they are batched.

    Returns the runs, and what cut the search short (Ctrl-C, the time limit), if anything did. Starts
    that had not begun by then are missing.
    """
    batch = max(1, BATCH_ENTRIES // (rank * solver.samples.size))
    began = journal.began(time.perf_counter())
    runs: list[Run] = []
    for first in range(0, len(rngs), batch):
        chunk = rngs[first : first + batch]
        here, earlier = range(first, first + len(chunk)), [run.objective for run in runs]
        observe = observer(callback, "search", here, len(rngs), stopping, earlier)
        try:
            start = partial(solver.random_start, rank, chunk)
            runs += map(solver.finish, iterate(solver, start, len(chunk), stopping, began, observe, journal))
        except KeyboardInterrupt:
            if not runs:
                raise
            return runs, Status.INTERRUPTED
        cut = {run.status for run in runs} & {Status.INTERRUPTED, Status.OUT_OF_TIME}
        if cut:
            return runs, cut.pop()
    return runs, None


def run_from(
    solver: Search[Any],
    model: GivenModel,
    rng: np.random.Generator,
    stopping: Stopping,
    callback: Callback | None = None,
    journal: Journal = NOTHING_KEPT,
) -> tuple[list[Run], Status | None]:
    """Run the one start that begins at a given model."""
    start = partial(solver.start_from, model, rng)
    observe = observer(callback, "search", range(1), 1, stopping, [])
    runs = iterate(solver, start, 1, stopping, journal.began(time.perf_counter()), observe, journal)
    return [solver.finish(run) for run in runs], None


def observer(
    callback: Callback | None,
    phase: str,
    batch: range,
    starts: int,
    stopping: Stopping,
    earlier: Sequence[float],
    before: int = 0,
    after: int = 0,
) -> Observe | None:
    """Turn what the loop tells of one batch of the starts into progress over all of them.

    `before` and `after` are steps of each start in other loops of the same phase.
    """
    if callback is None:
        return None
    most = stopping.max_sweeps
    each = before + most + after

    def observe(sweep: int, running: int, best: float) -> None:
        done = batch.start * each + len(batch) * before + (len(batch) - running) * most + running * sweep
        callback(Progress(phase, done, starts * each, running, min(best, *earlier, np.inf)))

    return observe


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
