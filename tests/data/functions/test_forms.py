"""Functions of a point and of a batch: none is taken for another one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from plain_functions import X, arrays, exact_jacobians, matrix, of_a_batch, of_a_point, of_both, refused
from unbraid.data.functions.recognition import form_of
from unbraid.kernels.arrays import Array


@pytest.mark.parametrize(("f", "batched"), [(of_a_point, False), (of_a_batch, True), (of_both, True)])
def test_functions_of_a_point_and_of_a_batch_give_the_same_problem(f: Any, batched: bool) -> None:
    assert form_of("f", f, X)[0].batched == batched
    F, J = arrays(ub.Problem.from_function(f, X))
    np.testing.assert_allclose(F, of_a_batch(X), rtol=1e-14)
    np.testing.assert_allclose(J, exact_jacobians(X), atol=1e-11)


TRAPS: dict[str, Callable[[Array], Any]] = {
    "elementwise": np.sin,
    "one input": lambda x: x[0],
    "last input": lambda x: x[-1],
    "sum over axis 0": lambda x: x.sum(axis=0),
    "sum of all": np.sum,
    "norm": np.linalg.norm,
    "norm over axis 0": lambda x: np.linalg.norm(x, axis=0),
    "matrix on the left": lambda x: matrix(len(x)) @ x,
    "matrix on the right": lambda x: x @ matrix(x.shape[-1]),
    "inner product": lambda x: x @ x,
    "running sum": lambda x: np.cumsum(x, axis=0),
    "centred over axis 0": lambda x: x - x.mean(axis=0),
    "reversed": lambda x: x[::-1],
    "mirrored": lambda x: np.flip(x, axis=-1),
    "times its length": lambda x: x * len(x),
    "softmax over axis 0": lambda x: np.exp(x) / np.exp(x).sum(axis=0),
    "a list of numbers": lambda x: [x[0] ** 2, x[-1]],
    "a list with all inputs": lambda x: [one**2 + x[0] for one in x],
    "a column": lambda x: x[:, None] if x.ndim == 1 else 1 / 0,
    "a row": lambda x: x[None] if x.ndim == 1 else 1 / 0,
    "constant": lambda x: [1.0, 2.0],
    "constant of as many outputs": lambda x: np.ones(x.shape[-1]),
    "a number": lambda x: float(np.prod(x)),
}
PATTERNS: dict[str, Callable[[int, int], Array]] = {
    "random": lambda S, m: np.random.default_rng(S + 10 * m).standard_normal((S, m)),
    "equal rows": lambda S, m: np.tile(np.arange(1.0, m + 1.0), (S, 1)),
    "identity": np.eye,
    "symmetric": lambda S, m: np.add.outer(np.arange(S), np.arange(m)).astype(float),
    "zeros": lambda S, m: np.zeros((S, m)),
}


@pytest.mark.parametrize("name", TRAPS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_function_of_a_point_is_never_taken_for_another_one(name: str, pattern: str) -> None:
    """The slow, obvious twin: one point after the other. S = m = n is among them."""
    f = TRAPS[name]
    for S, m in itertools.product([1, 2, 3, 4, 7], [1, 2, 3, 4]):
        points = PATTERNS[pattern](S, m)
        form, _ = form_of("f", f, points)
        for x in (points, np.random.default_rng(1).standard_normal((S, m))):
            expected = np.stack([np.asarray(f(one), dtype=float).reshape(-1) for one in x])
            np.testing.assert_allclose(form(x, np.arange(S)), expected, rtol=1e-12, atol=1e-12)


BATCHES: dict[str, Callable[[Array], Any]] = {
    "rows": lambda x: np.stack([x[:, 0] ** 2, x[:, -1]], axis=1),
    "one output without axis": lambda x: x[:, 0] ** 2,
    "one output with axis": lambda x: x[:, :1] ** 2,
    "squeezed": lambda x: np.squeeze(np.stack([x[:, 0] ** 2, x[:, -1]], axis=1)),
    "sum over axis 1": lambda x: x.sum(axis=1),
    "softmax over axis 1": lambda x: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True),
    "takes a point for a batch": lambda x: np.atleast_2d(x) ** 2,
}


@pytest.mark.parametrize("name", BATCHES)
def test_a_function_of_a_batch_is_never_taken_for_another_one(name: str) -> None:
    f = BATCHES[name]
    for S, m in itertools.product([1, 2, 3, 4, 7], [1, 2, 3, 4]):
        points = np.random.default_rng(S + 10 * m).standard_normal((S, m))
        form, _ = form_of("f", f, points)
        expected = np.stack([np.asarray(f(x[None]), dtype=float).reshape(-1) for x in points])
        np.testing.assert_allclose(form(points, np.arange(S)), expected, rtol=1e-12)


def test_a_function_that_means_another_thing_by_a_batch_is_refused() -> None:
    """Of a point it is the identity, of a batch the sum of each row: both make sense."""
    refused(lambda x: [np.sum(one) for one in x], says=r"takes a point \(2,\) and a batch .* lambda x: f\(x\[None\]\)")


def test_a_function_that_looks_at_signs_of_one_row_is_not_taken_for_one_of_two_meanings() -> None:
    """Of a batch, x[0] is its first row: with samples whose signs agree that looks like another function of a batch."""
    points = np.abs(X) + 0.1
    F, _ = arrays(ub.Problem.from_function(lambda x: np.where(x[0] > 0.0, x[1], x), points))
    np.testing.assert_array_equal(F, np.tile(points[:, 1:], 2))


def test_rows_that_depend_on_one_another_are_refused() -> None:
    refused(lambda x: x[:, :1] - x[:, :1].mean(), says="depends on the other points of the batch")


def test_counting_calls_does_no_harm() -> None:
    calls = []

    def f(x: Array) -> Array:
        calls.append(x.shape)
        return of_both(x)

    F, _ = arrays(ub.Problem.from_function(f, X))
    np.testing.assert_allclose(F, of_a_batch(X), rtol=1e-14)
    assert calls


@pytest.mark.parametrize("shape", [(2,), ()])
def test_random_functions_are_refused(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    refused(lambda x: x + 0.1 * rng.standard_normal(x.shape), says=r"called again .* Problem\(X, F\)")
    refused(lambda x: x[:, 0] + 0.1 * rng.standard_normal(len(x)), says="random or has a memory")
    refused(lambda x: float(x[0]) + 0.1 * rng.standard_normal(shape), says="random or has a memory")


def test_functions_with_a_memory_are_refused() -> None:
    calls = [0]

    def f(x: Array) -> Array:
        calls[0] += 1
        return x * calls[0]

    refused(f, says="random or has a memory")


def test_a_function_with_random_numbers_of_a_fixed_seed_is_taken_point_by_point() -> None:
    def f(x: Array) -> Array:
        return np.asarray(x * np.random.default_rng(0).uniform(1.0, 2.0, x.shape))

    F, _ = arrays(ub.Problem.from_function(f, X))
    np.testing.assert_allclose(F, np.stack([f(x) for x in X]))


def test_functions_that_write_to_their_input_or_return_one_array_again_and_again_do_no_harm() -> None:
    out = np.empty(3)

    def overwriting(x: Array) -> Array:
        x *= 2.0
        return np.sin(x)

    def reusing(x: Array) -> Array:
        out[:] = of_a_point(x)
        return out

    points = X.copy()
    points.flags.writeable = False
    np.testing.assert_array_equal(arrays(ub.Problem.from_function(overwriting, points))[0], np.sin(2.0 * X))
    np.testing.assert_allclose(arrays(ub.Problem.from_function(reusing, points))[0], of_a_batch(X), rtol=1e-14)
    np.testing.assert_array_equal(points, X)


@pytest.mark.parametrize(
    "f", [lambda x: float(x[0] ** 2), lambda x: x[0] ** 2, lambda x: [x[0] ** 2], lambda x: x[:, 0] ** 2]
)
def test_one_output_may_drop_its_axis(f: Any) -> None:
    F, J = arrays(ub.Problem.from_function(f, X))
    np.testing.assert_allclose(F, X[:, :1] ** 2)
    np.testing.assert_allclose(J, np.stack([2 * X[:, 0], 0 * X[:, 0]], axis=1)[:, None], atol=1e-11)


def test_one_input_may_drop_its_axis() -> None:
    assert ub.Problem.from_function(np.sin, X[:, 0]).X.shape == (40, 1)


def test_functions_may_return_integers_and_python_objects() -> None:
    assert ub.Problem.from_function(lambda x: [1, 2], X).n == 2
    F, _ = arrays(ub.Problem.from_function(lambda x: np.array([x[0], 2 * x[1]], dtype=object), X))
    np.testing.assert_array_equal(F, X * [1.0, 2.0])
