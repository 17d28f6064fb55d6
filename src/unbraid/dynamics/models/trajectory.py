r"""A model's own course: f_t = f(φ_t) for all t at once, by Newton's method on the whole trajectory.

The equations z_t - f(φ_t)[:q] = 0, t = 0 … T - 1, are linearised about a guess, and what is left is a linear recursion
(`recursions`), so that a few passes over arrays take the place of a loop over time. Where the model is stable
about the trajectory they converge as fast as Newton's method does; from one step of a solver to the next, the last
trajectory is a guess so near that two or three are enough. The solution is that of the recursion in time, up to a
tolerance, and for `follow` to rounding. Where they do not converge, `walk` goes through time moment by moment, up to
where numbers leave all bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unbraid.dynamics.models.feedback import Feedback
from unbraid.dynamics.models.function import FedBack
from unbraid.dynamics.models.recursions import recursion_band, solve_recursion
from unbraid.kernels.arrays import Array

PASSES = 12
"""Newton steps on a trajectory; where it takes more the model is about to leave it."""
TOLERANCE = 1e-11
"""Of the largest entry of z, and of its usual spread, up to which f(φ_t) may be off z_t."""
STRETCH, SHORTER, SHORTEST = 4096, 8, 64
"""Moments that are solved for together: a stretch that begins where the last one ended has the better guess. Where that
does not work, shorter ones, by this factor, down to the shortest."""
WILD = 1e4
"""How many times what was seen in training a signal may be, before a course counts as lost."""


@dataclass(frozen=True)
class Trajectory:
    """A model's course: φ (T, mφ), and what its function gives there."""

    phi: Array
    values: Any

    def fed(self, feedback: Feedback) -> Array:
        """What is fed back, z (T, q)."""
        return np.asarray(self.values.f[:, : feedback.fed])


def solve_trajectory(
    model: FedBack, feedback: Feedback, v: Array, past: Array, guess: Array, spread: Array | float = 1.0
) -> Trajectory | None:
    """The course of a model under v (T, p) from a past (longest, q), near a guess z (T, q); None where none is found.

    Stretches are solved one after another. `spread` (q,) is how much z moves usually.
    """
    pieces = []
    for begin in range(0, max(len(v), 1), STRETCH):
        some = slice(begin, begin + STRETCH)
        piece = solve_stretch(model, feedback, v[some], past, guess[some], spread)
        if piece is None:
            return None
        pieces.append(piece)
        past = feedback.last(piece.fed(feedback), past)
    if len(pieces) == 1:
        return pieces[0]
    phi = np.concatenate([piece.phi for piece in pieces])
    return Trajectory(phi, model.values(phi))


@np.errstate(all="ignore")  # what is not finite is no course
def solve_stretch(
    model: FedBack,
    feedback: Feedback,
    v: Array,
    past: Array,
    guess: Array,
    spread: Array | float = 1.0,
    *,
    exactly: bool = False,
) -> Trajectory | None:
    """The course over one stretch of time, by Newton's method; None where it does not converge.

    `exactly` takes one step more, and what the tolerance leaves down to rounding.
    """
    z, q, more = guess, feedback.fed, exactly
    for _ in range(PASSES):
        phi = np.concatenate([feedback.gather(z, past), v], axis=1)
        values = model.values(phi)
        off = values.f[:, :q] - z
        worst = np.abs(off / spread).max(initial=0.0)
        if not np.isfinite(worst):
            return None
        if worst <= TOLERANCE * max(1.0, np.abs(z / spread).max(initial=0.0)):
            if not more:
                return Trajectory(phi, values)
            more = False
        band = recursion_band(model.slopes(values, feedback.width)[:, :q], feedback.lags)
        z = z + solve_recursion(band, off[None])[0]
    return None


@dataclass(frozen=True)
class Walk:
    """A course as far as it goes: φ and f of its moments, fewer than were asked for where it is lost."""

    phi: Array
    f: Array


@np.errstate(all="ignore")
def follow(model: FedBack, feedback: Feedback, v: Array, past: Array, spread: Array) -> Walk:
    """The course of a model under v (T, p) from a past, up to where it is lost: a z beyond `WILD` times `spread` (q,).

    Stretch by stretch, all moments at once where that works, and one after another where it does not.
    """
    limit = WILD * np.maximum(spread, np.abs(past).max(axis=0, initial=0.0))
    return follow_stretches(model, feedback, v, past, limit, STRETCH)


def follow_stretches(model: FedBack, feedback: Feedback, v: Array, past: Array, limit: Array, length: int) -> Walk:
    """The same in stretches of at most so many moments, each |z| being at most its limit (q,)."""
    pieces = [Walk(np.zeros((0, feedback.width + v.shape[1])), np.zeros((0, feedback.outputs)))]
    for begin in range(0, len(v), length):
        some = v[begin : begin + length]
        guess = np.tile(past[-1], (len(some), 1))
        found = solve_stretch(model, feedback, some, past, guess, limit / WILD, exactly=True)
        if found is not None and np.all(np.abs(found.fed(feedback)) <= limit):
            piece = Walk(found.phi, found.values.f)
        elif length > SHORTEST:
            piece = follow_stretches(model, feedback, some, past, limit, length // SHORTER)
        else:
            piece = walk(model, feedback, some, past, limit)
        pieces.append(piece)
        if len(piece.f) < len(some):
            break
        past = feedback.last(piece.f[:, : feedback.fed], past)
    return Walk(np.concatenate([piece.phi for piece in pieces]), np.concatenate([piece.f for piece in pieces]))


@np.errstate(all="ignore")
def walk(model: FedBack, feedback: Feedback, v: Array, past: Array, limit: Array) -> Walk:
    """The course moment by moment: the recursion as it is written, until any |z| exceeds its limit (q,)."""
    q, longest = feedback.fed, feedback.longest
    z = np.concatenate([past, np.zeros((len(v), q))])
    phi = np.zeros((len(v), feedback.width + v.shape[1]))
    f = np.zeros((len(v), feedback.outputs))
    phi[:, feedback.width :] = v
    for t in range(len(v)):
        for k, lag in enumerate(feedback.lags):
            phi[t, k * q : (k + 1) * q] = z[longest + t - lag]
        f[t] = model.values(phi[t : t + 1]).f[0]
        z[longest + t] = f[t, :q]
        if not np.all(np.abs(f[t, :q]) <= limit) or not np.isfinite(f[t]).all():
            return Walk(phi[:t], f[:t])
    return Walk(phi, f)
