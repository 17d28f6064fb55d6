"""The first stage: random starts, or a given model, through a method's sweeps.

Starts are batched where the samples are few, and run one after another where they are many; workers are given even
shares of them. The result depends neither on how starts are batched, nor on who runs them.

Where branches have constraints, half of the starts are searched for without these, and then brought in. Sweeps that
keep to a cone all the way get stuck where free ones pass: on some problems all starts ended in one poor minimum, and
some free ones near the best, which lies in the cone as well. The other half keeps to the cone, in case the samples
contradict the shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from unbraid.bases.projection import Projection
from unbraid.data.in_memory import Samples
from unbraid.data.sample_set import SampleSet
from unbraid.fitting.session import Found, ProgressSpan, Session, Stage, cut_of, session_elsewhere, time_of_day
from unbraid.methods import Method
from unbraid.results.outcome import Status, Trace
from unbraid.runtime.process import single_blas_thread
from unbraid.runtime.progress import Progress
from unbraid.runtime.workers import Shared
from unbraid.solvers.evaluated import Evaluated
from unbraid.solvers.gauss_newton import GaussNewton, slope_squares
from unbraid.solvers.iterates import Iterates, Run, StartingSolver
from unbraid.solvers.loop import Stopping
from unbraid.solvers.translate import GivenModel

SEARCH_ENTRIES = 1 << 17
"""Entries of (starts, r, S) in one batch: 1 MB of float64. Beyond a core's cache batching gains nothing."""
STEPS_TO_FOLLOW = 10
"""Steps in which branches that have been projected onto their constraints make up for it."""


@dataclass(frozen=True)
class SearchStarts:
    """Stage: one random start per generator, through the sweeps of a solver."""

    solver: StartingSolver[Any]
    rank: int
    rngs: Sequence[np.random.Generator]
    stopping: Stopping

    def __call__(self, session: Session, found: Found) -> Found:
        """Runs of all starts; where something cuts them short, of those that had begun by then."""
        spread = session.workers is not None and len(self.rngs) > 1 and isinstance(self.solver.samples, Samples)
        every = shares(len(self.rngs), self.batch_size, session.engaged() if spread else 1)
        if spread and len(every) > 1:
            return session.run(partial(self.spread, every), found)
        for batch in every:
            if found.cut is None:
                found = session.run(partial(self.search_batch, batch), found)
        return found

    @property
    def batch_size(self) -> int:
        """How many starts run as one batch, whoever runs them."""
        return max(1, SEARCH_ENTRIES // (self.rank * self.solver.samples.size))

    def search_batch(self, batch: range, session: Session, found: Found) -> Found:
        """Some of the starts as one batch, beside those that were found earlier."""
        lowest = min((run.objective for run in found.runs), default=np.inf)
        span = ProgressSpan("search", batch, len(self.rngs), best=lowest)
        runs = run_starts(session, self.solver, self.rank, self.rngs[batch.start : batch.stop], self.stopping, span)
        return Found((*found.runs, *runs), cut=cut_of(runs))

    def spread(self, every: Sequence[range], session: Session, found: Found) -> Found:
        """All batches by workers; progress is told as they come back."""
        began, starts = time_of_day(session.began), len(self.rngs)
        spans = [ProgressSpan("search", batch, starts) for batch in every]
        pieces = [(self.rank, self.rngs[one.batch.start : one.batch.stop], self.stopping, one, began) for one in spans]
        runs = session.map_until_interrupted(search_elsewhere, pieces, Shared(self.solver), self.progress)
        ended = [run for k in sorted(runs) for run in runs[k]]
        return Found(tuple(ended), cut=Status.INTERRUPTED if len(runs) < len(pieces) else cut_of(ended))

    def progress(self, runs: dict[int, list[Run]]) -> Progress:
        """What is told as runs come back from workers."""
        done = [run.objective for some in runs.values() for run in some]
        most, left = self.stopping.max_sweeps, len(self.rngs) - len(done)
        return Progress("search", len(done) * most, len(self.rngs) * most, left, min(done))


def run_starts(
    session: Session,
    solver: StartingSolver[Any],
    rank: int,
    rngs: Sequence[np.random.Generator],
    stopping: Stopping,
    span: ProgressSpan,
) -> list[Run]:
    """Random starts, one per generator, through the sweeps of a solver as one batch."""
    runs = session.loop(solver, partial(solver.random_start, rank, rngs), stopping, span)
    return [solver.finish(run) for run in runs]


def search_elsewhere(
    solver: StartingSolver[Any],
    rank: int,
    rngs: Sequence[np.random.Generator],
    stopping: Stopping,
    span: ProgressSpan,
    began: float,
) -> list[Run]:
    """A batch of starts wherever there is a worker; `began` is a time of day.

    A generator may be that of a caller in the same process, and the batch may be run once more: both see a copy.
    """
    with single_blas_thread():
        return run_starts(session_elsewhere(began), solver, rank, deepcopy(rngs), stopping, span)


def search_for_starts(
    method: Method, samples: SampleSet, solver: GaussNewton, rank: int, rngs: Sequence[np.random.Generator]
) -> Stage:
    """The stage that takes random starts through a method's sweeps on samples, for a solver that polishes them."""
    bound = SearchStarts(method.solver(samples, solver.basis, solver.projection), rank, rngs, method.stopping)
    if method.polish is None or len(rngs) < 2 or not solver.projection.bounded(solver.basis.size).any():
        return bound
    free = method.solver(samples, solver.basis, Projection.onto([None] * rank, method.offset))
    return SearchHalfFreely(
        replace(bound, rngs=rngs[::2]), SearchStarts(free, rank, rngs[1::2], method.stopping), solver
    )


@dataclass(frozen=True)
class SearchHalfFreely:
    """Stage: some starts searched for under constraints, others without, which are brought into these afterwards."""

    bound: SearchStarts
    free: SearchStarts
    solver: GaussNewton

    def __call__(self, session: Session, found: Found) -> Found:
        """The runs of all starts, of which all obey the constraints."""
        found = self.bound(session, found)
        if found.cut is not None:
            return found
        more = self.free(session, Found())
        return replace(more, runs=(*found.runs, *(into_constraints(self.solver, run) for run in more.runs)))


def into_constraints(solver: GaussNewton, run: Run) -> Run:
    """A run with branches near its own that obey the solver's constraints, and the objective that it has then.

    Branches that cancelled each other's faults do not any more when each has been projected, so all follow together,
    along directions that stay.
    """
    fixed = replace(solver, directions_fixed=True, place_knots_at=frozenset())
    with np.errstate(all="ignore"):
        state = fixed.start(project_branches(solver, run.best))
        for _ in range(STEPS_TO_FOLLOW):
            state, _ = fixed.step(state)
        objective = solver.objective(state.iterates)
    return replace(run, best=state.iterates, objective=float(objective[0]))


def project_branches(solver: GaussNewton, one: Iterates) -> Iterates:
    """A model, a batch of one, with each of its branches the nearest one that obeys the solver's constraints.

    A branch and its weights may both change their signs, which changes nothing but makes what decreases increase. Of
    the two the nearer one is taken: a projection onto a cone is the nearer the larger it is.
    """
    both = solver.placed_anew(Iterates.join([one, replace(one, W1=-one.W1, a=-one.a)]))
    sizes = solver.samples.sum(slope_squares, Evaluated.on(solver.samples, both), width=one.W0.shape[1])
    which = np.argmax(sizes, axis=0)  # (r,)
    branches = np.arange(len(which))
    W1, a = both.W1[which, :, branches].T[None], both.a[which, branches][None]
    return replace(both.take(np.array([0])), W1=W1, a=a)


@dataclass(frozen=True)
class SweepFromModel:
    """Stage: a given model through the sweeps of a solver."""

    solver: StartingSolver[Any]
    model: GivenModel
    stopping: Stopping

    def __call__(self, session: Session, found: Found) -> Found:
        """The one run that begins at the model."""
        begin = partial(self.solver.start_from, self.model, session.rng)
        runs = [
            self.solver.finish(run) for run in session.loop(self.solver, begin, self.stopping, ProgressSpan("search"))
        ]
        return Found(tuple(runs), cut=cut_of(runs))


@dataclass(frozen=True)
class TakeModel:
    """Stage: a given model, projected onto the basis, as a run of no sweeps."""

    solver: StartingSolver[Any]
    model: GivenModel

    def __call__(self, session: Session, found: Found) -> Found:
        """The run of no sweeps that ends at the model; its objective is still to be measured."""
        nothing = np.zeros(0)
        run = Run(self.solver.project_model(self.model), np.inf, Status.RUNNING, Trace(nothing, nothing, ()))
        return Found((run,))


def samples_to_search(samples: SampleSet, method: Method) -> SampleSet:
    """The samples as a search sees them: without gaps, and without values where the method does not look at them.

    It is the same object where nothing changes.
    """
    if isinstance(samples, Samples):
        samples = samples.as_filled(method.weighted)
    return samples if method.values else samples.without_values()


def shares(starts: int, size: int, workers: int) -> list[range]:
    """The numbers of starts in even batches of about a size, or less where there are workers for more of them.

    Two at least, where a batch may hold two: one alone is rounded in another way.
    """
    most = starts if size == 1 else max(1, starts // 2)
    count = min(most, max(workers, -(-starts // size)))
    return [range(starts * k // count, starts * (k + 1) // count) for k in range(count)]


def batches(count: int, size: int) -> Iterator[range]:
    """The numbers below `count` in ranges of a size, but for the last, which may be shorter."""
    return (range(first, min(first + size, count)) for first in range(0, count, size))
