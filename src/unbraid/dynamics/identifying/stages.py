"""The stages of an identification, from a linear model to the result: branches, their basis and number, all records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from unbraid.bases import Basis
from unbraid.bases.projection import Projection
from unbraid.data.problem import Problem
from unbraid.decouple import decouple
from unbraid.dynamics.fit import DynamicFit
from unbraid.dynamics.identifying.choosing import AS_GOOD, FEW, LOST, HeldOutError, Split, joined
from unbraid.dynamics.identifying.continuation import follow_courses, is_steady, reaches, with_reach
from unbraid.dynamics.identifying.data import Data
from unbraid.dynamics.identifying.finishing import balanced_model, in_user_units, normalised, scaled_states
from unbraid.dynamics.identifying.forms import Form, NarxForm, Scales
from unbraid.dynamics.identifying.gain import find_gain
from unbraid.dynamics.identifying.request import Request
from unbraid.dynamics.identifying.result import make_fit, prediction_error, size_of
from unbraid.dynamics.identifying.search import (
    CUBIC,
    CURVED,
    POLISH_STEPS,
    Fitting,
    at_rest,
    drive,
    point_of,
    promising,
    race,
    with_branches,
)
from unbraid.dynamics.models.feedback import Course
from unbraid.dynamics.models.state_space import StateSpaceModel
from unbraid.dynamics.record import moving_spread
from unbraid.dynamics.simulating.candidate import Candidate
from unbraid.dynamics.simulating.steps import Point, SimulationSteps
from unbraid.fitting.session import CUTS, ProgressSpan, Session, cut_of
from unbraid.kernels.arrays import Array
from unbraid.results.outcome import Status
from unbraid.runtime.interrupts import attempt
from unbraid.solvers.iterates import Run

FEW_SAMPLES = 1500
"""Samples that starts are drawn with, at most."""
LADDER_STEPS = 25
"""Steps in each basis that is tried."""
MISLED = 4.0
"""Where cubics lower the mean square error of a linear model by less than this factor, starts race in splines again."""
VALUE_STARTS = 4
"""Starts of a decoupling from values alone."""
FEW_STEPS = 10
"""Steps of a linear model on a part of the samples."""
DRAWN = 8
"""How many times as many starts are drawn as take part in a race."""


class Fitted(NamedTuple):
    """Branches of one rank, fitted to some stretches.

    `inside` and `beyond` are errors on what was held out (`choosing`), NaN where nobody looked; `reach` says how far
    branches go on as polynomials, `steady` whether outputs stay in bounds when inputs come in another order; `starts`
    are the objectives that starts came to, `cut` what cut the work short.
    """

    point: Point
    basis: Basis | None
    inside: HeldOutError
    beyond: float = np.nan
    starts: tuple[float, ...] = ()
    cut: Status | None = None
    reach: float = 0.0
    steady: bool = True

    @property
    def rank(self) -> int:
        """How many branches there are."""
        return self.point.model.rank


class HeldOut(NamedTuple):
    """A point taken on without what is held out, its errors there by how far branches go on, and what cut it short."""

    solver: SimulationSteps
    point: Point
    errors: dict[float, HeldOutError]
    cut: Status | None

    def is_steady(self, reach: float) -> bool:
        """Whether outputs stay in bounds when inputs come in another order."""
        function = with_reach(self.point.model, self.solver.basis, reach)
        return is_steady(function, self.solver.feedback, self.solver.courses)


@dataclass(frozen=True)
class Identification:
    """What follows a linear model: stages on some stretches of the records, then the last steps on all."""

    data: Data
    request: Request
    notes: tuple[str, ...] = ()

    @property
    def fitting(self) -> Fitting:
        """What all fits have in common."""
        return Fitting(self.data.form.feedback, self.request.constraints, self.request.max_seconds)

    def linear(self, model: Candidate) -> Fitted | None:
        """The linear model, as what branches are compared with; None where it cannot be simulated."""
        courses = self.data.courses(self.data.stretches())
        solver = self.fitting.solver(courses, None, 0)
        point = solver.point(self.onto(courses, model)) or solver.point(model)
        if point is None:
            return None
        errors = []
        for split in Split.inside(courses):
            solver = self.fitting.solver(split.courses, None, 0)
            errors.append(split.error(self.improved(solver, point).trajectories, solver.feedback))
        return Fitted(point, None, joined(errors))

    def improved(self, solver: SimulationSteps, point: Point) -> Point:
        """A point after some steps on other courses, without telling anybody."""
        there = solver.point(point.model, [one.fed(solver.feedback) for one in point.trajectories]) or point
        for _ in range(FEW_STEPS):
            there = solver.advance(there)
        return there

    def fit_branches(
        self, session: Session, linear: Candidate, rank: int, bases: Sequence[Basis], fewer: Candidate | None = None
    ) -> Fitted | None:
        """So many branches: starts race, and the best goes on in each basis; None where nothing came of it.

        Some starts are beside a model of `fewer` branches, where there is one.
        """
        courses = self.data.courses(self.data.stretches())
        (rng,) = session.rng.spawn(1)  # the same one, whether or not the journal has what it drew
        begins = session.journal.unit(lambda: self.begins(rng, linear, fewer, rank))
        moved = [self.onto(courses, model) for model in begins]
        runs = race(session.part(0.0, 0.25), self.fitting, self.fitting.solver(courses, CUBIC, rank), moved, "search")
        if runs and not cut_of(runs) and self.cubics_mislead(courses, linear, point_of(runs[0])):
            curved = self.fitting.solver(courses, CURVED, rank)
            runs = race(session.part(0.25, 0.5), self.fitting, curved, moved, "search") or runs
        if not runs:
            return None
        point, starts = point_of(runs[0]), tuple(run.objective for run in runs)
        chosen = attempt(  # Ctrl-C from here on leaves what has won the race
            lambda: self.choose_basis(session.part(0.5, 1.0), point, bases, cut_of(runs)),
            lambda: Fitted(point, CUBIC, LOST, cut=Status.INTERRUPTED),
            safe=True,
        )
        return chosen._replace(starts=starts)

    def cubics_mislead(self, courses: Sequence[Course], linear: Candidate, point: Point) -> bool:
        """Whether cubics explain so little that a race in them tells little of directions: of a saturation, say."""
        if max(basis.size for basis in self.request.bases) < CURVED.size:
            return False
        straight = self.fitting.solver(courses, None, 0).point(self.onto(courses, linear))
        return straight is not None and point.objective > straight.objective / MISLED

    def choose_basis(self, session: Session, point: Point, bases: Sequence[Basis], cut: Status | None) -> Fitted:
        """A point on all stretches, in the basis that does best on what is held out, and the way to go on that does."""
        tried = [Fitted(point, CUBIC, LOST, cut=cut)]
        for k, basis in enumerate(bases):
            if cut is None:
                one = self.judged(session.part(0.8 * k / len(bases), 0.8 * (k + 1) / len(bases)), point, basis)
                tried.append(one)
                cut = one.cut
        tried = tried[1:] or tried
        good = min(one.inside.size for one in tried)  # where all diverge none is as good as another: the simplest
        among = [one for one in tried if one.inside.size <= AS_GOOD * good < np.inf] or tried[:1]
        if cut is not None or bases == FEW:
            return among[0]._replace(cut=cut)
        return self.best_beyond(session.part(0.8, 1.0), among)

    def judged(self, session: Session, point: Point, basis: Basis) -> Fitted:
        """A point taken on in a basis, without the quarters that are held out: its error there, and how it goes on."""
        tried: list[HeldOut] = []
        splits = Split.inside(self.data.courses(self.data.stretches()))
        for k, split in enumerate(splits):
            tried.append(self.held_out(session.part(k / len(splits), (k + 1) / len(splits)), split, point, basis))
            if tried[-1].cut is not None:
                break
        ways = {reach: joined([one.errors[reach] for one in tried]) for reach in tried[0].errors}
        cut, found = tried[-1].cut, Fitted(point, basis, LOST, cut=tried[-1].cut)
        for reach in sorted(ways, key=lambda reach: ways[reach].size):  # whether it is steady takes long to find out
            if np.isfinite(ways[reach].size) and (cut is not None or all(one.is_steady(reach) for one in tried)):
                return found._replace(inside=ways[reach], reach=reach)
        return found

    def held_out(self, session: Session, split: Split, point: Point, basis: Basis) -> HeldOut:
        """A point taken on in a basis, without what is held out, and its errors there."""
        solver = self.fitting.solver(split.courses, basis, point.model.rank)
        ways = reaches(self.request.continuation, basis)
        begin = solver.in_basis(point.model, point.trajectories)
        there = solver.point(begin, [one.fed(solver.feedback) for one in point.trajectories]) or solver.point(begin)
        if there is None:
            return HeldOut(solver, point, dict.fromkeys(ways, LOST), None)
        (run,) = drive(session, solver, [there], self.fitting.stopping(LADDER_STEPS), ProgressSpan("polish"))
        there, errors = point_of(run), {}
        for reach in ways:
            function = with_reach(there.model, basis, reach)
            courses = follow_courses(function, solver.feedback, solver.courses, there)
            errors[reach] = split.error(courses, solver.feedback)
        return HeldOut(solver, there, errors, run.status if run.status in CUTS else None)

    def best_beyond(self, session: Session, among: Sequence[Fitted]) -> Fitted:
        """Of some that are equally good inside, the one that goes on best, and how; the first of equals."""
        if len(among) == 1 and self.request.continuation != "auto":
            return among[0]
        split = Split.beyond(self.data.courses(self.data.stretches()))
        found: list[tuple[Fitted, HeldOut]] = []
        for k, one in enumerate(among):
            assert one.basis is not None
            tried = self.held_out(session.part(k / len(among), (k + 1) / len(among)), split, one.point, one.basis)
            for reach, error in tried.errors.items():
                if np.isfinite(error.size):
                    found.append((one._replace(beyond=error.size, reach=reach, cut=tried.cut), tried))
            if tried.cut is not None:
                break
        while found:
            least = min(one.beyond for one, _ in found)
            first = next(k for k, (one, _) in enumerate(found) if one.beyond <= 1.01 * least)
            one, tried = found.pop(first)
            if one.cut is not None or tried.is_steady(one.reach):
                return one
        return among[0]

    def begins(
        self, rng: np.random.Generator, linear: Candidate, fewer: Candidate | None, rank: int
    ) -> list[Candidate]:
        """Models to start from: random branches beside the linear model, or one of fewer; half of them promise most."""
        courses = self.data.courses(self.data.stretches(FEW_SAMPLES))
        solver, result = self.fitting.solver(courses, CUBIC, rank), []
        for base, count in begin_counts(self.request.starts, linear, fewer):
            model = self.onto(courses, base)
            trajectories = solver.simulate(model)
            if trajectories is None:
                continue
            if model.rank:
                projection = Projection.onto(self.request.constraints[: model.rank])
                model = replace(solver, projection=projection).in_basis(model, trajectories)
            drawn = [with_branches(model, trajectories, solver, rng) for _ in range(DRAWN * count)]
            result += drawn[: count // 2] + promising(solver, drawn[count // 2 :], count - count // 2)
        return result + self.begins_from_values(courses, linear, rank, rng)

    def begins_from_values(
        self, courses: Sequence[Course], linear: Candidate, rank: int, rng: np.random.Generator
    ) -> list[Candidate]:
        """A NARX model whose branches `ub.decouple` finds in what the linear one leaves, one step ahead; none else."""
        if not isinstance(self.data.form, NarxForm):
            return []
        phi = np.concatenate([measured_phi(self.data.form, course) for course in courses])
        left = np.concatenate([course.y for course in courses]) - phi @ linear.L.T - linear.bias
        known = np.isfinite(phi).all(axis=1) & np.concatenate([course.weight.all(axis=1) for course in courses])
        if np.count_nonzero(known) < 3 * rank * phi.shape[1]:
            return []
        problem = Problem(phi[known], left[known])
        constraint = self.request.constraints[:rank]
        fit = decouple(problem, rank, basis=CUBIC, constraint=constraint, starts=VALUE_STARTS, jobs=1, rng=rng)
        same = Scales(np.zeros(phi.shape[1]), np.ones(phi.shape[1]), np.zeros(left.shape[1]), np.ones(left.shape[1]))
        found = balanced_model(linear.L, fit.model, same)
        return [replace(found, bias=found.bias + linear.bias)]

    def onto(self, courses: Sequence[Course], model: Candidate) -> Candidate:
        """The model with the first guesses at the pasts of courses."""
        return model.with_pasts(tuple(course.past for course in courses))

    def finish(self, session: Session, found: Fitted | None, linear: Candidate) -> DynamicFit:
        """The last steps, on all records, and the result: branches, or the linear model where that does as well."""
        last, cut = session.part(0.85, 1.0), None if found is None else found.cut
        steps = POLISH_STEPS if cut is None else 1  # who is in a hurry gets the model on all records as it is
        curved = self.surely_onto_all(last, found.point.model, found.basis, steps) if found and found.rank else []
        for model in (linear, at_rest(linear)):  # the second can be simulated, whatever the records are
            straight = self.surely_onto_all(last, model, None, steps)
            lines = [self.fit_of(run, Fitted(point_of(run), None, LOST, cut=cut)) for run in straight]
            if lines and np.isfinite(size_of(lines[0].simulation_error)):
                break
        fits = [*lines, *(self.fit_of(run, found) for run in curved if found is not None)]
        best = min(fits, key=lambda fit: size_of(fit.simulation_error))
        given_back = best is lines[0] and (found.rank if found else self.request.most)
        notes = (*best.notes, LINES) if given_back else best.notes
        return replace(best, linear=lines[0].model, linear_error=lines[0].simulation_error, notes=notes)

    def fit_of(self, run: Run, found: Fitted) -> DynamicFit:
        """What the last steps on all records have led to, in the user's units."""
        form, courses, point = self.data.form, self.data.courses(), point_of(run)
        solver = self.fitting.solver(courses, found.basis, found.rank)
        point = (solver.placed_anew(point) if solver.has_left(point) else None) or point
        final = scaled_states(form, point.model, point.trajectories)
        point = replace(point, model=final, trajectories=solver.simulate(final) or point.trajectories)
        phi = np.concatenate([one.phi for one in point.trajectories])
        found = self.steadied(found, final, courses)
        far = np.full((final.rank, 2), found.reach)
        final = normalised(final, phi, self.request.constraints)
        spread = moving_spread(phi[:, : form.feedback.fed], 1.0)
        weight = np.concatenate([course.weight for course in courses])
        off = np.concatenate([one.values.f[:, -form.ny :] for one in point.trajectories])
        off -= np.concatenate([course.y for course in courses])
        noise = self.data.units.y_scale * np.sqrt(np.sum(weight * off**2, axis=0) / weight.sum(axis=0))
        signals = {**self.data.signals(), "noise": noise}
        model = in_user_units(form, self.data.units, final, found.basis, far, spread, signals)
        if isinstance(model, StateSpaceModel):
            corrected = model.changed(K=find_gain(model, self.data.records))
            model = min(model, corrected, key=lambda one: size_of(prediction_error(one, self.data.records)))
        return make_fit(
            self.data,
            model,
            final.pasts,
            self.told(found),
            basis=found.basis,
            status=run.status if found.cut is None else found.cut,
            objectives=run.trace.objective,
            starts=found.starts,
            constraints=self.request.constraints[: found.rank],
        )

    def steadied(self, found: Fitted, final: Candidate, courses: Sequence[Course]) -> Fitted:
        """What was found, its branches going on in another way where the last steps made it unsteady in its own."""
        feedback = self.data.form.feedback
        ways = (0.0,) if found.basis is None else reaches(self.request.continuation, found.basis)
        for reach in (found.reach, *(way for way in ways if way != found.reach)):
            if is_steady(with_reach(final, found.basis, reach), feedback, courses):
                return found._replace(reach=reach)
        return found._replace(steady=False)

    def surely_onto_all(self, session: Session, model: Candidate, basis: Basis | None, steps: int) -> list[Run]:
        """A model of some stretches on all courses, by so many steps; by one where Ctrl-C came before any was done."""

        def hurried() -> list[Run]:
            return [replace(run, status=Status.INTERRUPTED) for run in self.onto_all(session, model, basis, 1)]

        return attempt(lambda: self.onto_all(session, model, basis, steps), hurried, safe=True)

    def onto_all(self, session: Session, model: Candidate, basis: Basis | None, steps: int) -> list[Run]:
        """A model of some stretches, fitted to all courses by so many steps at most; nothing where it diverges."""
        courses = self.data.courses()
        solver = self.fitting.solver(courses, basis, model.rank)
        found = {k: past for (k, some), past in zip(self.data.stretches(), model.pasts, strict=True) if not some.start}
        pasts = tuple(found.get(k, course.past) for k, course in enumerate(courses))
        point = solver.point(model.with_pasts(pasts)) or solver.point(self.onto(courses, model))
        point = point and solver.placed_anew(point)
        if point is None:
            return []
        return drive(session, solver, [point], self.fitting.stopping(steps), ProgressSpan("all samples"))

    def told(self, found: Fitted) -> tuple[str, ...]:
        """The notes, with what was chosen for the branches."""
        notes = self.notes
        if not found.steady:
            notes = (*notes, UNSTEADY if found.basis is None else f"{UNSTEADY} {CURE}")
        elif found.basis is not None and found.inside is LOST and found.cut is None:
            notes = (*notes, ALL_DIVERGED)
        if found.basis is None or not np.isfinite([found.inside.size, found.beyond]).all():
            return notes
        length = f"as polynomials for {100 * found.reach:g} % of their range, then " if found.reach else ""
        return (
            *notes,
            f"Branches are {found.basis!r} and go on {length}as lines: chosen on stretches that were held out, with "
            f"errors of {found.inside} of the spread within the range, and {100 * found.beyond:.3g} % where outputs "
            "were larger than all that was fitted to.",
        )


CURE = "Lower the rank, give a constraint or a smaller basis, or a longer record."
ALL_DIVERGED = (
    "In every basis that was tried simulations diverged, of held-out stretches or of the same inputs in another order: "
    f"do not rely on this model. {CURE}"
)
LINES = (
    "The linear model is given back: no model with branches simulated the records better. Raise `starts`, or give "
    "another rank, basis or constraint."
)
UNSTEADY = (
    "Outputs leave all bounds where the same inputs come in another order: do not rely on this model for other inputs."
)


def begin_counts(starts: int, linear: Candidate, fewer: Candidate | None) -> list[tuple[Candidate, int]]:
    """Which models starts begin beside, and how many."""
    if fewer is None or not fewer.rank:
        return [(linear, starts)]
    return [(linear, starts - starts // 2), (fewer, starts // 2)]


def measured_phi(form: Form, course: Course) -> Array:
    """φ (T, mφ) of measured outputs, NaN where they are not known."""
    known = np.where(course.weight > 0.0, course.y, np.nan)
    return np.concatenate([form.feedback.gather(known, course.past), course.v], axis=1)
