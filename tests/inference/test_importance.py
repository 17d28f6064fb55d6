"""Shares of inputs and branches, against brute force and where they are known; what does nothing is told."""

from __future__ import annotations

import numpy as np
import pytest

import unbraid as ub
from draws import few_or_many
from unbraid.errors import DataError, SettingError
from unbraid.inference.importance.marginals import Marginals
from unbraid.inference.importance.needs import judge_inputs
from unbraid.inference.importance.sobol import sobol_indices
from unbraid.inference.importance.words import describe_importance
from unbraid.judging.importance import uncertainty_for
from unbraid.kernels.arrays import Array
from unbraid.results.branch import Branch, FunctionBranch


def sine(a: float, b: float) -> Branch:
    """The branch sin(a u + b)."""
    return FunctionBranch(lambda u: np.sin(a * u + b), lambda u: a * np.cos(a * u + b), "")


def curves(r: int, rng: np.random.Generator) -> list[Branch]:
    """Sines of r frequencies."""
    return [sine(*one) for one in rng.uniform(0.5, 1.5, (r, 2))]


def random_model(m: int, r: int, n: int, seed: int) -> ub.DecoupledModel:
    rng = np.random.default_rng(seed)
    W0, W1 = rng.standard_normal((r, m)), rng.standard_normal((n, r))
    return ub.DecoupledModel(W0, W1, curves(r, rng))


def by_brute_force(model: ub.DecoupledModel, X: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """The indices by random points alone: inputs are drawn from the samples, each by itself."""
    A, B = (np.stack([rng.choice(x, 100_000) for x in X.T], axis=1) for _ in range(2))
    FA, FB = model(A), model(B)
    first, total = np.zeros((2, model.n, model.m))
    for k in range(model.m):
        AB = A.copy()
        AB[:, k] = B[:, k]
        F = model(AB)
        first[:, k] = np.mean((FB - FB.mean(axis=0)) * (F - FA), axis=0)
        total[:, k] = np.mean((F - FA) ** 2, axis=0) / 2.0
    variance = np.var(np.concatenate([FA, FB]), axis=0)[:, None]
    return first / variance, total / variance


def test_indices_are_those_of_brute_force() -> None:
    model, rng = random_model(3, 4, 2, seed=1), np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-1, 1, 400), rng.standard_normal(400), rng.integers(0, 2, 400)])
    found = sobol_indices(model, Marginals.of(X, None), seed=0)
    first, total = by_brute_force(model, X, rng)
    np.testing.assert_allclose(found.first_order, first, atol=0.02)
    np.testing.assert_allclose(found.total, total, atol=0.02)


def test_weights_of_samples_count_as_copies_do() -> None:
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((500, 2)), rng.integers(1, 4, 500)
    model = random_model(2, 3, 1, seed=2)
    weighted = sobol_indices(model, Marginals.of(X, weights.astype(float)), seed=0)
    copied = sobol_indices(model, Marginals.of(np.repeat(X, weights, axis=0), None), seed=0)
    np.testing.assert_allclose(weighted.total, copied.total, atol=0.01)


def test_inputs_that_are_not_mixed_have_the_same_index_by_themselves_and_in_all() -> None:
    """Each branch looks at one input, so shares are those of the variances, and sum to one."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, (1000, 3))
    W1 = np.array([[1.0, 2.0, 0.0], [0.5, 0.0, 1.0]])
    model = ub.DecoupledModel(np.eye(3), W1, curves(3, rng))
    found = ub.importance(model, ub.Problem(X, model(X)))
    np.testing.assert_array_equal(found.first_order, found.total)
    np.testing.assert_allclose(found.total.sum(axis=1), 1.0, atol=1e-3)
    assert found.total[0, 2] == found.total[1, 1] == 0.0
    parts = W1**2 * np.var([g(x) for g, x in zip(model.branches, X.T, strict=True)], axis=1)
    np.testing.assert_allclose(found.total, parts / parts.sum(axis=1, keepdims=True), atol=0.005)
    assert found.low is None
    assert found.input_needs is None


def test_shares_of_slopes_and_of_branches_sum_to_one() -> None:
    model, X = random_model(4, 3, 2, seed=4), np.random.default_rng(0).uniform(-1, 1, (300, 4))
    found = ub.importance(model, ub.Problem(X, model(X)))
    np.testing.assert_allclose(found.slopes.sum(axis=1), 1.0)
    np.testing.assert_allclose(found.branches.sum(axis=1), 1.0)
    assert found.overall.sum() == pytest.approx(1.0)
    squares = np.mean(model.jacobian(X) ** 2, axis=0) * np.var(X, axis=0)
    np.testing.assert_allclose(found.slopes, squares / squares.sum(axis=1, keepdims=True))
    assert np.all(found.interactions >= 0.0)


def test_a_branch_along_one_input_gives_that_input_everything() -> None:
    rng = np.random.default_rng(0)
    model = ub.DecoupledModel(np.array([[0.0, 1.0, 0.0]]), np.ones((1, 1)), curves(1, rng))
    X = rng.uniform(-1, 1, (100, 3))
    found = ub.importance(model, ub.Problem(X, model(X)))
    for shares in (found.first_order, found.total, found.slopes):
        np.testing.assert_allclose(shares, [[0.0, 1.0, 0.0]], atol=1e-3)


def test_the_same_seed_gives_the_same_numbers_and_units_do_not_matter() -> None:
    model, X = random_model(3, 3, 2, seed=5), np.random.default_rng(0).uniform(-1, 1, (200, 3))
    first, again = (ub.importance(model, ub.Problem(X, model(X)), rng=7).total for _ in range(2))
    np.testing.assert_array_equal(first, again)
    scale, size = np.array([1e90, 1.0, 1e-90]), np.array([1e90, 1e-3])
    other = ub.DecoupledModel(model.W0 / scale, model.W1 * size[:, None], model.branches)
    moved = ub.importance(other, ub.Problem(X * scale, other(X * scale)), rng=7)
    np.testing.assert_allclose(moved.total, first, atol=1e-3)


def noisy(seed: int, jacobians: bool = False, S: int = 120) -> tuple[ub.Problem, Array]:
    """Samples of two branches that do not look at the last of four inputs; and the noiseless values' model inputs."""
    rng = np.random.default_rng([11, seed])
    X, W0 = rng.uniform(-1, 1, (S, 4)), np.array([[1.0, 0.7, -0.4, 0.0], [-0.5, 0.8, 0.9, 0.0]])
    W1, u = np.array([[1.0, 0.5], [0.6, -0.4]]), X @ W0.T
    R, G = np.stack([np.sin(2 * u[:, 0]), np.exp(u[:, 1])], 1), np.stack([2 * np.cos(2 * u[:, 0]), np.exp(u[:, 1])], 1)
    F = R @ W1.T + 0.1 * rng.standard_normal((S, 2))
    J = np.einsum("ij,sj,jk->sik", W1, G, W0) + 0.2 * rng.standard_normal((S, 2, 4))
    return ub.Problem(X, F, J if jacobians else None), X


@pytest.mark.parametrize("jacobians", [False, True], ids=["values", "values and Jacobians"])
def test_an_input_that_does_nothing_is_told_and_no_other(jacobians: bool) -> None:
    problem, _ = noisy(0, jacobians)
    found = ub.importance(ub.decouple(problem, 2, basis=ub.BSpline(6), starts=2, rng=0))
    assert found.input_needs is not None
    assert found.branch_needs is not None
    assert [need.verdict for need in found.input_needs[:3]] == ["needed"] * 3
    assert [need.verdict for need in found.branch_needs] == ["needed"] * 2
    assert found.input_needs[3].p > 0.01
    assert found.input_needs[3].growth < 0.02
    assert found.low is not None
    assert found.high is not None
    assert found.low.total[:, 3].max() < 0.005
    for kind in ("first_order", "total", "slopes", "branches"):
        low, share, high = (getattr(one, kind) for one in (found.low, found, found.high))
        assert np.all((low <= share) & (share <= high))
    lines = describe_importance(found)
    assert any("x1, x2 and x3 are needed" in line for line in lines)
    assert repr(found).splitlines()[1:] == lines


@few_or_many(5, 60)
@pytest.mark.parametrize("jacobians", [False, True], ids=["values", "values and Jacobians"])
def test_an_input_that_does_nothing_is_rarely_taken_for_needed(draws: int, jacobians: bool) -> None:
    """The size of the test: p < 0.05 in about one of twenty, with room for chance."""
    wrong = 0
    for seed in range(draws):
        fit = ub.decouple(noisy(seed, jacobians)[0], 2, basis=ub.BSpline(6), starts=1, rng=0, jobs=1)
        assert fit.problem is not None
        sure = uncertainty_for(fit, fit.problem)
        assert sure is not None
        tests = judge_inputs(sure)
        assert max(test.p for test in tests[:3]) < 0.001
        wrong += tests[3].p < 0.05
    assert wrong <= max(3, 0.14 * draws)


def test_the_error_without_an_input_is_that_of_a_fit_without_it() -> None:
    problem, X = noisy(1, S=200)
    found = ub.importance(ub.decouple(problem, 2, basis=ub.BSpline(6), starts=4, rng=0))
    assert found.input_needs is not None
    for k in (2, 3):
        others = ub.Problem(np.delete(X, k, axis=1), problem.F)
        fit = ub.decouple(others, 2, basis=ub.BSpline(6), starts=4, rng=0)
        assert fit.held_out is not None
        assert fit.held_out.inside_errors is not None
        np.testing.assert_allclose(found.input_needs[k].without, fit.held_out.inside_errors, rtol=0.25)


def test_what_goes_together_is_said() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(200)
    X = np.column_stack([x, x + 0.1 * rng.standard_normal(200)])
    model = random_model(2, 2, 1, seed=0)
    found = ub.importance(model, ub.Problem(X, model(X), input_names=["a", "b"]))
    assert found.inputs_together[0][:2] == (0, 1)
    assert "a and b 0.99" in repr(found) or "a and b 1.00" in repr(found)


def test_what_is_missing_is_asked_for() -> None:
    model, X = random_model(2, 2, 1, seed=0), np.zeros((5, 3))
    with pytest.raises(DataError, match="pass the samples as problem"):
        ub.importance(model)
    with pytest.raises(DataError, match="does not belong to"):
        ub.importance(model, ub.Problem(X, X[:, :1]))
    with pytest.raises(SettingError, match="of a Fit or a DecoupledModel, got a list"):
        ub.importance([])  # type: ignore[arg-type]
    problem, truth = ub.datasets.trig(S=20, rng=0)
    with pytest.raises(SettingError, match="level must be between 0 and 1"):
        ub.importance(truth, problem, level=95)
