"""A problem as it is solved, and the end of it: what the stages found, as a `Fit` in the user's units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from unbraid.data.looking.idle import idle_directions, without_idle
from unbraid.data.problem import Problem
from unbraid.data.units import Units
from unbraid.fitting.agreement import FoundByStart, agreement, found_by
from unbraid.fitting.request import Request, count_unknowns
from unbraid.fitting.session import CUTS, Found
from unbraid.results.fit import Fit, StartSummary, errors_on
from unbraid.results.notes import Shown, notes_on
from unbraid.results.outcome import Status
from unbraid.results.smoothing import Smoothing
from unbraid.results.worth.objective import Objective
from unbraid.solvers.iterates import Run
from unbraid.solvers.translate import finish_run


@dataclass(frozen=True)
class Case:
    """A problem as it is solved: the samples that count, what was asked for, and the units of the solver."""

    problem: Problem
    request: Request
    units: Units

    @classmethod
    def of(cls, problem: Problem, request: Request) -> Self:
        """The case of a problem and a request: in balanced units, unless the method works in the user's."""
        scaled = request.method_used.scaled
        return cls(problem, request, Units.balanced(problem) if scaled else Units.as_given(problem))

    def conclude(self, found: Found) -> Fit:
        """The best run as a model, and how all starts ended; `seconds` are still to come."""
        problem, request, method = self.problem, self.request, self.request.method_used
        best, *starts = self.determined([found.best, *found.every_start])
        basis = request.basis_searched_on(self.problem) if found.basis is None else found.basis
        model = finish_run(problem, self.units, basis, best, request.constraints, method.offset)
        jacobian_error, output_errors = errors_on(problem, model)
        of_best = found_by(starts[0], problem.S)
        summaries = tuple(summarise(run, of_best, self.units, problem.S) for run in starts)
        status = ending(problem, best.status if found.cut is None else found.cut)
        smoothing = found.smoothing
        constrained = any(one is not None for one in request.constraints)
        searched = self.unknowns_searched(smoothing)
        shown = Shown(model, jacobian_error, output_errors, smoothing, constrained, searched)
        freedom = None if smoothing is None else round(float(smoothing.freedom.sum()))
        unknowns = count_unknowns(problem, model.rank, basis) if freedom is None else freedom
        coupling = method.coupling.final if smoothing is None or smoothing.coupling is None else smoothing.coupling
        minimised = Objective(self.units, coupling if problem.J is not None else 1.0, method.offset)
        return Fit(
            model=model,
            status=status,
            jacobian_error=jacobian_error,
            output_errors=output_errors,
            objective=best.objective,
            trace=best.trace,
            starts=summaries,
            seconds=0.0,
            method=method.name,
            basis=basis,
            constraints=request.constraints,
            notes=notes_on(problem, unknowns, summaries, status, shown),
            problem=problem,
            asked=request,
            smoothing=smoothing,
            minimised=minimised,
        )

    def unknowns_searched(self, smoothing: Smoothing | None) -> int:
        """How many unknowns the search for the branches in use had, or how many these use if that is more.

        Smoothing afterwards leaves fewer in use, but the directions were chosen among all that a search can follow.
        """
        problem, request = self.problem, self.request
        used = 0.0 if smoothing is None else float(smoothing.freedom.sum())
        rank = request.rank_used if smoothing is None else max(smoothing.supported, 1)
        size = replace(request, rank=rank).basis_searched_on(problem).size
        constants = problem.n if problem.F is not None else 0
        return max(rank * (problem.n + problem.m - 2 + size - 1), round(used)) + constants

    def determined(self, runs: Sequence[Run]) -> list[Run]:
        """Runs without what samples leave open of their directions: weights of constant inputs, say, are zero."""
        idle = idle_directions(self.problem, self.units)
        if not idle.size:
            return list(runs)
        return [replace(run, best=replace(run.best, W0=without_idle(run.best.W0, idle))) for run in runs]


def ending(problem: Problem, status: Status) -> Status:
    """How the fit ended, as a user has to know it: without values nothing converges but up to constants."""
    return Status.UP_TO_CONSTANTS if problem.F is None and status.converged else status


def summarise(run: Run, best: FoundByStart, units: Units, samples: int) -> StartSummary:
    """How a start ended, and how far what it found is from what the best one did, in the canonical form."""
    near = agreement(best, found_by(run, samples), units)
    finished = run.finished and run.status not in CUTS
    return StartSummary(run.objective, run.trace.sweeps, run.status, near.angle, near.match, finished)
