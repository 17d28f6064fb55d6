"""The gain of a state-space model's predictor: by how much a state is corrected, x⁺ = … + K (y - ŷ)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unbraid.dynamics.models.function import ObserverFunction, Outputs
from unbraid.dynamics.models.initial import FIRST, find_past
from unbraid.dynamics.models.recursions import recursion_band, solve_recursion
from unbraid.dynamics.models.state_space import StateSpaceModel
from unbraid.dynamics.models.trajectory import Trajectory, follow, solve_trajectory
from unbraid.dynamics.record import Record, known_spread
from unbraid.kernels.arrays import Array

STEPS, MOST = 15, 10_000
"""Steps on K, and samples that it is found from, at most."""


@np.errstate(all="ignore")
def find_gain(model: StateSpaceModel, records: Sequence[Record]) -> Array:
    """K (nx, ny) of least squared errors one step ahead, by Levenberg–Marquardt from zero, which is simulation.

    A K is refused under which errors of the state die away more slowly than in simulation: on a short record such a K
    can follow the noise, and leave for good on a longer one.
    """
    nx, ny = model.order, model.ny
    scale = known_spread(np.concatenate([record.y for record in records]), 1.0)
    K, damping, parts = np.zeros((nx, ny)), 1e-3, cut(model, records)
    error, there = prediction_error(model, K, parts, scale, None)
    if there is None:
        return K
    most = growth(model, K, there)
    for _ in range(STEPS):
        N, descent = gain_equations(model, K, parts, there, scale)
        damped = N + np.diag(damping * np.diagonal(N) + 1e-300)
        trial = K + np.linalg.lstsq(damped, descent, rcond=None)[0].reshape(nx, ny) / scale
        lower, then = prediction_error(model, trial, parts, scale, there)
        if then is not None and lower < error and growth(model, trial, then) <= most:
            gained, K, error, there, damping = error - lower, trial, lower, then, 0.1 * damping
            if gained < 1e-5 * error:
                break
        else:
            damping *= 10.0
    return K


def cut(model: StateSpaceModel, records: Sequence[Record]) -> list[tuple[Array, Array]]:
    """The beginnings of what counts of records, [u; y] (T, nu + ny), of so many samples in all, and initial states."""
    each = MOST // len(records)
    parts = []
    for record in records:
        u, y = (signal[record.burn_in :][:each] for signal in (record.u, record.y))
        parts.append((np.concatenate([u, y], axis=1), find_past(model, u[:FIRST], y[:FIRST])))
    return parts


def prediction_error(
    model: StateSpaceModel, K: Array, parts: list[tuple[Array, Array]], scale: Array, near: list[Trajectory] | None
) -> tuple[float, list[Trajectory] | None]:
    """The sum of squares of what is predicted wrongly, and the trajectories; infinite where there are none."""
    observer, ny, found, error = ObserverFunction(model.function, K), model.ny, [], 0.0
    for k, (v, past) in enumerate(parts):
        if near is None:
            done = follow(observer, model.feedback, v, past, model.spread)
            one = Trajectory(done.phi, observer.values(done.phi)) if len(done.f) == len(v) else None
        else:
            one = solve_trajectory(observer, model.feedback, v, past, near[k].fed(model.feedback))
        if one is None:
            return np.inf, None
        found.append(one)
        error += float(np.nansum(((v[:, -ny:] - one.values.f[:, -ny:]) / scale) ** 2))
    return error, found


def growth(model: StateSpaceModel, K: Array, there: list[Trajectory]) -> float:
    """By how much errors of the state grow at most in a pass through a record, were it to come again and again."""
    observer, nx, largest = ObserverFunction(model.function, K), model.order, 0.0
    for one in there:
        M = observer.slopes(one.values, nx)[:, :nx]
        force = np.zeros((nx, len(M), nx))
        force[:, 0] = M[0].T
        passed = solve_recursion(recursion_band(M, (1,)), force)[:, -1]
        finite = np.isfinite(passed).all()
        largest = max(largest, float(np.abs(np.linalg.eigvals(passed)).max()) if finite else np.inf)
    return largest


def gain_equations(
    model: StateSpaceModel, K: Array, parts: list[tuple[Array, Array]], there: list[Trajectory], scale: Array
) -> tuple[Array, Array]:
    """Normal matrix and descent of the entries of K · scale, row by row."""
    nx, ny = K.shape
    N, descent = np.zeros((nx * ny, nx * ny)), np.zeros(nx * ny)
    observer = ObserverFunction(model.function, K)
    for (v, _), one in zip(parts, there, strict=True):
        M = observer.slopes(one.values, nx)
        off = np.nan_to_num(v[:, -ny:] - one.values.f[:, -ny:]) / scale
        force = np.zeros((nx, ny, len(v), nx))
        for i in range(nx):
            force[i, :, :, i] = off.T
        x = solve_recursion(recursion_band(M[:, :nx], (1,)), force.reshape(nx * ny, len(v), nx))
        before = model.feedback.gather(x, np.zeros((nx * ny, 1, nx)))
        plain = model.function.slopes(Outputs(one.values.f, one.values.G[:-ny]), nx)[:, nx:]
        rows = np.stack([np.sum(before * plain[:, i], axis=-1) for i in range(ny)], axis=-1)
        rows *= ~np.isnan(v[:, -ny:]) / scale
        D = rows.reshape(nx * ny, -1)
        N += D @ D.T
        descent += D @ off.ravel()
    return N, descent
