"""The stages of an identification, from a linear model to the result: branches, their basis and number, all records."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from unbraid.bases import Basis
from unbraid.dynamics.choosing import WORTH, Errors, Split, choose, some_stretches
from unbraid.dynamics.continuation import reaches
from unbraid.dynamics.finishing import in_user_units, normalised, scaled_states
from unbraid.dynamics.fit import DynamicFit, error_of, simulation_error
from unbraid.dynamics.forms import Form, NarxForm, Units
from unbraid.dynamics.gain import find_gain
from unbraid.dynamics.models.base import DynamicModel, SimulationStatus
from unbraid.dynamics.models.feedback import Course
from unbraid.dynamics.models.state_space import StateSpaceModel
from unbraid.dynamics.record import Record, noise_between_periods
from unbraid.dynamics.request import Request
from unbraid.dynamics.search import CUBIC, POLISH_STEPS, Fitting, drive, model_of, point_of, race, with_branches
from unbraid.dynamics.simulating.candidate import Candidate
from unbraid.dynamics.simulating.steps import Point, SimulationSteps
from unbraid.errors import DataError
from unbraid.fitting.session import CUTS, ProgressSpan, Session
from unbraid.kernels.arrays import Array
from unbraid.results.outcome import Status
from unbraid.solvers.iterates import Run

SOME = 6000
"""Samples that all but the last steps are made on, at most."""
LADDER_STEPS = 25
"""Steps in each basis that is tried."""


@dataclass(frozen=True)
class Data:
    """Records, the form of the model that they are to be given, and their balanced units."""

    form: Form
    units: Units
    records: tuple[Record, ...]

    def stretches(self) -> list[tuple[int, slice]]:
        """The stretches to begin with."""
        peaks = [
            np.nan_to_num(np.abs((one.y - self.units.y_center) / self.units.y_scale)).max(axis=1)
            for one in self.records
        ]
        return some_stretches([len(record) for record in self.records], peaks, SOME)

    def courses(self, stretches: Sequence[tuple[int, slice]] | None = None) -> tuple[Course, ...]:
        """Stretches of the records as courses; all of them whole if None."""
        places = [(k, slice(None)) for k in range(len(self.records))] if stretches is None else stretches
        return tuple(self.form.course(self.units, self.records[k], some) for k, some in places)


class Fitted(NamedTuple):
    """Branches of one rank, fitted to some stretches: the model, its basis, its errors on what was held out."""

    model: Candidate
    basis: Basis | None
    errors: Errors
    starts: tuple[float, ...]
    cut: Status | None


@dataclass(frozen=True)
class Identification:
    """What follows a linear model."""

    data: Data
    request: Request
    notes: tuple[str, ...]

    @property
    def fitting(self) -> Fitting:
        """What all fits have in common."""
        return Fitting(self.data.form.feedback, self.request.constraints, self.request.max_seconds)

    def run(self, session: Session, linear: Candidate, raw: Any) -> DynamicFit:
        """The result, from the best linear model on some stretches."""
        began = time.perf_counter()
        stretches = self.data.stretches()
        courses = self.data.courses(stretches)
        split = Split.of(courses)
        rank, notes = self.request.rank, list(self.notes)
        if rank == "auto":
            found, reason = self.best_rank(session, split, linear)
            notes.append(reason)
        elif rank == 0:
            found = Fitted(linear, None, Errors(np.nan, np.nan), (), None)
        else:
            found = self.fit_branches(session, split, linear, int(rank), [])
        if found.basis is not None and len(self.request.bases) > 1:
            notes.append(f"Branches are {found.basis!r}: chosen on stretches that were held out.")
        return self.finish(session, found, linear, notes, began, raw)

    def best_rank(self, session: Session, split: Split, linear: Candidate) -> tuple[Fitted, str]:
        """As many branches as make the simulation of held-out stretches better, and why."""
        solver = self.fitting.solver(split.courses, None, 0)
        best = Fitted(linear, None, split.errors(solver.simulate(linear), self.data.form.feedback), (), None)
        tried = [best]
        for rank in range(1, self.request.most + 1):
            part = session.part((rank - 1) / (rank + 1), rank / (rank + 1), rank)
            tried.append(self.fit_branches(part, split, linear, rank, [best.model] if best.basis is not None else []))
            if tried[-1].errors.inside < WORTH**2 * best.errors.inside:
                best = tried[-1]
            elif rank > best.model.rank + 1 or tried[-1].cut is not None:
                break
            if tried[-1].cut is not None:
                break
        told = ", ".join(f"{100 * np.sqrt(one.errors.inside):.3g} % with {k}" for k, one in enumerate(tried))
        reason = f"{best.model.rank} branches: errors on held-out stretches are {told} of them."
        return best, reason

    def fit_branches(
        self, session: Session, split: Split, linear: Candidate, rank: int, fewer: list[Candidate]
    ) -> Fitted:
        """So many branches: starts race with cubics, then the best goes on in each basis, of which one is chosen."""
        fitting, feedback, bases = self.fitting, self.data.form.feedback, self.request.bases
        courses = (
            split.courses if len(bases) > 1 or self.request.rank == "auto" else self.data.courses(self.data.stretches())
        )
        solver = fitting.solver(courses, CUBIC, rank)
        begins = session.journal.unit(lambda: self.begins(session, solver, linear, fewer))
        runs = race(session.part(0.0, 0.5), fitting, solver, begins, "search")
        if not runs:
            return Fitted(linear, None, Errors(np.inf, np.inf), (), None)
        best = point_of(runs[0])
        starts = tuple(run.objective for run in runs)
        cut = next((run.status for run in runs if run.status in CUTS), None)
        tried: list[Fitted] = []
        for k, basis in enumerate(bases):
            if cut is not None:
                break
            part = session.part(0.5 + 0.3 * k / len(bases), 0.5 + 0.3 * (k + 1) / len(bases))
            one = self.in_basis(part, fitting.solver(courses, basis, rank), best, split)
            if one is not None:
                tried.append(one._replace(starts=starts))
                cut = one.cut
        if not tried:
            errors = split.errors(best.trajectories, feedback)
            return Fitted(best.model, CUBIC, errors, starts, cut)
        chosen = choose([one.errors for one in tried]) if len(tried) > 1 else 0
        return tried[chosen]._replace(cut=cut)

    def in_basis(self, session: Session, solver: SimulationSteps, point: Point, split: Split) -> Fitted | None:
        """A point taken on in another basis; None where it cannot be simulated there."""
        begin = solver.in_basis(point.model, point.trajectories)
        there = solver.point(begin, [one.fed(solver.feedback) for one in point.trajectories]) or solver.point(begin)
        if there is None:
            return None
        stopping = self.fitting.stopping(LADDER_STEPS)
        (run,) = drive(session, solver, [there], stopping, ProgressSpan("polish"))
        errors = split.errors(point_of(run).trajectories, solver.feedback)
        return Fitted(model_of(run), solver.basis, errors, (), run.status if run.status in CUTS else None)

    def begins(
        self, session: Session, solver: SimulationSteps, linear: Candidate, fewer: list[Candidate]
    ) -> list[Candidate]:
        """Models to start from: random branches beside the linear model, or beside one of fewer branches."""
        result = []
        for k in range(self.request.starts):
            model = fewer[0] if fewer and k % 2 else linear
            trajectories = solver.simulate(model)
            if trajectories is None:
                continue
            if model.rank:
                model = replace_solver(solver, model.rank).in_basis(model, trajectories)
            result.append(with_branches(model, trajectories, solver, session.rng))
        return result

    def finish(
        self, session: Session, found: Fitted, linear: Candidate, notes: list[str], began: float, raw: Any
    ) -> DynamicFit:
        """The last steps, on all records, and the result in the user's units."""
        form, courses = self.data.form, self.data.courses()
        fitting = self.fitting
        solver = fitting.solver(courses, found.basis, found.model.rank)
        last = session.part(0.8, 1.0)
        point, run = self.onto_all(last, solver, found.model)
        plain = fitting.solver(courses, None, 0)
        straight = self.onto_all(last, plain, linear)[0].model
        final = scaled_states(form, point.model, point.trajectories)
        point = replace(point, model=final, trajectories=solver.simulate(final) or point.trajectories)
        phi = np.concatenate([one.phi for one in point.trajectories])
        far = reaches(self.request.continuation, found.basis, point, form.feedback, courses)
        final = normalised(final, phi, self.request.constraints)
        spread = np.maximum(phi[:, : form.feedback.fed].std(axis=0), 1e-12)
        signals = {
            "dt": self.data.records[0].dt,
            "input_names": self.data.records[0].input_names,
            "output_names": self.data.records[0].output_names,
        }
        user = in_user_units(form, self.data.units, final, found.basis, far, spread, signals)
        none = np.zeros((0, 2))
        best_linear = in_user_units(form, self.data.units, straight, None, none, np.ones_like(spread), signals)
        if isinstance(user, StateSpaceModel):
            user = with_gain(user, find_gain(user, self.data.records))
        return make_fit(self, user, best_linear, final, straight, found, run, notes, began, raw)

    def onto_all(self, session: Session, solver: SimulationSteps, model: Candidate) -> tuple[Point, Run | None]:
        """A model of some stretches, fitted to all courses."""
        point = solver.point(model.with_pasts(tuple(course.past for course in solver.courses)))
        if point is None:
            raise DataError(
                "The model that was found on some stretches of the records diverges on all of them: lower the rank, or "
                "give a constraint."
            )
        (run,) = drive(session, solver, [point], self.fitting.stopping(POLISH_STEPS), ProgressSpan("all samples"))
        return point_of(run), run


def replace_solver(solver: SimulationSteps, rank: int) -> SimulationSteps:
    """The solver for the first branches alone."""
    from unbraid.bases.projection import Projection

    assert solver.projection is not None
    return replace(solver, projection=Projection.onto(solver.projection.constraints[:rank]))


def with_gain(model: StateSpaceModel, K: Array) -> StateSpaceModel:
    """The model with another gain."""
    return StateSpaceModel(
        model.A,
        model.B,
        model.C,
        model.D,
        model.nonlinearity,
        dt=model.dt,
        K=K,
        rest=model.rest,
        spread=model.spread,
        input_names=model.input_names,
        output_names=model.output_names,
    )


def make_fit(
    work: Identification,
    model: DynamicModel,
    linear: DynamicModel,
    final: Candidate,
    straight: Candidate,
    found: Fitted,
    run: Run | None,
    notes: list[str],
    began: float,
    raw: Any,
) -> DynamicFit:
    """The result: errors on all records, in the user's units."""
    form, units, records = work.data.form, work.data.units, work.data.records
    scale = units.y_scale if isinstance(form, NarxForm) else 1.0
    center = units.y_center if isinstance(form, NarxForm) else 0.0
    lead = form.lead if isinstance(form, NarxForm) else 0

    def simulations(one: DynamicModel, pasts: Sequence[Array]) -> list[Any]:
        return [
            one.simulation_from(record.u, past * scale + center, record.y[:lead])
            for record, past in zip(records, pasts, strict=True)
        ]

    runs, lines = simulations(model, final.pasts), simulations(linear, straight.pasts)
    skips = [max(record.burn_in, lead) for record in records]
    ahead = []
    for record in records:
        outputs = model.predicted(record.u, record.y)
        ahead.append((record, outputs))
    skip_ahead = [max(skip, 1) for skip in skips]
    measured = np.concatenate([record.y[skip:] for (record, _), skip in zip(ahead, skip_ahead, strict=True)])
    predicted = np.concatenate([outputs[skip:] for (_, outputs), skip in zip(ahead, skip_ahead, strict=True)])
    noise = None
    given = [raw] if isinstance(raw, Record) else list(raw)
    levels = [level for level in map(noise_between_periods, given) if level is not None]
    if levels:
        noise = np.sqrt(np.mean(np.square(levels), axis=0))
    status = Status.CONVERGED if run is None else run.status
    if found.cut is not None:
        status = found.cut
    error = simulation_error(list(zip(records, runs, skips, strict=True)))
    if error.status is SimulationStatus.DIVERGED:
        notes = [*notes, "The simulation of the records themselves diverges once branches are continued."]
    return DynamicFit(
        model,
        error,
        error_of(measured, predicted, np.zeros(len(measured), dtype=bool), SimulationStatus.FINISHED),
        simulation_error(list(zip(records, lines, skips, strict=True))),
        tuple(records),
        tuple(runs),
        status,
        np.zeros(0) if run is None else run.trace.objective,
        found.starts,
        found.basis,
        work.request.constraints[: model.rank],
        noise,
        tuple(notes),
        time.perf_counter() - began,
        linear,
    )
