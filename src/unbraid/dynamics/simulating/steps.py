r"""Levenberg–Marquardt on the simulation error: the solver of dynamic models.

    Σ weight² (ŷ_t - y_t)² → min        over L, W0, W1, bias, the branches' coefficients a, and the past of every course,

ŷ being simulated from the past alone. A step minimises ½ δᵀ (N + μ diag N) δ - descentᵀ δ with the pasts eliminated,
over all δ or, where branches are constrained, over those that lead to points of the cone. A step that gains nothing, or
under which the simulation does not come to an end, is taken back and damped more. Knots are placed anew on what the
branches see at a few scheduled steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from unbraid.bases import Basis, Placement
from unbraid.bases.projection import Projection
from unbraid.dynamics.simulating.candidate import Candidate
from unbraid.dynamics.models.feedback import Course, Feedback
from unbraid.dynamics.simulating.linearised import Equations, form_equations
from unbraid.dynamics.models.trajectory import Trajectory, solve_trajectory
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.kernels.quadratics import minimise_definite, minimise_nonnegative
from unbraid.results.outcome import Event
from unbraid.solvers.batch import Batch
from unbraid.solvers.iterates import Measure

FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-12, 1e12
SHRINK, GROW = 0.1, 6.0
TINY = 1e-14
"""Of the largest diagonal entry of N: what no error tells anything of is damped by so much at least."""


@dataclass(frozen=True)
class Point:
    """A model, its trajectories, and the simulation error there: the sum of squares, and its normal equations."""

    model: Candidate
    trajectories: tuple[Trajectory, ...]
    objective: float
    equations: Equations
    damping: float = FIRST_DAMPING
    moved: bool = False
    steps: int = 0


@dataclass(frozen=True)
class SimulationState(Batch):
    """A batch of starts between two steps: one point each."""

    points: tuple[Point, ...]


@dataclass(frozen=True)
class SimulationSteps:
    """The solver, on given courses."""

    resolution: ClassVar[float] = 0.0
    feedback: Feedback
    courses: tuple[Course, ...]
    basis: Basis | None
    projection: Projection | None
    place_knots_at: frozenset[int] = frozenset((3, 6, 10, 15, 22, 30))

    def point(self, model: Candidate, guesses: Sequence[Array] | None = None) -> Point | None:
        """The point at a model; None where its simulation does not come to an end."""
        trajectories = self.simulate(model, guesses)
        if trajectories is None:
            return None
        objective = self.error(trajectories)
        return Point(model, trajectories, objective, self.equations(model, trajectories))

    def simulate(self, model: Candidate, guesses: Sequence[Array] | None) -> tuple[Trajectory, ...] | None:
        """The trajectories of a model; without guesses about zero."""
        result = []
        for i, (course, past) in enumerate(zip(self.courses, model.pasts, strict=True)):
            guess = np.zeros((len(course), self.feedback.fed)) if guesses is None else guesses[i]
            trajectory = solve_trajectory(model, self.feedback, course.v, past, guess)
            if trajectory is None:
                return None
            result.append(trajectory)
        return tuple(result)

    def error(self, trajectories: Sequence[Trajectory]) -> float:
        """The sum of squares of what is simulated wrongly."""
        ny = self.feedback.observed
        return float(
            sum(
                np.sum((course.weight * (one.values.f[:, -ny:] - course.y)) ** 2)
                for course, one in zip(self.courses, trajectories, strict=True)
            )
        )

    def equations(self, model: Candidate, trajectories: Sequence[Trajectory]) -> Equations:
        """The normal equations at a model."""
        return form_equations(model, self.feedback, self.courses, trajectories)

    def step(self, point: Point) -> Point:
        """One damped step; one that does not improve is taken back and damped more."""
        now = self.placed_anew(point) if point.steps in self.place_knots_at else point
        model, promised = self.trial(now)
        there = None if model is None else self.simulate(model, [one.fed(self.feedback) for one in now.trajectories])
        objective = np.inf if there is None else self.error(there)
        if there is None or model is None or not objective < now.objective:
            return replace(now, damping=min(GROW * now.damping, MOST_DAMPING), moved=False, steps=now.steps + 1)
        share = (now.objective - objective) / max(promised, 1e-300)
        damping = now.damping * float(np.clip(1.0 - (2.0 * share - 1.0) ** 3, SHRINK, GROW))
        return Point(
            model,
            there,
            objective,
            self.equations(model, there),
            max(damping, LEAST_DAMPING),
            moved=True,
            steps=now.steps + 1,
        )

    def trial(self, now: Point) -> tuple[Candidate | None, float]:
        """Where a damped step leads, and the decrease that the quadratic model promises."""
        model, equations, mu = now.model, now.equations, now.damping
        diagonal = np.diagonal(equations.N)
        damped = equations.N + np.diag(mu * np.maximum(diagonal, TINY * diagonal.max(initial=0.0)))
        right, solved = equations.descent.copy(), []
        for past in equations.pasts:
            own = past.own + np.diag(mu * np.diagonal(past.own) + TINY * max(np.diagonal(past.own).max(), 1e-300))
            both = np.linalg.solve(own, np.column_stack([past.mixed.T, past.descent]))
            damped -= past.mixed @ both[:, :-1]
            right -= past.mixed @ both[:, -1]
            solved.append(both)
        delta = self.minimise(model, damped, right)
        if not np.isfinite(delta).all():
            return None, 0.0
        pasts, promised = [], float(delta @ (2.0 * equations.descent - equations.N @ delta))
        for past, both, before in zip(equations.pasts, solved, model.pasts, strict=True):
            own_delta = both[:, -1] - both[:, :-1] @ delta
            promised += float(own_delta @ (2.0 * past.descent - past.own @ own_delta - 2.0 * (past.mixed.T @ delta)))
            pasts.append(before + own_delta.reshape(before.shape))
        return self.moved(model, delta, tuple(pasts)), promised

    def minimise(self, model: Candidate, A: Array, b: Array) -> Array:
        """The step of least ½ δᵀ A δ - bᵀ δ that keeps coefficients in their cones."""
        bounded = None if self.projection is None else self.projection.bounded(model.a.shape[1])
        if bounded is None or not bounded.any() or self.projection is None:
            return minimise_definite(A[None], b[None])[0]
        r, K = model.a.shape
        placement = leading(model.placement)
        T = self.projection.shape_matrices(placement, 1, r, K)[0]
        E = np.eye(len(b))
        first = len(b) - r * K
        for j in range(r):
            own = slice(first + j * K, first + (j + 1) * K)
            E[own, own] = T[j]
        z = np.zeros(len(b))
        z[first:] = self.projection.shape_coordinates(placement, model.a[None])[0].ravel()
        free = np.ones(len(b), dtype=bool)
        free[first:] = ~bounded.ravel()
        z[free] = 0.0
        Q = E.T @ A @ E
        x = minimise_nonnegative(Q, E.T @ b + Q @ z, free)
        return np.asarray(E @ (x - z))

    def moved(self, model: Candidate, delta: Array, pasts: tuple[Array, ...]) -> Candidate:
        """The model after a step."""
        parts, start = [], 0
        for part in (model.L, model.W1, model.bias, model.W0, model.a):
            parts.append(part + delta[start : start + part.size].reshape(part.shape))
            start += part.size
        L, W1, bias, W0, a = parts
        if self.projection is not None and model.placement is not None:
            placement = leading(model.placement)
            a = self.projection.from_shape_coordinates(
                placement, self.projection.shape_coordinates(placement, a[None])
            )[0]
        return Candidate(L, W0, W1, bias, model.placement, a, pasts)

    def placed_anew(self, point: Point) -> Point:
        """The point with knots where branches have their inputs now, or as it is where that leads nowhere."""
        model = point.model
        if self.basis is None or model.placement is None or self.projection is None:
            return point
        u = np.concatenate([model.branch_inputs(one.phi) for one in point.trajectories], axis=1)
        R = np.concatenate([one.values.R for one in point.trajectories], axis=1)
        placement = self.basis.place(u[None])
        at = placement.at(u[None])
        G = np.concatenate([one.values.G for one in point.trajectories], axis=1)
        a = (
            self.projection.onto_targets(placement, at, G[None], R[None])[0]
            if False
            else project(self.projection, placement, at, G, R)
        )
        there = self.point(
            replace(model, placement=placement.select(0), a=a), [one.fed(self.feedback) for one in point.trajectories]
        )
        if there is None:
            return point
        return replace(there, damping=point.damping, moved=point.moved, steps=point.steps)


def project(projection: Projection, placement: Placement, at: object, G: Array, R: Array) -> Array:
    from unbraid.bases.projection import targets

    return (
        projection.nearest(placement, targets(placement, at, 0.0 * G[None], R[None], 1.0), 1.0)[0]
        if False
        else projection.nearest(placement, targets(placement, at, G[None], R[None], 1.0), 1.0)[0]
    )


def leading(placement: Placement | None) -> Placement:
    """A placement of branches as one of a batch of one start."""
    assert placement is not None
    return placement.select(None)
