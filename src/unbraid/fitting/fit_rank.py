"""The work of one fit, from random starts to the best run: search, polish, all samples, smoothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from unbraid.bases import Basis
from unbraid.data.in_memory import Samples
from unbraid.data.sample_set import SampleSet
from unbraid.fitting.from_values import search_values, with_slopes
from unbraid.fitting.levels import Levels, remeasured
from unbraid.fitting.polish import measured_anew, polish_runs
from unbraid.fitting.search import run_from, search_starts
from unbraid.fitting.smoothing import tuned
from unbraid.methods import Method
from unbraid.results.outcome import Status, Trace
from unbraid.runtime.journal import Journal
from unbraid.runtime.progress import Callback
from unbraid.runtime.workers import Workers
from unbraid.solvers.coupling import FixedCoupling
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Run, Search
from unbraid.solvers.translate import GivenModel


class Found(NamedTuple):
    """What a search has found: runs, best first; those of all starts, where only some go on; what cut it short."""

    runs: Sequence[Run]
    starts: Sequence[Run]
    cut: Status | None


@dataclass(frozen=True)
class Work:
    """What all parts of the work share.

    `began` is when the clock of time limits started. The `workers`, where there are some, search and polish.
    """

    method: Method
    rank: int
    basis: Basis
    began: float
    callback: Callback | None
    journal: Journal
    workers: Workers | None = None

    def searched(self, solver: GaussNewton, starts: int, rng: np.random.Generator, init: GivenModel | None) -> Found:
        """Starts, or a given model, through the method's sweeps, and polished where it has a polish."""
        method, journal, samples = self.method, self.journal, solver.samples
        workers = self.workers if isinstance(samples, Samples) else None  # others stay where they are
        coarse: list[Run] = []
        cut: Status | None = None
        if init is None and not samples.has_jacobians:
            rngs = rng.spawn(starts)
            how = (self.began, self.callback, journal, workers)
            runs, coarse, cut = search_values(solver, method, self.rank, rngs, *how)
        else:
            seen = as_searched(samples, method) if samples.has_jacobians else with_slopes(samples, method)
            search = method.solver(seen, solver.basis, solver.projection)
            if init is None:
                rngs = rng.spawn(starts)
                runs, cut = search_starts(search, self.rank, rngs, method.stopping, self.callback, journal, workers)
            elif method.polish is None:
                runs, cut = run_from(search, init, rng, method.stopping, self.callback, journal)
            else:
                runs = [unswept(search, init)]
            if method.polish and (seen is not samples or runs[0].best.placement.penalty() is not None):
                runs = journal.unit(partial(measured_anew, solver, runs))
        if method.polish is not None and cut is None and not (coarse and self._smooths(solver)):
            runs, cut = polish_runs(solver, runs, method.polish, self.began, self.callback, journal, workers)
        runs = sorted(runs, key=lambda run: run.objective)
        return Found(runs, coarse or runs, cut)

    def finished(self, solver: GaussNewton, levels: Levels, found: Found) -> Run:
        """The best run on all samples, its smoothing chosen where that is open; the solver is that of all samples."""
        best, last = found.runs[0], 0
        if self.method.polish is not None and found.cut is None:
            settings, last = self.method.polish, levels.affordable(solver, self.rank)
            best = levels.climbed(solver, best, last, settings, self.began, self.callback, self.journal)
            if best.status in (Status.INTERRUPTED, Status.OUT_OF_TIME):
                return best
            if self._smooths(solver):
                here = replace(solver, samples=levels.every[last].samples)
                best = self.journal.unit(partial(self._smoothed, here, best, settings.stopping.max_seconds))
        if last == len(levels.every) - 1:
            return best
        best = replace(best, best=levels.at_top(best.best, last))
        try:
            return self.journal.unit(partial(remeasured, solver, best))
        except KeyboardInterrupt:
            return replace(best, status=Status.INTERRUPTED)

    def _smooths(self, solver: GaussNewton) -> bool:
        """Whether the basis leaves its smoothing open."""
        return solver.basis is not self.basis

    def _smoothed(self, solver: GaussNewton, best: Run, limit: float | None) -> Run:
        coupling = self.method.coupling
        chosen = isinstance(coupling, FixedCoupling) and coupling.open
        return tuned(solver, best, chosen, limit, self.began, self.callback, self.journal)


def as_searched(samples: SampleSet, method: Method) -> SampleSet:
    """The samples as the search sees them: without gaps, and without values where the method does not look at them."""
    if isinstance(samples, Samples):
        samples = samples.as_filled(method.weighted)
    return samples if method.values else samples.without_values()


def unswept(solver: Search[Any], model: GivenModel) -> Run:
    """The run of no sweeps that ends at a given model, projected onto the basis."""
    nothing = np.zeros(0)
    return Run(solver.project_model(model), np.inf, Status.RUNNING, Trace(nothing, nothing, ()))
