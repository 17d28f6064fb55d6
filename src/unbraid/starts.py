"""Many starts: as one batch where the samples are few, one after another where they are many."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from unbraid.given import GivenModel
from unbraid.iterate import Iterates, Observe, Run, Solver, State, iterate
from unbraid.journal import NOTHING_KEPT, Journal
from unbraid.progress import Callback, Progress
from unbraid.samples import SampleSet
from unbraid.status import Status
from unbraid.stopping import Stopping


class Search(Solver[State], Protocol[State]):
    """A solver that can start by itself, at random or at a given model, and finish what it found."""

    @property
    def samples(self) -> SampleSet:
        """What it works on."""

    def random_start(self, rank: int, rngs: Sequence[np.random.Generator]) -> State:
        """One random start per generator."""

    def start_from(self, model: GivenModel, rng: np.random.Generator) -> State:
        """A single start at a given model."""

    def project_model(self, model: GivenModel) -> Iterates:
        """The model nearest to a given one in the basis and its constraints, as a batch of one."""

    def finish(self, run: Run) -> Run:
        """What the loop gave, as a complete model with its objective."""


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
