"""The walk of one fit: a problem and a request in, a `Fit` out, stage after stage."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from unbraid.bases.constraints import Constraint
from unbraid.bases.projection import Projection
from unbraid.data.in_memory import Samples
from unbraid.data.magnitudes import Magnitudes
from unbraid.data.problem import Problem
from unbraid.data.sample_set import SampleSet
from unbraid.data.streamed import sample_set
from unbraid.fitting.case import Case
from unbraid.fitting.compression import Compression, spanning, spans_inputs
from unbraid.fitting.continuation import ContinueBranches
from unbraid.fitting.from_values import SearchValues, with_slopes
from unbraid.fitting.levels import ClimbLevels, Levels, MeasureOnAllSamples
from unbraid.fitting.memory_plan import check_plan
from unbraid.fitting.polish import ContinueBest, MeasureAnew, PolishStarts
from unbraid.fitting.request import Request, check_problem
from unbraid.fitting.search import SweepFromModel, TakeModel, samples_to_search, search_for_starts
from unbraid.fitting.session import CUTS, Found, Session, Stage
from unbraid.fitting.smoothing import SLIGHT, ChooseSmoothing, Open
from unbraid.inference.leave_one_out import affordable_neighbourhood, leave_one_out
from unbraid.inference.neighbourhood import Neighbourhood
from unbraid.inference.patterns import PLAIN, find_pattern
from unbraid.results.advice import WORTH_A_WORD, largest_of, on_misfit
from unbraid.results.carrying import left_out
from unbraid.results.contradictions import with_contradiction_first
from unbraid.results.fit import Fit
from unbraid.results.notes import blames_samples, notes_on_copies
from unbraid.results.outcome import Status
from unbraid.results.wild import renumbered
from unbraid.results.worth.held_out import tells_noise
from unbraid.runtime.interrupts import attempt
from unbraid.runtime.progress import PHASES_OF_A_FIT
from unbraid.solvers.coupling import FixedCoupling
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Iterates, StartingSolver
from unbraid.solvers.loop import ROUGHLY, TO_THE_END
from unbraid.solvers.surroundings import alive_branches
from unbraid.solvers.translate import GivenModel

FEW_STEPS = 20
"""Steps for samples of a single point, with which models of any branches agree."""


def check_fit(problem: Problem, request: Request) -> None:
    """Refuse what cannot work, or will not fit into memory, before anything is begun."""
    check_problem(problem)
    counting = samples_that_count(problem, request)
    request.for_problem(counting).check(problem)
    check_plan(problem, request.for_problem(counting))


def samples_that_count(problem: Problem, request: Request) -> Problem:
    """The distinct samples that count; all as they are where a method knows no weights, which copies would get."""
    counting, method = problem.counting(), request.method_used
    knows_weights = method.weighted or method.polish is not None or problem.weights is not None
    return counting if knows_weights or counting.weights is None else problem


def fit_rank(problem: Problem, request: Request, session: Session, *, fewer: bool = True, expected: bool = True) -> Fit:
    """Find f(x) ≈ W1 g(W0 x) + bias with as many branches as were asked for; the request has been checked.

    `fewer`: whether branches that data do not support are left out, and as many as they do searched for anew.
    `expected`: whether the errors on new points are wanted as well.
    """
    lost, began = session.lost(problem), time.perf_counter()
    sizes = Magnitudes.of(problem)
    usable = sizes.problem(problem.on(session.client))
    counting = samples_that_count(usable, request)
    case = Case.of(counting, request.for_problem(counting).in_sizes(sizes))
    setup = Setup.of(case, fewer)
    searching = session.keeping(time.perf_counter() - began)  # what is left to do looks at all samples as often
    found = setup.run(searching)
    if fewer:
        found = search_for_fewer(case, found, searching)
    fit = case.conclude(found)
    if expected and fit.minimised is not None and fit.status not in CUTS:
        around = affordable_neighbourhood(fit.model, case.problem, fit.minimised, fit.constraints)
        told = tells_noise(case.problem.known.entries, case.unknowns_searched(fit.smoothing))
        fit = with_worth(fit, around, told)
    losses = session.told_of_losses(lost, case.problem)
    copies = notes_on_copies(problem) if counting is not usable or not problem.in_memory else []
    given = None if counting is usable else usable.which_count()
    own = fit.notes if given is None else [renumbered(note, given) for note in fit.notes]
    notes = with_contradiction_first((*setup.levels.notes, *own, *copies, *losses))
    status = Status.INTERRUPTED if session.listener.take() else fit.status  # Ctrl-C since the last stage
    fit = fit if sizes.ordinary else fit.rescaled(sizes.x, sizes.f)
    names = {"input_names": problem.input_names, "output_names": problem.output_names}
    model = fit.model.changed(**names, encoding=problem.encoding)
    fit = replace(fit, model=model, status=status, notes=notes)
    return replace(fit, problem=problem, asked=request, seconds=session.seconds())  # sample numbers are the user's


def with_worth(fit: Fit, around: Neighbourhood | None, told: bool) -> Fit:
    """A fit with the errors that are expected on new points, and a note where what it leaves is plainly no noise.

    `told`: whether so many numbers are left over by the search that errors can be expected of the rest.
    """
    if around is None:
        return fit
    with np.errstate(all="ignore"):
        held_out, misfit = leave_one_out(around) if told else None, describe_misfit(fit, around)
    return replace(fit, held_out=held_out, notes=fit.notes if misfit is None else (*fit.notes, misfit))


def describe_misfit(fit: Fit, around: Neighbourhood) -> str | None:
    """What to make of residuals that are plainly no noise; None where they may be, or other notes say why.

    What is small does not matter: every model leaves something that is no noise where there is none.
    """
    error = 100.0 * np.sqrt(fit.jacobian_error or 0.0)
    error = error if fit.output_errors is None else largest_of(fit.output_errors)
    if not error > WORTH_A_WORD or any(blames_samples(note) for note in fit.notes):
        return None
    found = find_pattern(around)
    if found.z < PLAIN:
        return None
    return on_misfit(found.along, found.z, larger=not left_out(fit.model, fit.smoothing))


def fit_unless_interrupted(work: Callable[[], Fit], best: Fit | None) -> Fit:
    """A further fit, or the best one there is where Ctrl-C comes before there is another."""
    kept = None if best is None else replace(best, status=Status.INTERRUPTED)
    return attempt(work, lambda: kept, safe=kept is not None)


def search_for_fewer(case: Case, found: Found, session: Session) -> Found:
    """What was found, or what searches for as many branches as it supports found, while scores are as good or better.

    A search for too many branches ends in minima in which some of them share what belongs to one, and leaving branches
    out does not always lead from there to the best model of fewer.
    """
    request, rank = case.request, case.request.rank_used
    shared = request.constraint is None or isinstance(request.constraint, Constraint)
    while shared and request.init is None and found.cut is None and found.smoothing is not None:
        fewer = found.smoothing.supported
        if not 0 < fewer < request.rank_used:
            break
        request = replace(request, rank=fewer)
        setup = Setup.of(replace(case, request=request))
        other = setup.run(session)
        if other.cut is not None:
            return replace(found, cut=other.cut)
        if not np.isfinite(other.best.objective):
            break
        if other.smoothing is not None and not other.smoothing.score < found.smoothing.score + SLIGHT:
            break  # without one it is exact
        found = replace(padded(other, found.best.best, rank), basis=other.basis or setup.solver.basis)
    return found


def padded(found: Found, larger: Iterates, rank: int) -> Found:
    """What was found, with branches of zero beside it so that there are `rank`, in directions of a larger model."""
    run, one = found.best, found.best.best
    r = one.W0.shape[1]
    more, which = rank - r, np.concatenate([np.arange(r), np.zeros(rank - r, dtype=np.intp)])
    idle = np.flatnonzero(~alive_branches(larger))[:more]
    idle = np.concatenate([idle, np.arange(more - len(idle))])
    best = Iterates(
        np.concatenate([one.W0, larger.W0[:, idle]], axis=1),
        np.concatenate([one.W1, np.zeros((*one.W1.shape[:2], more))], axis=2),
        one.placement.select((slice(None), which)),
        np.concatenate([one.a, np.zeros((1, more, one.a.shape[-1]))], axis=1),
        None if one.reach is None else one.reach[:, which],
    )
    smoothing = found.smoothing
    if smoothing is not None:
        smoothing = replace(smoothing, freedom=np.concatenate([smoothing.freedom, np.zeros(more)]))
    return replace(found, runs=(replace(run, best=best),), starts=found.every_start, smoothing=smoothing)


def stays_put(samples: SampleSet) -> bool:
    """Whether all samples in memory are at one point, the origin in the solver's units."""
    return isinstance(samples, Samples) and not samples.X.any()


@dataclass(frozen=True)
class Setup:
    """What the stages of a fit work with: a case, the second-order solver on all samples, smaller versions of them.

    `fewer`: whether branches that data do not support are left out.
    """

    case: Case
    solver: GaussNewton
    levels: Levels
    fewer: bool

    @classmethod
    def of(cls, case: Case, fewer: bool = True) -> Self:
        """Samples in the solver's units, smaller versions of them, and the solver, for a case."""
        request, method, problem = case.request, case.request.method_used, case.problem
        samples, inputs = sample_set(problem, case.units), None  # the basis that inputs are in
        if spans_inputs(problem):
            own = Samples.of(problem.take(slice(None)), case.units)
            V = spanning(own.X)
            samples, inputs = replace(own, X=own.X @ V), Compression(None, V, 0.0)
        basis = request.basis_searched_on(problem)
        projection = Projection.onto(request.constraints, method.offset)
        coupling = method.coupling.final if problem.J is not None else 1.0
        solver = GaussNewton(samples, basis, projection, coupling, method.offset, method.evenness)
        may_thin, compress = method.polish is not None, request.compression_used
        levels = Levels.of(problem, samples, case.units, request.rank_used, may_thin, compress)
        return cls(case, solver, replace(levels, inputs=inputs), fewer)

    def run(self, session: Session) -> Found:
        """All stages, and what they found as models of the samples themselves."""
        session = session.part(0.0, 1.0 / PHASES_OF_A_FIT[self.last_phase][1])
        found = session.run_all(self.stages(session))
        found = session.run(MeasureOnAllSamples(self.levels, self.solver), found)  # also where something cut it short
        return self.levels.lift_all(found)

    @property
    def last_phase(self) -> str:
        """The phase of its progress that comes last."""
        request = self.case.request
        if request.method_used.polish is None:
            return "search"
        return "smooth" if request.basis_used.smoothing_open else "all samples"

    def stages(self, session: Session) -> list[Stage]:
        """The stages in their order: search, polish, larger versions of the samples, smoothing, continuation."""
        method, searched = self.case.request.method_used, self.levels.solver_at(self.solver, 0)
        stages, polish = self.search(searched, session), method.polish
        if polish is None:
            return stages
        if stays_put(searched.samples):  # there is nothing to be seen of the branches, and nothing to smooth
            few = replace(polish.stopping, max_sweeps=min(FEW_STEPS, polish.stopping.max_sweeps))
            return [*stages, PolishStarts(searched, replace(polish, stopping=few))]
        basis, continuation = self.case.request.basis_used, self.case.request.continuation
        race = ROUGHLY if basis.smoothing_open else TO_THE_END
        stages.append(PolishStarts(searched, polish, race))
        if race == ROUGHLY and self.fewer:  # on a path of ranks fits are compared as they are
            stages.append(ContinueBest(searched, polish.stopping))
        stages.append(ClimbLevels(self.levels, self.solver, polish.stopping))
        if basis.smoothing_open:
            coupling_open = isinstance(method.coupling, FixedCoupling) and method.coupling.open
            choice = Open(self.case.request.basis_open, coupling_open, self.fewer)
            stages.append(ChooseSmoothing(self.levels, self.solver, basis, choice, polish.stopping))
        if continuation != "linear":
            stages.append(ContinueBranches(self.levels, self.solver, always=continuation == "polynomial"))
        return stages

    def search(self, solver: GaussNewton, session: Session) -> list[Stage]:
        """The stages up to the polish: random starts or a given model, on Jacobians or on values alone."""
        request, method, samples = self.case.request, self.case.request.method_used, solver.samples
        if request.init is None and not samples.has_jacobians:
            return [SearchValues(solver, method, request.rank_used, session.rng.spawn(request.starts))]
        seen = samples_to_search(samples, method) if samples.has_jacobians else with_slopes(samples, method)
        stages: list[Stage]
        if request.init is None:
            rngs = session.rng.spawn(request.starts)
            stages = [search_for_starts(method, seen, solver, request.rank_used, rngs)]
        else:
            search: StartingSolver[Any] = method.solver(seen, solver.basis, solver.projection)
            inputs = self.levels.inputs
            model = GivenModel.of(request.init, self.case.units, None if inputs is None else inputs.V)
            swept = SweepFromModel(search, model, method.stopping)
            stages = [swept if method.polish is None else TakeModel(search, model)]
        return stages if method.polish is None else [*stages, MeasureAnew(solver, same_data=seen is samples)]
