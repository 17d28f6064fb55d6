"""From smaller versions of the samples up to all of them: where a fit searches, and how it gets to the end.

Far fewer samples than millions tell where a minimum lies, and far smaller Jacobians than a wide layer's. So the search
and the polish see a part of the samples, with compressed Jacobians where that pays; what they find is lifted level by
level, and at each level where it can be afforded some Gauss–Newton steps settle it on what is new there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from unbraid.data.in_memory import Samples
from unbraid.data.problem import Problem
from unbraid.data.sample_set import SampleSet
from unbraid.data.units import Units
from unbraid.errors import DataError
from unbraid.fitting.compression import Compression
from unbraid.fitting.polish import settle
from unbraid.fitting.search import observer
from unbraid.kernels.arrays import spread_out
from unbraid.methods.base import Polish
from unbraid.results.outcome import Status
from unbraid.runtime.journal import Journal
from unbraid.runtime.progress import Callback
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Iterates, Run

SEARCH_SAMPLES = 1 << 14
"""So many samples are searched and polished on, where a polish follows and there are more."""


@dataclass(frozen=True)
class Level:
    """One version of the samples; `by` says how its models become those of the next larger one: None, as they are."""

    samples: SampleSet
    by: Compression | None = None


@dataclass(frozen=True)
class Levels:
    """All versions of the samples, the smallest first; the last one is the samples themselves.

    `told` are sentences about what is left out on the way.
    """

    every: tuple[Level, ...]
    told: tuple[str, ...]

    @classmethod
    def of(
        cls, problem: Problem, samples: SampleSet, units: Units, rank: int, thins: bool, compress: bool | None
    ) -> Self:
        """For a problem and its samples.

        `thins`: whether a part of the samples will do to search on. `compress`: whether to reduce Jacobians; None:
        where that pays.
        """
        every, told = [Level(samples)], []
        compression = None if compress is False else Compression.of(samples, rank, always=compress is True)
        if compression is not None:
            small = compression.apply(samples)
            every.insert(0, Level(small, compression))
            told.append(compressed_words(samples, small, compression.measured(samples, small)))
        if compress is True and len(every) == 1:
            lacks = "has none" if not samples.has_jacobians else f"has J of {samples.n} × {samples.m} entries"
            raise DataError(
                "compress=True needs Jacobians without gaps, of more outputs or inputs than twice the rank, and this "
                f"problem {lacks}{'' if samples.complete else ', with gaps'}: leave out compress."
            )
        smallest = every[0].samples
        if thins and (smallest.size > SEARCH_SAMPLES or not searchable(smallest)):
            every.insert(0, Level(thinned(problem, smallest, units)))
        if every[0].samples.size < samples.size:
            told.append(f"The search looked at {SEARCH_SAMPLES:,} of {samples.size:,} samples; the fit is to all.")
        return cls(tuple(every), tuple(told))

    @property
    def searched(self) -> SampleSet:
        """The samples that the search sees."""
        return self.every[0].samples

    def lifted(self, iterates: Iterates, k: int) -> Iterates:
        """Models of level k as models of the next larger one."""
        here, above = self.every[k], self.every[k + 1]
        iterates = iterates if here.by is None else here.by.lifted(iterates)
        return replace(iterates, placement=iterates.placement.of_samples(here.samples.size, above.samples.size))

    def at_top(self, iterates: Iterates, k: int = 0) -> Iterates:
        """Models of level k as models of the samples themselves."""
        for below in range(k, len(self.every) - 1):
            iterates = self.lifted(iterates, below)
        return iterates

    def affordable(self, solver: GaussNewton, rank: int) -> int:
        """The largest level at which Gauss–Newton steps are not out of proportion, at least the smallest."""
        costs = [rank * (level.samples.n + level.samples.m + solver.basis.size) for level in self.every]
        return max(k for k, unknowns in enumerate(costs) if k == 0 or unknowns <= solver.dense_limit)

    def climbed(
        self,
        solver: GaussNewton,
        run: Run,
        last: int,
        settings: Polish,
        began: float,
        callback: Callback | None,
        journal: Journal,
    ) -> Run:
        """The best run of the smallest level, settled on each level up to the last one; the solver's samples change."""
        for k in range(1, last + 1):
            here = replace(solver, samples=self.every[k].samples)
            run = replace(run, best=self.lifted(run.best, k - 1))
            try:
                run = journal.unit(partial(remeasured, here, run))
            except KeyboardInterrupt:
                run = replace(run, status=Status.INTERRUPTED)
            else:
                watch = partial(observer, callback, "all samples", range(1), 1, earlier=[run.objective])
                [run] = settle(here, [run], settings.stopping, began, watch, journal)
            if run.status in (Status.INTERRUPTED, Status.OUT_OF_TIME):
                return replace(run, best=self.at_top(run.best, k))
        return run


def remeasured(solver: GaussNewton, run: Run) -> Run:
    """A run with the objective that it has on the solver's samples."""
    return replace(run, objective=float(solver.objective(run.best)[0]))


def searchable(samples: SampleSet) -> bool:
    """Whether starts can search on these: gaps have to be filled for them, and Jacobians made, in memory."""
    return isinstance(samples, Samples) or (samples.has_jacobians and samples.complete)


def thinned(problem: Problem, samples: SampleSet, units: Units) -> Samples:
    """Some of the samples, in memory."""
    which = spread_out(samples.size, SEARCH_SAMPLES)
    if isinstance(samples, Samples) and samples.complete:
        return replace(samples.part(which), among=None)
    return Samples.of(problem.take(which), units)


def compressed_words(samples: SampleSet, small: Samples, lost: float) -> str:
    """What compression has left out, in a sentence."""
    share = "nothing" if lost < 1e-12 else f"{100.0 * lost:.2g} % of their squares"
    return (
        f"Jacobians were reduced from {samples.n} × {samples.m} to {small.n} × {small.m} entries for the fit, which "
        f"leaves out {share}."
    )
