"""Fits of dynamic models made by hand: the truth, with splines for its curves, held against a record."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

import unbraid as ub
from unbraid.dynamics import DynamicFit, DynamicModel, NarxModel, Record, StateSpaceModel
from unbraid.dynamics.fit import Asked, error_of, runs_on, simulation_error
from unbraid.dynamics.models.slopes import average_slopes, visited
from unbraid.kernels.arrays import Array


def with_splines(model: ub.DecoupledModel, ranges: Array) -> ub.DecoupledModel:
    """A model with cubic splines for its branches, each between the ends (r, 2) of its range."""
    grids = [np.linspace(low, high, 15) for low, high in ranges]
    splines = [CubicSpline(u, branch(u)) for u, branch in zip(grids, model.branches, strict=True)]
    return ub.DecoupledModel.from_parts(model.W0, model.W1, model.bias, splines)


def without_branches(model: DynamicModel, L: Array) -> DynamicModel:
    """The model of that linear part (n, mφ), of the kind and size of another, whose one branch goes nowhere."""
    n, m = L.shape
    nothing = ub.DecoupledModel.from_parts(np.ones((1, m)), np.zeros((n, 1)), None, [CubicSpline(*saturation())])
    if isinstance(model, NarxModel):
        inputs, outputs = model.input_lags, model.output_lags
        return NarxModel(L, nothing, input_lags=inputs, output_lags=outputs, nu=model.nu, dt=model.dt)
    assert isinstance(model, StateSpaceModel)
    x = model.order
    return StateSpaceModel(L[:x, :x], L[:x, x:], L[x:, :x], L[x:, x:], nothing, dt=model.dt)


def fit_of(model: DynamicModel, linear: DynamicModel, *records: Record, noise: Array | None = None) -> DynamicFit:
    """A fit that has found this model, and this one without branches."""
    runs = runs_on(model, list(records), first=0)
    y = np.concatenate([one.record.y for one in runs])
    ahead = np.concatenate([model.predict(one.record.u, one.record.y) for one in runs])
    outside = np.concatenate([one.simulation.outside for one in runs])
    error = simulation_error(runs)
    return DynamicFit(
        model,
        error,
        error_of(y, ahead, outside, error.status),
        simulation_error(runs_on(linear, list(records))),
        tuple(one.record for one in runs),
        tuple(one.simulation for one in runs),
        ub.Status.CONVERGED,
        np.array([0.3, 0.05, 0.002, 0.0011, 0.001]),
        (0.001, 0.001, 0.02),
        None,
        (None,) * model.rank,
        noise,
        ("Order 2 was chosen: order 3 gains less than 1 %.",),
        1.5,
        linear,
        asked_for(model, records),
    )


def asked_for(model: DynamicModel, records: Sequence[Record]) -> Asked:
    own: dict[str, Any] = {"input_lags": model.input_lags, "output_lags": model.feedback.lags}
    narx, order = isinstance(model, NarxModel), {"order": getattr(model, "order", 0)}
    settings = {**(own if narx else order), "rank": model.rank, "starts": 3}
    return Asked.of("narx" if narx else "state_space", settings, 0, records)


@cache
def duffing_fit(T: int = 1500) -> DynamicFit:
    """The mass on a hardening spring: one input, one output, two states, one curve."""
    record, truth = ub.dynamics.systems.duffing(T=T, rng=0)
    y = np.array(record.y)
    y[300:340] = np.nan
    record = Record(record.u, y, record.dt, input_names=["force"], output_names=["position"])
    return found(truth, record)


@cache
def two_by_two_fit() -> DynamicFit:
    """Two inputs, two outputs, three states, two curves, and two records without names."""
    record, truth = ub.dynamics.systems.two_by_two(T=1200, rng=0)
    return found(truth, record.take(slice(0, 700)), record.take(slice(700, 1200)))


def found(truth: StateSpaceModel, *records: Record) -> DynamicFit:
    """The fit of records that has found the truth, with curves as far as they were seen."""
    phi = visited([truth.run(one.u) for one in records])
    assert phi is not None
    u = phi @ truth.nonlinearity.W0.T
    curves = with_splines(truth.nonlinearity, np.column_stack([u.min(axis=0), 0.9 * u.max(axis=0)]))
    model = StateSpaceModel(
        truth.A,
        truth.B,
        truth.C,
        truth.D,
        curves,
        dt=truth.dt,
        rest=truth.rest,
        spread=phi[:, : truth.order].std(axis=0),
        input_names=records[0].input_names,
        output_names=records[0].output_names,
    )
    return fit_of(model, without_branches(model, average_slopes(model, phi)), *records)


@cache
def narx_fit() -> DynamicFit:
    """A NARX model of one input and one output: y falls by a saturation of itself."""
    curve = with_splines(
        ub.DecoupledModel.from_parts([[1.0, 0.0, 0.5, 0.0]], [[0.4]], [0.1], [CubicSpline(*saturation())]),
        np.array([[-3.0, 3.0]]),
    )
    L = np.array([[0.5, -0.2, 0.4, 0.2]])
    model = NarxModel(L, curve, input_lags=(0, 1), output_lags=(1, 2), dt=0.5, spread=[1.0])
    rng = np.random.default_rng(0)
    u = ub.dynamics.systems.low_pass(rng, 900, 1, 0.5)
    record = Record(u, model.simulate(u) + 0.01 * rng.standard_normal((900, 1)), 0.5)
    return fit_of(model, without_branches(model, L + np.array([[0.3, 0.0, 0.15, 0.0]])), record)


def saturation() -> tuple[Array, Array]:
    u = np.linspace(-3.0, 3.0, 15)
    return u, np.tanh(u)
