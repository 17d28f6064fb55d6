"""Samples that count more or less than others, and entries that are not known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unbraid as ub
from registry import BASES
from solver_points import a_point, moved
from unbraid.bases import Basis
from unbraid.data.estimates import fill_gaps, from_neighbours
from unbraid.data.in_memory import Samples
from unbraid.data.units import Units
from unbraid.kernels.arrays import Array
from unbraid.results.fit import errors_on
from unbraid.solvers.evaluated import outputs_at
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Iterates

METHODS = [
    ub.methods.default(),
    ub.methods.default(polish=False, max_sweeps=50),
    ub.methods.dejonghe2025(max_sweeps=50),
]


def weighted_and_repeated(seed: int = 0, data: str = "FJ") -> tuple[ub.Problem, ub.Problem, ub.Problem]:
    """A weighted problem, the same with samples repeated instead, and fresh samples."""
    whole, _ = ub.datasets.trig(S=400, rng=seed)
    rng = np.random.default_rng(seed)
    train, fresh = whole.take(slice(80)), whole.take(slice(80, None))
    assert train.F is not None
    F = train.F + 0.02 * rng.standard_normal(train.F.shape)
    times = rng.integers(1, 4, 80)
    F_given, J_given = F if "F" in data else None, train.J if "J" in data else None
    weighted = ub.Problem(train.X, F_given, J_given, weights=times)
    index = np.repeat(np.arange(80), times)
    return weighted, ub.Problem(train.X, F_given, J_given).take(index), fresh


# What goes in.


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        (np.ones(3), r"weights must be \(S,\) = \(5,\)"),
        ([1, 1, -2, 1, 1], r"weights must be ≥ 0, got -2 at weights\[2\]"),
        (np.zeros(5), "weights are all zero"),
        ([1, 1, np.nan, 1, 1], "weights has 1 entry that is NaN"),
    ],
)
def test_weights_are_checked(weights: object, says: str) -> None:
    with pytest.raises(ub.UnbraidError, match=says):
        ub.Problem(np.ones((5, 2)), np.ones((5, 1)), weights=weights)  # type: ignore[arg-type]


def test_gaps_are_refused_unless_they_are_announced() -> None:
    X, F = np.random.default_rng(0).standard_normal((2, 6, 2))
    F[2, 1] = np.nan
    with pytest.raises(ub.UnbraidError, match='pass missing="mask"'):
        ub.Problem(X, F)
    assert not ub.Problem(X, F, missing="mask").complete
    assert repr(ub.Problem(X, F, missing="mask")).endswith("values only, 8.3 % missing)")
    with pytest.raises(ub.UnbraidError, match=r"missing must be 'error', 'mask' or 'drop', got 'other'"):
        ub.Problem(X, F, missing="other")  # type: ignore[arg-type]
    with pytest.raises(ub.UnbraidError, match="F holds nothing but NaN: pass F=None"):
        ub.Problem(X, np.full((6, 2), np.nan), np.ones((6, 2, 2)), missing="mask")
    with pytest.raises(ub.UnbraidError, match="Output 1 is missing throughout"):
        ub.Problem(X, np.column_stack([F[:, 0], np.full(6, np.nan)]), missing="mask")
    with pytest.raises(ub.UnbraidError, match=r"F is infinite at F\[2, 1\]"):
        ub.Problem(X, np.where(np.isnan(F), np.inf, F), missing="mask")
    X[0, 0] = np.nan
    with pytest.raises(ub.UnbraidError, match="X has 1 entry"):
        ub.Problem(X, F, missing="mask")


def test_some_samples_keep_their_weights_and_gaps() -> None:
    X, F = np.random.default_rng(0).standard_normal((2, 6, 2))
    F[2, 1] = np.nan
    problem = ub.Problem(X, F, weights=np.arange(6.0), missing="mask")
    part = problem.take([2, 4])
    np.testing.assert_array_equal(np.asarray(part.weights), [2.0, 4.0])
    assert not part.complete
    assert problem.take([3, 4]).complete
    assert problem.counting().S == 5
    assert "weighted" in repr(problem)


def test_methods_that_know_neither_say_so() -> None:
    problem, _ = ub.datasets.trig(rng=0)
    assert problem.F is not None
    weighted = ub.Problem(problem.X, problem.F, problem.J, weights=np.ones(problem.S))
    with pytest.raises(ub.UnbraidError, match="has weights, which the sweeps of hollander2017 do not know: add polish"):
        ub.decouple(weighted, 3, method=ub.methods.hollander2017())
    F = problem.F.copy()
    F[0, 0] = np.nan
    gappy = ub.Problem(problem.X, F, problem.J, missing="mask")
    with pytest.raises(ub.UnbraidError, match="has gaps, which the sweeps of dejonghe2025 do not know: add polish"):
        ub.decouple(gappy, 3, method=ub.methods.dejonghe2025())
    fit = ub.decouple(gappy, 3, method=ub.methods.dejonghe2025(), polish=True, starts=2, rng=0)
    assert np.isfinite(fit.model.W0).all()


# The equations: a sample of weight k counts like k samples.


@pytest.mark.parametrize("basis", BASES, ids=repr)
def test_weighted_normal_equations_are_those_of_repeated_samples(basis: Basis) -> None:
    rng = np.random.default_rng(0)
    u, G, R = rng.standard_normal((3, 2, 60))
    times = rng.integers(0, 4, 60)
    placed = basis.place(u)
    found = placed.normal_equations(placed.at(u), G, R, 0.3, times.astype(float))
    index = np.repeat(np.arange(60), times)
    wanted = placed.normal_equations(placed.at(u[:, index]), G[:, index], R[:, index], 0.3)
    for ours, theirs in zip(found[:3], wanted[:3], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-11 * np.abs(theirs).max())


def repeated_rows(samples: Samples, times: Array) -> Samples:
    """The same samples, repeated instead of weighted; their weights have mean one."""
    index = np.repeat(np.arange(len(times)), times.astype(int))
    return replace(
        samples,
        X=samples.X[index],
        F=None if samples.F is None else samples.F[index],
        J=None if samples.J is None else samples.J[index],
        rows=None,
    )


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("data", ["F", "J", "FJ"])
def test_steps_of_weighted_samples_are_those_of_repeated_ones(data: str, offset: bool) -> None:
    weighted, _, _ = weighted_and_repeated(data=data)
    solver, it = a_point(weighted, ub.BSpline(df=7), rank=2, coupling=0.3, offset=offset)
    assert weighted.weights is not None
    scale = weighted.weights.mean()
    other = replace(solver, samples=repeated_rows(solver.samples.gathered(), weighted.weights))
    ours, theirs = solver.linearised(it), other.linearised(it)
    change = np.random.default_rng(1).standard_normal(ours.descent().shape)
    for one, another in (
        (ours.descent(), theirs.descent()),
        (ours.normal_matrix(), theirs.normal_matrix()),
        (ours.branch_matrices(), theirs.branch_matrices()),
        (ours.product(change), theirs.product(change)),
        (np.array(ours.misfits()), np.array(theirs.misfits())),
    ):
        np.testing.assert_allclose(scale * one, another, rtol=0, atol=1e-10 * np.abs(another).max())


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name + str(method.polish is not None))
def test_a_weighted_fit_is_that_of_repeated_samples(method: ub.methods.Method) -> None:
    """A sweep sees weights exactly; knots go where the samples are, which repetition changes: so even knots."""
    weighted, repeated, fresh = weighted_and_repeated()
    basis = ub.SmoothingSpline(10, smoothing=1e-9)
    models = [
        ub.decouple(problem, 3, basis=basis, method=method, starts=3, rng=0).model for problem in (weighted, repeated)
    ]
    scale = np.std(fresh.F, axis=0) if fresh.F is not None else 1.0
    np.testing.assert_allclose((models[0](fresh.X) - models[1](fresh.X)) / scale, 0.0, atol=2e-3)


def test_samples_of_weight_zero_are_as_if_they_were_not_there() -> None:
    problem, _ = ub.datasets.trig(S=100, rng=0)
    spoiled = np.asarray(problem.F).copy()
    spoiled[70:] = 1e3
    weights = np.where(np.arange(100) < 70, 1.0, 0.0)
    whole = ub.decouple(ub.Problem(problem.X, spoiled, problem.J, weights=weights), 3, starts=3, rng=0)
    part = ub.decouple(problem.take(slice(70)), 3, starts=3, rng=0)
    np.testing.assert_allclose(whole.model(problem.X), part.model(problem.X), rtol=1e-6, atol=1e-6)


def test_the_scale_of_weights_does_not_matter() -> None:
    weighted, _, fresh = weighted_and_repeated()
    heavier = ub.Problem(weighted.X, weighted.F, weighted.J, weights=1e6 * np.asarray(weighted.weights))
    one, other = (ub.decouple(problem, 3, starts=2, rng=0).model(fresh.X) for problem in (weighted, heavier))
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_noisy_samples_of_little_weight_do_little_harm() -> None:
    whole, _ = ub.datasets.trig(S=400, rng=1)
    train, fresh = whole.take(slice(120)), whole.take(slice(120, None))
    rng = np.random.default_rng(0)
    noise = np.where(np.arange(120) % 2 == 0, 0.001, 0.5)[:, None]
    F = np.asarray(train.F) + noise * rng.standard_normal((120, 2))
    J = np.asarray(train.J) + noise[:, None] * rng.standard_normal((120, 2, 2))
    weighted = ub.Problem(train.X, F, J, weights=noise[:, 0] ** -2)
    errors = []
    for problem in (weighted, ub.Problem(train.X, F, J)):
        outputs = errors_on(fresh, ub.decouple(problem, 3, starts=6, rng=0).model)[1]
        assert outputs is not None
        errors.append(outputs.max())
    assert errors[0] < 0.5 * errors[1]


# Gaps.


def with_gaps(problem: ub.Problem, share: float, seed: int = 0, data: str = "FJ") -> ub.Problem:
    rng = np.random.default_rng(seed)
    F, J = (
        np.where(rng.random(np.asarray(whole).shape) < share, np.nan, np.asarray(whole)) if name in data else None
        for name, whole in (("F", problem.F), ("J", problem.J))
    )
    return ub.Problem(problem.X, F, J, missing="mask")


def objective(solver: GaussNewton, it: Iterates, problem: ub.Problem, units: Units) -> float:
    """The sum over what is known, entry by entry."""
    at = outputs_at(solver.samples.gathered(), it)
    total = 0.0
    rows = np.ones(problem.S) if problem.weights is None else problem.weights / problem.weights.mean()
    if problem.J is not None:
        J = problem.J * units.x_scale / units.f_scale[:, None]
        J_hat = np.einsum("ij,sj,jk->sik", it.W1[0], at.slopes[0], it.W0[0])
        total += float(np.nansum(rows[:, None, None] * (J - J_hat) ** 2))
    if problem.F is not None:
        residual = problem.F / units.f_scale - at.values[0] @ it.W1[0].T
        if solver.offset:
            known = ~np.isnan(residual)
            w = rows[:, None] * known
            residual = residual - np.nansum(rows[:, None] * residual, axis=0) / w.sum(axis=0)
        total += solver.coupling * float(np.nansum(rows[:, None] * residual**2))
    return total


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("data", ["F", "J", "FJ"])
def test_the_gradient_is_that_of_what_is_known(data: str, offset: bool) -> None:
    whole, _ = ub.datasets.random_system(n=2, m=3, r=2, S=60, kind="sine", rng=0)
    gappy = with_gaps(whole, 0.3, data=data)
    problem = ub.Problem(gappy.X, gappy.F, gappy.J, np.random.default_rng(1).uniform(0.1, 3.0, 60), "mask")
    solver, it = a_point(problem, ub.BSpline(df=7), rank=2, coupling=0.3, offset=offset)
    units = Units.balanced(problem)
    np.testing.assert_allclose(
        solver.objective(it)[0] * solver.samples.norm, objective(solver, it, problem, units), rtol=1e-12
    )
    unknowns, h = 2 * (2 + 3 + 8), 1e-5
    descent = solver.linearised(it).descent().ravel()
    for p in range(unknowns):
        e = np.zeros(unknowns)
        e[p] = h
        ahead, behind = (objective(solver, moved(it, k * e), problem, units) for k in (1, -1))
        assert descent[p] == pytest.approx(-(ahead - behind) / (4.0 * h), rel=1e-5, abs=1e-5 * np.abs(descent).max())


def test_systems_are_recovered_exactly_through_gaps() -> None:
    problem, _ = ub.datasets.random_system(n=2, m=3, r=3, S=200, kind="cubic", rng=0)
    fit = ub.decouple(with_gaps(problem, 0.3), 3, basis=ub.BSpline(6), rng=0)
    jacobian_error, outputs = errors_on(problem, fit.model)
    assert jacobian_error is not None
    assert jacobian_error < 1e-10
    assert outputs is not None
    assert outputs.max() < 1e-3


def test_gaps_in_values_alone_are_left_out() -> None:
    whole, _ = ub.datasets.random_system(n=2, m=3, r=2, S=500, kind="cubic", rng=1)
    train, fresh = whole.take(slice(200)), whole.take(slice(200, None))
    fit = ub.decouple(with_gaps(ub.Problem(train.X, train.F), 0.2, data="F"), 2, basis=ub.BSpline(5), rng=0)
    outputs = errors_on(fresh, fit.model)[1]
    assert outputs is not None
    assert outputs.max() < 5.0


def test_an_output_with_values_only_beside_one_with_slopes() -> None:
    problem, _ = ub.datasets.random_system(n=2, m=2, r=2, S=150, kind="cubic", rng=2)
    J = np.asarray(problem.J).copy()
    J[:, 1] = np.nan
    fit = ub.decouple(ub.Problem(problem.X, problem.F, J, missing="mask"), 2, basis=ub.BSpline(5), rng=0)
    outputs = errors_on(problem, fit.model)[1]
    assert outputs is not None
    assert outputs.max() < 1.0


def test_errors_are_over_what_is_known_and_weighted() -> None:
    problem, truth = ub.datasets.trig(S=50, rng=0)
    F, J = np.asarray(problem.F).copy(), np.asarray(problem.J).copy()
    F[3], J[4] = 1e6, 1e6
    weights = np.ones(50)
    weights[[3, 4]] = 0.0
    jacobian_error, outputs = errors_on(ub.Problem(problem.X, F, J, weights=weights), truth)
    assert jacobian_error == pytest.approx(0.0, abs=1e-20)
    np.testing.assert_allclose(np.asarray(outputs), 0.0, atol=1e-10)
    F[3], J[4] = np.nan, np.nan
    jacobian_error, outputs = errors_on(ub.Problem(problem.X, F, J, missing="mask"), truth)
    assert jacobian_error == pytest.approx(0.0, abs=1e-20)
    np.testing.assert_allclose(np.asarray(outputs), 0.0, atol=1e-10)


def test_filling_takes_the_nearest_known_entries() -> None:
    X = np.arange(40.0)[:, None]
    rows = np.column_stack([np.where(X[:, 0] < 20, 1.0, 5.0), np.full(40, np.nan)])
    rows[3, 0], rows[30, 0] = np.nan, np.nan
    found = from_neighbours(X, rows)
    assert found[3, 0] == 1.0
    assert found[30, 0] == 5.0
    np.testing.assert_array_equal(found[:, 1], 0.0)
    problem, _ = ub.datasets.trig(S=50, rng=0)
    assert fill_gaps(problem) is problem
    gappy = with_gaps(problem, 0.2)
    whole = fill_gaps(gappy)
    assert whole.complete
    known = ~np.isnan(np.asarray(gappy.J))
    np.testing.assert_array_equal(np.asarray(whole.J)[known], np.asarray(problem.J)[known])


def test_an_output_without_any_value_is_said_to_have_an_open_constant() -> None:
    problem, _ = ub.datasets.trig(S=100, rng=0)
    assert problem.F is not None
    F = problem.F.copy()
    F[:, 1] = np.nan
    fit = ub.decouple(ub.Problem(problem.X, F, problem.J, missing="mask"), 3, starts=4, rng=0)
    assert any("No value of output 2 is known" in note for note in fit.notes)
    some = problem.F.copy()
    some[5:, 1] = np.nan
    model = fit.model.through(problem.X, some)
    assert ub.metrics.output_errors(problem.F, model(problem.X)).max() < 2.0


def test_values_at_one_point_only_give_their_mean_and_a_note() -> None:
    fit = ub.decouple(ub.Problem(np.ones((100, 3)), np.arange(100.0)), 1)
    np.testing.assert_allclose(fit.model(np.ones(3)), 49.5)
    assert any("All points in X are the same" in note for note in fit.notes)


def test_jacobians_that_contradict_the_values_are_noted() -> None:
    problem, _ = ub.datasets.trig(S=100, rng=0)
    assert problem.J is not None
    fit = ub.decouple(ub.Problem(problem.X, problem.F, problem.J.swapaxes(1, 2)), 3, starts=4, rng=0)
    assert any("contradict" in note or "belong together" in note for note in fit.notes), fit.notes
