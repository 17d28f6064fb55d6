"""Linear models: what a linear system is comes back from its records."""

from __future__ import annotations

import numpy as np
import pytest

import unbraid as ub
from draws import few_or_many
from dynamic_models import without_branches
from unbraid.dynamics import Record, StateSpaceModel
from unbraid.dynamics.identifying.forms import NarxForm, StateSpaceForm, Units
from unbraid.dynamics.identifying.linear import filled, horizon_for, linear_model, observability, regressed
from unbraid.dynamics.identifying.stages import measured_phi
from unbraid.dynamics.models.feedback import Course
from unbraid.kernels.arrays import Array


def random_linear(nx: int, nu: int, ny: int, rng: np.random.Generator) -> StateSpaceModel:
    """A system with poles between 0.4 and 0.9, all of which are heard and seen."""
    radii, angles = rng.uniform(0.5, 0.85, nx // 2), np.pi * rng.uniform(0.15, 0.8, nx // 2)
    A = np.zeros((nx, nx))
    for k, (radius, angle) in enumerate(zip(radii, angles, strict=True)):
        re, im = radius * np.cos(angle), radius * np.sin(angle)
        A[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = [[re, im], [-im, re]]
    if nx % 2:
        A[-1, -1] = 0.6
    B, C = 1.0 + rng.random((nx, nu)), 1.0 + rng.random((ny, nx))
    return StateSpaceModel(
        A, B, C, rng.standard_normal((ny, nu)), without_branches(nx + nu, rng.standard_normal(nx + ny))
    )


def records_of(model: StateSpaceModel, lengths: tuple[int, ...], rng: np.random.Generator) -> list[Record]:
    """Records without noise, each from a state of its own."""
    result = []
    for T in lengths:
        u = 1.0 + rng.standard_normal((T + 50, model.nu))
        result.append(Record(u[50:], model.simulate(u)[50:]))
    return result


def courses_of(records: list[Record], order: int) -> tuple[Course, ...]:
    form = StateSpaceForm(records[0].nu, records[0].ny, order)
    return tuple(form.course(Units.of(records), record) for record in records)


def sorted_poles(A: Array) -> Array:
    return np.asarray(np.sort_complex(np.linalg.eigvals(A).astype(complex)))


@few_or_many(4, 40)
@pytest.mark.parametrize(("nu", "ny"), [(1, 1), (2, 2), (1, 2)])
def test_subspaces_give_the_poles_of_a_linear_system(nu: int, ny: int, draws: int) -> None:
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        truth = random_linear(3, nu, ny, rng)
        courses = courses_of(records_of(truth, (400, 150), rng), 3)
        directions, singular = observability(courses, horizon_for(courses, 6))
        assert singular[3] < 1e-9 * singular[0] < singular[2]
        found = linear_model(courses, directions, 3)
        np.testing.assert_allclose(sorted_poles(found.L[:3, :3]), sorted_poles(truth.A), rtol=0.0, atol=1e-6)


@pytest.mark.parametrize(("nu", "ny"), [(1, 1), (2, 2)])
def test_a_linear_system_is_identified_to_rounding(nu: int, ny: int) -> None:
    """With gaps, from several records of different lengths."""
    rng = np.random.default_rng(1)
    truth = random_linear(3, nu, ny, rng)
    records = []
    for record in records_of(truth, (400, 90, 200), rng):
        y = record.y.copy()
        y[30:38] = np.nan
        y[60:64, -1] = np.nan
        records.append(Record(record.u, y))
    fit = ub.dynamics.state_space(records, order=3, rank=0)
    assert isinstance(fit.model, StateSpaceModel)
    assert fit.model.rank == 0
    np.testing.assert_allclose(fit.simulation_error.percent, 0.0, atol=1e-4)
    np.testing.assert_allclose(sorted_poles(fit.model.A), sorted_poles(truth.A), rtol=0.0, atol=1e-6)
    frequency = np.linspace(0.0, 0.5, 7)
    np.testing.assert_allclose(
        fit.model.frequency_response(frequency), truth.frequency_response(frequency), rtol=0.0, atol=1e-5
    )
    fresh = records_of(truth, (200,), rng)
    assert fit.error_on(fresh).percent.max() < 1e-3


@pytest.mark.parametrize("order", [1, 2, 4])
def test_the_order_of_a_linear_system_is_found(order: int) -> None:
    rng = np.random.default_rng(order)
    truth = random_linear(order, 1, 1, rng)
    (record,) = records_of(truth, (600,), rng)
    noisy = Record(record.u, record.y + 0.01 * record.y.std() * rng.standard_normal(record.y.shape))
    fit = ub.dynamics.state_space(noisy, order="auto", rank=0)
    assert isinstance(fit.model, StateSpaceModel)
    assert fit.model.order == order
    assert fit.notes[0].startswith("Errors of linear models on held-out stretches are")


def test_least_squares_give_a_linear_narx_model_exactly() -> None:
    rng = np.random.default_rng(0)
    u, y = rng.standard_normal(300), np.zeros(300)
    for t in range(3, 300):
        y[t] = 0.7 * y[t - 1] - 0.2 * y[t - 3] + 0.5 * u[t] + 0.1 * u[t - 2] + 0.3
    y[100:103] = np.nan
    fit = ub.dynamics.narx(Record(u, y), 0, input_lags=(0, 2), output_lags=(1, 3))
    assert isinstance(fit.model, ub.dynamics.NarxModel)
    np.testing.assert_allclose(fit.model.L, [[0.7, -0.2, 0.5, 0.1]], atol=1e-6)
    np.testing.assert_allclose(fit.model.nonlinearity.bias, [0.3], atol=1e-6)


def test_gaps_are_no_zeros_to_least_squares() -> None:
    """Rows whose φ has an unknown output do not count either."""
    rng = np.random.default_rng(0)
    form, u, y = NarxForm(1, 1, (1,), (1,)), rng.standard_normal(200), np.zeros(200)
    for t in range(1, 200):
        y[t] = 0.8 * y[t - 1] + u[t - 1] + 2.0
    y[50:150:7] = np.nan
    record = Record(u, y)
    course = form.course(Units.of([record]), record)
    found = regressed((course,), [measured_phi(form, course)])
    assert found.L[0, 0] == pytest.approx(0.8, abs=1e-6)


def test_lines_cross_what_is_not_known() -> None:
    course = Course(np.zeros((5, 1)), np.array([[1.0], [0.0], [0.0], [4.0], [0.0]]), np.ones((5, 1)), np.zeros((1, 1)))
    course.weight[[1, 2, 4]] = 0.0
    np.testing.assert_allclose(filled(course).ravel(), [1.0, 2.0, 3.0, 4.0, 4.0])


def test_poles_of_a_first_model_are_brought_inside() -> None:
    """A ramp is the output of no stable system."""
    u = np.random.default_rng(0).standard_normal((300, 1))
    record = Record(u, np.cumsum(np.cumsum(u, axis=0), axis=0))
    courses = courses_of([record], 2)
    found = linear_model(courses, observability(courses, 8)[0], 2)
    assert np.abs(np.linalg.eigvals(found.L[:2, :2])).max() <= 0.999 + 1e-9


def test_an_order_that_records_cannot_tell_is_refused() -> None:
    rng = np.random.default_rng(0)
    record = records_of(random_linear(2, 1, 1, rng), (300,), rng)
    with pytest.raises(ub.errors.UnbraidError, match="lower"):
        ub.dynamics.state_space(record, order=40, rank=0)
    short = [one.take(slice(0, 30)) for one in record]
    with pytest.raises(ub.errors.UnbraidError, match="lower"):
        ub.dynamics.state_space(short, order=8, rank=0)


@pytest.mark.parametrize("T", [12, 20, 40])
def test_a_few_samples_are_enough_or_refused_in_a_sentence(T: int) -> None:
    rng = np.random.default_rng(0)
    records = records_of(random_linear(1, 1, 1, rng), (T, T), rng)
    try:
        fit = ub.dynamics.state_space(records, order=1, rank=0)
    except ub.errors.UnbraidError as error:
        assert "longer" in str(error)  # noqa: PT017
    else:
        assert fit.simulation_error.percent[0] < 1e-3


def test_samples_that_do_not_count_mislead_no_linear_model() -> None:
    """A first half in which the sensor was off, and a burn-in."""
    rng = np.random.default_rng(0)
    truth = random_linear(2, 1, 1, rng)
    (record,) = records_of(truth, (600,), rng)
    y = record.y.copy()
    y[:300] = np.nan
    for given in (Record(record.u, y), Record(record.u, record.y, burn_in=300)):
        courses = courses_of([given], 2)
        found = linear_model(courses, observability(courses, horizon_for(courses, 6))[0], 2)
        np.testing.assert_allclose(sorted_poles(found.L[:2, :2]), sorted_poles(truth.A), rtol=0.0, atol=1e-6)
