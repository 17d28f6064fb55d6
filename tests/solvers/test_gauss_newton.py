"""The second-order solver: its derivatives, its limits, and what it does with hard data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unbraid as ub
from draws import few_or_many
from registry import CONSTRAINTS
from solver_points import a_point, moved
from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint
from unbraid.bases.projection import Projection
from unbraid.data.in_memory import Samples
from unbraid.data.units import Units
from unbraid.fitting.session import ProgressSpan, Session
from unbraid.kernels.arrays import Array
from unbraid.solvers.evaluated import outputs_at
from unbraid.solvers.gauss_newton import PLACE_KNOTS_AT, GaussNewton
from unbraid.solvers.iterates import Iterates
from unbraid.solvers.loop import Stopping

BASES: list[Basis] = [
    ub.BSpline(df=7, degree=3),
    ub.BSpline(df=6, degree=2),
    ub.BSpline(df=8, degree=5),
    ub.NaturalCubic(df=6),
    ub.Polynomial(degree=4),
    ub.SmoothingSpline(df=7, smoothing=1e-5),
]


def residuals(solver: GaussNewton, it: Iterates) -> Array:
    """All residuals of a batch of one, as one vector whose squares add up to the objective."""
    samples = solver.samples.gathered()
    at = outputs_at(samples, it)
    J_hat = np.einsum("ij,sj,jk->sik", it.W1[0], at.slopes[0], it.W0[0]).reshape(len(samples.X), -1)
    parts = [] if samples.J is None else [(samples.J * samples.weight - J_hat).ravel()]
    if samples.F is not None:
        F_part = samples.F - at.values[0] @ it.W1[0].T
        if solver.offset:
            F_part = F_part - F_part.mean(axis=0)
        parts.append(np.sqrt(solver.coupling) * F_part.ravel())
    penalty = it.placement.penalty()
    if penalty is not None:
        values, vectors = np.linalg.eigh(penalty[0])
        root = np.sqrt(np.maximum(values, 0.0))[..., None] * vectors.mT
        parts.append(np.einsum("jkl,jl,ij->jki", root, it.a[0], it.W1[0]).ravel())
    return np.concatenate(parts)


@pytest.mark.parametrize("basis", BASES, ids=repr)
@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("given", ["F", "J", "FJ"])
def test_gradient_and_normal_matrix_agree_with_finite_differences(basis: Basis, offset: bool, given: str) -> None:
    problem, _ = ub.datasets.random_system(n=2, m=3, r=2, S=60, kind="sine", rng=0)
    problem = ub.Problem(problem.X, problem.F if "F" in given else None, problem.J if "J" in given else None)
    solver, it = a_point(problem, basis, rank=2, coupling=0.3, offset=offset)
    unknowns = 2 * (2 + 3 + basis.size)
    h = 1e-5
    jacobian = np.empty((residuals(solver, it).size, unknowns))
    for p in range(unknowns):
        e = np.zeros(unknowns)
        e[p] = h
        steps = [residuals(solver, moved(it, k * e)) for k in (-2, -1, 1, 2)]
        jacobian[:, p] = (steps[0] - 8 * steps[1] + 8 * steps[2] - steps[3]) / (12 * h)
    here = solver.linearised(it)
    N, descent = here.normal_matrix(), here.descent()
    expected = jacobian.T @ jacobian
    np.testing.assert_allclose(N.reshape(unknowns, unknowns), expected, rtol=0, atol=1e-7 * np.abs(expected).max())
    gradient = -jacobian.T @ residuals(solver, it)
    np.testing.assert_allclose(descent.ravel(), gradient, rtol=0, atol=1e-7 * np.abs(gradient).max())


@pytest.mark.parametrize("constraint", [None, *CONSTRAINTS], ids=repr)
def test_every_iterate_is_feasible_and_the_objective_falls_between_placements(constraint: Constraint | None) -> None:
    problem, _ = ub.datasets.monotone(rng=3)
    samples = Samples.of(problem, Units.balanced(problem))
    projection = Projection.onto([constraint] * 3)
    solver = GaussNewton(samples, ub.BSpline(df=8), projection, 0.1, offset=False, directions_fixed=True)
    _, it = a_point(problem, ub.BSpline(df=8), 3, 0.1, offset=False)
    it = replace(it, a=projection.feasible(it.placement, it.a))
    state = solver.start(it)
    before = np.inf
    for _ in range(12):
        state, _ = solver.step(state)
        objective = float(solver.measure(state).objective[0])
        assert objective <= before * (1.0 + 1e-13)  # knots are placed anew in between, if where they were
        before = objective
        if constraint is not None:
            for j in range(3):
                assert constraint.holds(state.iterates.placement.select((0, j)), state.iterates.a[0, j])


@pytest.mark.parametrize("constraint", [None, ub.Increasing(), ub.Convex(), ub.NonNegative()], ids=repr)
def test_the_limit_satisfies_the_optimality_conditions(constraint: Constraint | None) -> None:
    """Fixed knots, until nothing moves: no gradient on free unknowns, and none that leads away from a bound.

    Sines are nothing that a constraint allows, so bounds are active; from three starts.
    """
    problem, truth = ub.datasets.random_system(n=3, m=3, r=2, S=60, kind="sine", rng=0)
    samples = Samples.of(problem, Units.balanced(problem))
    projection = Projection.onto([constraint] * 2)
    solver = GaussNewton(samples, ub.BSpline(df=6), projection, 0.1, offset=False)
    W0 = truth.W0 * np.std(problem.X, axis=0)
    W0 = np.tile(W0 / np.linalg.norm(W0, axis=1, keepdims=True), (3, 1, 1))
    placement = ub.BSpline(df=6).place(W0 @ samples.X.T)
    rng = np.random.default_rng(0)
    a = projection.feasible(placement, rng.standard_normal((3, 2, 7)))
    state = solver.start(Iterates(W0, rng.standard_normal((3, 3, 2)), placement, a))
    state = replace(state, steps=max(PLACE_KNOTS_AT) + 1)
    stopping = Stopping(max_sweeps=2000, tolerance=1e-11, patience=10)
    for run in Session().loop(solver, lambda: state, stopping, ProgressSpan("polish", range(3), 3)):
        end = solver.start(run.best)
        q = end.model.descent.shape[-1] // 2
        descent = end.model.descent.reshape(2, q)
        scale = np.sqrt(end.model.diagonal[0]).reshape(2, q) * np.sqrt(samples.norm)
        z = projection.shape_coordinates(run.best.placement, run.best.a)[0]
        bounded = np.concatenate([np.zeros((2, 6), dtype=bool), projection.bounded(7)], axis=-1)
        active = bounded & (np.concatenate([np.ones((2, 6)), z], axis=-1) <= 1e-12)
        relative = descent / np.where(scale > 0.0, scale, 1.0)
        assert active.any() == (constraint is not None)
        assert np.abs(relative[~active]).max() < 2e-5
        assert relative[active].max(initial=0.0) < 2e-5


def cubic_fits(n: int, m: int, r: int, S: int, seeds: range) -> list[float]:
    errors = []
    for seed in seeds:
        problem, _ = ub.datasets.random_system(n, m, r, S, kind="cubic", rng=seed)
        error = ub.decouple(problem, r, rng=seed).jacobian_error
        assert error is not None
        errors.append(error)
    return errors


@few_or_many(3, 10)
@pytest.mark.parametrize("size", [(2, 2, 3, 100), (3, 3, 5, 200), (2, 4, 4, 150), (5, 5, 6, 200)], ids=str)
def test_cubic_systems_are_recovered_to_machine_precision(size: tuple[int, int, int, int], draws: int) -> None:
    errors = cubic_fits(*size, seeds=range(draws))
    failures = int(np.sum(np.array(errors) >= 1e-20))
    assert failures <= (1 if size == (2, 2, 3, 100) else 0)  # one draw has directions 0.01 degrees apart


@few_or_many(4, 12)
@pytest.mark.parametrize(("name", "rank"), [("decuyper", 3), ("dreesen_a", 2), ("dreesen_b", 4)])
def test_published_polynomial_systems_are_recovered_exactly(name: str, rank: int, draws: int) -> None:
    for seed in range(draws):
        problem, _ = getattr(ub.datasets, name)(rng=seed)
        error = ub.decouple(problem, rank, rng=seed).jacobian_error
        assert error is not None
        assert error < 1e-20


def test_polish_can_be_switched_off_and_on() -> None:
    problem, _ = ub.datasets.trig(rng=0)
    swept = ub.decouple(problem, 3, polish=False, starts=2, rng=0)
    polished = ub.decouple(problem, 3, starts=2, rng=0)
    printed = ub.decouple(problem, 3, method=ub.methods.dejonghe2025(), starts=2, rng=0)
    both = ub.decouple(problem, 3, method=ub.methods.dejonghe2025(), polish=True, starts=2, rng=0)
    assert polished.objective < swept.objective
    assert both.objective < printed.objective


def test_a_fit_from_the_truth_is_no_better_than_one_from_random_starts() -> None:
    problem, truth = ub.datasets.trig(rng=0)
    found = ub.decouple(problem, 3, basis=ub.BSpline(df=16), rng=0)
    given = ub.decouple(problem, 3, basis=ub.BSpline(df=16), init=truth)
    assert found.objective <= 1.02 * given.objective
    assert len(given.starts) == 1


@pytest.fixture(scope="module")
def trig_fit() -> tuple[ub.Problem, ub.Fit]:
    problem, _ = ub.datasets.trig(rng=0)
    return problem, ub.decouple(problem, 3, rng=0)


def test_the_domain_of_a_branch_is_what_training_saw(trig_fit: tuple[ub.Problem, ub.Fit]) -> None:
    problem, fit = trig_fit
    u = problem.X @ fit.model.W0.T
    for j, branch in enumerate(fit.model.branches):
        np.testing.assert_allclose(branch.domain, (u[:, j].min(), u[:, j].max()), rtol=1e-12)


def test_branches_have_unit_spread_and_mean_zero_in_the_default_gauge(trig_fit: tuple[ub.Problem, ub.Fit]) -> None:
    problem, fit = trig_fit
    u = problem.X @ fit.model.W0.T
    for j, branch in enumerate(fit.model.branches):
        assert np.std(branch(u[:, j])) == pytest.approx(1.0)
        assert np.mean(branch(u[:, j])) == pytest.approx(0.0, abs=1e-10)


def test_nonnegative_costs_nothing_where_the_offset_is_free(trig_fit: tuple[ub.Problem, ub.Fit]) -> None:
    problem, free = trig_fit
    raised = ub.decouple(problem, 3, constraint=ub.NonNegative(), rng=0)
    assert raised.objective == pytest.approx(free.objective)
    assert all(branch.certified(ub.NonNegative()) for branch in raised.model.branches)
    np.testing.assert_allclose(raised.model(problem.X), free.model(problem.X), atol=1e-9)


def test_values_alone_recover_systems_that_the_splines_contain() -> None:
    for n, m, r, S in ((3, 3, 3, 200), (2, 4, 3, 200), (1, 3, 2, 200)):
        problem, truth = ub.datasets.random_system(n, m, r, S, "cubic", rng=0)
        fit = ub.decouple(ub.Problem(problem.X, problem.F), r, rng=0)
        assert fit.objective < 1e-20
        assert fit.jacobian_error is None
        assert problem.J is not None
        assert ub.metrics.jacobian_error(problem.J, fit.model.jacobian(problem.X)) < 1e-12
        assert ub.metrics.direction_angles(truth.W0, fit.model.W0).max() < 1e-4


def test_values_alone_reach_what_a_fit_from_the_truth_reaches() -> None:
    problem, truth = ub.datasets.trig(S=150, rng=0)
    values = ub.Problem(problem.X, problem.F)
    found, given = ub.decouple(values, 3, rng=0), ub.decouple(values, 3, init=truth)
    assert found.objective <= 1.02 * given.objective
    assert any("Values alone" in note for note in found.notes)


def test_values_alone_keep_constraints() -> None:
    problem, _ = ub.datasets.monotone(rng=0)
    fit = ub.decouple(ub.Problem(problem.X, problem.F), 3, constraint=ub.Increasing(), starts=6, rng=0)
    assert all(branch.certified(ub.Increasing()) for branch in fit.model.branches)
    assert fit.output_errors is not None
    assert fit.output_errors.max() < 1.0


def test_jacobians_alone_leave_constants_open_and_say_so() -> None:
    problem, _ = ub.datasets.random_system(3, 3, 3, 100, "cubic", rng=0)
    fit = ub.decouple(ub.Problem(problem.X, J=problem.J), 3, rng=0)
    assert fit.status is ub.Status.UP_TO_CONSTANTS
    assert fit.status.converged
    assert "constant" in fit.status.advice
    assert problem.F is not None
    model = fit.model.through(problem.X[0], problem.F[0])
    np.testing.assert_allclose(model(problem.X), problem.F, atol=1e-8)
    np.testing.assert_allclose(fit.model.through(problem.X, problem.F)(problem.X), problem.F, atol=1e-8)
    with pytest.raises(ub.UnbraidError, match=r"F must be \(100, 3\)"):
        fit.model.through(problem.X, problem.F[:50])
