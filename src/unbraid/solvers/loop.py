"""The only loop: it drives every iterative solver, for all starts of a batch at once.

A solver has a pure `step` and a `measure`; rules on objectives, the best iterate and traces live here. A start that is
done leaves the batch. Starts may race: one on its way to where a better one is has joined it, one too far behind to
catch up is outrun, and one that gains next to nothing has come to a flat valley. Whoever runs the loop
(`fitting.session`) has a say after every sweep: progress, time limits, Ctrl-C and checkpoints are handled there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from unbraid.errors import SettingError, check_number, check_whole
from unbraid.kernels.arrays import Array, BoolArray, IndexArray
from unbraid.metrics import direction_angles
from unbraid.results.outcome import Event, EventKind, Status, Trace
from unbraid.solvers.iterates import Iterates, Measure, Run, Solver

LAP = 10
"""Sweeps between two looks at a race."""
CATCHING_UP = 6
"""A start that would not catch up with the best one in so many laps, at the pace of the last, is out of the race."""
PATIENCE, MAY_BE_EXACT = 10.0, 3e-5
"""How many times as many laps there are at most, the more the further the best relative objective is below the second:
exact solutions may come late, after a plateau."""
JOINED_ANGLE, JOINED_OBJECTIVE = 2.0, 0.01
"""Starts this close, in degrees and in share of the objective, are on their way to the same minimum."""
SLOW = 0.01
"""Starts that are close in the objective alone are as good as each other where both gain less than this in a lap."""
HEADING_FOR_ZERO = 1e-9
"""A start of a relative objective below this may be on its way to an exact solution, and has come to no valley."""
LOST = (Status.JOINED, Status.OUTRUN)
"""How starts end because another one is better."""


@dataclass(frozen=True)
class Rules:
    """What ends a start of a race, beside that it has joined another, by its directions, or as low and slow.

    Attributes
    ----------
    flat, laps
        It has come to a flat valley when it gains less than this share of its objective in each of so many laps.
    at_rest
        Whether it has not come there before its knots have found their place.
    in_time
        Whether it is outrun where it would not catch up before its budget is spent.
    """

    flat: float
    laps: int
    at_rest: bool
    in_time: bool = False


TO_THE_END = Rules(1e-3, 1, at_rest=True)
"""Where the race is the end: what is still to be gained is not worth waiting for."""
ROUGHLY = Rules(5e-3, 1, at_rest=False)
"""Where the winner goes on, in another basis."""
ALONE = Rules(1e-3, 3, at_rest=True)
"""Where there is nobody else: what is still to be gained is not worth waiting for."""
AGAINST_A_RIVAL = Rules(0.0, 1, at_rest=True, in_time=True)
"""Where a start goes on for as long as it may still catch up with what there is."""


@dataclass(frozen=True)
class Stopping:
    """Stopping rules; the first one met ends a start.

    Parameters
    ----------
    max_sweeps
        Budget of sweeps.
    tolerance
        Converged when the objective changes by at most this share of itself in `patience` sweeps in a
        row. 0 means: use all sweeps.
    target
        Done when the relative objective is at most this. None: no target.
    max_seconds
        Time limit for all starts together, which whoever runs the loop sees to. None: no limit.
    patience
        See `tolerance`.
    race
        Where given, starts of a batch compete, by these rules.
    rival
        What starts of a race have to catch up with, beside each other: the objective of one that is not among them.
    """

    max_sweeps: int = 300
    tolerance: float = 1e-6
    target: float | None = None
    max_seconds: float | None = None
    patience: int = 3
    race: Rules | None = None
    rival: float = np.inf

    def __post_init__(self) -> None:
        check_whole("max_sweeps", self.max_sweeps, 1)
        check_number("tolerance", self.tolerance, 0.0)
        check_whole("patience", self.patience, 1)
        if self.target is not None:
            check_number("target", self.target, 0.0)
        if self.max_seconds is not None:
            check_number("max_seconds", self.max_seconds, 0.0)
            if self.max_seconds == 0.0:
                raise SettingError("max_seconds must be above 0, got 0: use None for no limit.")


@dataclass
class Record:
    """The books of a batch: the best iterate of every start, histories and events.

    `running` pairs the starts that are still at work with their best iterates; it changes in one
    assignment, so that Ctrl-C never finds it half changed.
    """

    starts: int
    running: tuple[IndexArray, Iterates, Array] | None = None
    ended: dict[int, tuple[Iterates, float, Status]] = field(default_factory=dict)
    history: list[tuple[IndexArray, Measure]] = field(default_factory=list)
    events: list[tuple[int, Event]] = field(default_factory=list)
    least: float = np.inf

    def add(self, active: IndexArray, current: Iterates, measure: Measure) -> None:
        """Enter a sweep."""
        self.history.append((active, measure))
        self.least = float(np.fmin.reduce(measure.objective, initial=self.least))
        criterion = measure.judged_by
        if self.running is None:
            self.running = active, current, np.where(np.isfinite(criterion), criterion, np.inf)
            return
        _, best, lowest = self.running
        better = criterion < lowest
        if better.all():
            self.running = active, current, criterion
        elif better.any():
            self.running = active, best.merge(better, current), np.where(better, criterion, lowest)

    def close(self, endings: dict[Status, BoolArray]) -> IndexArray:
        """Enter how running starts ended; the positions of those that go on."""
        assert self.running is not None
        active, best, lowest = self.running
        done = np.zeros(len(active), dtype=bool)
        for status, ended in endings.items():
            done |= ended
            for i in np.flatnonzero(ended):
                self.ended[int(active[i])] = best.take(np.array([i])), float(lowest[i]), status
        going_on = np.flatnonzero(~done)
        if done.any():
            self.running = active[going_on], best.take(going_on), lowest[going_on]
        return going_on

    def close_all(self, status: Status) -> None:
        """Enter that all running starts ended."""
        assert self.running is not None
        self.close({status: np.ones(len(self.running[0]), dtype=bool)})

    def lowest(self) -> float:
        """The lowest objective so far."""
        return self.least

    def runs(self) -> list[Run]:
        """The books closed: one run per start."""
        sweeps = np.zeros(self.starts, dtype=int)
        columns = np.full((2, self.starts, len(self.history)), np.nan)
        for sweep, (active, measure) in enumerate(self.history):
            columns[:, active, sweep] = measure[:2]
            sweeps[active] = sweep + 1
        runs = []
        for start in range(self.starts):
            events = tuple(event for at, event in self.events if at == start)
            objective, error = columns[:, start, : sweeps[start]]
            runs.append(Run(*self.ended[start], Trace(objective, error, events)))
        return runs


@dataclass
class Judge:
    """Which starts have ended, by the stopping rules that look at objectives.

    `calm` (starts,) counts sweeps without much change, and `previous` (starts,) are the objectives of the last one.
    """

    stopping: Stopping
    resolution: float
    calm: IndexArray
    previous: Array

    @classmethod
    def of(cls, stopping: Stopping, starts: int, resolution: float) -> Self:
        """Before the first sweep."""
        return cls(stopping, resolution, np.zeros(starts, dtype=int), np.full(starts, np.finfo(float).max))

    def endings(self, active: IndexArray, objective: Array, settled: BoolArray | bool) -> dict[Status, BoolArray]:
        """Which of the active starts end here, and how; a later entry overrules an earlier one."""
        endings = {}
        if self.stopping.tolerance > 0.0:
            previous = self.previous[active]
            still = np.abs(objective - previous) <= np.maximum(self.stopping.tolerance * previous, self.resolution)
            self.calm[active] = np.where(settled, np.where(still, self.calm[active] + 1, 0), self.calm[active])
            self.previous[active] = objective
            endings[Status.CONVERGED] = self.calm[active] >= self.stopping.patience
        if self.stopping.target is not None:
            endings[Status.TARGET_REACHED] = objective <= self.stopping.target
        endings[Status.NOT_FINITE] = ~np.isfinite(objective)
        return endings


@dataclass
class Race:
    """How a race stands: objectives (starts,) at the last look, and for how many laps starts gained next to nothing.

    Starts are compared with those of their batch, which therefore is part of the result.
    """

    objective: Array
    flat: IndexArray

    @classmethod
    def first(cls, starts: int) -> Self:
        """Before the first lap, which ends none for being far behind: that one may be the fastest."""
        return cls(np.full(starts, np.inf), np.zeros(starts, dtype=int))

    def endings(
        self, rules: Rules, active: IndexArray, objective: Array, W0: Array, least: float = np.inf, laps: float = np.inf
    ) -> dict[Status, BoolArray]:
        """Which of the active starts end at this look, and how.

        `least` is the lowest objective of those that are at their end, or out of reach; `laps` are left.
        """
        gained = np.log(self.objective[active] / objective)
        self.objective[active] = objective
        self.flat[active] = np.where(np.abs(gained) < rules.flat, self.flat[active] + 1, 0)  # new knots may cost
        best = min(objective.min(), least)
        if not rules.in_time:
            laps = CATCHING_UP * float(np.clip(MAY_BE_EXACT / max(best, np.finfo(float).tiny), 1.0, PATIENCE))
        hoped = laps * np.maximum(gained, 0.0) if laps else np.zeros(len(active))
        joined = np.zeros(len(active), dtype=bool)
        order = np.argsort(objective, kind="stable")
        for k, i in enumerate(order[1:], 1):
            near = [j for j in order[:k] if objective[i] <= (1.0 + JOINED_OBJECTIVE) * objective[j]]
            slow = gained[i] < SLOW and any(gained[j] < SLOW for j in near)
            joined[i] = slow or any(float(direction_angles(W0[i], W0[j]).max()) < JOINED_ANGLE for j in near)
        return {
            Status.FLAT: (self.flat[active] >= rules.laps) & (objective > HEADING_FOR_ZERO),
            Status.OUTRUN: (np.log(objective / best) > hoped + JOINED_OBJECTIVE),
            Status.JOINED: joined,
        }


@dataclass
class Loop:
    """A loop between two sweeps: the state of the starts at work, `active` (B,), the books, and sweeps made."""

    state: Any
    active: IndexArray
    record: Record
    judge: Judge
    race: Race
    sweep: int = 0

    @classmethod
    def begin(cls, state: Any, starts: int, stopping: Stopping, resolution: float) -> Self:
        """Before the first sweep; differences of objectives below `resolution` are rounding errors."""
        return cls(state, np.arange(starts), Record(starts), Judge.of(stopping, starts, resolution), Race.first(starts))

    def sweeps(self, solver: Solver[Any]) -> Iterator[int]:
        """Sweep until every start has ended or has spent its budget; the caller has its say after each sweep."""
        while self.active.size and self.sweep < self.judge.stopping.max_sweeps:
            self.advance(solver)
            yield self.sweep
        self.stop(Status.OUT_OF_SWEEPS)

    def advance(self, solver: Solver[Any]) -> None:
        """One sweep of the starts at work; those that have ended leave."""
        self.sweep += 1
        with np.errstate(all="ignore"):
            self.state, events = solver.step(self.state)
            measure = solver.measure(self.state)
        self.record.events += [(int(self.active[i]), event) for i, event in events]
        self.record.add(self.active, solver.iterates(self.state), measure)
        endings = self.judge.endings(self.active, measure.judged_by, solver.may_converge(self.state))
        if self.judge.stopping.race is not None and self.sweep % LAP == 0:
            endings = {
                **self.look(solver, measure.judged_by, self.judge.stopping.race),
                **endings,
            }  # what has converged has not only joined
        if any(ended.any() for ended in endings.values()):
            failed = self.active[endings[Status.NOT_FINITE]]
            self.record.events += [(int(start), Event(self.sweep, EventKind.NOT_FINITE)) for start in failed]
            going_on = self.record.close(endings)
            self.active, self.state = self.active[going_on], self.state.take(going_on)

    def look(self, solver: Solver[Any], objective: Array, rules: Rules) -> dict[Status, BoolArray]:
        """Which starts a race ends."""
        stopping, arrived = self.judge.stopping, [one for one in self.record.ended.values() if one[2] not in LOST]
        least = min((stopping.rival, *(lowest for _, lowest, _ in arrived)))
        laps = (stopping.max_sweeps - self.sweep) / LAP
        with np.errstate(all="ignore"):
            endings = self.race.endings(rules, self.active, objective, solver.iterates(self.state).W0, least, laps)
            if self.sweep == LAP and rules.laps == 1:
                endings[Status.FLAT] = self.rests_early(objective, rules)
        if rules.at_rest:
            endings[Status.FLAT] &= solver.may_converge(self.state)
        return endings if np.isfinite(objective).all() else {}

    def rests_early(self, objective: Array, rules: Rules) -> BoolArray:
        """Which starts gained so little in the second half of the first lap that they have come to a valley already."""
        active, halfway = self.record.history[-1 - LAP // 2]
        before = halfway.judged_by[np.searchsorted(active, self.active)]
        return (np.abs(np.log(before / objective)) < rules.flat / 2) & (objective > HEADING_FOR_ZERO)

    def stop(self, status: Status) -> None:
        """End the starts that are still at work."""
        if self.active.size:
            self.record.close_all(status)
            self.active = self.active[:0]

    def interrupted(self) -> list[Run] | None:
        """One run per start, ended by Ctrl-C where it was at work; None before the first sweep.

        Where all had ended just before, the last one tells of it: what follows must not begin.
        """
        if self.record.running is None:
            return None
        heard = bool(self.active.size)
        self.stop(Status.INTERRUPTED)
        *others, last = self.record.runs()
        return [*others, last if heard else replace(last, status=Status.INTERRUPTED)]
