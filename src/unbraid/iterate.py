"""The only loop: it drives every iterative solver, for all starts of a batch at once.

A solver has a pure `step` and a `measure`; stopping rules, the best iterate, traces, progress, time
limits and Ctrl-C live here and nowhere else. A start that is done leaves the batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self, TypeVar

import numpy as np

from unbraid.arrays import Array, IndexArray
from unbraid.bases import Placement
from unbraid.status import Status
from unbraid.stopping import Stopping
from unbraid.trace import Event, EventKind, Trace


@dataclass(frozen=True)
class Iterates:
    """Models in a solver's units, one per start: W0 (B, r, m), W1 (B, n, r), a (B, r, K)."""

    W0: Array
    W1: Array
    placement: Placement
    a: Array

    def take(self, index: IndexArray) -> Self:
        """Some of the starts."""
        return type(self)(self.W0[index], self.W1[index], self.placement.select(index), self.a[index])

    def replaced(self, index: IndexArray, other: Self) -> Self:
        """A copy in which some starts are those of `other`."""
        if len(index) == len(self.W0):
            return other
        W0, W1, a = self.W0.copy(), self.W1.copy(), self.a.copy()
        W0[index], W1[index], a[index] = other.W0, other.W1, other.a
        return type(self)(W0, W1, self.placement.replaced(index, other.placement), a)


class Measure(NamedTuple):
    """How good the iterates are, (B,) each: see `Trace`."""

    objective: Array
    jacobian_error: Array


class Progress(NamedTuple):
    """What a progress callback is told after each sweep.

    `done` counts sweeps over all starts, `total` is the most there can be; `best` is the lowest
    objective so far; `running` starts are still at work.
    """

    done: int
    total: int
    running: int
    best: float


Callback = Callable[[Progress], object]
Observe = Callable[[int, int, float], object]
State = TypeVar("State")


class Solver(Protocol[State]):
    """What the loop needs of a solver. States hold a batch of starts."""

    def step(self, state: State) -> tuple[State, list[tuple[int, Event]]]:
        """The next state, and the events with the position in the batch where each happened."""

    def measure(self, state: State) -> Measure:
        """How good the state is."""

    def settled(self, state: State) -> bool:
        """Whether the objective has taken its final form, so that convergence means something."""

    def iterates(self, state: State) -> Iterates:
        """The models that the state stands for."""

    def take(self, state: State, index: IndexArray) -> State:
        """Some of the starts."""


@dataclass(frozen=True)
class Runs:
    """How the starts of a batch ended: the best iterate of each, not the last."""

    best: Iterates
    objective: Array
    status: tuple[Status, ...]
    traces: tuple[Trace, ...]


class Record:
    """The books of a batch: best iterates, histories and events."""

    def __init__(self, starts: int) -> None:
        self.best: tuple[Iterates, Array] | None = None
        self.history: list[tuple[IndexArray, Measure]] = []
        self.events: list[tuple[int, Event]] = []
        self.status = [Status.RUNNING] * starts

    def add(self, active: IndexArray, current: Iterates, measure: Measure) -> None:
        """Enter a sweep. The pair `best` changes in one assignment: Ctrl-C never splits it."""
        self.history.append((active, measure))
        if self.best is None:
            self.best = current, np.where(np.isfinite(measure.objective), measure.objective, np.inf)
            return
        iterates, objective = self.best
        better = np.flatnonzero(measure.objective < objective[active])
        if better.size:
            lower = objective.copy()
            lower[active[better]] = measure.objective[better]
            self.best = iterates.replaced(active[better], current.take(better)), lower

    def close(self, active: IndexArray, status: Status) -> None:
        """Enter how starts ended."""
        for start in active:
            self.status[start] = status

    def runs(self) -> Runs:
        """The books closed."""
        assert self.best is not None
        columns: list[tuple[list[float], list[float]]] = [([], []) for _ in self.status]
        for active, measure in self.history:
            for start, objective, error in zip(active, *measure, strict=True):
                columns[start][0].append(float(objective))
                columns[start][1].append(float(error))
        traces = (
            Trace(np.array(objective), np.array(error), tuple(e for at, e in self.events if at == start))
            for start, (objective, error) in enumerate(columns)
        )
        return Runs(self.best[0], self.best[1], tuple(self.status), tuple(traces))


def iterate(
    solver: Solver[State],
    state: State,
    starts: int,
    stopping: Stopping,
    began: float,
    observe: Observe | None = None,
) -> Runs:
    """Step until every start has ended.

    Parameters
    ----------
    began
        When the clock of `max_seconds` started (`time.perf_counter`).
    observe
        Called after each sweep with the sweep, how many starts go on, and the best objective.
    """
    record = Record(starts)
    active = np.arange(starts)
    calm = np.zeros(starts, dtype=int)
    previous = np.full(starts, np.inf)
    try:
        for sweep in range(1, stopping.max_sweeps + 1):
            with np.errstate(all="ignore"):
                state, events = solver.step(state)
                measure = solver.measure(state)
            record.events += [(int(active[at]), event) for at, event in events]
            record.add(active, solver.iterates(state), measure)

            objective = measure.objective
            still = np.abs(objective - previous[active]) <= stopping.tolerance * previous[active]
            calm[active] = np.where(still & solver.settled(state), calm[active] + 1, 0)
            previous[active] = objective
            failed = ~np.isfinite(objective)
            on_target = objective <= (-1.0 if stopping.target is None else stopping.target)
            converged = (calm[active] >= stopping.patience) & (stopping.tolerance > 0.0)
            record.events += [(int(s), Event(sweep, EventKind.NOT_FINITE)) for s in active[failed]]
            record.close(active[converged], Status.CONVERGED)
            record.close(active[on_target], Status.TARGET_REACHED)
            record.close(active[failed], Status.NOT_FINITE)
            going_on = np.flatnonzero(~(failed | on_target | converged))
            if going_on.size < active.size:
                active, state = active[going_on], solver.take(state, going_on)
            if observe is not None:
                observe(sweep, active.size, float(record.best[1].min()) if record.best else np.inf)
            if active.size == 0:
                break
            if stopping.max_seconds is not None and time.perf_counter() - began > stopping.max_seconds:
                record.close(active, Status.OUT_OF_TIME)
                break
        else:
            record.close(active, Status.OUT_OF_SWEEPS)
    except KeyboardInterrupt:
        if record.best is None:
            raise
        record.close(active, Status.INTERRUPTED)
    return record.runs()
