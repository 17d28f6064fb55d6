"""The past of a course, its initial state, from the first outputs that were measured; and equilibria."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unbraid.dynamics.models.feedback import Feedback
from unbraid.dynamics.models.function import FedBack
from unbraid.dynamics.models.recursions import recursion_band, solve_recursion
from unbraid.dynamics.models.trajectory import Trajectory, follow, solve_trajectory
from unbraid.dynamics.record import known_spread
from unbraid.kernels.arrays import Array

if TYPE_CHECKING:
    from unbraid.dynamics.models.base import DynamicModel

STEPS, HALVINGS = 20, 8
"""Gauss–Newton steps on a past, and halvings of one."""
FIRST = 50
"""So many outputs at the beginning of a record set its initial state, and do not count; at most a tenth of it."""


def first_outputs(length: int) -> int:
    """How many outputs at the beginning of a record of that length set its initial state."""
    return min(FIRST, max(length // 10, 1))


@np.errstate(all="ignore")  # what overflows is no past
def find_past(model: DynamicModel, u: Array, y: Array) -> Array:
    """The past (longest, q) from which a model follows the first outputs y (some, ny) best, under u (some, nu).

    Least squares by Gauss–Newton from a guess. What the outputs hardly tell of stays near the guess: errors of the
    outputs count in units of the model's own error, departures from the guess in the spread of what is fed back. The
    past is NaN, and simulations from it are lost, where those from all pasts on the way to these outputs are.
    """
    guess = model.past_guess(u, y)
    v, target = model.from_outside(u), y[model.lead :]
    if not len(target):
        return guess
    search = PastSearch(model, v, target, guess)
    past, error, there = guess, *search.error(guess, None)
    for _ in range(STEPS):
        if there is None:
            return past
        step = search.step(past, there)
        for _ in range(HALVINGS):
            trial = past + step
            lower, then = search.error(trial, there)
            if lower < error:
                break
            step = 0.5 * step
        else:
            return past if np.isfinite(lower) else np.full_like(past, np.nan)
        gained, past, error, there = error - lower, trial, lower, then
        if gained <= 1e-9 * error:
            return past
    return past


class PastSearch:
    """Least squares for the past of a model whose first outputs are `target` (some, ny) under v, near a guess."""

    def __init__(self, model: DynamicModel, v: Array, target: Array, guess: Array) -> None:
        self.function, self.feedback, self.v, self.guess = model.function, model.feedback, v, guess
        self.target, self.known = target, np.isfinite(target)
        self.weight = 1.0 / np.maximum(model.noise, 1e-6 * known_spread(target, 1.0))
        self.prior = np.tile(1.0 / model.spread, model.feedback.longest)
        self.spread = model.spread

    def error(self, past: Array, near: Trajectory | None) -> tuple[float, Trajectory | None]:
        """The sum of squares, and the trajectory from a past; infinite, and None, where there is none."""
        if near is None:
            done = follow(self.function, self.feedback, self.v, past, self.spread)
            there = Trajectory(done.phi, self.function.values(done.phi)) if len(done.f) == len(self.v) else None
        else:
            there = solve_trajectory(self.function, self.feedback, self.v, past, near.fed(self.feedback), self.spread)
        if there is None:
            return np.inf, None
        away = float(np.sum((self.prior * (past - self.guess).ravel()) ** 2))
        return float(np.sum(self.residual(there) ** 2)) + away, there

    def residual(self, there: Trajectory) -> Array:
        """What is simulated wrongly, (some, ny), in units of the model's own error; 0 where nothing was measured."""
        off = there.values.f[:, -self.feedback.observed :] - self.target
        return np.where(self.known, off * self.weight, 0.0)

    def step(self, past: Array, there: Trajectory) -> Array:
        """A Gauss–Newton step from a past."""
        rows = past_columns(self.function, self.feedback, there) * (self.known * self.weight)
        D = np.concatenate([rows.reshape(len(rows), -1).T / self.prior, np.eye(len(rows))])
        off = np.concatenate([self.residual(there).ravel(), self.prior * (past - self.guess).ravel()])
        scale = 1.0 / np.sqrt(np.sum(D * D, axis=0))
        step = -scale * np.linalg.lstsq(D * scale, off, rcond=1e-8)[0] / self.prior
        return np.asarray(step).reshape(past.shape)


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


def equilibrium(function: FedBack, feedback: Feedback, v: Array, guess: Array, spread: Array) -> Array | None:
    """What z (q,) = f([z; z; …; v])[:q] is under a constant v (p,), by Newton's method; None where none is found.

    `spread` (q,) is how much z moves usually.
    """
    z, q = guess.copy(), feedback.fed
    with np.errstate(all="ignore"):
        for _ in range(50):
            phi = np.concatenate([np.tile(z, len(feedback.lags)), v])[None]
            values = function.values(phi)
            M = function.slopes(values, feedback.width)[0, :q].reshape(q, len(feedback.lags), q).sum(axis=1)
            off = values.f[0, :q] - z
            if not np.isfinite(off).all():
                return None
            if np.abs(off / spread).max() <= 1e-12 * max(1.0, np.abs(z / spread).max()):
                return z
            try:
                z = z + np.linalg.solve(np.eye(q) - M, off)
            except np.linalg.LinAlgError:
                return None
    return None
