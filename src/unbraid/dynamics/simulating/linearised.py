r"""The simulation error to first order in all unknowns, as normal equations.

A change δθ of the unknowns changes f(φ) at a fixed φ by ∂f/∂θ δθ, and what is fed back carries that on:

    δf_t = ∂f/∂φ(t) δφ_t + ∂f/∂θ(t) δθ,        δφ_t = [δz_{t - l_1}; …; 0].

The first q rows are a linear recursion over time with one right-hand side for each unknown (`recursions`); the
others follow. Unknowns are numbered

    L (n, mφ), W1 (n, r), bias (n,), W0 (r, mφ), a (r, K),

and what is summed over time is N = DᵀD and descent = -Dᵀρ, with ρ = weight (ŷ - y) and D = ∂ρ/∂θ. The past of a course
touches its own errors alone, so it is eliminated course by course.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unbraid.dynamics.models.feedback import Course, Feedback
from unbraid.dynamics.models.function import combined_slopes
from unbraid.dynamics.models.initial import add_past
from unbraid.dynamics.models.recursions import recursion_band, solve_recursion
from unbraid.dynamics.models.trajectory import Trajectory
from unbraid.dynamics.simulating.candidate import Candidate
from unbraid.kernels.arrays import Array

ENTRIES = 1 << 20
"""Of an array (unknowns, moments, q) in a stretch of time."""


class PastEquations(NamedTuple):
    """What concerns the past of one course: its own normal matrix, that with θ, and its descent."""

    own: Array
    mixed: Array
    descent: Array


@dataclass(frozen=True)
class Equations:
    """Normal equations of the unknowns θ, and of the pasts.

    Attributes
    ----------
    N, descent
        (P, P), (P,), of θ.
    pasts
        One a course.
    """

    N: Array
    descent: Array
    pasts: tuple[PastEquations, ...]


def form_equations(
    model: Candidate, feedback: Feedback, courses: Sequence[Course], trajectories: Sequence[Trajectory]
) -> Equations:
    """The normal equations at a model, whose trajectories these are."""
    P = model.L.size + model.W1.size + model.bias.size + model.W0.size + model.a.size
    N, descent, pasts = np.zeros((P, P)), np.zeros(P), []
    for course, trajectory in zip(courses, trajectories, strict=True):
        whole, right = course_equations(model, feedback, course, trajectory)
        N += whole[:P, :P]
        descent += right[:P]
        pasts.append(PastEquations(whole[P:, P:], whole[:P, P:], right[P:]))
    return Equations(N, descent, tuple(pasts))


def course_equations(
    model: Candidate, feedback: Feedback, course: Course, trajectory: Trajectory
) -> tuple[Array, Array]:
    """Normal matrix and descent of one course; the unknowns of its past come last."""
    q, ny = feedback.fed, feedback.observed
    columns = Columns(model, feedback)
    size = columns.count + feedback.longest * q
    N, descent = np.zeros((size, size)), np.zeros(size)
    length = max(feedback.longest, ENTRIES // (size * max(q, 1)))
    past = np.zeros((size, feedback.longest, q))
    past[columns.count :] = np.eye(feedback.longest * q).reshape(-1, feedback.longest, q)
    for begin in range(0, len(course), length):
        some = slice(begin, min(begin + length, len(course)))
        D, past = columns.carried(trajectory, some, past)
        weight = course.weight[some]
        D *= weight
        rows = D.reshape(size, -1)
        N += rows @ rows.T
        descent -= rows @ (weight * (trajectory.values.f[some, -ny:] - course.y[some])).ravel()
    return N, descent


@dataclass(frozen=True)
class Columns:
    """The derivatives of a model's outputs by its unknowns θ."""

    model: Candidate
    feedback: Feedback

    @property
    def count(self) -> int:
        """How many unknowns θ there are, P."""
        model = self.model
        return model.L.size + model.W1.size + model.bias.size + model.W0.size + model.a.size

    def carried(self, trajectory: Trajectory, some: slice, past: Array) -> tuple[Array, Array]:
        """δy (P + h, T, ny) for a stretch of time, and δz at its end, (P + h, longest, q), from that at its begin."""
        q, ny, width = self.feedback.fed, self.feedback.observed, self.feedback.width
        M = combined_slopes(
            self.model.L[:, :width], self.model.W0[:, :width], self.model.W1, trajectory.values.G[:, some]
        )
        force = self.direct(trajectory, some, past.shape[0])
        fed = np.ascontiguousarray(force[..., :q])
        add_past(fed, M[:, :q], past, self.feedback)
        z = solve_recursion(recursion_band(M[:, :q], self.feedback.lags), fed)
        if ny == q == self.model.L.shape[0]:
            return z.copy(), self.feedback.last(z, past)
        y = np.ascontiguousarray(force[..., -ny:])
        carried = self.feedback.gather(z, past)
        for i in range(ny):
            for j in range(width):
                y[..., i] += M[:, M.shape[1] - ny + i, j] * carried[..., j]
        return y, self.feedback.last(z, past)

    def direct(self, trajectory: Trajectory, some: slice, size: int) -> Array:
        """∂f/∂θ at the φ of a stretch: (size, T, n), zero for the unknowns of the past."""
        model, phi = self.model, trajectory.phi[some]
        n, m, r = *model.L.shape, model.rank
        result = np.zeros((size, len(phi), n))
        start = 0
        for features in (phi.T, trajectory.values.R[:, some], np.ones((1, len(phi)))):
            block = result[start : start + n * len(features)].reshape(n, len(features), len(phi), n)
            for i in range(n):
                block[i, :, :, i] = features
            start += n * len(features)
        if model.placement is None:
            return result
        G = trajectory.values.G[:, some]
        u = model.branch_inputs(phi)
        design = model.placement.design_at(model.placement.at(u))
        for j in range(r):
            result[start : start + m] = (G[j] * phi.T)[:, :, None] * model.W1[:, j]
            start += m
        for j in range(r):
            result[start : start + design.shape[-1]] = design[j].T[:, :, None] * model.W1[:, j]
            start += design.shape[-1]
        return result
