"""The walk of one fit: a problem and a request in, a `Fit` out, stage after stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from unbraid.bases.projection import Projection
from unbraid.data.in_memory import Samples
from unbraid.data.magnitudes import Magnitudes
from unbraid.data.problem import Problem
from unbraid.data.sample_set import SampleSet
from unbraid.data.streamed import sample_set
from unbraid.fitting.case import Case
from unbraid.fitting.continuation import ContinueBranches
from unbraid.fitting.from_values import SearchValues, with_slopes
from unbraid.fitting.levels import ClimbLevels, Levels, MeasureOnAllSamples
from unbraid.fitting.memory_plan import check_plan
from unbraid.fitting.polish import MeasureAnew, PolishStarts
from unbraid.fitting.request import Request
from unbraid.fitting.search import SearchStarts, SweepFromModel, TakeModel, samples_to_search
from unbraid.fitting.session import Session, Stage
from unbraid.fitting.smoothing import ChooseSmoothing
from unbraid.results.contradictions import with_contradiction_first
from unbraid.results.fit import Fit
from unbraid.results.outcome import Status
from unbraid.results.wild import renumbered
from unbraid.solvers.coupling import FixedCoupling
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import StartingSolver
from unbraid.solvers.translate import GivenModel

FEW_STEPS = 20
"""Steps for samples of a single point, with which models of any branches agree."""


def check_fit(problem: Problem, request: Request) -> None:
    """Refuse what cannot work, or will not fit into memory, before anything is begun."""
    request = request.for_problem(problem)
    request.check(problem)
    check_plan(problem, request)


def fit_rank(problem: Problem, request: Request, session: Session) -> Fit:
    """Find f(x) ≈ W1 g(W0 x) + bias with as many branches as were asked for; the request has been checked."""
    lost = session.lost(problem)
    sizes = Magnitudes.of(problem)
    usable = sizes.problem(problem.on(session.client))
    counting = usable.counting()
    case = Case.of(counting, request.for_problem(counting).in_sizes(sizes))
    setup = Setup.of(case)
    found = session.run_all(setup.stages(session))
    found = session.run(MeasureOnAllSamples(setup.levels, setup.solver), found)  # also where something cut it short
    fit = case.conclude(setup.levels.lift_all(found))
    told = session.told_of_losses(lost, case.problem)
    notes = with_contradiction_first((*setup.levels.notes, *numbered_as_given(fit.notes, usable), *told))
    status = Status.INTERRUPTED if session.listener.take() else fit.status  # Ctrl-C since the last stage
    model = fit.model if sizes.ordinary else fit.model.rescaled(sizes.x, sizes.f)
    fit = replace(fit, model=model, status=status, notes=notes)
    return replace(fit, problem=problem, asked=request, seconds=session.seconds())  # sample numbers are the user's


def numbered_as_given(notes: Sequence[str], problem: Problem) -> list[str]:
    """Notes on the samples of a problem that count, with the numbers that samples have in the problem."""
    counts = problem.which_count()
    return [*notes] if counts is None else [renumbered(note, np.flatnonzero(counts)) for note in notes]


def stays_put(samples: SampleSet) -> bool:
    """Whether all samples in memory are at one point, the origin in the solver's units."""
    return isinstance(samples, Samples) and not samples.X.any()


@dataclass(frozen=True)
class Setup:
    """What the stages of a fit work with: a case, the second-order solver on all samples, smaller versions of them."""

    case: Case
    solver: GaussNewton
    levels: Levels

    @classmethod
    def of(cls, case: Case) -> Self:
        """Samples in the solver's units, smaller versions of them, and the solver, for a case."""
        request, method, problem = case.request, case.request.method_used, case.problem
        samples = sample_set(problem, case.units)
        basis = request.basis_searched
        projection = Projection.onto(request.constraints, method.offset)
        coupling = method.coupling.final if problem.J is not None else 1.0
        solver = GaussNewton(samples, basis, projection, coupling, method.offset, method.evenness)
        may_thin, compress = method.polish is not None, request.compression_used
        return cls(case, solver, Levels.of(problem, samples, case.units, request.rank_used, may_thin, compress))

    def stages(self, session: Session) -> list[Stage]:
        """The stages in their order: search, polish, larger versions of the samples, smoothing, continuation."""
        method, searched = self.case.request.method_used, self.levels.solver_at(self.solver, 0)
        stages, polish = self.search(searched, session), method.polish
        if polish is None:
            return stages
        if stays_put(searched.samples):  # there is nothing to be seen of the branches, and nothing to smooth
            few = replace(polish.stopping, max_sweeps=min(FEW_STEPS, polish.stopping.max_sweeps))
            return [*stages, PolishStarts(searched, replace(polish, stopping=few))]
        stages += [PolishStarts(searched, polish), ClimbLevels(self.levels, self.solver, polish.stopping)]
        basis, continuation = self.case.request.basis_used, self.case.request.continuation
        if basis.smoothing_open:
            coupling_open = isinstance(method.coupling, FixedCoupling) and method.coupling.open
            solver = replace(self.solver, basis=basis.untuned())
            stages.append(ChooseSmoothing(self.levels, solver, basis, coupling_open, polish.stopping.max_seconds))
        if continuation != "linear":
            stages.append(ContinueBranches(self.levels, self.solver, always=continuation == "polynomial"))
        return stages

    def search(self, solver: GaussNewton, session: Session) -> list[Stage]:
        """The stages up to the polish: random starts or a given model, on Jacobians or on values alone."""
        request, method, samples = self.case.request, self.case.request.method_used, solver.samples
        if request.init is None and not samples.has_jacobians:
            return [SearchValues(solver, method, request.rank_used, session.rng.spawn(request.starts))]
        seen = samples_to_search(samples, method) if samples.has_jacobians else with_slopes(samples, method)
        search: StartingSolver[Any] = method.solver(seen, solver.basis, solver.projection)
        stages: list[Stage]
        if request.init is None:
            rngs = session.rng.spawn(request.starts)
            stages = [SearchStarts(search, request.rank_used, rngs, method.stopping)]
        else:
            model = GivenModel.of(request.init, self.case.units)
            swept = SweepFromModel(search, model, method.stopping)
            stages = [swept if method.polish is None else TakeModel(search, model)]
        return stages if method.polish is None else [*stages, MeasureAnew(solver, same_data=seen is samples)]
