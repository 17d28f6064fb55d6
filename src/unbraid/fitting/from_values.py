"""The first stage where only values are given: rough Jacobians and few degrees of freedom, then the basis as asked for.

Slopes from values are 10 to 80 % off, and what follows them closely follows their errors. So starts are searched and
polished with few degrees of freedom first, half of them on the slopes of local linear fits and half on those of a
smooth surrogate; the best that differ are then polished with more, and so on up to the basis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from unbraid.bases import Basis, BSpline
from unbraid.data.estimates import local_slopes, surrogate_slopes
from unbraid.data.in_memory import Samples
from unbraid.data.sample_set import SampleSet
from unbraid.fitting.polish import ROUND, SAME_ANGLE, MeasureAnew, PolishStarts, angle_between, measure_anew
from unbraid.fitting.search import search_for_starts
from unbraid.fitting.session import Found, Session, cut_of, session_elsewhere, sort_runs, time_of_day
from unbraid.kernels.arrays import Array
from unbraid.methods import Method
from unbraid.results.outcome import Status
from unbraid.runtime.process import single_blas_thread
from unbraid.runtime.workers import Shared
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Run
from unbraid.solvers.loop import ROUGHLY

SlopeSource = Callable[[Array, Array], Array]
"""What makes Jacobians (S, n, m) of X (S, m) and F (S, n)."""
LADDER: tuple[Basis, ...] = (BSpline(df=6), BSpline(df=12))
"""The basis of the search, and those on the way to the one that was asked for: as far as they are smaller."""
NEIGHBOURS_PER_UNKNOWN = 3
"""Neighbours of a local linear fit, per unknown of it."""
POLISHED = 8
"""How many starts are polished with few degrees of freedom at least: it takes little time, and two that agree on rough
slopes may agree on a poor minimum."""
LIFTED = 2
"""How many fits go on to the next basis."""


@dataclass(frozen=True)
class SearchValues:
    """First stage where only values are given: fits of them in the solver's basis, from coarse fits of all starts."""

    solver: GaussNewton
    method: Method
    rank: int
    rngs: Sequence[np.random.Generator]

    def __call__(self, session: Session, found: Found) -> Found:
        """The best fits that differ, in the solver's basis; as `starts`, the coarse fits of all starts."""
        assert self.method.polish is not None
        first, *further = [basis for basis in LADDER if basis.size < self.solver.basis.size] or [self.solver.basis]
        coarse = replace(self.solver, basis=first)
        sources = [k for k in range(len(SLOPES)) if self.rngs[k :: len(SLOPES)]]
        if session.workers is not None and len(sources) > 1 and session.engaged() == len(sources):
            found = session.run(partial(self.search_by_workers, coarse, sources), found)
        else:
            for k in sources:
                if found.cut is None:
                    found = session.run(partial(self.search, coarse, k), found)
        found = session.run(MeasureAnew(coarse), found)
        in_one_round = replace(self.method.polish, at_once=POLISHED // ROUND)
        found = session.run_all([PolishStarts(coarse, in_one_round, ROUGHLY, POLISHED)], found)
        starts = found.runs
        for basis in further:
            finer = replace(self.solver, basis=basis)
            found = session.run_all([Refine(finer), PolishStarts(finer, self.method.polish, ROUGHLY)], found)
        return replace(Refine(self.solver)(session, found), starts=starts)

    def search(self, solver: GaussNewton, k: int, session: Session, found: Found) -> Found:
        """Every so many of the starts, through the method's sweeps on the k-th slopes from the values."""
        samples = with_slopes(solver.samples, self.method, SLOPES[k])
        rngs = self.rngs[k :: len(SLOPES)]
        more = search_for_starts(self.method, samples, solver, self.rank, rngs)(session, Found())
        return replace(more, runs=(*found.runs, *more.runs))

    def search_by_workers(self, solver: GaussNewton, sources: Sequence[int], session: Session, found: Found) -> Found:
        """All starts, those of each source of slopes by a worker of its own."""
        began = time_of_day(session.began)
        pieces = [(self.method, self.rank, self.rngs, k, began) for k in sources]
        results = session.map_until_interrupted(search_values_elsewhere, pieces, Shared(solver))
        runs = [run for k in sorted(results) for run in results[k]]
        return Found(tuple(runs), cut=Status.INTERRUPTED if len(results) < len(pieces) else cut_of(runs))


def search_values_elsewhere(
    solver: GaussNewton, method: Method, rank: int, rngs: Sequence[np.random.Generator], k: int, began: float
) -> tuple[Run, ...]:
    """The starts on the k-th slopes wherever there is a worker, which may be this process: it sees a copy of `rngs`."""
    with single_blas_thread():
        stage = SearchValues(solver, method, rank, deepcopy(rngs))
        return stage.search(solver, k, session_elsewhere(began), Found()).runs


@dataclass(frozen=True)
class Refine:
    """Stage: the best runs of different directions, in the solver's basis."""

    solver: GaussNewton

    def __call__(self, session: Session, found: Found) -> Found:
        """The best runs whose directions differ, `LIFTED` at most, on knots of the solver's basis."""
        kept: list[Run] = []
        for run in sort_runs(found.runs):
            if all(angle_between(run, one) > SAME_ANGLE for one in kept):
                kept.append(run)
            if len(kept) == LIFTED:
                break
        kept = [replace(run, best=self.solver.placed_anew(run.best)) for run in kept]
        return replace(found, runs=tuple(measure_anew(self.solver, kept)))


def neighbouring_slopes(X: Array, F: Array) -> Array:
    """Slopes of local linear fits, each to the nearest samples."""
    return local_slopes(X, F, NEIGHBOURS_PER_UNKNOWN * (X.shape[1] + 1))


SLOPES: tuple[SlopeSource, ...] = (neighbouring_slopes, surrogate_slopes)
"""Where first Jacobians come from; starts take turns."""


def with_slopes(samples: SampleSet, method: Method, slopes: SlopeSource = neighbouring_slopes) -> Samples:
    """Samples of values alone with Jacobians that are estimated from the values."""
    assert isinstance(samples, Samples)
    samples = samples.as_filled(method.weighted)
    return samples.with_jacobians(slopes(samples.X, samples.values))
