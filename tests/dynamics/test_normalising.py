"""From a solver's model to the user's: other numbers, the same model."""

from __future__ import annotations

import numpy as np
import pytest

import unbraid as ub
from simulated_candidates import FORMS, random_candidate, random_courses
from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint
from unbraid.bases.projection import Projection
from unbraid.dynamics.identifying.finishing import in_user_units, normalised, scaled_states
from unbraid.dynamics.identifying.forms import Units
from unbraid.dynamics.identifying.search import Fitting
from unbraid.dynamics.models.feedback import Course
from unbraid.dynamics.models.trajectory import Trajectory
from unbraid.dynamics.simulating.candidate import Candidate


def simulated(name: str, model: Candidate, courses: tuple[Course, ...], basis: Basis) -> tuple[Trajectory, ...]:
    found = Fitting(FORMS[name].feedback, (None,) * model.rank).solver(courses, basis, model.rank).simulate(model)
    assert found is not None
    return found


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("basis", [ub.BSpline(6), ub.Polynomial(4)])
def test_the_model_stays_what_it_is(name: str, basis: Basis) -> None:
    """In states of another scale, with branches without lines, and in the user's units."""
    form, rng = FORMS[name], np.random.default_rng(0)
    courses = random_courses(form, (200,))
    model = random_candidate(form, courses, basis)
    (before,) = simulated(name, model, courses, basis)
    final = scaled_states(form, model, [before])
    (scaled,) = simulated(name, final, courses, basis)
    final = normalised(final, scaled.phi, (None, None))
    (after,) = simulated(name, final, courses, basis)
    ny, nu, fed = form.ny, form.nu, form.feedback.fed
    np.testing.assert_allclose(after.values.f[:, -ny:], before.values.f[:, -ny:], rtol=0.0, atol=1e-8)
    np.testing.assert_allclose(after.values.R.std(axis=1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(after.values.R.mean(axis=1), 0.0, atol=1e-6)
    units = Units(rng.standard_normal(nu), 1.0 + rng.random(nu), rng.standard_normal(ny), 1.0 + rng.random(ny))
    far, scales = np.zeros((2, 2)), form.scales(units)
    user = in_user_units(form, units, final, basis, far, np.ones(fed), {})
    f = user.function.values(after.phi * scales.scale + scales.center).f
    np.testing.assert_allclose(f, scales.f_center + scales.f_scale * after.values.f, rtol=0.0, atol=1e-7)


@pytest.mark.parametrize("constraint", [ub.Increasing(), ub.Decreasing(), ub.Convex(), ub.Concave(), ub.NonNegative()])
def test_branches_that_are_flat_in_part_keep_their_certificate(constraint: Constraint) -> None:
    """Where a line is taken out of them, and they are scaled, rounding does not lead out of the cone."""
    form, basis, rng = FORMS["three states, two by two"], ub.BSpline(12), np.random.default_rng(0)
    courses = random_courses(form, (100,))
    model = random_candidate(form, courses, basis)
    assert model.placement is not None
    projection = Projection.onto((constraint, constraint))
    for _ in range(20):
        z = np.where(rng.random((1, 2, 13)) < 0.5, 0.0, rng.random((1, 2, 13)))
        a = 1e3 * projection.feasible(model.placement.select(None), z)[0]
        phi = rng.standard_normal((100, form.width))
        given = Candidate(model.L, model.W0, model.W1, model.bias, model.placement, a, model.pasts)
        found = normalised(given, phi, (constraint, constraint))
        assert all(constraint.holds(model.placement.select(j), found.a[j]) for j in range(2))
