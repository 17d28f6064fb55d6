"""Jacobians from values alone."""

from __future__ import annotations

import numpy as np
import pytest

import unbraid as ub
from unbraid.data.estimates import cubed_distances, fit_surrogate, local_slopes, surrogate_slopes, with_ones
from unbraid.kernels.arrays import Array


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


def test_slopes_of_the_surrogate_are_exact_for_linear_functions() -> None:
    rng = np.random.default_rng(0)
    X, A = rng.standard_normal((50, 3)), rng.standard_normal((2, 3))
    np.testing.assert_allclose(
        surrogate_slopes(X, X @ A.T + 5.0), np.broadcast_to(A, (50, 2, 3)), atol=1e-8 * np.abs(A).max()
    )
    few = surrogate_slopes(X[:4], X[:4] @ A.T)
    np.testing.assert_allclose(few, np.broadcast_to(A, (4, 2, 3)), atol=1e-8)


def test_slopes_of_the_surrogate_are_the_derivative_of_its_values() -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (80, 2))
    F = np.sin(X @ rng.standard_normal((2, 2)))
    W, V = fit_surrogate(X, F, X)

    def surrogate(points: Array) -> Array:
        return cubed_distances(points, X) @ W + with_ones(points) @ V

    J = surrogate_slopes(X, F)
    h = 1e-5
    for k in range(2):
        step = h * np.eye(2)[k]
        np.testing.assert_allclose(J[:, :, k], (surrogate(X + step) - surrogate(X - step)) / (2 * h), atol=1e-6)


@pytest.mark.parametrize(("m", "noise"), [(2, 0.0), (2, 0.3), (3, 0.05), (4, 0.05)])
def test_slopes_of_the_surrogate_are_nearer_than_those_of_neighbours_in_few_dimensions(m: int, noise: float) -> None:
    ratios = []
    for seed in range(5):
        problem, _ = ub.datasets.random_system(2, m, 3, 200, "sine", seed)
        assert problem.F is not None
        assert problem.J is not None
        rng = np.random.default_rng(seed)
        F = problem.F + noise * np.std(problem.F, axis=0) * rng.standard_normal(problem.F.shape)
        errors = [
            np.linalg.norm(J - problem.J)
            for J in (surrogate_slopes(problem.X, F), local_slopes(problem.X, F, 3 * (m + 1)))
        ]
        ratios.append(errors[0] / errors[1])
    assert np.median(ratios) < 0.8
