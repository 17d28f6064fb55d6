"""The simulation error to first order: every derivative is that of the simulated outputs."""

from __future__ import annotations

import numpy as np
import pytest

import unbraid as ub
from simulated_candidates import FORMS, random_candidate, random_courses, variations, weighted_errors
from unbraid.bases import Basis
from unbraid.dynamics.identifying.forms import Form
from unbraid.dynamics.models import trajectory
from unbraid.dynamics.models.feedback import Course
from unbraid.dynamics.models.trajectory import Trajectory, solve_trajectory, walk
from unbraid.dynamics.simulating import linearised
from unbraid.dynamics.simulating.candidate import Candidate
from unbraid.dynamics.simulating.linearised import Equations, form_equations
from unbraid.kernels.arrays import Array

BASES: dict[str, Basis | None] = {"splines": ub.BSpline(6), "polynomials": ub.Polynomial(4), "no branches": None}
STEP = 1e-5


def trajectories_of(model: Candidate, form: Form, courses: tuple[Course, ...]) -> list[Trajectory]:
    limit = np.full(form.feedback.fed, np.inf)
    walks = [walk(model, form.feedback, one.v, past, limit) for one, past in zip(courses, model.pasts, strict=True)]
    return [Trajectory(one.phi, model.values(one.phi)) for one in walks]


def whole(equations: Equations) -> tuple[Array, Array]:
    """Normal matrix and descent of all unknowns, the pasts of all courses last."""
    P, sizes = len(equations.N), [len(past.own) for past in equations.pasts]
    N = np.zeros((P + sum(sizes), P + sum(sizes)))
    N[:P, :P], start = equations.N, P
    for past in equations.pasts:
        own = slice(start, start + len(past.own))
        N[own, own], N[:P, own], N[own, :P], start = past.own, past.mixed, past.mixed.T, own.stop
    return N, np.concatenate([equations.descent, *(past.descent for past in equations.pasts)])


@pytest.mark.parametrize("kind", BASES)
@pytest.mark.parametrize("name", FORMS)
def test_normal_equations_are_those_of_finite_differences(name: str, kind: str) -> None:
    """Over several courses with gaps, one of them hardly longer than the lags."""
    form = FORMS[name]
    courses = random_courses(form, (30, 5, 17))
    model = random_candidate(form, courses, BASES[kind])
    N, descent = whole(form_equations(model, form.feedback, courses, trajectories_of(model, form, courses)))
    columns = [
        (weighted_errors(more, form.feedback, courses) - weighted_errors(less, form.feedback, courses)) / (2.0 * STEP)
        for more, less in variations(model, STEP)
    ]
    D = np.stack(columns, axis=1)
    np.testing.assert_allclose(N, D.T @ D, rtol=1e-5, atol=1e-7 * np.abs(N).max())
    expected = -D.T @ weighted_errors(model, form.feedback, courses)
    np.testing.assert_allclose(descent, expected, rtol=1e-5, atol=1e-7 * np.abs(descent).max())


@pytest.mark.parametrize("entries", [1, 1000])
@pytest.mark.parametrize("name", FORMS)
def test_sums_do_not_depend_on_the_stretches_they_are_made_in(
    name: str, entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = FORMS[name]
    courses = random_courses(form, (61, 13))
    model = random_candidate(form, courses, ub.BSpline(5))
    there = trajectories_of(model, form, courses)
    once = whole(form_equations(model, form.feedback, courses, there))
    monkeypatch.setattr(linearised, "ENTRIES", entries)
    for one, other in zip(once, whole(form_equations(model, form.feedback, courses, there)), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-11 * np.abs(one).max())


def test_what_does_not_count_tells_nothing() -> None:
    form = FORMS["three states, two by two"]
    (course,) = random_courses(form, (40,))
    silent = Course(course.v, course.y, np.zeros_like(course.weight), course.past)
    model = random_candidate(form, (silent,), ub.BSpline(5))
    N, descent = whole(form_equations(model, form.feedback, (silent,), trajectories_of(model, form, (silent,))))
    assert not N.any()
    assert not descent.any()


# Trajectories


@pytest.mark.parametrize("stretch", [4096, 16])
@pytest.mark.parametrize("name", FORMS)
def test_a_trajectory_is_the_walk_through_time(name: str, stretch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a guess that is all zeros, at once or in stretches."""
    monkeypatch.setattr(trajectory, "STRETCH", stretch)
    form = FORMS[name]
    (course,) = random_courses(form, (150,))
    model = random_candidate(form, (course,), ub.BSpline(6))
    guess = np.zeros((150, form.feedback.fed))
    found = solve_trajectory(model, form.feedback, course.v, course.past, guess)
    slow = walk(model, form.feedback, course.v, course.past, np.full(form.feedback.fed, np.inf))
    assert found is not None
    np.testing.assert_allclose(found.values.f, slow.f, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(found.phi, slow.phi, rtol=0.0, atol=1e-9)


def test_where_a_model_leaves_all_bounds_there_is_no_trajectory() -> None:
    form = FORMS["one state"]
    (course,) = random_courses(form, (4000,))
    model = random_candidate(form, (course,), None)
    model.L[0, 0] = 1.5
    guess = np.zeros((4000, 1))
    assert solve_trajectory(model, form.feedback, course.v, course.past, guess) is None
