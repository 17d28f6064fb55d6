r"""How the branches of a dynamic model go on beyond what they saw: as polynomials for a reach, and then as lines.

A dynamic model that leaves the range it was fitted to has to come back, so it matters how its branches go on there. How
far the polynomial that a branch ends with is followed is chosen where the basis is (`choosing`): on blocks whose
outputs are larger than all that the branches were fitted to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from unbraid.bases import Basis, Polynomial
from unbraid.dynamics.models.feedback import Course, Feedback
from unbraid.dynamics.models.function import ModelFunction
from unbraid.dynamics.models.trajectory import Trajectory, follow, solve_stretch
from unbraid.dynamics.simulating.candidate import Candidate
from unbraid.dynamics.simulating.steps import Point
from unbraid.fitting.continuation import REACH
from unbraid.fitting.request import Continuing
from unbraid.kernels.arrays import Array
from unbraid.results.branch import FittedBranch
from unbraid.results.model import DecoupledModel

SIMPLE = 3
"""Polynomials of at most this degree are believed beyond their range."""
ROOM, SHUFFLED, ORDERS = 1.0, 16, 2
"""How far outputs may lie beyond their range, in lengths of it, when inputs come in another order: of so many blocks,
in so many orders."""
REACHES: dict[str, tuple[float, ...]] = {
    "auto": (0.25, 0.0, 1.0),
    "linear": (0.0,),
    "polynomial": (REACH,),
}
"""In lengths of the domain, what is chosen from; "linear" and "polynomial" are what they are in static fits."""


def reaches(continuing: Continuing, basis: Basis) -> tuple[float, ...]:
    """How far branches in a basis may go on as polynomials, first what is taken where data do not tell.

    A branch that is a cubic, and does as well as one as with more freedom, is that cubic beyond its range too. Others
    are what they end with for a while: close to the end a line is off by g''/2 times the square of the distance, and
    far from it nobody knows.
    """
    ways = REACHES[continuing] if basis.continued_degree > 1 else REACHES["linear"]
    simple = isinstance(basis, Polynomial) and basis.degree <= SIMPLE
    return tuple(sorted(ways, reverse=True)) if simple else ways


def with_reach(model: Candidate, basis: Basis | None, reach: float) -> ModelFunction:
    """The function of a solver's model, with branches that go on as polynomials for so many of their lengths."""
    branches = []
    for j in range(model.rank):
        assert model.placement is not None
        assert basis is not None
        branches.append(FittedBranch(basis, model.placement.select(j), model.a[j], np.full(2, reach)))
    return ModelFunction(model.L, DecoupledModel(model.W0, model.W1, branches, model.bias))


def is_steady(function: ModelFunction, feedback: Feedback, courses: Sequence[Course]) -> bool:
    """Whether outputs stay about where they were measured when the inputs of courses come in another order.

    That needs no other measurements, and finds models that follow their record and leave for good on the next one.
    """
    for course in courses:
        low, high = course.y.min(axis=0), course.y.max(axis=0)
        room = ROOM * (high - low)
        for v in reordered(course.v):
            done = follow(function, feedback, v, np.zeros_like(course.past), np.ones(feedback.fed))
            y = done.f[:, -feedback.observed :]
            if len(y) < len(course) or not np.all((y >= low - room) & (y <= high + room)):
                return False
    return True


def reordered(v: Array) -> Iterator[Array]:
    """Signals (T, p) reversed, and in blocks that are shuffled in a few ways, always the same."""
    yield v[::-1]
    rng, parts = np.random.default_rng(0), np.array_split(np.arange(len(v)), SHUFFLED)
    for _ in range(ORDERS):
        yield v[np.concatenate([parts[k] for k in rng.permutation(len(parts))])]


def follow_courses(
    function: ModelFunction, feedback: Feedback, courses: Sequence[Course], point: Point
) -> list[Trajectory] | None:
    """The trajectories of a function with the pasts of a point, beginning with its own; None where one is lost."""
    result = []
    for course, past, near in zip(courses, point.model.pasts, point.trajectories, strict=True):
        found = solve_stretch(function, feedback, course.v, past, near.fed(feedback))
        if found is None:
            done = follow(function, feedback, course.v, past, np.ones(feedback.fed))
            if len(done.f) < len(course):
                return None
            found = Trajectory(done.phi, function.values(done.phi))
        result.append(found)
    return result
