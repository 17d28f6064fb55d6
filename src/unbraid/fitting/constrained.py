"""The first stage where branches have constraints: half of the starts are searched for without, and then brought in.

Sweeps that keep to a cone all the way get stuck where free ones pass: on some problems all starts ended in one poor
minimum, and most free ones near the best, which lies in the cone as well. Where samples contradict the shape it is the
other way round, so there are starts of both kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unbraid.bases.projection import Projection
from unbraid.data.sample_set import SampleSet
from unbraid.fitting.polish import measure_run
from unbraid.fitting.search import SearchStarts
from unbraid.fitting.session import Found, Session, Stage
from unbraid.methods import Method
from unbraid.solvers.evaluated import Evaluated
from unbraid.solvers.gauss_newton import GaussNewton, slope_squares
from unbraid.solvers.iterates import Iterates, Run

STEPS_TO_FOLLOW = 10
"""Steps in which branches that have been projected onto their constraints make up for it."""


def search_for_starts(
    method: Method, samples: SampleSet, solver: GaussNewton, rank: int, rngs: Sequence[np.random.Generator]
) -> Stage:
    """The stage that takes random starts through a method's sweeps on samples, for a solver that polishes them."""
    bound = SearchStarts(method.solver(samples, solver.basis, solver.projection), rank, rngs, method.stopping)
    if method.polish is None or len(rngs) < 2 or not solver.projection.bounded(solver.basis.size).any():
        return bound
    free = method.solver(samples, solver.basis, Projection.onto([None] * rank, method.offset))
    return SearchHalfFreely(
        replace(bound, rngs=rngs[::2]), SearchStarts(free, rank, rngs[1::2], method.stopping), solver
    )


@dataclass(frozen=True)
class SearchHalfFreely:
    """Stage: some starts searched for under constraints, others without, which are brought into these afterwards."""

    bound: SearchStarts
    free: SearchStarts
    solver: GaussNewton

    def __call__(self, session: Session, found: Found) -> Found:
        """The runs of all starts, of which all obey the constraints."""
        found = self.bound(session, found)
        if found.cut is not None:
            return found
        more = self.free(session, Found())
        return replace(more, runs=(*found.runs, *into_constraints(self.solver, more.runs)))


def into_constraints(solver: GaussNewton, runs: Sequence[Run]) -> list[Run]:
    """Runs with branches near their own that obey the solver's constraints, and the objectives that they have then.

    Branches that cancelled each other's faults do not any more when each has been projected, so all follow together,
    along directions that stay.
    """
    fixed = replace(solver, directions_fixed=True, place_knots_at=frozenset())
    with np.errstate(all="ignore"):
        state = fixed.start(Iterates.join([project_branches(solver, run.best) for run in runs]))
        for _ in range(STEPS_TO_FOLLOW):
            state, _ = fixed.step(state)
        bests = [state.iterates.take(np.array([k])) for k in range(len(runs))]
        return [measure_run(solver, replace(run, best=best)) for run, best in zip(runs, bests, strict=True)]


def project_branches(solver: GaussNewton, one: Iterates) -> Iterates:
    """A model, a batch of one, with each of its branches the nearest one that obeys the solver's constraints.

    A branch and its weights may both change their signs, which changes nothing but makes what decreases increase. Of
    the two the nearer one is taken: a projection onto a cone is the nearer the larger it is.
    """
    both = solver.placed_anew(Iterates.join([one, replace(one, W1=-one.W1, a=-one.a)]))
    sizes = solver.samples.sum(slope_squares, Evaluated.on(solver.samples, both), width=one.W0.shape[1])
    which = np.argmax(sizes, axis=0)  # (r,)
    branches = np.arange(len(which))
    W1, a = both.W1[which, :, branches].T[None], both.a[which, branches][None]
    return replace(both.take(np.array([0])), W1=W1, a=a)
