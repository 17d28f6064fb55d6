"""Steps on the simulation error lower it, within the shapes that were asked for."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import unbraid as ub
from simulated_candidates import FORMS, duffing_records, random_candidate, random_courses, variations
from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint
from unbraid.dynamics.identifying.forms import NarxForm, StateSpaceForm, Units
from unbraid.dynamics.identifying.linear import horizon_for, linear_model, observability, regressed
from unbraid.dynamics.identifying.search import CUBIC, Fitting, promising, race, with_branches
from unbraid.dynamics.identifying.stages import measured_phi
from unbraid.dynamics.simulating.candidate import Candidate
from unbraid.dynamics.simulating.steps import Point, SimulationSteps
from unbraid.fitting.session import Session
from unbraid.results.branch import FittedBranch

BASES: dict[str, Basis] = {
    "splines": ub.BSpline(6),
    "polynomials": ub.Polynomial(5),
    "penalised splines": ub.SmoothingSpline(10, degree=3, smoothing=1e-4),
}


def duffing_begin(
    basis: Basis, constraints: tuple[Constraint | None, ...] = (None,), narx: bool = False, seed: int = 0
) -> tuple[SimulationSteps, Point]:
    """A solver for short records of one system, and a point with branches of random directions, next to zero."""
    records = duffing_records((300, 150))
    form = NarxForm(1, 1, (0, 1, 2), (1, 2)) if narx else StateSpaceForm(1, 1, 2)
    courses = tuple(form.course(Units.of(records), record) for record in records)
    if narx:
        linear = regressed(courses, [measured_phi(form, course) for course in courses])
    else:
        linear = linear_model(courses, observability(courses, horizon_for(courses, 4))[0], 2)
    fitting, rng = Fitting(form.feedback, constraints), np.random.default_rng(seed)
    cubic = fitting.solver(courses, CUBIC, len(constraints))
    trajectories = cubic.simulate(linear)
    assert trajectories is not None
    drawn = [with_branches(linear, trajectories, cubic, rng) for _ in range(8)]
    model = promising(cubic, drawn, 1)[0]
    there = cubic.simulate(model)
    assert there is not None
    solver = fitting.solver(courses, basis, len(constraints))
    point = solver.point(solver.in_basis(model, there))
    assert point is not None
    return solver, point


def branches_of(solver: SimulationSteps, model: Candidate) -> list[FittedBranch]:
    assert model.placement is not None
    assert solver.basis is not None
    return [FittedBranch(solver.basis, model.placement.select(j), model.a[j]) for j in range(model.rank)]


@pytest.mark.parametrize("narx", [False, True], ids=["state space", "NARX"])
@pytest.mark.parametrize("kind", BASES)
def test_no_step_raises_the_objective(kind: str, narx: bool) -> None:
    solver, point = duffing_begin(BASES[kind], narx=narx)
    solver = replace(solver, place_knots_at=frozenset())
    objectives = [point.objective]
    for _ in range(12):
        point = solver.advance(point)
        objectives.append(point.objective)
        again = solver.point(point.model)
        assert again is not None
        assert again.objective == pytest.approx(point.objective, rel=1e-6)
    assert all(after <= before for before, after in pairwise(objectives))
    assert objectives[-1] < 0.95 * objectives[0]


@pytest.mark.parametrize("kind", BASES)
def test_the_promise_of_a_small_step_is_kept(kind: str) -> None:
    """Where it is damped so much that all is linear: what is won is what normal equations and penalties say."""
    solver, point = duffing_begin(BASES[kind])
    point = replace(solver.advance(solver.advance(point)), damping=1e4)
    model, promised = solver.trial(point)
    assert model is not None
    there = solver.simulate(model)
    assert there is not None
    assert point.objective - solver.objective(model, there) == pytest.approx(promised, rel=0.02)


@pytest.mark.parametrize("constraint", [ub.Increasing(), ub.Decreasing(), ub.Convex(), ub.NonNegative()])
def test_constraints_hold_after_every_step(constraint: Constraint) -> None:
    """To the last bit: certificates are read off the coefficients."""
    solver, point = duffing_begin(ub.BSpline(6), (constraint, None, constraint))
    for _ in range(10):
        point = solver.advance(point)
        first, _, third = branches_of(solver, point.model)
        assert first.certified(constraint)
        assert third.certified(constraint)


@pytest.mark.parametrize("kind", BASES)
def test_how_sizes_are_split_between_weights_and_branches_changes_nothing(kind: str) -> None:
    """Neither the objective, nor what the equations say of the matrices that are not touched."""
    solver, point = duffing_begin(BASES[kind], (None, None))
    point = solver.advance(solver.advance(point))
    c = np.array([4.0, 0.25])
    other = solver.point(replace(point.model, W1=point.model.W1 * c, a=point.model.a / c[:, None]))
    assert other is not None
    assert other.objective == pytest.approx(point.objective, rel=1e-12)
    some = point.model.L.size
    np.testing.assert_allclose(other.equations.N[:some, :some], point.equations.N[:some, :some], rtol=1e-9)


def test_penalties_are_in_the_equations_as_in_the_objective() -> None:
    """Along every coefficient and every output weight the descent is minus half the objective's slope."""
    form, basis = FORMS["three states, two by two"], ub.SmoothingSpline(6, degree=3, smoothing=0.1)
    courses = random_courses(form, (40,))
    model = random_candidate(form, courses, basis)
    solver = Fitting(form.feedback, (None, None)).solver(courses, basis, 2)
    point = solver.point(model)
    assert point is not None

    def objective(one: Candidate) -> float:
        there = solver.simulate(one)
        assert there is not None
        return solver.objective(one, there)

    slopes = [(objective(more) - objective(less)) / 2e-5 for more, less in variations(model, 1e-5)]
    descent = np.concatenate([point.equations.descent, *(past.descent for past in point.equations.pasts)])
    np.testing.assert_allclose(-2.0 * descent, slopes, rtol=1e-4, atol=1e-6 * np.abs(slopes).max())


@pytest.mark.parametrize("kind", ["splines", "polynomials"])
def test_knots_placed_anew_keep_the_function(kind: str) -> None:
    """What was simulated stays nearly the same, and exactly so where the basis holds the old function."""
    solver, point = duffing_begin(BASES[kind])
    for _ in range(6):
        point = solver.advance(point)
    again = solver.placed_anew(point)
    assert again is not None
    assert (again.damping, again.steps) == (point.damping, point.steps)
    for one, other in zip(point.trajectories, again.trajectories, strict=True):
        far = np.abs(one.values.f - other.values.f).max()
        assert far <= (1e-6 if kind == "polynomials" else 0.05) * np.abs(one.values.f).max()


def test_a_finer_basis_holds_what_a_cubic_was() -> None:
    solver, point = duffing_begin(CUBIC)
    for _ in range(6):
        point = solver.advance(point)
    fine = replace(solver, basis=ub.BSpline(12))
    there = fine.simulate(fine.in_basis(point.model, point.trajectories))
    assert there is not None
    for one, other in zip(point.trajectories, there, strict=True):
        np.testing.assert_allclose(other.values.f, one.values.f, rtol=0.0, atol=1e-6)


def test_a_basis_in_which_a_model_is_lost_is_not_said_to_be_its_basis(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its coordinates in another one are not what they seem: drawing such a branch failed."""
    solver, point = duffing_begin(CUBIC)
    monkeypatch.setattr(type(solver), "point", lambda *_: None)
    assert replace(solver, basis=ub.BSpline(12)).placed_anew(point) is None


def test_a_start_that_leads_nowhere_is_left_out_of_the_race() -> None:
    solver, point = duffing_begin(ub.BSpline(5))
    lost = replace(point.model, L=point.model.L * 1e3)
    assert solver.point(lost) is None
    runs = race(Session(), Fitting(solver.feedback, (None,)), solver, [lost, point.model, lost], "search")
    assert len(runs) == 1


def test_the_best_start_wins_the_race() -> None:
    begins = [duffing_begin(ub.BSpline(5), seed=seed) for seed in range(4)]
    solver = begins[0][0]
    runs = race(Session(), Fitting(solver.feedback, (None,)), solver, [point.model for _, point in begins], "search")
    objectives = [run.objective for run in runs]
    assert len(runs) == 4
    assert objectives == sorted(objectives)


def test_knots_follow_inputs_that_leave_their_domain() -> None:
    """Beyond it a polynomial without bounds is followed, which no constraint holds for."""
    solver, point = duffing_begin(ub.BSpline(5), (ub.Increasing(),))
    narrow = replace(point.model, W0=2.0 * point.model.W0)
    there = solver.point(narrow)
    assert there is not None
    assert solver.has_left(there)
    again = solver.placed_anew(there)
    assert again is not None
    assert not solver.has_left(again)
    after = solver.advance(replace(there, steps=100))
    assert after.model.placement is not None
    u = np.concatenate([there.model.branch_inputs(one.phi) for one in there.trajectories], axis=1)
    np.testing.assert_allclose(after.model.placement.domain()[0], [u.min(), u.max()], rtol=0.1)
