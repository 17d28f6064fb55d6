"""The gain of a predictor: where there is process noise, measured outputs correct the state."""

from __future__ import annotations

import numpy as np
import pytest

from draws import few_or_many
from dynamic_models import random_state_space, system
from unbraid.dynamics import Record, StateSpaceModel
from unbraid.dynamics.identifying.gain import cut, find_gain, gain_equations, prediction_error
from unbraid.kernels.arrays import Array


def disturbed(
    model: StateSpaceModel, T: int, process: float, measured: float, rng: np.random.Generator, gap: bool = False
) -> Record:
    """A record of a model whose state is pushed at every moment, and whose outputs are measured with noise."""
    x, u, y = model.rest, rng.standard_normal((T, model.nu)), np.zeros((T, model.ny))
    for t in range(T):
        after, y[t] = model.step(x, u[t])
        x = after + process * rng.standard_normal(model.order)
    y += measured * rng.standard_normal(y.shape)
    if gap:
        y[T // 3 : T // 3 + 9, -1] = np.nan
    return Record(u, y)


def error_ahead(model: StateSpaceModel, record: Record) -> float:
    """The root of the mean square of what is predicted wrongly, behind the beginning."""
    return float(np.sqrt(np.nanmean((model.predict(record.u, record.y) - record.y)[50:] ** 2)))


@few_or_many(2, 20)
def test_a_gain_lowers_the_error_one_step_ahead_where_there_is_process_noise(draws: int) -> None:
    model = system("duffing", 10)[1]
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        K = find_gain(model, [disturbed(model, 400, 0.05, 0.02, rng, gap=True) for _ in range(2)])
        fresh = disturbed(model, 1000, 0.05, 0.02, rng)
        assert error_ahead(model.changed(K=K), fresh) < 0.6 * error_ahead(model, fresh)


@few_or_many(2, 20)
def test_without_process_noise_hardly_anything_is_corrected(draws: int) -> None:
    for seed in range(draws):
        rng, model = np.random.default_rng(seed), random_state_space(2, 1, 1, 1, seed)
        K = find_gain(model, [disturbed(model, 1000, 0.0, 0.1, rng)])
        fresh = disturbed(model, 1000, 0.0, 0.1, rng)
        assert error_ahead(model.changed(K=K), fresh) < 1.02 * error_ahead(model, fresh)


@few_or_many(4, 20)
def test_a_gain_from_a_short_record_does_not_leave_on_a_longer_one(draws: int) -> None:
    """A record of 60 samples can be followed better with a correction under which errors grow."""
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        model = system("duffing", 10)[1] if seed % 2 else random_state_space(2, 1, 1, 1, seed)
        K = find_gain(model, [disturbed(model, 60, 0.0, 0.1, rng)])
        fresh = disturbed(model, 1000, 0.0, 0.1, rng)
        assert error_ahead(model.changed(K=K), fresh) < 1.1 * error_ahead(model, fresh)


def test_an_exact_record_needs_no_gain() -> None:
    model, rng = random_state_space(2, 1, 1, 1), np.random.default_rng(0)
    K = find_gain(model, [disturbed(model, 300, 0.0, 0.0, rng)])
    assert np.isfinite(K).all()
    assert error_ahead(model.changed(K=K), disturbed(model, 300, 0.0, 0.0, rng)) < 1e-6


@pytest.mark.parametrize("burn_in", [0, 40])
def test_the_equations_of_a_gain_are_those_of_finite_differences(burn_in: int) -> None:
    """With gaps, which are not corrected and do not count."""
    model, rng = random_state_space(2, 1, 2, 2, seed=3), np.random.default_rng(0)
    plain = disturbed(model, 120, 0.2, 0.1, rng, gap=True)
    record = Record(plain.u, plain.y, burn_in=burn_in)
    K, scale, parts = 0.1 * rng.standard_normal((2, 2)), np.array([1.0, 2.0]), cut(model, [record])

    def off(gain: Array) -> tuple[float, Array]:
        error, there = prediction_error(model, gain, parts, scale, None)
        assert there is not None
        return error, np.nan_to_num((there[0].values.f[:, -2:] - parts[0][0][:, -2:]) / scale).ravel()

    _, there = prediction_error(model, K, parts, scale, None)
    assert there is not None
    N, descent = gain_equations(model, K, parts, there, scale)
    steps = 1e-6 * np.eye(4).reshape(4, 2, 2) / scale
    D = np.stack([(off(K + step)[1] - off(K - step)[1]) / 2e-6 for step in steps], axis=1)
    np.testing.assert_allclose(N, D.T @ D, rtol=1e-5)
    np.testing.assert_allclose(descent, -D.T @ off(K)[1], rtol=1e-5)


def test_burn_in_does_not_count_for_a_gain() -> None:
    model, rng = random_state_space(2, 1, 1, 1), np.random.default_rng(0)
    plain = disturbed(model, 400, 0.2, 0.05, rng)
    wild = plain.y.copy()
    wild[:50] = 1e3
    one, other = (find_gain(model, [Record(plain.u, y, burn_in=50)]) for y in (plain.y, wild))
    np.testing.assert_allclose(other, one, rtol=0.05, atol=0.02)
