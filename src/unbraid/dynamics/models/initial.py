"""The past of a course, its initial state, from the first outputs that were measured; and equilibria."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unbraid.dynamics.models.feedback import Feedback
from unbraid.dynamics.models.function import FedBack
from unbraid.dynamics.models.trajectory import Trajectory, solve_trajectory
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.kernels.recursions import recursion_band, solve_recursion

if TYPE_CHECKING:
    from unbraid.dynamics.models.base import DynamicModel

STEPS, HALVINGS = 20, 8
"""Gauss–Newton steps on a past, and halvings of one."""


def find_past(model: DynamicModel, u: Array, y: Array) -> Array:
    """The past (longest, q) from which a model follows the first outputs y (some, ny) best, under u (some, nu).

    Least squares by Gauss–Newton, from a guess; where not even the guess can be simulated it is returned.
    """
    feedback, past, lead = model.feedback, model.past_guess(y), model.lead
    v, target = model.from_outside(u), y[lead:]
    if not len(target):
        return past
    known = np.isfinite(target)
    guess = np.zeros((len(v), feedback.fed))
    error, there = past_error(model.function, feedback, v, past, guess, target, known)
    for _ in range(STEPS):
        if there is None:
            return past
        rows = past_columns(model.function, feedback, there) * known
        residual = np.where(known, there.values.f[:, -feedback.observed :] - target, 0.0)
        D = rows.reshape(len(rows), -1)
        scale = 1.0 / np.sqrt(np.maximum(np.sum(D * D, axis=1), 1e-300))
        step: Array = -scale * np.linalg.lstsq((D * scale[:, None]).T, residual.ravel(), rcond=1e-8)[0]
        for _ in range(HALVINGS):
            trial = past + step.reshape(past.shape)
            lower, then = past_error(model.function, feedback, v, trial, there.fed(feedback), target, known)
            if lower < error:
                break
            step = 0.5 * step
        else:
            return past
        gained, past, error, there = error - lower, trial, lower, then
        if gained <= 1e-9 * error:
            return past
    return past


def past_error(
    function: FedBack, feedback: Feedback, v: Array, past: Array, guess: Array, target: Array, known: BoolArray
) -> tuple[float, Trajectory | None]:
    """The sum of squares of what is simulated wrongly from a past, and the trajectory, None where there is none."""
    there = solve_trajectory(function, feedback, v, past, guess)
    if there is None:
        return np.inf, None
    off = np.where(known, there.values.f[:, -feedback.observed :] - target, 0.0)
    return float(np.sum(off**2)), there


def past_columns(function: FedBack, feedback: Feedback, there: Trajectory) -> Array:
    """The derivatives (longest q, T, ny) of the outputs by the past."""
    q, ny, longest, width = feedback.fed, feedback.observed, feedback.longest, feedback.width
    M = function.slopes(there.values, width)
    past = np.eye(longest * q).reshape(-1, longest, q)
    force = np.zeros((len(past), len(M), q))
    add_past(force, M[:, :q], past, feedback)
    z = solve_recursion(recursion_band(M[:, :q], feedback.lags), force)
    carried = feedback.gather(z, past)
    return np.stack([np.sum(carried * M[:, M.shape[1] - ny + i], axis=-1) for i in range(ny)], axis=-1)


def add_past(force: Array, M: Array, past: Array, feedback: Feedback) -> None:
    """Add to right-hand sides (P, T, q) of a recursion what comes of z before its begin, (P, longest, q)."""
    q, longest = feedback.fed, feedback.longest
    for k, lag in enumerate(feedback.lags):
        for t in range(min(lag, force.shape[1])):
            force[:, t] += past[:, longest - lag + t] @ M[t, :, k * q : (k + 1) * q].T


def equilibrium(function: FedBack, feedback: Feedback, v: Array, guess: Array) -> Array | None:
    """What z (q,) = f([z; z; …; v])[:q] is under a constant v (p,), by Newton's method; None where none is found."""
    z, q = guess.copy(), feedback.fed
    with np.errstate(all="ignore"):
        for _ in range(50):
            phi = np.concatenate([np.tile(z, len(feedback.lags)), v])[None]
            values = function.values(phi)
            M = function.slopes(values, feedback.width)[0, :q].reshape(q, len(feedback.lags), q).sum(axis=1)
            off = values.f[0, :q] - z
            if not np.isfinite(off).all():
                return None
            if np.abs(off).max() <= 1e-12 * max(1.0, np.abs(z).max()):
                return z
            try:
                z = z + np.linalg.solve(np.eye(q) - M, off)
            except np.linalg.LinAlgError:
                return None
    return None
