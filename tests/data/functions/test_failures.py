"""Where a function fails: at which point, with what, and what can be done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from plain_functions import X, arrays, of_a_point, refused, some_left_out
from unbraid.data.functions.forms import Form
from unbraid.kernels.arrays import Array


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
def test_a_point_that_raises_is_left_out_and_named(f: Any, bad: int) -> None:
    points = np.abs(X) + 0.1
    points[bad] = [-1.0, 0.25]
    says = (
        rf"1 of 40 samples is left out, .* there: {bad} \(from 0\)\. .* f raised ValueError \(negative\) at X\[{bad}\]"
    )
    problem = some_left_out(f, points, rf"{says} = \[-1\. +,  0\.25\]")
    F, J = arrays(problem)
    kept = np.delete(points, bad, axis=0)
    np.testing.assert_array_equal(problem.X, kept)
    np.testing.assert_array_equal(F, np.log1p(kept))
    np.testing.assert_allclose(J[:, [0, 1], [0, 1]], 1.0 / (1.0 + kept), rtol=1e-8)


@pytest.mark.parametrize("derivatives", [None, "forward", "central", "differences", "complex-step"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_where_many_points_fail_the_others_are_as_they_were(derivatives: Any, jobs: int) -> None:
    def f(x: Array) -> Array:
        if x[0] < -0.5:
            raise ZeroDivisionError
        return np.array([np.sin(x[0] + 2 * x[1]), x[0] * x[1]]) if x[1] > -1.0 else np.array([np.nan, 1.0])

    good = (X[:, 0] >= -0.5) & (X[:, 1] > -1.0)
    problem = some_left_out(f, X, f"{np.sum(~good)} of 40 samples are left out", derivatives=derivatives, jobs=jobs)
    alone = ub.Problem.from_function(f, X[good], derivatives=derivatives)
    np.testing.assert_array_equal(problem.X, alone.X)
    np.testing.assert_array_equal(problem.F, alone.F)
    if derivatives is not None:
        np.testing.assert_allclose(problem.J, alone.J, atol=1e-6)  # type: ignore[arg-type]


def test_a_function_that_fails_at_all_points_is_refused() -> None:
    refused(lambda x: np.full(2, np.nan), says=r"no answer at any of the 40 samples\. The first: f gave nan at X\[0\]")
    refused(lambda x: positive(-np.abs(x)), says=r"f must map .* raised ValueError \(negative\)")


def test_it_is_tried_at_further_points_where_it_fails_at_the_first() -> None:
    points = np.abs(X) + 0.1
    points[[0, 19, 39]] *= -1.0
    assert some_left_out(lambda x: positive(np.array([x[0], x[1]])), points, "3 of 40 .*: 0, 19, 39").S == 37


@given(st.sets(st.integers(0, 40)), st.integers(1, 41))
def test_halving_finds_all_failures(bad: set[int], count: int) -> None:
    """Its twin asks one point after the other."""

    def f(points: Array) -> Array:
        for one in points[:, 0]:
            if one in bad:
                raise ValueError(str(int(one)))
        return 2.0 * points

    points, failures = np.arange(count, dtype=float)[:, None], dict[int, ub.errors.DataError]()
    values = Form("f", f, True, (1,), failures=failures)(points, np.arange(count))
    assert set(failures) == {at for at in range(count) if at in bad}
    assert all(str(failures[at]).startswith(f"f raised ValueError ({at}) at X[{at}] = ") for at in failures)
    np.testing.assert_array_equal(values[:, 0], [np.nan if at in bad else 2.0 * at for at in range(count)])


def test_a_batch_that_fails_as_a_whole_only_is_halved() -> None:
    def f(x: Array) -> Array:
        if len(x) > 20:
            raise MemoryError("too much")
        return np.asarray(x[:, :1] ** 2)

    np.testing.assert_array_equal(arrays(ub.Problem.from_function(f, X))[0], X[:, :1] ** 2)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("batch", [True, False])
def test_what_is_not_finite_is_left_out_with_its_point(value: float, batch: bool) -> None:
    def f(x: Array) -> Array:
        return np.where(x[..., :1] == 0.5, value, x) if batch else np.array([value if x[0] == 0.5 else x[0], x[1]])

    points = X.copy()
    points[23] = [0.5, 0.25]
    some_left_out(f, points, rf"f gave {value} at X\[23\] = \[0\.5 , 0\.25\]")


def test_warnings_of_numpy_are_not_passed_on_where_the_note_says_more() -> None:
    some_left_out(lambda x: 1.0 / x[0], [[1.0], [0.0], [2.0]], r"f gave inf at X\[1\] = \[0\.\]")
    F, _ = arrays(ub.Problem.from_function(lambda x: 1.0 / (1.0 + np.exp(1000.0 * x)), [[1.0], [3.0], [2.0]]))
    np.testing.assert_array_equal(F, np.zeros((3, 1)))


def test_a_sample_beside_which_a_function_is_undefined_is_left_out() -> None:
    says = r"f gave nan at \[.*\], beside X\[{}\], where a difference .* jacobian="
    some_left_out(np.sqrt, [[1.0], [0.0], [2.0]], says.format(1))
    points = X[np.argsort(X[:, 0])]
    points[7] = [points[6, 0], 0.0]  # not among the samples at which steps are tried

    def f(x: Array) -> Array:
        return np.where(np.abs(x[..., 1:]) < 1e-3, np.where(x[..., 1:] < 0.0, np.nan, x), x)

    some_left_out(f, points, says.format(7))


def test_an_error_without_a_text_or_with_any_letters_is_told() -> None:
    class SilentError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    for error, said in (
        (SilentError(), "no message"),
        (ValueError("\x1b[31mred"), r"\?\[31mred"),
        (ValueError("x" * 999), "x+"),
    ):

        def f(x: Array, error: Exception = error) -> Array:
            if x[0] > 1.0:
                raise error
            return x

        some_left_out(f, X, said, derivatives=None)


def test_a_number_of_outputs_that_changes_is_reported() -> None:
    refused(lambda x: x[: 1 + int(x[0] > 0.0)], [[-1.0, 1.0], [1.0, 1.0], [1.0, 2.0]], says="returned 1 and 2 numbers")
    points = np.abs(X)
    points[7] *= -1.0
    some_left_out(lambda x: x[: 1 + int(x[0] > 0.0)], points, r"shape \(1,\) .* where \(2,\) is needed at X\[7\]")


def test_ctrl_c_passes_through() -> None:
    def f(x: Array) -> Array:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ub.Problem.from_function(f, X)
