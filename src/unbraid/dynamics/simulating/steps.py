r"""Levenberg–Marquardt on the simulation error: the solver of dynamic models.

    Σ weight² (ŷ_t - y_t)² → min     over L, W0, W1, bias, the branches' coefficients a, and the past of every course,

ŷ being simulated from the past alone. A step minimises ½ δᵀ (N + μ diag N) δ - descentᵀ δ with the pasts eliminated,
over all δ or, where branches are constrained, over those that lead to points of the cone. A step that gains nothing, or
under which the simulation does not come to an end, is taken back and damped more. Knots are placed anew on what the
branches see at a few scheduled steps, and where that is far beyond their domains.

Penalised splines add Σ_j ‖w1_j‖² a_jᵀ P_j a_j, which does not depend on how sizes are split between W1 and a.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from unbraid.bases import Basis, Placement
from unbraid.bases.projection import Projection, targets
from unbraid.dynamics.models.feedback import Course, Feedback, count_equations
from unbraid.dynamics.models.trajectory import Trajectory, follow, solve_trajectory
from unbraid.dynamics.simulating.candidate import Candidate
from unbraid.dynamics.simulating.linearised import Equations, form_equations
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.kernels.quadratics import minimise_definite, minimise_nonnegative
from unbraid.results.outcome import Event
from unbraid.solvers.batch import Batch
from unbraid.solvers.iterates import Measure

FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-12, 1e8
SHRINK, GROW = 0.1, 6.0
TINY = 1e-14
"""Of the largest diagonal entry of N: what no error tells anything of is damped by so much at least."""
PLACE_KNOTS_AT = frozenset((3, 6, 10, 15, 22, 30))
"""Steps before which knots are placed anew."""
BEYOND = 0.05
"""Of its length: where a branch has inputs so far beyond its domain, knots are placed anew at once."""


@dataclass(frozen=True)
class Penalty:
    """Σ_j ‖w1_j‖² a_jᵀ P_j a_j, for P (r, K, K)."""

    P: Array

    def of(self, model: Candidate) -> Array:
        """The penalty of each branch, (r,)."""
        return np.asarray(np.sum(model.W1**2, axis=0) * self.sizes(model))

    def sizes(self, model: Candidate) -> Array:
        """a_jᵀ P_j a_j, (r,)."""
        return np.asarray(np.einsum("jk,jkl,jl->j", model.a, self.P, model.a))

    def add_to(self, equations: Equations, model: Candidate) -> None:
        """Add to normal equations: as much as it curves in a with W1 given, and in W1 with a given."""
        (n, r), K, sizes, weights = model.W1.shape, model.a.shape[1], self.sizes(model), np.sum(model.W1**2, axis=0)
        first, outer = len(equations.N) - model.a.size, model.L.size + np.arange(model.W1.size).reshape(n, r)
        for j in range(r):
            own = slice(first + j * K, first + (j + 1) * K)
            equations.N[own, own] += weights[j] * self.P[j]
            equations.descent[own] -= weights[j] * (self.P[j] @ model.a[j])
            equations.N[outer[:, j], outer[:, j]] += sizes[j]
            equations.descent[outer[:, j]] -= sizes[j] * model.W1[:, j]


@dataclass(frozen=True)
class Point:
    """A model, its trajectories, and the objective there with its normal equations."""

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

    @property
    def W0(self) -> Array:
        """The directions of each start, (B, r, mφ)."""
        return np.stack([point.model.W0 for point in self.points])


@dataclass(frozen=True)
class SimulationSteps:
    """The solver, on given courses.

    Attributes
    ----------
    feedback
        Which outputs come back.
    courses
        The records, in balanced units.
    basis
        What branches are made of; None without branches.
    projection
        Onto the cones of their constraints; None without branches.
    place_knots_at
        Steps before which knots are placed anew.
    """

    resolution: ClassVar[float] = 0.0
    feedback: Feedback
    courses: tuple[Course, ...]
    basis: Basis | None
    projection: Projection | None
    place_knots_at: frozenset[int] = PLACE_KNOTS_AT

    # What the loop asks for

    def step(self, state: SimulationState) -> tuple[SimulationState, list[tuple[int, Event]]]:
        """One step of every start."""
        return SimulationState(tuple(map(self.advance, state.points))), []

    def measure(self, state: SimulationState) -> Measure:
        """The mean squared error of each start, in units of the outputs' spread."""
        objective = np.array([point.objective for point in state.points]) / count_equations(self.courses)
        return Measure(objective, np.full(len(objective), np.nan))

    def may_converge(self, state: SimulationState) -> BoolArray:
        """Where a step was made, or none can be made any more."""
        return np.array([point.moved or point.damping >= MOST_DAMPING for point in state.points])

    def iterates(self, state: SimulationState) -> SimulationState:
        """The points themselves: their trajectories are the guesses that others begin with."""
        return state

    # One start

    def point(self, model: Candidate, guesses: Sequence[Array] | None = None) -> Point | None:
        """The point at a model; None where its simulation does not come to an end."""
        trajectories = self.simulate(model, guesses)
        if trajectories is None:
            return None
        equations = self.equations(model, trajectories)
        return Point(model, trajectories, self.objective(model, trajectories), equations)

    def simulate(self, model: Candidate, guesses: Sequence[Array] | None = None) -> tuple[Trajectory, ...] | None:
        """The trajectories of a model near guesses z (T, q), or without these by all means; None where it is lost."""
        result = []
        for i, (course, past) in enumerate(zip(self.courses, model.pasts, strict=True)):
            if guesses is None:
                done = follow(model, self.feedback, course.v, past, np.ones(self.feedback.fed))
                trajectory = Trajectory(done.phi, model.values(done.phi)) if len(done.f) == len(course) else None
            else:
                trajectory = solve_trajectory(model, self.feedback, course.v, past, guesses[i])
            if trajectory is None:
                return None
            result.append(trajectory)
        return tuple(result)

    def objective(self, model: Candidate, trajectories: Sequence[Trajectory]) -> float:
        """The sum of squares of what is simulated wrongly, and penalties."""
        ny = self.feedback.observed
        squares = (
            np.sum((course.weight * (one.values.f[:, -ny:] - course.y)) ** 2)
            for course, one in zip(self.courses, trajectories, strict=True)
        )
        penalty = self.penalty(model)
        return float(sum(squares)) + (0.0 if penalty is None else float(np.sum(penalty.of(model))))

    def penalty(self, model: Candidate) -> Penalty | None:
        """The penalties on branches; None where there are none."""
        P = None if model.placement is None else model.placement.penalty()
        return None if P is None else Penalty(P)

    def equations(self, model: Candidate, trajectories: Sequence[Trajectory]) -> Equations:
        """The normal equations at a model, penalties among them."""
        equations = form_equations(model, self.feedback, self.courses, trajectories)
        penalty = self.penalty(model)
        if penalty is not None:
            penalty.add_to(equations, model)
        return equations

    @np.errstate(all="ignore")
    def advance(self, point: Point) -> Point:
        """One damped step; one that does not improve is taken back and damped more."""
        due = point.steps in self.place_knots_at or (self.place_knots_at and self.has_left(point))
        now = (self.placed_anew(point) if due else None) or point
        model, promised = self.trial(now)
        there = None if model is None else self.simulate(model, [one.fed(self.feedback) for one in now.trajectories])
        objective = np.inf if there is None or model is None else self.objective(model, there)
        if there is None or model is None or not objective < now.objective:
            return replace(now, damping=min(GROW * now.damping, MOST_DAMPING), moved=False, steps=now.steps + 1)
        share = (now.objective - objective) / max(promised, 1e-300)
        damping = max(now.damping * float(np.clip(1.0 - (2.0 * share - 1.0) ** 3, SHRINK, GROW)), LEAST_DAMPING)
        return Point(model, there, objective, self.equations(model, there), damping, True, now.steps + 1)

    def trial(self, now: Point) -> tuple[Candidate | None, float]:
        """Where a damped step leads, and the decrease that the quadratic model promises."""
        model, equations, mu = now.model, now.equations, now.damping
        diagonal = np.diagonal(equations.N)
        damped = equations.N + np.diag(mu * np.maximum(diagonal, TINY * diagonal.max(initial=0.0)))
        right, solved, hold = equations.descent.copy(), [], self.hold_on_pasts(now)
        for past in equations.pasts:
            own = past.own + np.diag(mu * np.diagonal(past.own) + hold)
            both = np.linalg.solve(own, np.column_stack([past.mixed.T, past.descent]))
            damped -= past.mixed @ both[:, :-1]
            right -= past.mixed @ both[:, -1]
            solved.append(both)
        if not np.isfinite(damped).all():
            return None, 0.0
        delta = self.minimise(model, damped, right)
        if not np.isfinite(delta).all():
            return None, 0.0
        pasts, promised = [], float(delta @ (2.0 * equations.descent - equations.N @ delta))
        for past, both, before in zip(equations.pasts, solved, model.pasts, strict=True):
            own_delta = both[:, -1] - both[:, :-1] @ delta
            promised += float(own_delta @ (2.0 * past.descent - past.own @ own_delta - 2.0 * (past.mixed.T @ delta)))
            pasts.append(before + own_delta.reshape(before.shape))
        return self.moved(model, delta, tuple(pasts)), promised

    def hold_on_pasts(self, now: Point) -> Array:
        """What the square of a past counts beside errors, (longest q,): where these tell nothing of it, it stays.

        The mean squared error over the variance of what is fed back: a past is as likely as any other moment.
        """
        z = np.concatenate([one.fed(self.feedback) for one in now.trajectories])
        error = now.objective / max(count_equations(self.courses), 1.0)
        return np.tile(max(error, TINY) / np.maximum(z.var(axis=0), 1e-12), self.feedback.longest)

    def minimise(self, model: Candidate, A: Array, b: Array) -> Array:
        """The step of least ½ δᵀ A δ - bᵀ δ that keeps coefficients in their cones."""
        bounded = None if self.projection is None else self.projection.bounded(model.a.shape[1])
        if bounded is None or not bounded.any() or self.projection is None:
            return np.asarray(minimise_definite(A[None], b[None])[0])
        r, K = model.a.shape
        placement, first = as_batch(model.placement), len(b) - model.a.size
        T = self.projection.shape_matrices(placement, 1, r, K)[0]
        E, z, free = np.eye(len(b)), np.zeros(len(b)), np.ones(len(b), dtype=bool)
        for j in range(r):
            own = slice(first + j * K, first + (j + 1) * K)
            E[own, own] = T[j]
        free[first:] = ~bounded.ravel()
        z[first:] = self.projection.shape_coordinates(placement, model.a[None])[0].ravel()
        z[free] = 0.0
        Q = E.T @ A @ E
        x = minimise_nonnegative(Q, E.T @ b + Q @ z, free)
        return np.asarray(E @ (x - z))

    def moved(self, model: Candidate, delta: Array, pasts: tuple[Array, ...]) -> Candidate:
        """The model after a step, coefficients in their cones to the last bit."""
        parts, start = [], 0
        for part in (model.L, model.W1, model.bias, model.W0, model.a):
            parts.append(part + delta[start : start + part.size].reshape(part.shape))
            start += part.size
        L, W1, bias, W0, a = parts
        if self.projection is not None and model.placement is not None:
            placement = as_batch(model.placement)
            z = self.projection.shape_coordinates(placement, a[None])
            a = self.projection.from_shape_coordinates(placement, z)[0]
        return replace(model, L=L, W0=W0, W1=W1, bias=bias, a=a, pasts=pasts)

    def has_left(self, point: Point) -> bool:
        """Whether a branch has inputs far beyond its domain, where the polynomial that it ends with has no bounds."""
        if point.model.placement is None:
            return False
        domain = point.model.placement.domain()
        u = np.concatenate([point.model.branch_inputs(one.phi) for one in point.trajectories], axis=1)
        room = BEYOND * (domain[:, 1] - domain[:, 0])
        return bool(np.any((u.min(axis=1) < domain[:, 0] - room) | (u.max(axis=1) > domain[:, 1] + room)))

    def placed_anew(self, point: Point) -> Point | None:
        """The point in this solver's basis, knots where branches have their inputs now; None where that is lost."""
        if self.basis is None or not point.model.rank:
            return point
        guesses = [one.fed(self.feedback) for one in point.trajectories]
        there = self.point(self.in_basis(point.model, point.trajectories), guesses)
        return there and replace(there, damping=point.damping, moved=point.moved, steps=point.steps)

    def in_basis(self, model: Candidate, trajectories: Sequence[Trajectory]) -> Candidate:
        """The model with branches in this solver's basis, placed on what they see, nearest to what they were."""
        assert self.basis is not None
        assert self.projection is not None
        u = np.concatenate([model.branch_inputs(one.phi) for one in trajectories], axis=1)[None]
        R, G = (np.concatenate([getattr(one.values, name) for one in trajectories], axis=1)[None] for name in "RG")
        placement = self.basis.place(u)
        coupling = float(np.sum(G**2) / max(np.sum(R**2), 1e-300)) or 1.0  # values weigh as much as slopes
        near = targets(placement, placement.at(u), G, R, coupling)
        a = self.projection.nearest(placement, near, coupling)
        return replace(model, placement=placement.select(0), a=a[0])


def as_batch(placement: Placement | None) -> Placement:
    """A placement of branches as one of a batch of one start."""
    assert placement is not None
    return placement.select(None)
