"""Problems from NumPy functions: what kind of function it is, where it fails, and whose Jacobian is used."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from unbraid.data.functions import sampling
from unbraid.data.functions.forms import first_failure
from unbraid.data.functions.recognition import form_of
from unbraid.kernels.arrays import Array
from unbraid.runtime.progress import Progress

X = np.random.default_rng(0).uniform(-1.5, 1.5, (40, 2))


def of_a_point(x: Array) -> list[float]:
    return [float(np.sin(x[0] + 2 * x[1])), float(x[0] * x[1]), float(np.exp(x[0]))]


def of_a_batch(x: Array) -> Array:
    return np.stack([np.sin(x[:, 0] + 2 * x[:, 1]), x[:, 0] * x[:, 1], np.exp(x[:, 0])], axis=1)


def of_both(x: Array) -> Array:
    return np.stack([np.sin(x[..., 0] + 2 * x[..., 1]), x[..., 0] * x[..., 1], np.exp(x[..., 0])], axis=-1)


def exact_jacobian(x: Array) -> Array:
    c = np.cos(x[0] + 2 * x[1])
    return np.array([[c, 2 * c], [x[1], x[0]], [np.exp(x[0]), 0.0]])


def exact_jacobians(x: Array) -> Array:
    return np.stack([exact_jacobian(one) for one in x])


def arrays(problem: ub.Problem) -> tuple[Array, Array]:
    assert problem.F is not None
    assert problem.J is not None
    return problem.F, problem.J


def refused(f: Any, points: Any = X, says: str = "", **settings: Any) -> str:
    with pytest.raises(ub.UnbraidError, match=says) as caught:
        ub.Problem.from_function(f, points, **settings)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message


# A point or a batch.


@pytest.mark.parametrize(("f", "batched"), [(of_a_point, False), (of_a_batch, True), (of_both, True)])
def test_functions_of_a_point_and_of_a_batch_give_the_same_problem(f: Any, batched: bool) -> None:
    assert form_of("f", f, X)[0].batched == batched
    F, J = arrays(ub.Problem.from_function(f, X))
    np.testing.assert_allclose(F, of_a_batch(X), rtol=1e-14)
    np.testing.assert_allclose(J, exact_jacobians(X), atol=1e-11)


def matrix(size: int) -> Array:
    return np.random.default_rng(size).standard_normal((size, size))


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


# Where it fails.


def test_a_function_of_neither_is_refused_with_what_it_did() -> None:
    refused(lambda x: np.sum(x, axis=(0, 1)), says=r"f must map a point \(2,\) to \(n,\), or .* it raised AxisError")
    refused(lambda x: None, says=r"Given a point .*, it returned None \(does it lack a return statement\?\)")
    refused(lambda x: "a", says="it returned <U1 instead of numbers")
    refused(lambda x: x[0] * 1j, says="it returned complex numbers for real ones")
    refused(lambda x: np.outer(x, x), says=r"it returned shape \(2, 2\) for a point")
    refused(
        lambda x: [x[:, 0], x[:, 1], x[:, 0]],
        says=r"returned shape \(3, 2\) for a batch of 2 points \(are samples last",
    )
    refused(lambda x: [], says=r"it returned shape \(0,\) for a point")


def test_what_is_no_function_is_refused() -> None:
    refused(X, says=r"f must be a function .*, got ndarray: arrays go into Problem\(X, F, J\)")
    refused(dict, says="got the class dict: add parentheses")
    refused(of_a_point, jacobian=3, says="jacobian must be a function .*, got int")


def test_points_are_checked_first() -> None:
    refused(of_a_point, np.ones((2, 2, 2)), says=r"X must be \(S, m\), got shape \(2, 2, 2\)")
    refused(of_a_point, [[np.nan, 1.0]], says="X has 1 entry that is NaN")


def positive(x: Array) -> Array:
    """Of both; raises where any point has a negative first input."""
    if np.any(x[..., 0] < 0.0):
        raise ValueError("negative")
    return np.log1p(x)


@pytest.mark.parametrize("f", [positive, lambda x: positive(x[:, :]), lambda x: positive(np.array([x[0], x[1]]))])
@pytest.mark.parametrize("bad", [0, 1, 17, 38, 39])
def test_an_exception_is_reported_with_its_point(f: Any, bad: int) -> None:
    points = np.abs(X) + 0.1
    points[bad] = [-1.0, 0.25]
    message = refused(f, points, says=rf"f raised ValueError \(negative\) at X\[{bad}\] = \[-1\. +,  0\.25\]")
    assert "remove that sample" in message
    with pytest.raises(ub.UnbraidError) as caught:
        ub.Problem.from_function(f, points)
    assert type(caught.value.__cause__) is ValueError


@given(st.sets(st.integers(0, 40), min_size=1), st.integers(1, 41))
def test_halving_finds_the_first_failure(bad: set[int], count: int) -> None:
    """Its twin asks one point after the other."""

    def f(points: Array) -> None:
        for one in points[:, 0]:
            if one in bad:
                raise ValueError(str(int(one)))

    points = np.arange(count, dtype=float)[:, None]
    expected = next((at for at in range(count) if at in bad), None)
    found = first_failure(f, points, ValueError("all")) if expected is not None else None
    assert (None if found is None else found[0]) == expected
    if found is not None and count > 1:
        assert str(found[1]) == str(expected)


def test_a_batch_that_fails_as_a_whole_only_is_said_to_be_too_large() -> None:
    def f(x: Array) -> Array:
        if len(x) > 20:
            raise MemoryError("too much")
        return np.asarray(x[:, :1] ** 2)

    refused(f, says=r"raised MemoryError \(too much\), .* lower `chunk`")
    assert ub.Problem.from_function(f, X, chunk=5).n == 1


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("batch", [True, False])
def test_what_is_not_finite_is_reported_with_its_point(value: float, batch: bool) -> None:
    def f(x: Array) -> Array:
        return np.where(x[..., :1] == 0.5, value, x) if batch else np.array([value if x[0] == 0.5 else x[0], x[1]])

    points = X.copy()
    points[23] = [0.5, 0.25]
    refused(f, points, says=rf"f gave {value} at X\[23\] = \[0\.5 , 0\.25\]")


def test_warnings_of_numpy_are_not_passed_on_where_the_error_says_more() -> None:
    refused(lambda x: 1.0 / x[0], [[1.0], [0.0], [2.0]], says=r"f gave inf at X\[1\] = \[0\.\]")
    F, _ = arrays(ub.Problem.from_function(lambda x: 1.0 / (1.0 + np.exp(1000.0 * x)), [[1.0], [3.0], [2.0]]))
    np.testing.assert_array_equal(F, np.zeros((3, 1)))


def test_a_function_that_is_undefined_beside_a_sample_is_reported_with_the_sample() -> None:
    says = r"f gave nan at \[.*\], beside X\[{}\], where a difference .* jacobian="
    refused(np.sqrt, [[1.0], [0.0], [2.0]], says=says.format(1))
    points = X[np.argsort(X[:, 0])]
    points[7] = [points[6, 0], 0.0]  # not among the samples at which steps are tried

    def f(x: Array) -> Array:
        return np.where(np.abs(x[..., 1:]) < 1e-3, np.where(x[..., 1:] < 0.0, np.nan, x), x)

    refused(f, points, says=says.format(7))


def test_a_number_of_outputs_that_changes_is_reported() -> None:
    refused(lambda x: x[: 1 + int(x[0] > 0.0)], [[-1.0, 1.0], [1.0, 1.0], [1.0, 2.0]], says="returned 1 and 2 numbers")
    points = np.abs(X)
    points[7] *= -1.0
    refused(
        lambda x: x[: 1 + int(x[0] > 0.0)], points, says=r"f returned shape \(1,\) .* where \(2,\) is needed at X\[7\]"
    )


def test_ctrl_c_passes_through() -> None:
    def f(x: Array) -> Array:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ub.Problem.from_function(f, X)


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

    refused(of_a_point, jacobian=jacobian, says=r"jacobian gave nan at X\[5\]")


def test_a_jacobian_and_a_way_to_find_one_are_not_both_accepted() -> None:
    refused(of_a_point, jacobian=exact_jacobian, derivatives="differences", says="leave one of them out")


@pytest.mark.parametrize("derivatives", ["autograd", None, 3, ["torch"]])
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

    refused(f, callback=callback, says="callback must be a function of a Progress, got")


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
