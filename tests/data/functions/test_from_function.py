"""Problems from NumPy functions: whose Jacobian is used, in which chunks, and who is told."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from plain_functions import (
    X,
    arrays,
    exact_jacobian,
    exact_jacobians,
    matrix,
    of_a_batch,
    of_a_point,
    refused,
    some_left_out,
)
from unbraid.data.functions import sampling
from unbraid.kernels.arrays import Array
from unbraid.runtime.progress import Progress

# Jacobians of the user's.


@pytest.mark.parametrize("jacobian", [exact_jacobian, exact_jacobians])
@pytest.mark.parametrize("f", [of_a_point, of_a_batch])
def test_a_jacobian_of_the_users_is_used(f: Any, jacobian: Any) -> None:
    np.testing.assert_array_equal(arrays(ub.Problem.from_function(f, X, jacobian))[1], exact_jacobians(X))


@pytest.mark.parametrize("S", [1, 2, 3, 4])
def test_a_jacobian_is_of_a_point_or_of_a_batch_where_s_n_and_m_are_equal(S: int) -> None:
    points, A = np.random.default_rng(S).standard_normal((S, S)), matrix(S)

    def jacobian(x: Array) -> Array:
        return np.asarray(np.cos(A @ x)[:, None] * A)

    J = np.stack([jacobian(x) for x in points])
    for own in (jacobian, lambda x: np.cos(x @ A.T)[:, :, None] * A):
        np.testing.assert_allclose(arrays(ub.Problem.from_function(lambda x: np.sin(A @ x), points, own))[1], J)
    constant = ub.Problem.from_function(lambda x: A @ x, points, lambda x: A)
    np.testing.assert_array_equal(arrays(constant)[1], np.tile(A, (S, 1, 1)))


def test_a_gradient_will_do_for_one_output() -> None:
    J = arrays(ub.Problem.from_function(lambda x: x @ x, X, lambda x: 2 * x))[1]
    np.testing.assert_array_equal(J, 2 * X[:, None])


def test_swapped_axes_get_a_hint() -> None:
    message = refused(
        of_a_point, jacobian=lambda x: exact_jacobian(x).T, says=r"jacobian must map .* \(n, m\) = \(3, 2\)"
    )
    assert "returned shape (2, 3) for a point where (3, 2) is needed (its axes look swapped)" in message


def test_a_transposed_square_jacobian_is_refused() -> None:
    A = matrix(2)
    refused(lambda x: np.sin(A @ x), jacobian=lambda x: (np.cos(A @ x)[:, None] * A).T, says="It looks transposed")


@pytest.mark.parametrize("m", [3, 4, 5])
def test_a_transposed_jacobian_whose_rows_and_columns_have_equal_sums_is_refused(m: int) -> None:
    A, points = np.roll(np.eye(m), 1, axis=0), np.random.default_rng(0).standard_normal((10, m))
    refused(lambda x: A @ x, points, jacobian=lambda x: A.T, says="It looks transposed")


def test_a_wrong_jacobian_is_refused_with_both_numbers() -> None:
    message = refused(
        of_a_point, jacobian=lambda x: 2 * exact_jacobian(x), says="jacobian does not fit the values of f"
    )
    assert "use Problem(X, F, J)" in message
    ub.Problem.from_function(of_a_point, X, jacobian=lambda x: (1.0 + 1e-4) * exact_jacobian(x))


def test_a_jacobian_on_a_kink_is_not_blamed() -> None:
    points = np.linspace(-1.0, 1.0, 5)[:, None]
    assert ub.Problem.from_function(np.abs, points, jacobian=lambda x: np.sign(x)[..., None]).n == 1


def test_failures_of_a_jacobian_are_reported_with_their_point() -> None:
    def jacobian(x: Array) -> Array:
        J = exact_jacobian(x)
        J[0, 0] = np.nan if x[0] == X[5, 0] else J[0, 0]
        return J

    assert some_left_out(of_a_point, X, r"jacobian gave nan at X\[5\]", jacobian=jacobian).S == 39


def test_a_jacobian_and_a_way_to_find_one_are_not_both_accepted() -> None:
    refused(of_a_point, jacobian=exact_jacobian, derivatives="differences", says="leave one of them out")


@pytest.mark.parametrize("derivatives", ["autograd", 3, ["torch"]])
def test_unknown_derivatives_are_refused(derivatives: Any) -> None:
    refused(
        of_a_point, derivatives=derivatives, says="derivatives must be one of 'auto', 'torch', 'jax', 'differences'"
    )


# Chunks and progress.


@pytest.mark.parametrize("chunk", [1, 7, 40, 1000, None])
@pytest.mark.parametrize("f", [of_a_point, of_a_batch])
def test_chunks_change_nothing(f: Any, chunk: int | None) -> None:
    F, J = arrays(ub.Problem.from_function(f, X, chunk=chunk))
    np.testing.assert_allclose(F, of_a_batch(X), rtol=1e-14)
    np.testing.assert_allclose(J, exact_jacobians(X), atol=1e-11)


def test_batches_stay_small() -> None:
    """Four points a sample for a difference, and never the points of more than a chunk at once."""
    points, largest = np.random.default_rng(0).standard_normal((3000, 5)), [0]

    def f(x: Array) -> Array:
        largest[0] = max(largest[0], len(x) if x.ndim == 2 else 1)
        return np.sin(x[..., :2])

    ub.Problem.from_function(f, points, chunk=100)
    assert largest[0] == 400
    ub.Problem.from_function(f, points)
    assert largest[0] == 4000


@pytest.mark.parametrize("chunk", [0, -1, 1.5, "all"])
def test_chunk_must_be_a_whole_number(chunk: Any) -> None:
    refused(of_a_point, chunk=chunk, says="chunk must be a whole number of at least 1")


@pytest.mark.parametrize("callback", [3, "print", [print]])
def test_a_callback_that_cannot_be_called_is_refused_before_any_work(callback: Any) -> None:
    def f(x: Array) -> Array:
        raise AssertionError

    refused(f, callback=callback, says="callback must be a function of a Progress, or None, got")


def test_progress_is_told_of_now_and_then_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function of a point has many small chunks: here each takes 0.06 s by the clock."""
    clock, seen = itertools.count(0.0, 0.06), list[Progress]()
    monkeypatch.setattr(sampling, "monotonic", lambda: next(clock))
    points = np.random.default_rng(0).standard_normal((105, 1))
    ub.Problem.from_function(lambda x: float(x[0]), points, callback=seen.append)
    assert [(one.phase, one.done) for one in seen] == [
        (phase, done) for phase in ("values", "Jacobians") for done in (40, 80, 105)
    ]


def test_progress_counts_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "REPORTED", 0.0)
    seen: list[Progress] = []
    ub.Problem.from_function(of_a_batch, X, chunk=15, callback=seen.append)
    assert [(one.phase, one.done, one.total) for one in seen] == [
        (phase, done, 40) for phase in ("values", "Jacobians") for done in (15, 30, 40)
    ]


def test_a_callback_can_stop_it() -> None:
    def stop(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ub.Problem.from_function(of_a_point, X, callback=stop)
