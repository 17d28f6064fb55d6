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
from unbraid.fitting.polish import measure_run, settle
from unbraid.fitting.session import Found, ProgressSpan, Session, cut_of
from unbraid.kernels.arrays import spread_out
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Iterates
from unbraid.solvers.loop import Stopping

SEARCH_SAMPLES = 1 << 14
"""So many samples are searched and polished on, where a polish follows and there are more."""


@dataclass(frozen=True)
class Level:
    """One version of the samples; a compression, if any, lifts its models to those of the next larger level."""

    samples: SampleSet
    compression: Compression | None = None


@dataclass(frozen=True)
class Levels:
    """All versions of the samples, the smallest first; the last one is the samples themselves.

    `notes` are sentences about what is left out on the way. `inputs` is the basis that all versions have their inputs
    in; None: that of the problem.
    """

    every: tuple[Level, ...]
    notes: tuple[str, ...]
    inputs: Compression | None = None

    @classmethod
    def of(
        cls, problem: Problem, samples: SampleSet, units: Units, rank: int, may_thin: bool, compress: bool | None
    ) -> Self:
        """For a problem and its samples.

        `may_thin`: whether a part of the samples will do to search on. `compress`: whether to reduce Jacobians; None:
        where that pays.
        """
        every, notes = [Level(samples)], []
        compression = None if compress is False else Compression.of(samples, rank, always=compress is True)
        if compression is not None:
            small = compression.apply(samples)
            every.insert(0, Level(small, compression))
            notes.append(describe_compression(samples, small, compression.measure_loss(samples, small)))
        if compress is True and len(every) == 1:
            lacks = "has none" if not samples.has_jacobians else f"has J of {samples.n} × {samples.m} entries"
            raise DataError(
                "compress=True needs Jacobians without gaps, of more outputs or inputs than twice the rank, and this "
                f"problem {lacks}{'' if samples.complete else ', with gaps'}: leave out compress."
            )
        smallest = every[0].samples
        if may_thin and (smallest.size > SEARCH_SAMPLES or not searchable(smallest)):
            every.insert(0, Level(thin(problem, smallest, units)))
        if every[0].samples.size < samples.size:
            notes.append(f"The search looked at {SEARCH_SAMPLES:,} of {samples.size:,} samples; the fit is to all.")
        return cls(tuple(every), tuple(notes))

    def lift(self, iterates: Iterates, k: int) -> Iterates:
        """Models of level k as models of the next larger one."""
        here, above = self.every[k], self.every[k + 1]
        iterates = iterates if here.compression is None else here.compression.lift(iterates)
        return replace(iterates, placement=iterates.placement.of_samples(here.samples.size, above.samples.size))

    def lift_to_top(self, iterates: Iterates, k: int = 0) -> Iterates:
        """Models of level k as models of the samples themselves."""
        for below in range(k, len(self.every) - 1):
            iterates = self.lift(iterates, below)
        return iterates

    def lift_all(self, found: Found) -> Found:
        """What was found as models of all inputs: the runs from their level, the starts from the smallest.

        The runs are on the largest level already, unless Ctrl-C came on the last way up.
        """

        def lifted(iterates: Iterates, k: int) -> Iterates:
            top = self.lift_to_top(iterates, k)
            return top if self.inputs is None else self.inputs.lift(top)

        runs = [replace(run, best=lifted(run.best, found.level)) for run in found.runs]
        starts = [replace(run, best=lifted(run.best, 0)) for run in found.every_start]
        return replace(found, runs=tuple(runs), starts=tuple(starts), level=len(self.every) - 1)

    def affordable(self, solver: GaussNewton, rank: int) -> int:
        """The largest level at which Gauss–Newton steps are not out of proportion, at least the smallest."""
        costs = [rank * (level.samples.n + level.samples.m + solver.basis.size) for level in self.every]
        return max(k for k, unknowns in enumerate(costs) if k == 0 or unknowns <= solver.dense_limit)

    def solver_at(self, solver: GaussNewton, k: int) -> GaussNewton:
        """The solver with the samples of level k in place of its own."""
        return replace(solver, samples=self.every[k].samples)


@dataclass(frozen=True)
class ClimbLevels:
    """Stage: the best run of the smallest level, settled on each larger one that can be afforded."""

    levels: Levels
    solver: GaussNewton
    stopping: Stopping

    def __call__(self, session: Session, found: Found) -> Found:
        """The best run on the largest level that can be afforded, or as far as it came."""
        for k in range(1, self.levels.affordable(self.solver, len(found.best.best.W0[0])) + 1):
            if found.cut is None:
                found = session.run(partial(self.settle_on, k), found)
        return found

    def settle_on(self, k: int, session: Session, found: Found) -> Found:
        """The best run lifted to level k, and settled there."""
        solver = self.levels.solver_at(self.solver, k)
        run = measure_run(solver, replace(found.best, best=self.levels.lift(found.best.best, k - 1)))
        [run] = settle(session, solver, [run], self.stopping, ProgressSpan("all samples", best=run.objective))
        return found.narrow(run, k, cut_of([run]))


@dataclass(frozen=True)
class MeasureOnAllSamples:
    """Last stage, also where something cut the others short: the best run on the samples themselves."""

    levels: Levels
    solver: GaussNewton

    def __call__(self, session: Session, found: Found) -> Found:
        """The best run, with the objective that it has on all samples."""
        top = len(self.levels.every) - 1
        if found.level == top:
            return found
        run = replace(found.best, best=self.levels.lift_to_top(found.best.best, found.level))
        return found.narrow(measure_run(self.solver, run), top, found.cut)


def searchable(samples: SampleSet) -> bool:
    """Whether starts can search on these: gaps have to be filled for them, and Jacobians made, in memory."""
    return isinstance(samples, Samples) or (samples.has_jacobians and samples.complete)


def thin(problem: Problem, samples: SampleSet, units: Units) -> Samples:
    """`SEARCH_SAMPLES` of the samples, spread evenly, in memory."""
    which = spread_out(samples.size, SEARCH_SAMPLES)
    if isinstance(samples, Samples):
        return samples.part(which)
    return Samples.of(problem.take(which), units)


def describe_compression(samples: SampleSet, small: Samples, lost: float) -> str:
    """What compression has left out, in a sentence."""
    share = "nothing" if lost < 1e-12 else f"{100.0 * lost:.2g} % of their squares"
    return (
        f"Jacobians were reduced from {samples.n} × {samples.m} to {small.n} × {small.m} entries for the fit, which "
        f"leaves out {share}."
    )
