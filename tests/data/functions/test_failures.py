"""Where a function fails: at which point, with what, and what can be done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from plain_functions import X, arrays, of_a_point, refused
from unbraid.data.functions.forms import first_failure
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
