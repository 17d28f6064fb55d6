"""Problems from functions: what kind of function it is, and how exact the Jacobians are."""

from __future__ import annotations

import numpy as np
import pytest

import unbraid as ub
from unbraid.arrays import Array
from unbraid.jacobians import local_slopes

X = np.random.default_rng(0).uniform(-1.5, 1.5, (40, 2))


def of_a_point(x: Array) -> list[float]:
    return [float(np.sin(x[0] + 2 * x[1])), float(x[0] * x[1]), float(np.exp(x[0]))]


def of_a_batch(x: Array) -> Array:
    return np.stack([np.sin(x[:, 0] + 2 * x[:, 1]), x[:, 0] * x[:, 1], np.exp(x[:, 0])], axis=1)


def exact_jacobian(x: Array) -> Array:
    c = np.cos(x[0] + 2 * x[1])
    return np.array([[c, 2 * c], [x[1], x[0]], [np.exp(x[0]), 0.0]])


@pytest.mark.parametrize("f", [of_a_point, of_a_batch])
def test_functions_of_a_point_and_of_a_batch_give_the_same_problem(f: object) -> None:
    problem = ub.Problem.from_function(f, X)  # type: ignore[arg-type]
    assert problem.F is not None
    assert problem.J is not None
    np.testing.assert_allclose(problem.F, of_a_batch(X), rtol=1e-14)
    np.testing.assert_allclose(problem.J, [exact_jacobian(x) for x in X], atol=1e-10)


def test_a_jacobian_of_the_users_is_used() -> None:
    problem = ub.Problem.from_function(of_a_point, X, jacobian=exact_jacobian)
    assert problem.J is not None
    np.testing.assert_array_equal(problem.J, [exact_jacobian(x) for x in X])


@pytest.mark.parametrize("S", [2, 3, 5])
def test_a_function_of_a_point_is_not_taken_for_one_of_a_batch_where_s_equals_m(S: int) -> None:
    points = np.random.default_rng(1).standard_normal((S, S))

    def f(x: Array) -> list[float]:
        return [float(x[: k + 1].sum() + x[0]) for k in range(S)]

    problem = ub.Problem.from_function(f, points)
    assert problem.F is not None
    np.testing.assert_allclose(problem.F, np.cumsum(points, axis=1) + points[:, :1])


def test_a_linear_map_of_a_batch_works_where_s_equals_m() -> None:
    points = np.random.default_rng(1).standard_normal((4, 4))
    A = np.random.default_rng(2).standard_normal((4, 4))
    problem = ub.Problem.from_function(lambda x: x @ A, points)
    assert problem.F is not None
    np.testing.assert_allclose(problem.F, points @ A)
    assert problem.J is not None
    np.testing.assert_allclose(problem.J, np.tile(A.T, (4, 1, 1)), atol=1e-10)


def test_one_output_may_be_a_number() -> None:
    problem = ub.Problem.from_function(lambda x: float(x[0] ** 2), X)
    assert problem.n == 1


def test_a_function_of_neither_is_refused() -> None:
    with pytest.raises(ub.UnbraidError, match=r"f must map a point \(2,\)"):
        ub.Problem.from_function(lambda x: np.sum(x, axis=(0, 1)), X)


def test_local_slopes_are_exact_for_linear_functions() -> None:
    rng = np.random.default_rng(0)
    X, A = rng.standard_normal((50, 3)), rng.standard_normal((2, 3))
    J = local_slopes(X, X @ A.T + 5.0, 12)
    np.testing.assert_allclose(J, np.broadcast_to(A, (50, 2, 3)), atol=1e-10)


def test_local_slopes_are_those_of_a_fit_to_the_neighbours() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 2))
    F = np.sin(X @ rng.standard_normal((2, 3)))
    J = local_slopes(X, F, 9)
    for s in range(40):
        near = np.argsort(np.sum((X - X[s]) ** 2, axis=1))[:9]
        design = np.column_stack([np.ones(9), X[near]])
        np.testing.assert_allclose(J[s], np.linalg.lstsq(design, F[near])[0][1:].T, atol=1e-8)


def test_local_slopes_are_zero_along_inputs_that_do_not_vary() -> None:
    X = np.zeros((10, 2))
    X[:, 0] = np.linspace(0.0, 1.0, 10)
    np.testing.assert_allclose(local_slopes(X, X[:, :1] * 3.0, 20), np.tile([[[3.0, 0.0]]], (10, 1, 1)), atol=1e-12)
