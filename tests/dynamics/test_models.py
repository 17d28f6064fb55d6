"""Dynamic models do what their formulas say, moment by moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal

import unbraid as ub
from dynamic_models import MODELS, inputs_of, random_narx, random_state_space, system, without_branches
from exported_models import difference
from unbraid.dynamics import DivergenceWarning, DynamicModel, NarxModel, Record, SimulationStatus, StateSpaceModel
from unbraid.dynamics.fit import runs_on
from unbraid.dynamics.models.trajectory import WILD
from unbraid.errors import DataError, UnbraidError
from unbraid.kernels.arrays import Array
from unbraid.results.branch import FunctionBranch

TOLERANCE = 1e-12


# Slow twins


def plain_state_space(model: StateSpaceModel, u: Array, x: Array, y: Array | None = None) -> tuple[Array, Array]:
    """States and outputs of x⁺ = A x + B u + f_x, y = C x + D u + f_y; corrected by K (y - ŷ) where y is known."""
    states, outputs = [], []
    for t in range(len(u)):
        f = model.nonlinearity(np.concatenate([x, u[t]]))
        output = model.C @ x + model.D @ u[t] + f[model.order :]
        states.append(x)
        outputs.append(output)
        x = model.A @ x + model.B @ u[t] + f[: model.order]
        if y is not None:
            x = x + model.K @ np.where(np.isnan(y[t]), 0.0, y[t] - output)
    return np.array(states), np.array(outputs)


def plain_narx(model: NarxModel, u: Array, first: Array, y: Array | None = None) -> Array:
    """y_t = L φ_t + W1 g(W0 φ_t) + bias from first outputs, of its own ones or, where they are known, of measured y."""
    result = np.full((len(u), model.ny), np.nan)
    result[: len(first)] = first
    before = result.copy()
    for t in range(len(first), len(u)):
        lagged = [before[t - lag] for lag in model.output_lags] + [u[t - lag] for lag in model.input_lags]
        phi = np.concatenate(lagged)
        result[t] = model.L @ phi + model.nonlinearity(phi)
        before[t] = result[t] if y is None else np.where(np.isnan(y[t]), result[t], y[t])
    return result


def random_inputs(T: int, nu: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((T, nu))


# Simulation


@given(nx=st.integers(1, 4), nu=st.integers(1, 3), ny=st.integers(1, 3), r=st.integers(0, 3), seed=st.integers(0, 99))
def test_a_state_space_model_is_its_recursion(nx: int, nu: int, ny: int, r: int, seed: int) -> None:
    model = random_state_space(nx, nu, ny, r, seed)
    u = random_inputs(200, nu, seed)
    done = model.run(u)
    states, y = plain_state_space(model, u, model.rest)
    assert difference(done.y, y) <= TOLERANCE
    assert done.states is not None
    assert difference(done.states, states) <= TOLERANCE


@given(
    input_lags=st.sets(st.integers(0, 6), min_size=1, max_size=3).map(sorted),
    output_lags=st.sets(st.integers(1, 6), min_size=1, max_size=3).map(sorted),
    nu=st.integers(1, 2),
    ny=st.integers(1, 2),
    r=st.integers(0, 2),
    seed=st.integers(0, 99),
)
def test_a_narx_model_is_its_recursion(
    input_lags: list[int], output_lags: list[int], nu: int, ny: int, r: int, seed: int
) -> None:
    model = random_narx(tuple(input_lags), tuple(output_lags), nu, ny, r, seed)
    u = random_inputs(200, nu, seed)
    at_rest = np.tile(model.past_at_rest()[-1], (model.lead, 1))
    longer = np.concatenate([np.zeros((model.lead, nu)), u])
    assert difference(model.run(u).y, plain_narx(model, longer, at_rest)[model.lead :]) <= TOLERANCE


@pytest.mark.parametrize("name", ub.dynamics.systems.SYSTEMS)
def test_long_records_are_simulated_in_stretches_that_fit_together(name: str) -> None:
    u, model = system(name, 6000)
    _, y = plain_state_space(model, u, model.rest)
    assert difference(model.run(u).y, y) <= 1e-11


def test_a_system_at_rest_stays_there() -> None:
    for name, model in MODELS.items():
        y = model.run(np.tile(model.rest_input, (50, 1))).y
        if name != "coupled_tanks":  # its input is never zero
            np.testing.assert_allclose(y, np.tile(y[0], (50, 1)), rtol=1e-9, atol=1e-9)


def test_signals_are_returned_as_they_were_given() -> None:
    u, model = system("duffing", 100)
    flat = model.simulate(u[:, 0])
    assert flat.shape == (100,)
    np.testing.assert_array_equal(flat, model.simulate(u)[:, 0])
    assert model.predict(u[:, 0], flat).shape == (100,)
    assert model.run(u[:, 0]).y.shape == (100, 1)


def test_leaving_the_range_seen_is_told() -> None:
    u, model = system("duffing", 400)
    done = model.run(0.1 * u)
    assert done.status is SimulationStatus.FINISHED
    assert not done.outside.any()
    done = model.run(3.0 * u)
    assert done.status is SimulationStatus.LEFT_RANGE
    assert done.states is not None
    np.testing.assert_array_equal(done.outside, np.abs(done.states[:, 0]) > 2.0)


# Divergence


def runaway(narx: bool) -> DynamicModel:
    """z⁺ = 0.5 z + z³ + u, which leaves all bounds once z is above 0.71."""
    cube = FunctionBranch(lambda u: u**3, lambda u: 3.0 * u**2, "u³", (-1.0, 1.0))
    if narx:
        function = ub.DecoupledModel([[1.0, 0.0]], [[1.0]], [cube])
        return NarxModel([[0.5, 1.0]], function, input_lags=(1,), output_lags=(1,))
    function = ub.DecoupledModel([[1.0, 0.0]], [[1.0], [0.0]], [cube])
    return StateSpaceModel([[0.5]], [[1.0]], [[1.0]], [[0.0]], function)


@pytest.mark.parametrize("narx", [False, True], ids=["state_space", "narx"])
@pytest.mark.parametrize("begin", [3, 700])
def test_a_model_that_diverges_is_followed_until_it_does(narx: bool, begin: int) -> None:
    model = runaway(narx)
    u = np.zeros(1000)
    u[begin:] = 0.5
    with pytest.warns(DivergenceWarning, match="left all bounds and was ended"):
        y = model.simulate(u)
    done = model.run(u)
    assert done.status is SimulationStatus.DIVERGED
    end = done.diverged_at
    assert end is not None
    assert begin < end < begin + 20
    assert np.isfinite(done.y[:end]).all()
    assert np.isnan(done.y[end:]).all()
    np.testing.assert_array_equal(done.y[:, 0], y)
    assert not done.outside[end:].any()
    z, course = 0.0, []
    while abs(z) <= WILD:
        course.append(z)
        z = 0.5 * z + z**3 + u[len(course) - 1]
    np.testing.assert_allclose(y[:end], course[:end], rtol=1e-10, atol=1e-12)
    assert end == len(course) - (not narx)  # a state is lost at the moment before, which leads to it
    if done.states is not None:
        assert done.states.shape == (1000, 1)
        assert np.isnan(done.states[end:]).all()


def test_a_model_that_finishes_does_not_warn() -> None:
    assert np.isfinite(runaway(False).simulate(np.full(100, 0.1))).all()


# The beginning


@pytest.mark.parametrize("name", ["duffing", "wiener_hammerstein", "two_by_two"])
def test_first_outputs_give_the_initial_state(name: str) -> None:
    u, model = system(name, 300)
    x = 0.5 * np.random.default_rng(1).standard_normal(model.order)
    states, y = plain_state_space(model, u, x)
    done = model.run(u, y_start=y[:40])
    assert difference(done.y, y) <= 1e-8
    assert done.states is not None
    assert difference(done.states[:1], states[:1]) <= 1e-6


def test_gaps_in_the_first_outputs_of_a_record_are_left_out() -> None:
    u, model = system("two_by_two", 300)
    _, y = plain_state_space(model, u, np.array([0.3, -0.5, 0.2]))
    gappy = y.copy()
    gappy[3:9, 0] = gappy[20:30] = np.nan
    [run] = runs_on(model, Record(u, gappy), first=40)
    assert difference(run.simulation.y, y) <= 1e-8
    gappy[:40, 1] = np.nan
    [run] = runs_on(model, Record(u, gappy), first=40)
    assert np.isfinite(run.simulation.y).all()


@pytest.mark.parametrize("narx", [False, True], ids=["state_space", "narx"])
@pytest.mark.parametrize("size", [1e9, 1e200, 1e308])
def test_first_outputs_far_outside_are_lost_as_inputs_far_outside_are(narx: bool, size: float) -> None:
    model, u = runaway(narx), np.full(60, 0.01)
    assert model.run(size * u).diverged_at in (0, 1, 2)
    done = model.run(u, y_start=np.full(5, size))
    assert done.status is SimulationStatus.DIVERGED
    assert np.isnan(done.y[2:]).all()


def test_a_narx_model_goes_on_from_its_first_outputs() -> None:
    for input_lags, output_lags in (((0, 2), (1, 3)), ((0, 5), (1,)), ((1,), (2, 4))):
        model = random_narx(input_lags, output_lags)
        u, first = random_inputs(200, 2), random_inputs(model.lead, 2, seed=3)
        y = plain_narx(model, u, first)
        assert difference(model.run(u, y_start=first).y, y) <= TOLERANCE
        assert difference(model.run(u, y_start=y[:60]).y, y) <= 1e-8


# Prediction


@pytest.mark.parametrize("lags", [((0, 2), (1, 3)), ((0,), (2,)), ((3,), (1,)), ((0, 1), (2, 5))])
def test_a_narx_model_predicts_from_measured_outputs(lags: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    model = random_narx(*lags)
    u, y = random_inputs(150, 2), random_inputs(150, 2, seed=4)
    assert difference(model.predict(u, y), narx_ahead(model, u, y)) <= TOLERANCE
    y[30:40, 0] = y[60:75] = y[100, 1] = np.nan
    found = model.predict(u, y)
    assert np.isfinite(found).all()
    assert difference(found, narx_ahead(model, u, y)) <= TOLERANCE


def narx_ahead(model: NarxModel, u: Array, y: Array) -> Array:
    """One step ahead, the system being at rest before the record."""
    lead, before = model.lead, np.tile(model.past_at_rest()[-1], (model.lead, 1))
    longer, known = np.concatenate([np.zeros((lead, model.nu)), u]), np.concatenate([before, y])
    return plain_narx(model, longer, before, known)[lead:]


def test_a_narx_model_predicts_where_the_beginning_or_an_output_is_not_known() -> None:
    model = random_narx()
    u, y = random_inputs(60, 2), random_inputs(60, 2, seed=4)
    y[:2] = np.nan
    assert np.isfinite(model.predict(u, y)).all()
    y[:, 0] = np.nan
    assert np.isfinite(model.predict(u, y)).all()
    assert model.predict(u[:2], y[:2]).shape == (2, 2)


@pytest.mark.parametrize("name", ["duffing", "with a gain", "narx"])
def test_a_prediction_knows_no_output_of_its_moment_or_later(name: str) -> None:
    """Nor inputs that are still to come."""
    model = {"duffing": system("duffing", 20)[1], "with a gain": random_state_space(gain=0.1), "narx": random_narx()}[
        name
    ]
    u, y = random_inputs(120, model.nu), random_inputs(120, model.ny, seed=4)
    y[7:9, 0] = np.nan
    before = model.predict(u, y)
    for t in (0, 1, 2, 9, 30, 49, 50, 70):
        later, other = u.copy(), y.copy()
        other[t:] += 1.0
        later[t + 1 :] -= 1.0
        found = model.predict(later, other)
        np.testing.assert_allclose(found[: t + 1], before[: t + 1], rtol=1e-9, atol=1e-9)
        assert difference(model.predict(u[: t + 2], y[: t + 2]), before[: t + 2]) <= 1e-9


def test_predictions_soon_know_the_state_at_the_beginning() -> None:
    """Also without a gain: all outputs until then tell it."""
    u, model = system("two_by_two", 100)
    _, y = plain_state_space(model, u, np.array([1.0, -1.0, 1.0]))
    off = np.abs(model.predict(u, y) - y).max(axis=1)
    assert off[0] > 0.1
    assert off[8:].max() < 1e-6


@pytest.mark.parametrize("name", ["duffing", "two_by_two"])
def test_without_a_gain_predictions_are_simulations(name: str) -> None:
    u, model = system(name, 300)
    assert not model.K.any()
    x = 0.5 * np.random.default_rng(1).standard_normal(model.order)
    _, y = plain_state_space(model, u, x)
    assert difference(model.predict(u, y)[50:], y[50:]) <= 1e-8
    with_gaps = y.copy()
    with_gaps[5:15] = with_gaps[200:] = np.nan
    assert difference(model.predict(u, with_gaps)[50:], y[50:]) <= 1e-8


def test_with_a_gain_states_are_corrected_where_something_was_measured() -> None:
    model = random_state_space(gain=0.1)
    u = random_inputs(200, 2)
    y = model.simulate(u)
    y = np.where(np.arange(200)[:, None] < 60, y, y + 0.3 * random_inputs(200, 2, seed=5))  # at rest before
    y[100:110, 1] = y[120:130] = np.nan
    _, expected = plain_state_space(model, u, model.rest, y)
    assert difference(model.predict(u, y)[50:], expected[50:]) <= 1e-8


# About a point


def test_the_state_at_rest_is_an_equilibrium() -> None:
    model = random_state_space().changed(rest=None, rest_input=[0.4, -0.2])
    x, _ = model.step(model.rest, model.rest_input)
    np.testing.assert_allclose(x, model.rest, rtol=1e-10, atol=1e-12)
    assert np.abs(model.rest).max() > 0.01


def test_where_there_is_no_equilibrium_the_state_at_rest_is_zero() -> None:
    drifting = StateSpaceModel([[1.0]], [[1.0]], [[1.0]], [[0.0]], without_branches(2, np.array([0.5, 0.0])))
    np.testing.assert_array_equal(drifting.rest, [0.0])


def test_small_changes_are_those_of_the_linearised_model() -> None:
    model = random_state_space()
    x, u = np.array([0.3, -0.2, 0.5]), np.array([0.1, 0.7])
    found = np.block([list(model.linearised(x, u)[:2]), list(model.linearised(x, u)[2:])])
    h = 1e-6
    columns = []
    for k in range(5):
        there = [np.concatenate([x, u]) + sign * h * np.eye(5)[k] for sign in (1, -1)]
        ahead, behind = (np.concatenate(model.step(point[:3], point[3:])) for point in there)
        columns.append((ahead - behind) / (2.0 * h))
    np.testing.assert_allclose(found, np.array(columns).T, atol=1e-8)


def test_the_frequency_response_is_that_of_the_transfer_function() -> None:
    model = random_state_space()
    frequency = np.array([0.0, 0.1, 0.5, 0.99])
    found = model.frequency_response(frequency)
    for k in range(2):
        numerators, denominator = signal.ss2tf(model.A, model.B, model.C, model.D, input=k)
        for i in range(2):
            _, expected = signal.freqz(numerators[i], denominator, worN=2.0 * np.pi * frequency * model.dt)
            np.testing.assert_allclose(found[:, i, k], expected, rtol=1e-9)


def test_a_frequency_response_is_infinite_at_a_pole_and_refuses_what_is_no_frequency() -> None:
    integrator = StateSpaceModel([[1.0]], [[1.0]], [[1.0]], [[0.0]], without_branches(2, np.zeros(2)))
    assert np.isinf(integrator.frequency_response([0.0, 0.25])[:, 0, 0]).tolist() == [True, False]
    for wrong in (np.nan, np.inf, np.ones((2, 2)), "a"):
        with pytest.raises(DataError, match="frequency"):
            integrator.frequency_response(wrong)


def test_poles_are_the_eigenvalues_and_complex() -> None:
    model = random_state_space()
    assert model.poles.dtype == np.complex128
    np.testing.assert_allclose(np.abs(np.linalg.det(model.A)), np.abs(np.prod(model.poles)))


# What is refused

STATE_SPACE, NARX = random_state_space(), random_narx()
u_and_y = (np.ones((20, 2)), np.ones((20, 2)))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda m: m.simulate(np.ones((20, 3))), "u must be (T, 2), got shape (20, 3)."),
        (lambda m: m.simulate(np.ones(20)), "u must be (T, 2), got shape (20,)."),
        (lambda m: m.simulate(np.full((20, 2), np.nan)), "an input has to be known at every moment"),
        (lambda m: m.simulate([["a", "b"]] * 3), "u must be an array of real numbers"),
        (lambda m: m.simulate(u_and_y[0], np.ones((20, 3))), "y_start must be (T, 2), got shape (20, 3)."),
        (lambda m: m.simulate(u_and_y[0], np.ones((30, 2))), "y_start has 30 samples, more than u, which has 20."),
        (lambda m: m.simulate(u_and_y[0], np.full((20, 2), np.nan)), "y_start has 40 entries that are NaN or infinite"),
        (
            lambda m: m.run(u_and_y[0], [[1.0, np.nan]] * 5),
            "first at y_start[0, 1]: give the outputs before the first gap",
        ),
        (lambda m: m.predict(u_and_y[0], np.ones((19, 2))), "u and y must be of the same length, got 20 and 19."),
        (lambda m: m.predict(u_and_y[0], np.ones((20, 1))), "y must be (T, 2), got shape (20, 1)."),
        (lambda m: m.predict(u_and_y[0], np.full((20, 2), np.inf)), "put NaN where an output is not known"),
    ],
)
@pytest.mark.parametrize("model", [STATE_SPACE, NARX], ids=["state_space", "narx"])
def test_signals_that_do_not_fit_are_refused(
    model: DynamicModel, call: Callable[[DynamicModel], object], said: str
) -> None:
    with pytest.raises(DataError) as caught:
        call(model)
    assert said in str(caught.value)


def test_too_few_first_outputs_are_refused() -> None:
    with pytest.raises(DataError, match=r"y_start must have 3 samples at least, got 2\."):
        NARX.simulate(u_and_y[0], np.ones((2, 2)))


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"A": np.ones((3, 2))}, "A must be (3, 3), got shape (3, 2)."),
        ({"B": np.ones((2, 2))}, "B must be (3, 2), got shape (2, 2)."),
        ({"C": np.full((2, 3), np.nan)}, "C has 6 entries that are NaN or infinite, the first at C[0, 0]"),
        ({"D": None}, "D must be an array of numbers, got None."),
        ({"K": np.ones((2, 3))}, "K must be (3, 2), got shape (2, 3)."),
        ({"rest": [1.0]}, "rest must be (3,), got shape (1,)."),
        ({"spread": [1.0, 0.0, 1.0]}, "spread must be above 0, got 0 among others."),
        ({"noise": [1.0]}, "noise must be (2,), got shape (1,)."),
        ({"noise": [1.0, -1.0]}, "noise must be at least 0, got -1 among others."),
        ({"rest_input": [np.inf, 0.0]}, "rest_input has 1 entry that is NaN or infinite"),
        ({"nonlinearity": NARX.nonlinearity}, "nonlinearity must be a DecoupledModel of [x; u] with 5 inputs and 5"),
        ({"nonlinearity": 3}, "got 3."),
        ({"dt": "0.1"}, "dt must be a finite number of at least 0, got '0.1'."),
        ({"dt": 0.0}, "dt must be above 0, got 0."),
        ({"input_names": ["a"]}, "input_names must be 2 names, one a column, got 1."),
        ({"output_names": "ab"}, "output_names must be a list of 2 names, got the single text 'ab'."),
    ],
)
def test_parts_that_make_no_state_space_model_are_refused(parts: dict[str, Any], said: str) -> None:
    with pytest.raises(UnbraidError) as caught:
        STATE_SPACE.changed(**parts)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"L": np.ones((2, 7))}, "L must be (2, 8) for these lags and 2 inputs, got shape (2, 7)."),
        (
            {"nonlinearity": None},
            "nonlinearity must be a DecoupledModel with 8 inputs, the entries of φ, and 2 outputs",
        ),
        ({"input_lags": (0, 0.5)}, "input_lags must be whole numbers of at least 0, each once, such as (1, 2)"),
        ({"input_lags": (-1, 0)}, "input_lags must be whole numbers of at least 0"),
        ({"input_lags": 2}, "input_lags must be whole numbers of at least 0"),
        ({"output_lags": (0, 1)}, "output_lags must be whole numbers of at least 1"),
        ({"output_lags": (1, 1)}, "output_lags must be whole numbers of at least 1, each once"),
        ({"output_lags": ()}, "output_lags must be whole numbers of at least 1"),
        ({"nu": 1.5}, "nu must be a whole number of at least 1, got 1.5."),
        ({"spread": [-1.0, 1.0]}, "spread must be above 0, got -1 among others."),
        ({"dt": -1.0}, "dt must be a finite number of at least 0, got -1.0."),
    ],
)
def test_parts_that_make_no_narx_model_are_refused(parts: dict[str, Any], said: str) -> None:
    own = {"input_lags": NARX.input_lags, "output_lags": NARX.output_lags, "nu": 2, "nonlinearity": NARX.nonlinearity}
    with pytest.raises(UnbraidError) as caught:
        NarxModel(**{"L": NARX.L, **own, **parts})
    assert said in str(caught.value)


def test_points_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match=r"x must be \(3,\), got shape \(2,\)"):
        STATE_SPACE.step([1.0, 2.0], [0.0, 0.0])
    with pytest.raises(DataError, match=r"u must be \(2,\), got shape \(1,\)"):
        STATE_SPACE.linearised(None, 0.5)


def test_lags_may_be_given_in_any_order_and_as_an_array() -> None:
    model = NarxModel(NARX.L, NARX.nonlinearity, input_lags=np.array([2, 0]), output_lags=[3, 1], nu=2)  # type: ignore[arg-type]
    assert (model.input_lags, model.output_lags) == ((0, 2), (1, 3))


def test_models_say_what_they_are() -> None:
    u = inputs_of("narx", 50)
    assert repr(NARX).startswith("NarxModel(input_lags=(0, 2), output_lags=(1, 3), 2 inputs, 2 outputs, 2 branches, ")
    assert repr(STATE_SPACE).startswith("StateSpaceModel(order=3, 2 inputs, 2 outputs, 2 branches, ")
    assert repr(NARX.run(u)).startswith("Simulation(50 samples, ")


def test_first_outputs_that_tell_nothing_of_the_state_leave_it_where_it_was_guessed() -> None:
    """Those that come long after it, of an exact model that forgets quickly."""
    model = random_state_space(2, 1, 2, 2, seed=3)
    u = random_inputs(120, 1)
    y = model.simulate(u)
    y[:60] = np.nan
    states = model.begun(u, y[:70]).states
    assert states is not None
    assert np.abs(states).max() < 100.0
