"""The search where branches have constraints: half of the starts are searched for freely, and brought in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unbraid as ub
from draws import few_or_many
from solver_points import a_point
from unbraid.bases.constraints import Constraint
from unbraid.bases.projection import Projection
from unbraid.data.in_memory import Samples
from unbraid.fitting.search import (
    SearchHalfFreely,
    SearchStarts,
    into_constraints,
    project_branches,
    search_for_starts,
)
from unbraid.fitting.session import Found, Session
from unbraid.kernels.arrays import Array
from unbraid.results.outcome import Status, Trace
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Iterates, Run
from unbraid.studies.comparison.cells import with_noise

RANK = 3
SHAPES = [ub.Increasing(), ub.Decreasing(), ub.Convex()]


def a_free_model(constraint: Constraint) -> tuple[GaussNewton, Iterates]:
    """A solver with a constraint, and a random model that does not obey it."""
    problem, _ = ub.datasets.monotone(S=80, rng=0)
    solver, model = a_point(problem, ub.BSpline(9), RANK, 0.1, True)
    return replace(solver, projection=Projection.onto([constraint] * RANK, True)), model


def slopes_in_outputs(solver: GaussNewton, one: Iterates) -> Array:
    """What the slopes of each branch of a model make of those of the outputs, (r, n, S)."""
    assert isinstance(solver.samples, Samples)
    u = one.W0 @ solver.samples.X.T
    slopes = one.placement.evaluate(one.a, one.placement.at(u), 1)[0]
    return np.asarray(one.W1[0].T[:, :, None] * slopes[:, None, :])


@pytest.mark.parametrize("constraint", SHAPES, ids=repr)
def test_a_projected_branch_has_the_nearer_of_two_signs(constraint: Constraint) -> None:
    solver, model = a_free_model(constraint)
    wanted, found = slopes_in_outputs(solver, model), slopes_in_outputs(solver, project_branches(solver, model))
    signs = [replace(model, W1=sign * model.W1, a=sign * model.a) for sign in (1.0, -1.0)]
    each = [slopes_in_outputs(solver, solver.placed_anew(one)) for one in signs]
    off = np.array([np.sum((one - wanted) ** 2, axis=(1, 2)) for one in (*each, found)])  # (3, r)
    assert (off[2] <= 1.1 * off[:2].min(axis=0)).all()


@pytest.mark.parametrize("constraint", SHAPES, ids=repr)
def test_what_was_found_freely_obeys_the_constraints_and_makes_up_for_it(constraint: Constraint) -> None:
    solver, model = a_free_model(constraint)
    nothing = Trace(np.zeros(0), np.zeros(0), ())
    run = Run(model, float(solver.objective(model)[0]), Status.CONVERGED, nothing)
    found = into_constraints(solver, run)
    z = solver.projection.shape_coordinates(found.best.placement, found.best.a)
    back = solver.projection.from_shape_coordinates(found.best.placement, z)
    assert back == pytest.approx(found.best.a, abs=1e-12)
    assert np.abs(np.einsum("brk,brk->br", found.best.W0, model.W0)) == pytest.approx(np.ones((1, RANK)))
    projected = project_branches(solver, model)
    assert found.objective == pytest.approx(float(solver.objective(found.best)[0]))
    assert found.objective < float(solver.objective(projected)[0])


def test_starts_of_both_kinds_are_as_many_as_were_asked_for() -> None:
    solver, _ = a_free_model(ub.Increasing())
    method, rngs = ub.methods.default(), np.random.default_rng(0).spawn(5)
    stage = search_for_starts(method, solver.samples, solver, RANK, rngs)
    assert isinstance(stage, SearchHalfFreely)
    runs = stage(Session(), Found()).runs
    assert len(runs) == 5
    assert [run.objective for run in runs] == pytest.approx([float(solver.objective(run.best)[0]) for run in runs])
    free = replace(solver, projection=Projection.onto([None] * RANK, True))
    assert isinstance(search_for_starts(method, solver.samples, free, RANK, rngs), SearchStarts)
    assert isinstance(search_for_starts(method, solver.samples, solver, RANK, rngs[:1]), SearchStarts)


@few_or_many(3, 10)
def test_increasing_branches_are_found_as_well_as_from_the_truth(draws: int) -> None:
    found = 0
    for seed in range(draws):
        exact, truth = ub.datasets.monotone(S=150, rng=seed)
        problem = with_noise(exact, 0.01, np.random.default_rng([seed, 1]))
        fit = ub.decouple(problem, RANK, constraint=ub.Increasing(), rng=seed)
        wanted = ub.decouple(problem, RANK, constraint=ub.Increasing(), init=truth)
        assert fit.smoothing is not None
        assert wanted.smoothing is not None
        assert all(branch.certified(ub.Increasing()) for branch in fit.model.branches)
        found += fit.smoothing.score < wanted.smoothing.score + 0.02
    assert found >= draws - max(1, draws // 10)
