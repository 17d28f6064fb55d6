"""Problems from functions of jax arrays."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import unbraid as ub
from plain_functions import some_left_out
from unbraid.kernels.arrays import Array

X = np.random.default_rng(0).uniform(-1.5, 1.5, (7, 3))  # three at a time: few shapes to compile for
W = np.random.default_rng(1).standard_normal((3, 2))


def arrays(problem: ub.Problem) -> tuple[Array, Array]:
    assert problem.F is not None
    assert problem.J is not None
    return problem.F, problem.J


def forked(x: Any) -> Any:
    """Of a point; its `if` cannot be vectorised."""
    return jnp.sin(x @ W) if x[0] > 0.0 else jnp.exp(x @ W)


FUNCTIONS: dict[str, Any] = {
    "of both": lambda x: jnp.sin(x @ W),
    "compiled": jax.jit(lambda x: jnp.sin(x @ W)),
    "of a point": lambda x: jnp.stack([jnp.sin(x[0] * x[1]), x[2] ** 2]),
    "a list of numbers": lambda x: [jnp.sin(x[0] * x[1]), x[2] ** 2],
    "one number": lambda x: jnp.sum(x**2),
    "many outputs": lambda x: jnp.concatenate([jnp.sin(x), jnp.cos(x)], axis=-1),
    "of a batch": lambda x: jnp.concatenate([x[:, :1] ** 2, x[:, 1:2] * jnp.sin(x[:, 2:])], axis=1),
    "with an if": forked,
    "of jax arrays only": lambda x: x.at[..., 0].multiply(x[..., 1]),
}


def one_by_one(name: str, points: Array) -> tuple[Array, Array]:
    """The slow, obvious twin: values, and central differences of second order, one point after the other."""
    f = FUNCTIONS[name]

    def value(x: Array) -> Array:
        given = f(jnp.asarray(x[None] if name == "of a batch" else x))
        return np.array(jnp.asarray(given), dtype=np.float64).reshape(-1)

    with jax.enable_x64(True):
        F = np.stack([value(x) for x in points])
        h = 1e-5 * np.eye(points.shape[1])
        J = [[(value(x + one) - value(x - one)) / 2e-5 for one in h] for x in points]
    return F, np.array(J).mT


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("derivatives", "S"), [("auto", 7), ("jax", 3)])
def test_functions_of_jax_arrays_are_recognised_and_computed_in_double_precision(
    name: str, derivatives: Any, S: int
) -> None:
    F, J = arrays(ub.Problem.from_function(FUNCTIONS[name], X[:S], derivatives=derivatives, chunk=3))
    expected = one_by_one(name, X[:S])
    np.testing.assert_allclose(F, expected[0], rtol=1e-14)
    np.testing.assert_allclose(J, expected[1], atol=1e-8)
    assert jnp.ones(1).dtype == jnp.float32  # outside, jax is as it was


def test_weights_in_single_precision_do_not_lower_the_precision_of_the_rest() -> None:
    weights = jnp.asarray(W)  # float32
    J = arrays(ub.Problem.from_function(lambda x: jnp.sin(x @ weights), X))[1]
    rounded = np.asarray(weights, dtype=np.float64)
    np.testing.assert_allclose(J, np.cos(X @ rounded)[:, :, None] * rounded.T, rtol=1e-12)


def test_a_function_that_insists_on_single_precision_gets_it() -> None:
    weights = jnp.asarray(W)
    J = arrays(ub.Problem.from_function(lambda x: jnp.sin(jax.lax.dot(x, weights)), X))[1]
    np.testing.assert_allclose(J, np.cos(X @ W)[:, :, None] * W.T, atol=1e-5)


def test_differences_of_a_jax_function_are_possible_too() -> None:
    J = arrays(ub.Problem.from_function(FUNCTIONS["of both"], X, derivatives="differences"))[1]
    np.testing.assert_allclose(J, np.cos(X @ W)[:, :, None] * W.T, atol=1e-10)


def test_a_jacobian_of_the_users_may_be_of_jax_arrays() -> None:
    jacobian = jax.jacfwd(FUNCTIONS["of both"])
    J = arrays(ub.Problem.from_function(lambda x: np.sin(x @ W), X, jacobian))[1]
    np.testing.assert_allclose(J, np.cos(X @ W)[:, :, None] * W.T, rtol=1e-12, atol=1e-14)


def test_a_function_that_is_cut_off_from_its_gradient_is_refused() -> None:
    with pytest.raises(ub.UnbraidError, match=r"automatic differentiation does not fit .* stop_gradient"):
        ub.Problem.from_function(lambda x: jnp.sin(jax.lax.stop_gradient(x) @ W), X)


def test_failures_are_reported_with_their_point() -> None:
    points = np.abs(X)
    points[5] = [0.0, 0.5, 0.25]
    some_left_out(jnp.log, points, r"f gave -inf at X\[5\] = \[0\.  , 0\.5 , 0\.25\]")
    some_left_out(jnp.sqrt, points, r"The Jacobian of f gave inf at X\[5\] = \[0\.  , 0\.5 , 0\.25\]")


def test_a_function_of_neither_is_refused_with_what_it_did() -> None:
    with pytest.raises(
        ub.UnbraidError, match=r"f must map a point .* \(jax arrays of float64\).*, it raised TypeError"
    ):
        ub.Problem.from_function(lambda x: jnp.asarray(x) @ W.T, X)


def test_a_function_that_wants_jax_arrays_at_some_samples_only_gets_them() -> None:
    points = -np.abs(X)
    points[5] *= -1.0
    J = arrays(ub.Problem.from_function(lambda x: x.at[0].multiply(3.0) if x[0] > 0 else x * x, points))[1]
    np.testing.assert_array_equal(J[5], np.diag([3.0, 1.0, 1.0]))
    np.testing.assert_allclose(J[6], np.diag(2.0 * points[6]), rtol=1e-12)


def test_random_functions_are_refused() -> None:
    key = [jax.random.key(0)]

    def f(x: Any) -> Any:
        key[0], now = jax.random.split(key[0])
        return x + jax.random.normal(now, x.shape)

    with pytest.raises(ub.UnbraidError, match="random or has a memory"):
        ub.Problem.from_function(f, X)
