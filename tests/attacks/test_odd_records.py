"""Odd records, drawn in classes: identified no worse than by a linear model, or refused in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import unbraid as ub
from draws import few_or_many
from unbraid.dynamics import DynamicFit, Record
from unbraid.dynamics.identifying.result import size_of
from unbraid.errors import UnbraidError
from unbraid.kernels.arrays import Array

Rng = np.random.Generator
Draw = tuple[list[Record], dict[str, Any]]
"""Records, and settings that belong to them."""


def signals(rng: Rng, T: int, nu: int = 1, ny: int = 1) -> tuple[Array, Array]:
    """U and y of a stable system of two states with a saturation, with noise of a few per cent."""
    A = rng.uniform(0.3, 0.95) * np.linalg.qr(rng.standard_normal((2, 2)))[0]
    B, C = rng.standard_normal((2, nu)), rng.standard_normal((ny, 2))
    u, x, y = rng.standard_normal((T, nu)), np.zeros(2), np.zeros((T, ny))
    bend = rng.uniform(0.0, 2.0)
    for t in range(T):
        y[t] = C @ x + 0.3 * bend * np.tanh(2.0 * x[:1])
        x = A @ x + B @ u[t] - 0.1 * bend * np.tanh(x)
    return u, y + 0.03 * y.std(axis=0) * rng.standard_normal(y.shape)


def plain(rng: Rng) -> tuple[Array, Array]:
    return signals(rng, int(rng.integers(60, 150)))


def clipped_above(rng: Rng) -> Draw:
    u, y = plain(rng)
    return [Record(u, np.minimum(y, np.quantile(y, rng.uniform(0.2, 0.9))))], {}


def clipped(rng: Rng) -> Draw:
    u, y = plain(rng)
    low, high = np.quantile(y, [rng.uniform(0.05, 0.45), rng.uniform(0.55, 0.95)])
    return [Record(u, np.clip(y, low, high))], {}


def short_further_record(rng: Rng) -> Draw:
    u, y = plain(rng)
    T = int(rng.integers(1, 26))
    return [Record(u, y), Record(u[:T], y[:T])][:: rng.choice([1, -1])], {}


def constant_columns(rng: Rng) -> Draw:
    u, y = plain(rng)
    level = rng.choice([0.0, 1e-8, 0.1, 1.0, -1e6, 1e12])
    return [Record(np.insert(u, rng.integers(2), level, axis=1), y)], {}


def dependent_columns(rng: Rng) -> Draw:
    u, y = signals(rng, 120, nu=2)
    further = rng.choice(3)
    if further == 0:
        return [Record(np.column_stack([u, u @ rng.standard_normal(2) + 3.0]), y)], {}
    if further == 1:
        return [Record(np.column_stack([u, 1e-5 * u[:, ::-1]]), y)], {}
    still = np.column_stack([u[:50, :1], np.full(50, 2.0)])
    return [Record(u[:70], y[:70]), Record(still, y[70:])], {}


def extreme_amplitudes(rng: Rng) -> Draw:
    u, y = plain(rng)
    sizes = 10.0 ** rng.choice([-320, -305, -200, -160, -100, 100, 155, 200, 280, 306], 2)
    return [Record(sizes[rng.integers(2)] * u, sizes[0] * y)], {}


def few_samples(rng: Rng) -> Draw:
    u, y = signals(rng, int(rng.integers(4, 40)))
    return [Record(u, y)], {}


def quantised(rng: Rng) -> Draw:
    u, y = plain(rng)
    step = rng.uniform(0.3, 3.0) * y.std()
    return [Record(np.sign(u) if rng.random() < 0.5 else u, step * np.round(y / step))], {}


def dead_outputs(rng: Rng) -> Draw:
    u, y = signals(rng, 100, ny=2)
    y[:, 1] = rng.choice([0.0, 1.0, 1e9])
    y[50, 1] += rng.choice([0.0, 1e-12, 1e-3, 1.0])
    return [Record(u, y)], {}


def outliers(rng: Rng) -> Draw:
    u, y = plain(rng)
    places = rng.choice(len(y), int(rng.integers(1, 6)), replace=False)
    y[places] += 10.0 ** rng.uniform(1.0, 9.0) * rng.standard_normal((len(places), 1))
    return [Record(u, y)], {}


def steps(rng: Rng) -> Draw:
    T, at = 100, int(rng.integers(1, 90))
    u = np.where(np.arange(T) >= at, 1.0, 0.0)
    y = np.where(np.arange(T) >= at, 1.0 - np.exp(-(np.arange(T) - at) / rng.uniform(0.1, 30.0)), 0.0)
    return [Record(u, y + rng.choice([0.0, 0.02]) * rng.standard_normal(T))], {}


def integrators(rng: Rng) -> Draw:
    u, _ = plain(rng)
    rate = 0.1 * np.tanh(rng.uniform(0.1, 3.0) * u)
    y = np.cumsum(rate, axis=0) if rng.random() < 0.5 else np.cumsum(np.cumsum(rate, axis=0), axis=0)
    return [Record(u, y + rng.choice([0.0, 0.02]) * rng.standard_normal(y.shape))], {}


def delays(rng: Rng) -> Draw:
    u, y = plain(rng)
    by = int(rng.integers(5, 30))
    return [Record(u, np.roll(y, by, axis=0))], {"input_lags": (0, by), "output_lags": (1, by)}


def gaps(rng: Rng) -> Draw:
    u, y = signals(rng, 120, ny=2)
    y[rng.random(y.shape) < rng.choice([0.1, 0.5, 0.8])] = np.nan
    begin = int(rng.integers(0, 100))
    y[begin : begin + 20] = np.nan
    return [Record(u, y, burn_in=int(rng.integers(0, 40)))], {}


def many_signals(rng: Rng) -> Draw:
    u, y = signals(rng, int(rng.integers(60, 150)), int(rng.integers(1, 7)), int(rng.integers(1, 5)))
    return [Record(u, y)], {}


CLASSES: tuple[Callable[[Rng], Draw], ...] = (
    clipped_above,
    clipped,
    short_further_record,
    constant_columns,
    dependent_columns,
    extreme_amplitudes,
    few_samples,
    quantised,
    dead_outputs,
    outliers,
    steps,
    integrators,
    delays,
    gaps,
    many_signals,
)
REFUSALS = ("too few", "too short", "does not vary", "more than records of this length tell", "in other units")
"""What a refusal may speak of: records of which not even a linear model can be learned."""


def fitted(make: Callable[[Rng], Draw], seed: int) -> DynamicFit:
    """A fit of what a class draws: of both kinds of models, with few settings."""
    rng = np.random.default_rng([seed, CLASSES.index(make)])
    records, lags = make(rng)
    settings: dict[str, Any] = {"starts": 2, "rng": 0, "max_seconds": 30.0}
    settings["rank"] = rng.choice(np.array([0, 1, 1, 1], dtype=int)).item()
    if rng.random() < 0.7:
        settings["basis"] = ub.BSpline(4) if rng.random() < 0.5 else ub.Polynomial(3)
    if seed % 2:
        return ub.dynamics.narx(records, **{"input_lags": (0, 1), "output_lags": (1, 2), **lags}, **settings)
    return ub.dynamics.state_space(records, int(rng.integers(1, 3)), **settings)


@few_or_many(10, 150)
def test_odd_records_are_fitted_no_worse_than_by_lines_or_refused_in_a_sentence(draws: int) -> None:
    """Nothing foreign is raised, and no warning is given: that would be an error here."""
    for k in np.linspace(0, 149, draws).astype(int):
        make, seed = CLASSES[k % len(CLASSES)], k // len(CLASSES)
        case, fit, said = f"{make.__name__}, seed {seed}", None, ""
        try:
            fit = fitted(make, seed)
        except UnbraidError as refused:
            said = str(refused)
        if fit is None:
            assert any(words in said for words in REFUSALS), f"{case}: {said}"
            continue
        assert np.isfinite(fit.simulation_error.percent).all(), case
        assert size_of(fit.simulation_error) <= size_of(fit.linear_error), case
        assert fit.asked is not None
        said_so = any("The linear model is given back" in note for note in fit.notes)
        assert said_so == (fit.model.rank < fit.asked.settings["rank"]), case
        told = any("do not rely on this model" in note for note in fit.notes)
        assert np.isfinite(fit.prediction_error.percent).all() or told, case
