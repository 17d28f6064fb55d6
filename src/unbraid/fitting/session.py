"""How a fit is run: the one place where time limits, progress, checkpoints, Ctrl-C and workers are handled.

A fit is a list of stages. A stage is a function (session, found) -> found, and is made of smaller stages and of loops:
`Session.run` runs a stage, `Session.loop` drives a solver. Both are units of the journal, so that a killed fit goes on
behind the last one that was done; and where Ctrl-C comes, both leave what there is by then. Stages say what their
progress is called (`ProgressSpan`), and which pieces of their work can be spread over workers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from unbraid.bases import Basis
from unbraid.data.dask_blocks import Held
from unbraid.data.problem import Problem
from unbraid.errors import check_callback
from unbraid.results.outcome import Status
from unbraid.results.smoothing import Smoothing
from unbraid.runtime.cluster_waits import told_of_losses
from unbraid.runtime.deadline import until
from unbraid.runtime.helpers import look_up
from unbraid.runtime.interrupts import Listener, Result, attempt, listening
from unbraid.runtime.journal import NOTHING_KEPT, Journal
from unbraid.runtime.process import import_scipy, keep_freed_arrays, single_blas_thread
from unbraid.runtime.progress import Callback, Forward, Progress, tell_as_part
from unbraid.runtime.workers import Shared, Workers, do_here
from unbraid.solvers.iterates import Run, Solver
from unbraid.solvers.loop import Loop, Stopping

Noted = TypeVar("Noted")
CUTS = (Status.INTERRUPTED, Status.OUT_OF_TIME)
"""Statuses of work that was cut short: no further stage follows."""


@dataclass(frozen=True)
class Found:
    """What the stages of a fit have found so far.

    Attributes
    ----------
    runs
        The runs that go on, in the order of the starts.
    starts
        How every start ended, in their order, where only some go on; else empty.
    level
        On which of the levels of the samples the runs are: 0 where the search was.
    cut
        What cut the work short, Ctrl-C or the time limit, or None.
    basis
        What the branches of the runs are made of; None: what the search was made in.
    smoothing
        What was chosen from the data, where that has been done.
    """

    runs: tuple[Run, ...] = ()
    starts: tuple[Run, ...] = ()
    level: int = 0
    cut: Status | None = None
    basis: Basis | None = None
    smoothing: Smoothing | None = None

    @property
    def best(self) -> Run:
        """The run of lowest objective."""
        return min(self.runs, key=lambda run: run.objective)

    @property
    def every_start(self) -> tuple[Run, ...]:
        """How every start ended, best first."""
        return sort_runs(self.starts or self.runs)

    def narrow(self, best: Run, level: int, cut: Status | None) -> Found:
        """Only the best run goes on, on a level of the samples."""
        return Found((best,), self.starts or self.runs, level, cut, self.basis, self.smoothing)

    def interrupted(self) -> Found | None:
        """The same, cut short by Ctrl-C; None where there is nothing yet."""
        return replace(self, cut=Status.INTERRUPTED) if self.runs else None


def sort_runs(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Runs by their objectives, best first."""
    return tuple(sorted(runs, key=lambda run: run.objective))


class Stage(Protocol):
    """One stage of a fit: a frozen dataclass with what it needs, called with a session and what was found before.

    It loops with `session.loop`, and runs smaller stages with `session.run`. Both are units of the journal, which are
    known by their order: a stage does the same in the same order whenever it is given the same. What it returns is
    written to checkpoints, so it is made of data classes of this library. Where `found.cut` is set, it was cut short.
    """

    def __call__(self, session: Session, found: Found, /) -> Found:
        """What the stage makes of what was found before."""


@dataclass(frozen=True)
class ProgressSpan:
    """The span of a phase's progress that a loop covers.

    Attributes
    ----------
    phase
        What `Progress.phase` says.
    batch
        Which of the phase's starts the loop drives.
    starts
        How many starts the phase has.
    before, after
        Steps that each start makes in other loops of the phase, before this one and after it.
    best
        The lowest objective of the starts that were driven earlier.
    over
        How many further starts, which were driven with those of the batch, are done with the phase.
    """

    phase: str
    batch: range = range(1)
    starts: int = 1
    before: int = 0
    after: int = 0
    best: float = np.inf
    over: int = 0

    def progress(self, loop: Loop) -> Progress:
        """The progress of the phase after a sweep of the loop."""
        most, running = loop.judge.stopping.max_sweeps, loop.active.size
        each = self.before + most + self.after
        ended = len(self.batch) - running
        done = (
            (self.batch.start + self.over) * each + len(self.batch) * self.before + ended * most + running * loop.sweep
        )
        return Progress(self.phase, done, self.starts * each, running, min(loop.record.lowest(), self.best))


@dataclass(frozen=True)
class Session:
    """How a fit is run.

    Attributes
    ----------
    rng
        Where its random numbers come from.
    began
        When the clock of its time limits started (`time.perf_counter`).
    callback
        Who is told of progress, or None.
    journal
        What keeps finished units of work, and loops under way.
    workers
        Those who do pieces of the work at the same time, or None.
    listener
        Who hears Ctrl-C while the session is open.
    """

    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    began: float = field(default_factory=time.perf_counter)
    callback: Callback | None = None
    journal: Journal = NOTHING_KEPT
    workers: Workers | None = None
    listener: Listener = field(default_factory=Listener)

    @classmethod
    @contextmanager
    def open(
        cls, journal: Journal, rng: object, callback: Callback | None = None, workers: Workers | None = None
    ) -> Iterator[Self]:
        """A session with a journal of its own, whose clock starts now, less what was spent on it before a break."""
        check_callback(callback)
        told = None if callback is None else Forward(callback)
        now = time.perf_counter()
        with ExitStack() as stack:
            listener = stack.enter_context(listening())
            import_scipy()
            keep_freed_arrays()
            stack.enter_context(single_blas_thread())
            if workers is not None:
                stack.enter_context(workers)
            stack.enter_context(journal)
            yield cls(journal.generator(rng), journal.began(now), told, journal, workers, listener)

    @property
    def client(self) -> Any:
        """The client of the cluster whose workers do the work; None where there is none."""
        return getattr(self.workers, "client", None)

    def lost(self, problem: Problem | None = None) -> frozenset[str]:
        """Workers that were lost so far, by their addresses: of those who do the work, or who hold a problem."""
        own = frozenset() if self.workers is None else self.workers.lost()
        return own if problem is None or not isinstance(problem.home, Held) else own | problem.home.lost()

    def told_of_losses(self, before: frozenset[str], problem: Problem | None = None) -> tuple[str, ...]:
        """A sentence on workers that were lost since, or none; from the journal where an earlier run came as far.

        Journals know whether a cluster does the work, but not whether one holds the samples.
        """
        unit = NOTHING_KEPT.unit if self.client is None else self.journal.unit
        return told_of_losses(unit(lambda: len(self.lost(problem) - before)))

    def noted(self, fit: Noted) -> Noted:
        """A fit at the end of the session, with a note where its checkpoint could not be written."""
        more = self.journal.unwritten()
        return replace(fit, notes=(*fit.notes, *more)) if more else fit  # type: ignore[type-var, attr-defined]

    def part(self, low: float, high: float, rank: int = 0) -> Session:
        """The same session for a part of its work: from one share of it to another, and where `rank` is tried."""
        told = None if self.callback is None else tell_as_part(self.callback, low, high, rank)
        return replace(self, callback=told)

    def anew(self) -> Session:
        """The same session with a clock that starts now."""
        return replace(self, began=self.journal.began(time.perf_counter()))

    def keeping(self, seconds: float) -> Session:
        """The same session with so many seconds of its time limit kept for what comes after."""
        return replace(self, began=self.began - seconds)

    def seconds(self) -> float:
        """Seconds since the clock started; from the journal where an earlier run came as far."""
        return self.journal.unit(lambda: time.perf_counter() - self.began)

    def out_of_time(self, stopping: Stopping, step: float = 0.0) -> bool:
        """Whether the time limit has passed, or is nearer now than it would be after a further step of that length."""
        return stopping.max_seconds is not None and time.perf_counter() - self.began + step / 2 > stopping.max_seconds

    def deadline(self, stopping: Stopping) -> float | None:
        """When the time limit passes, by `time.perf_counter`; None where there is none."""
        return None if stopping.max_seconds is None else self.began + stopping.max_seconds

    def run(self, stage: Stage, found: Found) -> Found:
        """What a stage makes of what was found; Ctrl-C leaves that as it was, with the cut."""
        work = partial(self.journal.unit, partial(stage, self, found))
        return attempt(work, found.interrupted, safe=bool(found.runs))

    def run_all(self, stages: Sequence[Stage], found: Found | None = None) -> Found:
        """Stage after stage, until something cuts the work short."""
        found = Found() if found is None else found
        for stage in stages:
            if found.cut is None:
                found = self.run(stage, found)
        return found

    def loop(self, solver: Solver[Any], begin: Callable[[], Any], stopping: Stopping, span: ProgressSpan) -> list[Run]:
        """Drive a solver from the state that `begin` gives until every start has ended: one run per start."""
        with until(self.deadline(stopping)):
            return self.journal.unit(partial(self._loop, solver, begin, stopping, span))

    def _loop(self, solver: Solver[Any], begin: Callable[[], Any], stopping: Stopping, span: ProgressSpan) -> list[Run]:
        with np.errstate(all="ignore"):  # as in sweeps: what is not finite ends with the first
            loop: Loop = self.journal.resumed(solver) or Loop.begin(
                begin(), len(span.batch), stopping, solver.resolution
            )

        def drive() -> list[Run]:
            before = time.perf_counter()
            for _ in loop.sweeps(solver):
                self.tell(lambda: span.progress(loop))
                if self.out_of_time(stopping, time.perf_counter() - before):
                    loop.stop(Status.OUT_OF_TIME)
                elif loop.active.size and self.journal.due():
                    self.journal.keep(loop, solver)
                before = time.perf_counter()
            return loop.record.runs()

        return attempt(drive, loop.interrupted)

    def engaged(self) -> int:
        """How many pieces of work to begin together: as many as in an earlier run, where the journal is of one."""
        return self.journal.unit(lambda: 1 if self.workers is None else self.workers.count)

    def map_all(
        self,
        function: Callable[..., Result],
        pieces: Sequence[tuple[Any, ...]],
        shared: Shared[Any],
        tick: Callable[[], object],
    ) -> list[Result]:
        """Results of function(shared.value, *piece), in the order of the pieces; `tick` is called as each comes.

        The journal keeps each of them where this process does the work, else all together. Ctrl-C is passed on.
        """
        if self.workers is None:
            return [self._tick_after(partial(do_here, function, piece, shared), tick) for piece in pieces]
        results: dict[int, Result] = {}

        def enter(k: int, result: Result) -> None:
            results[k] = result
            tick()

        def compute(workers: Workers) -> list[Result]:
            workers.each(function, pieces, enter, shared)
            return [results[k] for k in range(len(pieces))]

        every = self.journal.unit(partial(compute, self.workers))
        for _ in range(len(pieces) - len(results)):  # which the journal had
            tick()
        return every

    def _tick_after(self, compute: Callable[[], Result], tick: Callable[[], object]) -> Result:
        result = self.journal.unit(compute)
        tick()
        return result

    def tell(self, progress: Callable[[], Progress]) -> None:
        """Tell the callback, if there is one."""
        if self.callback is not None:
            with self._excusing():
                self.callback(progress())

    def tell_of_the_end(self) -> None:
        """Tell the callback that all is done: sooner than it might have been, mostly."""
        if isinstance(self.callback, Forward):
            with self._excusing():
                self.callback.finish()

    @contextmanager
    def _excusing(self) -> Iterator[None]:
        """Around a callback: what it raises is no fault of the journal's file."""
        try:
            yield
        except Exception:
            self.journal.excuse()
            raise

    def _tell_and_look_up(self, progress: Progress) -> None:
        """What is told of a piece that is done in this process, which may not be wanted any more."""
        self.tell(lambda: progress)
        look_up()

    def map_until_interrupted(
        self,
        function: Callable[..., Result],
        pieces: Sequence[tuple[Any, ...]],
        shared: Shared[Any],
        tell: Callable[[dict[int, Result]], Progress] | None = None,
        enough: Callable[[dict[int, Result]], bool] = lambda results: False,
    ) -> dict[int, Result]:
        """Results of function(shared.value, *piece) by the workers, by the number of the piece, until there are enough.

        For the pieces of one stage, which is a unit of the journal itself: after Ctrl-C the results are those there
        are. `tell` makes progress of the results so far; pieces that are done in this process tell of their own.
        """
        results: dict[int, Result] = {}
        assert self.workers is not None
        workers = self.workers

        def enter(k: int, result: Result) -> None:
            results[k] = result
            if tell is not None:
                self.tell(lambda: tell(results))

        def work() -> dict[int, Result]:
            token = TOLD.set(self._tell_and_look_up)
            try:
                workers.each(function, pieces, enter, shared, lambda: enough(results))
            finally:
                TOLD.reset(token)
            return results

        return attempt(work, lambda: results or None)


TOLD: ContextVar[Callback | None] = ContextVar("told", default=None)
"""Who is told of the progress of pieces that are done in this process."""


def session_elsewhere(began: float) -> Session:
    """The session of a piece of work, in another process or in this one: `began` is a time of day."""
    return Session(began=time.perf_counter() - (time.time() - began), callback=TOLD.get())


def time_of_day(began: float) -> float:
    """A moment of this process's `time.perf_counter` as one of `time.time`, which other machines understand."""
    return time.time() - (time.perf_counter() - began)


def cut_of(runs: Sequence[Run]) -> Status | None:
    """What cut runs short, Ctrl-C or the time limit; None where nothing did."""
    return next((run.status for run in runs if run.status in CUTS), None)
