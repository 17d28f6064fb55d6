"""Diagnostics: each says what is known of systems where it is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from unbraid.data.units import Units
from unbraid.errors import DataError, SettingError
from unbraid.judging.diagnostics import branch_shares
from unbraid.judging.uniqueness import Flat, flat_directions, generically_unique
from unbraid.kernels.arrays import Array
from unbraid.metrics import factor_match
from unbraid.report.subject import Subject
from unbraid.solvers.translate import FittedBranches, in_solver_units, in_user_units

X = np.random.default_rng(0).uniform(-1.0, 1.0, (100, 3))


def given(values: Array, jacobians: Array) -> ub.Problem:
    return ub.Problem(X, values, jacobians)


def product() -> ub.Problem:
    """x1 x2 = ((a x1 + x2 / a)² - (a x1 - x2 / a)²) / 4 for every a: one flat direction."""
    J = np.stack([X[:, 1], X[:, 0], np.zeros(len(X))], axis=1)
    return given((X[:, 0] * X[:, 1])[:, None], J[:, None])


def linear() -> ub.Problem:
    """A linear map of rank 2: any two directions that span its row space, so two flat directions."""
    A = np.random.default_rng(1).standard_normal((2, 3))
    return given(X @ A.T, np.broadcast_to(A, (len(X), 2, 3)))


def diagnosed(problem: ub.Problem, rank: int, **settings: Any) -> ub.Diagnostics:
    return ub.diagnose(ub.decouple(problem, rank, rng=0, starts=8, **settings), problem)


# Uniqueness.


@pytest.mark.parametrize(
    "basis",
    [ub.BSpline(8), ub.Polynomial(3), ub.NaturalCubic(8), ub.SmoothingSpline(), ub.PiecewiseLinear(8)],
    ids=repr,
)
def test_random_systems_are_unique_with_every_basis(basis: Any) -> None:
    problem, _ = ub.datasets.random_system(3, 3, 3, 150, rng=1)
    found = diagnosed(problem, 3, basis=basis)
    assert found.unique
    assert found.flat == Flat(0, 0)
    assert found.generic


def test_smooth_branches_determine_more_than_the_tensor_does() -> None:
    problem, _ = ub.datasets.trig(rng=0)
    found = diagnosed(problem, 3)
    assert not found.generic
    assert found.unique
    assert found.advice == ()


def test_known_ambiguities_are_counted() -> None:
    for problem, count in ((product(), 1), (linear(), 2)):
        found = diagnosed(problem, 2)
        assert found.flat == Flat(count, 0)
        assert found.unique is False


def test_parabolas_of_one_output_rotate() -> None:
    found = diagnosed(product(), 2)
    [freedom] = found.freedoms
    assert (freedom.kind, freedom.branches, freedom.ways) == ("rotating", (0, 1), 1)
    assert freedom.share == np.inf
    assert found.unique_canonical is False
    assert "no, branches 1 and 2 can rotate" in repr(found)
    assert any("other directions are as good. Samples from a wider range" in one for one in found.advice)


def test_a_linear_map_is_unique_in_the_canonical_form() -> None:
    found = diagnosed(linear(), 2)
    assert found.straight == (0, 1)
    assert {one.kind for one in found.freedoms} == {"straight"}
    assert found.unique_canonical
    assert found.canonical is not None
    assert found.canonical.rank == 0
    np.testing.assert_allclose(found.canonical.L, np.random.default_rng(1).standard_normal((2, 3)), atol=1e-9)
    assert "the directions of branches 1 and 2, which are straight lines, mean nothing" in repr(found)


def test_more_branches_than_entries_of_a_jacobian_trade_straight_lines() -> None:
    problem, _ = ub.datasets.random_system(2, 2, 5, 200, "sine", rng=1)
    found = diagnosed(problem, 5)
    assert found.flat == Flat(1, 1)
    assert any("trade straight lines" in one for one in found.advice)
    assert found.unique is False
    assert found.unique_canonical


def test_too_few_samples_leave_the_model_open() -> None:
    whole, _ = ub.datasets.random_system(2, 3, 3, 20, "sine", rng=1)
    found = diagnosed(ub.Problem(whole.X, whole.F), 3, basis=ub.BSpline(12))
    assert found.flat is not None
    assert found.flat.directions > 0
    assert found.generic is None
    assert found.slopes is None


def test_the_bound_is_dreesens() -> None:
    problem, _ = ub.datasets.random_system(3, 3, 2, 50, rng=0)
    assert [generically_unique(problem, rank) for rank in (1, 4, 5)] == [True, True, False]  # 2·4·3 ≤ 36 < 2·5·4


def test_models_with_too_many_unknowns_are_not_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = ub.datasets.trig(rng=0)
    fit = ub.decouple(problem, 3, starts=2, rng=0)
    monkeypatch.setattr("unbraid.judging.uniqueness.DENSE_LIMIT", 10)
    assert flat_directions(problem, fit.model) is None
    found = ub.diagnose(fit, problem)
    assert found.unique is None
    assert "not tested" in repr(found)


def test_a_model_goes_into_the_solvers_units_and_back() -> None:
    problem, _ = ub.datasets.trig(rng=0)
    moved = ub.Problem(problem.X * [10.0, 0.1] + [5.0, -3.0], problem.F)
    model = ub.decouple(moved, 3, starts=2, rng=0).model
    units = Units.balanced(moved)
    one = in_solver_units(model, units)
    again = in_user_units(
        units, one.W0[0], one.W1[0], FittedBranches(ub.BSpline(12), one.placement.select(0), one.a[0], np.zeros((3, 2)))
    )
    np.testing.assert_allclose(again(moved.X) + model.bias, model(moved.X), atol=1e-10)


# Replicability.


def test_the_match_score_does_not_see_order_sign_and_scale() -> None:
    rng = np.random.default_rng(0)
    W0, W1 = rng.standard_normal((4, 3)), rng.standard_normal((2, 4))
    order, scale = rng.permutation(4), rng.standard_normal(4)
    assert factor_match(W0, W1, (W0 * scale[:, None])[order], (W1 / scale)[:, order]) == pytest.approx(1.0)
    assert factor_match(W0, W1, rng.standard_normal((4, 3)), W1) < 0.95


def test_starts_that_agree_have_a_match_score_of_one() -> None:
    problem, _ = ub.datasets.trig(rng=0)
    fit = ub.decouple(problem, 3, rng=0)
    assert fit.starts[0].match == pytest.approx(1.0)
    found = ub.diagnose(fit, problem)
    assert found.match == pytest.approx(1.0, abs=1e-3)
    assert found.compared >= 2


def test_ambiguous_systems_have_a_lower_one() -> None:
    found = diagnosed(product(), 2)
    assert found.match is not None
    assert found.match < 0.99
    assert any("do not read much into single branches" in one for one in found.advice)


def test_one_start_has_nothing_to_be_compared_with() -> None:
    problem, truth = ub.datasets.trig(rng=0)
    found = ub.diagnose(ub.decouple(problem, 3, init=truth), problem)
    assert found.match is None
    assert found.compared == 1
    assert "not known" in repr(found)


# Branches.


def test_a_superfluous_branch_is_told() -> None:
    """The second direction of a rank-one function is either parallel to the first or of no weight."""
    problem, _ = ub.datasets.random_system(2, 3, 1, 100, "sine", rng=0)
    found = diagnosed(problem, 2, basis=ub.BSpline(12))
    assert any("smaller rank may do" in one or "try rank 1" in one for one in found.advice)


def test_two_curves_of_one_input_are_told_apart_from_one_curve_twice() -> None:
    x, zero = X[:, 0], np.zeros(len(X))
    F = np.stack([np.sin(3.0 * x), np.cos(2.0 * x)], axis=1)
    J = np.stack(
        [np.stack([3.0 * np.cos(3.0 * x), zero, zero], axis=1), np.stack([-2.0 * np.sin(2.0 * x), zero, zero], axis=1)]
    )
    found = diagnosed(given(F, np.moveaxis(J, 0, 1)), 2)
    [pair] = found.parallel
    assert (pair.one, pair.other) == (0, 1)
    assert not pair.mergeable
    assert not pair.cancelling
    assert any("are curves of one input, and can be mixed, in 2 ways" in one for one in found.advice)
    assert [(one.kind, one.branches) for one in found.freedoms] == [("parallel", (0, 1))]


def test_shares_are_those_of_a_known_sum() -> None:
    """f = 3 x1² + 4 x2³, whose two branches are independent."""
    x, y = X[:, 0], X[:, 1]
    F = 3.0 * x**2 + 4.0 * y**3
    J = np.stack([6.0 * x, 12.0 * y**2, np.zeros(len(X))], axis=1)
    problem = given(F[:, None], J[:, None])
    fit = ub.decouple(problem, 2, rng=0, starts=8)
    found = ub.diagnose(fit, problem)
    order = np.argsort(np.abs(fit.model.W0[:, 1]))
    assert found.slopes is not None
    both = np.cov(3.0 * x**2, 4.0 * y**3, bias=True)
    np.testing.assert_allclose(found.values[order], both.sum(axis=1) / both.sum(), rtol=1e-6)
    size = np.std(X, axis=0) ** 2
    expected = np.array([np.sum(J[:, 0] ** 2), np.sum(J[:, 1] ** 2)]) * size[:2] / np.sum(J**2 * size)
    np.testing.assert_allclose(found.slopes[order], expected, rtol=1e-6)
    np.testing.assert_allclose(found.alone[order], np.maximum(np.diag(both) / both.sum(), expected), rtol=1e-6)


@pytest.mark.parametrize("data", ["F", "J", "FJ"])
def test_importance_is_the_same_wherever_it_is_asked_for(data: str) -> None:
    """f = x1² + x1 x2, whose branches are correlated."""
    x, y = X[:, 0], X[:, 1]
    J = np.stack([2.0 * x + y, x, np.zeros(len(X))], axis=1)[:, None]
    problem = ub.Problem(X, (x**2 + x * y)[:, None] if "F" in data else None, J if "J" in data else None)
    fit = ub.decouple(ub.Problem(problem.X, problem.F, problem.J, weights=np.arange(len(X)) % 3 + 1.0), 3, rng=0)
    shares = ub.importance(fit, needs=False).branches[0]
    np.testing.assert_allclose(ub.diagnose(fit).importance, shares, rtol=1e-9)
    np.testing.assert_allclose(Subject.of(fit, None, None).shares, shares, rtol=1e-9)
    assert shares.sum() == pytest.approx(1.0)


def test_shares_outside_the_training_range_are_those_of_the_models_own_branches() -> None:
    problem, truth = ub.datasets.trig(S=100, rng=0)
    model = ub.decouple(problem, 3, starts=2, rng=0).model
    far = 3.0 * problem.X
    shares = branch_shares(model, ub.Problem(far, truth(far), truth.jacobian(far)))
    u = far @ model.W0.T
    R = np.stack([g(u[:, j]) for j, g in enumerate(model.branches)], axis=-1)
    both = np.einsum("ij,jk,ik->ijk", model.W1, np.cov(R.T, bias=True), model.W1)
    expected = np.mean(both.sum(axis=2) / np.var(model(far), axis=0)[:, None], axis=0)
    np.testing.assert_allclose(shares.values, expected, rtol=1e-9)
    own = branch_shares(model, ub.Problem(far, J=model.jacobian(far))).slopes
    G = np.stack([g.derivative(u[:, j]) for j, g in enumerate(model.branches)], axis=-1)
    parts = np.einsum("sj,ij,jk->jsik", G, model.W1, model.W0) * far.std(axis=0)
    whole = parts.sum(axis=0)
    size = np.mean(np.sum(whole**2, axis=-1), axis=0)[:, None]
    assert own is not None
    np.testing.assert_allclose(own, np.sum(parts * whole / size, axis=(1, 2, 3)) / np.sum(whole**2 / size), rtol=1e-9)


def test_a_share_that_only_says_that_branches_cancel_has_no_number() -> None:
    problem, _ = ub.datasets.trig(rng=0)
    found = diagnosed(problem, 3)
    assert "shares of F 30, over 200, 40 %" in repr(replace(found, values=np.array([0.3, 1.2e7, 0.4])))


def test_what_does_not_belong_together_is_refused() -> None:
    problem, truth = ub.datasets.trig(rng=0)
    fit = ub.decouple(problem, 3, starts=1, rng=0)
    other, _ = ub.datasets.monotone(rng=0)
    with pytest.raises(DataError, match="must be the one that was fitted"):
        ub.diagnose(fit, other)
    with pytest.raises(SettingError, match=r"what ub\.decouple returns, got a DecoupledModel"):
        ub.diagnose(truth, problem)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"must be the ub\.Problem that was fitted, got a ndarray"):
        ub.diagnose(fit, problem.X)  # type: ignore[arg-type]


def test_shares_above_100_percent_are_explained() -> None:
    """f = 10 sin(2 x1) - 10 sin(2 x1 + 0.3 x2): each branch is larger than what is left of them."""
    u, v = 2.0 * X[:, 0], 2.0 * X[:, 0] + 0.3 * X[:, 1]
    J = np.zeros((len(X), 1, 3))
    J[:, 0, 0] = 20.0 * (np.cos(u) - np.cos(v))
    J[:, 0, 1] = -3.0 * np.cos(v)
    found = diagnosed(given((10.0 * (np.sin(u) - np.sin(v)))[:, None], J), 2)
    assert found.alone.min() > 1.0
    assert found.values.sum() == pytest.approx(1.0)
    said = "Branches 1, 2 have more than 100 % by themselves: branches cancel each other in part"
    assert any(one.startswith(said) for one in found.advice)
    assert said in repr(found)
    assert not any("100 %" in one for one in replace(found, follows=False).advice)
