"""Starts of the branches: random directions beside a linear model, in a race of a few steps each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from unbraid.bases import Basis, BSpline
from unbraid.bases.constraints import Constraint
from unbraid.bases.projection import Projection, targets
from unbraid.dynamics.models.feedback import Course, Feedback
from unbraid.dynamics.models.trajectory import Trajectory
from unbraid.dynamics.record import moving_spread
from unbraid.dynamics.simulating.candidate import Candidate
from unbraid.dynamics.simulating.steps import Point, SimulationState, SimulationSteps
from unbraid.fitting.session import CUTS, ProgressSpan, Session
from unbraid.runtime.interrupts import passing_interrupts_on
from unbraid.solvers.iterates import Run, Solver
from unbraid.solvers.loop import ALONE, Stopping

CUBIC, CURVED = BSpline(df=3, degree=3), BSpline(df=8, degree=3)
"""What branches begin with: cubic polynomials, in coordinates that carry constraints; and what they race in: splines
that can follow a saturation, of which cubics tell nothing."""
ROUNDS = ((20, 1.0), (12, 0.5), (20, 0.25))
"""Steps of each round of a race, and the share of starts that take part in it; at least two."""
FIRST_WEIGHT = 1e-3
"""Size of the output weights of a new branch: so small that nothing diverges."""
POLISH_STEPS, TOLERANCE = 120, 1e-5
"""Steps of a fit that goes on, and the change of its objective that ends it."""


@dataclass(frozen=True)
class Fitting:
    """What fits of one kind have in common: the form of the feedback, and the constraint of every branch."""

    feedback: Feedback
    constraints: tuple[Constraint | None, ...]
    max_seconds: float | None = None

    def solver(self, courses: Sequence[Course], basis: Basis | None, rank: int) -> SimulationSteps:
        """The solver on some courses, for so many branches."""
        projection = Projection.onto(self.constraints[:rank]) if rank else None
        return SimulationSteps(self.feedback, tuple(courses), basis if rank else None, projection)

    def stopping(self, steps: int, tolerance: float = TOLERANCE) -> Stopping:
        """So many steps at most, and the time limit; where little is gained in many of them, that is enough."""
        return Stopping(max_sweeps=steps, tolerance=tolerance, max_seconds=self.max_seconds, race=ALONE)


def improve(
    session: Session, fitting: Fitting, solver: SimulationSteps, model: Candidate, phase: str, steps: int = POLISH_STEPS
) -> Candidate:
    """A linear model after steps, where nothing is found yet: Ctrl-C is passed on."""
    point = solver.point(model) or solver.point(at_rest(model))
    assert point is not None
    with passing_interrupts_on():
        (run,) = drive(session, solver, [point], fitting.stopping(steps), ProgressSpan(phase))
    return point_of(run).model


def at_rest(model: Candidate) -> Candidate:
    """A linear model of constants, where another one cannot be simulated: no input comes in, nothing comes back."""
    return replace(model, L=np.zeros_like(model.L), bias=np.zeros_like(model.bias))


def drive(
    session: Session, solver: SimulationSteps, points: Sequence[Point], stopping: Stopping, span: ProgressSpan
) -> list[Run]:
    """Steps from some points: one run each."""
    fresh = tuple(replace(point, steps=0) for point in points)
    return session.loop(cast("Solver[SimulationState]", solver), lambda: SimulationState(fresh), stopping, span)


def point_of(run: Run) -> Point:
    """The best point of a run."""
    return run.best.points[0]  # type: ignore[attr-defined, no-any-return]


def with_branches(
    model: Candidate, trajectories: Sequence[Trajectory], solver: SimulationSteps, rng: np.random.Generator
) -> Candidate:
    """A model with so many more branches that it has as many as the solver: of random directions, next to zero.

    Each is a mixture of u³ and u², as far as its constraint allows, u being the branch's input in standard deviations.
    """
    assert solver.projection is not None
    assert solver.basis is not None
    more = len(solver.projection.constraints) - model.rank
    phi = np.concatenate([one.phi for one in trajectories])
    spread = moving_spread(phi, np.inf)
    W0, moving = np.zeros((more, len(spread))), np.isfinite(spread)
    W0[:, moving] = rng.standard_normal((more, np.count_nonzero(moving))) / spread[moving]
    W0 /= np.maximum((W0 @ phi.T).std(axis=1), 1e-12)[:, None]
    inputs = (W0 @ phi.T)[None]
    u = inputs - inputs.mean(axis=-1, keepdims=True)
    cubic, square = np.cos(angles := rng.uniform(0.0, np.pi, (1, more, 1))), np.sin(angles)
    own = Projection.onto(solver.projection.constraints[model.rank :])
    placement = solver.basis.place(inputs)
    slopes, values = 3.0 * cubic * u**2 + 2.0 * square * u, cubic * u**3 + square * u**2
    a = own.nearest(placement, targets(placement, placement.at(inputs), slopes, values, 1.0), 1.0)[0]
    scale = np.maximum(np.concatenate([one.values.f for one in trajectories]).std(axis=0), 1e-12)[:, None]
    W1 = FIRST_WEIGHT * scale * rng.standard_normal((len(scale), more))
    whole = placement.select(0)
    return replace(
        model,
        W0=np.concatenate([model.W0, W0]),
        W1=np.concatenate([model.W1, W1], axis=1),
        placement=whole if model.placement is None else model.placement.joined([whole]),
        a=a if model.placement is None else np.concatenate([model.a, a]),
    )


def promising(solver: SimulationSteps, models: Sequence[Candidate], count: int) -> list[Candidate]:
    """The models whose first step promises most, so many of them: directions that can explain what is left."""
    promises = []
    for model in models:
        point = solver.point(model)
        promises.append(0.0 if point is None else solver.trial(point)[1])
    return [models[k] for k in np.argsort(-np.array(promises), kind="stable")[:count]]


def race(
    session: Session, fitting: Fitting, solver: SimulationSteps, begins: Sequence[Candidate], phase: str
) -> list[Run]:
    """The runs of starts, best first: all of them for some steps, then the better half, then the best."""
    points = [point for point in map(solver.point, begins) if point is not None]
    runs: list[Run] = []
    total, before = max(len(points), 1), 0
    for steps, share in ROUNDS:
        count = min(len(points), max(2, round(share * total)))
        if not count:
            break
        span = ProgressSpan(phase, range(count), total, before=before)
        new = drive(session, solver, points[:count], replace(fitting.stopping(steps, 1e-4), race=None), span)
        runs = sorted([*new, *runs[count:]], key=lambda run: run.objective)
        points, before = [point_of(run) for run in runs], before + steps
        if any(run.status in CUTS for run in new):
            break
    return runs
