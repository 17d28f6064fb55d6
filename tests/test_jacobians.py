"""Jacobians from values alone."""

from __future__ import annotations

import numpy as np

from unbraid.jacobians import local_slopes


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
