"""Expensive functions: few calls, none of them twice, in parallel, and told of before they begin."""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from plain_functions import X, arrays, exact_jacobians, of_a_batch, of_a_point, of_both, refused, some_left_out
from unbraid.data.functions import kept, sampling
from unbraid.data.functions.few_calls import calls_a_point
from unbraid.kernels.arrays import Array
from unbraid.runtime.progress import Progress

SIDES: list[Any] = [None, "forward", "central"]
RNG = np.random.default_rng(0)
W0, W1, POINTS = RNG.standard_normal((3, 6)), RNG.standard_normal((4, 3)), RNG.uniform(-1, 1, (100, 6))


class Counted:
    """A function of a point that remembers what it was called with."""

    def __init__(self) -> None:
        self.calls: list[bytes] = []

    def __call__(self, x: Array) -> Array:
        self.calls.append(x.tobytes())
        return np.asarray(W1 @ np.sin(W0 @ x))


# How many calls.


@pytest.mark.parametrize("derivatives", SIDES)
@pytest.mark.parametrize("jobs", [1, 2])
def test_calls_are_as_few_as_there_can_be_and_none_is_made_twice(derivatives: Any, jobs: int) -> None:
    f = Counted()
    ub.Problem.from_function(f, POINTS, derivatives=derivatives, jobs=jobs)
    assert len(f.calls) == len(set(f.calls))
    assert len(f.calls) <= 100 * calls_a_point(derivatives, 6) + 10


def test_samples_that_are_equal_take_one_call() -> None:
    f = Counted()
    problem = ub.Problem.from_function(f, np.concatenate([POINTS, POINTS]), derivatives=None)
    assert len(f.calls) <= 110
    assert problem.F is not None
    np.testing.assert_array_equal(problem.F[:100], problem.F[100:])


@pytest.mark.parametrize("f", [of_a_batch, of_both])
def test_functions_of_a_batch_are_called_with_batches(f: Any) -> None:
    calls = [0]

    def counted(x: Array) -> Any:
        calls[0] += 1
        return f(x)

    F, J = arrays(ub.Problem.from_function(counted, X, derivatives="forward"))
    assert calls[0] < 20
    np.testing.assert_allclose(F, of_a_batch(X), rtol=1e-14)
    np.testing.assert_allclose(J, exact_jacobians(X), atol=1e-6)


# What they give.


@pytest.mark.parametrize(("derivatives", "error"), [("forward", 1e-6), ("central", 1e-8)])
@pytest.mark.parametrize("f", [of_a_point, of_a_batch])
def test_jacobians_are_those_of_the_function(f: Any, derivatives: Any, error: float) -> None:
    F, J = arrays(ub.Problem.from_function(f, X, derivatives=derivatives))
    np.testing.assert_allclose(F, of_a_batch(X), rtol=1e-14)
    np.testing.assert_allclose(J, exact_jacobians(X), atol=error)


@given(scale=st.floats(-8.0, 8.0), offset=st.floats(-1e4, 1e4), seed=st.integers(0, 2**16))
@pytest.mark.parametrize(("derivatives", "error"), [("forward", 1e-4), ("central", 1e-5)])
def test_inputs_of_any_size_and_far_from_zero_need_no_scaling(
    derivatives: Any, error: float, scale: float, offset: float, seed: int
) -> None:
    """The law: with x = unit · (z + offset), unit · J is the derivative with respect to z."""
    unit, Z = 10.0**scale, np.random.default_rng(seed).uniform(-1, 1, (12, 2))
    points = unit * (Z + offset)
    problem = ub.Problem.from_function(lambda x: np.sin(x / unit - offset), points, derivatives=derivatives)
    J = arrays(problem)[1] * unit
    exact = np.cos(points / unit - offset)[:, :, None] * np.eye(2)
    np.testing.assert_allclose(J, exact, atol=error)


def test_values_alone_have_no_jacobian() -> None:
    problem = ub.Problem.from_function(of_a_point, X, derivatives=None)
    assert problem.J is None
    np.testing.assert_allclose(problem.F, of_a_batch(X), rtol=1e-14)  # type: ignore[arg-type]


def test_no_point_of_forward_differences_lies_beyond_the_samples() -> None:
    points = np.random.default_rng(0).uniform(0.0, 1.0, (10, 1))
    points[:2] = [[0.0], [1.0]]

    def inside(x: Array) -> Array:
        if not (0.0 <= x[0] <= 1.0):
            raise ValueError("outside")
        return x**2

    J = arrays(ub.Problem.from_function(inside, points, derivatives="forward"))[1]
    np.testing.assert_allclose(J[:, 0], 2 * points, atol=1e-6)


@pytest.mark.parametrize("derivatives", SIDES)
@pytest.mark.parametrize("f", [of_a_point, of_a_batch])
def test_the_result_does_not_depend_on_jobs(f: Any, derivatives: Any) -> None:
    one, two = (ub.Problem.from_function(f, X, derivatives=derivatives, jobs=jobs, chunk=7) for jobs in (1, 3))
    np.testing.assert_array_equal(one.F, two.F)
    if derivatives is not None:
        np.testing.assert_array_equal(one.J, two.J)


@pytest.mark.parametrize("derivatives", ["forward", "central"])
def test_the_result_does_not_depend_on_how_many_points_memory_holds(
    derivatives: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = arrays(ub.Problem.from_function(of_a_point, X, derivatives=derivatives))[1]
    monkeypatch.setattr("unbraid.kernels.arrays.TEMPORARY_ENTRIES", 7)
    np.testing.assert_array_equal(arrays(ub.Problem.from_function(of_a_point, X, derivatives=derivatives))[1], whole)


def test_five_point_differences_can_be_taken_in_parallel() -> None:
    one, two = (arrays(ub.Problem.from_function(of_a_point, X, jobs=jobs)) for jobs in (1, 2))
    np.testing.assert_array_equal(one[1], two[1])


def test_calls_that_compute_are_made_by_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cloudpickle")
    monkeypatch.setattr(kept, "SENT_AFTER", 0.0)
    monkeypatch.setattr(kept, "COMPUTING", 0.0)
    here = os.getpid()
    made = "lambda x: (log.append(1), float(x[0]) ** 2)[1]"  # of no module, like one of a script
    log: list[int] = []
    problem = ub.Problem.from_function(eval(made, {"log": log}), X, derivatives=None, jobs=2)
    np.testing.assert_array_equal(problem.F, X[:, :1] ** 2)
    assert len(log) < 20
    other = eval("lambda x: float(x[0]) ** 2 + (os.getpid() != here)", {"os": os, "here": here})
    problem = ub.Problem.from_function(other, X, derivatives=None, jobs=2)
    np.testing.assert_array_equal(problem.F, X[:, :1] ** 2)  # what says something else elsewhere is called here


# What cannot work.


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("derivatives", SIDES)
def test_the_point_where_f_fails_is_named(derivatives: Any, jobs: int) -> None:
    def f(x: Array) -> list[float]:
        if x[0] == X[17, 0] and x[1] == X[17, 1]:
            raise RuntimeError("The solver diverged.")
        return of_a_point(x)

    says = r"there: 17 .* f raised RuntimeError \(The solver diverged\) at X\[17\]"
    assert some_left_out(f, X, says, derivatives=derivatives, jobs=jobs).S == 39


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_point_beside_a_sample_where_f_is_not_finite_is_named(jobs: int) -> None:
    def f(x: Array) -> list[float]:
        moved = x[0] == X[5, 0] and x[1] != X[5, 1]
        return [np.nan if moved else 1.0, x[0]]

    some_left_out(f, X, r"f gave nan at .*, beside X\[5\]", derivatives="forward", jobs=jobs)


def test_noise_is_refused_with_advice_and_a_longer_step_helps() -> None:
    rng = np.random.default_rng(0)

    def noisy(x: Array) -> Array:
        return np.asarray(x**2 + 1e-5 * rng.standard_normal(2))

    refused(noisy, derivatives="forward", says="so f is noisy or jumps. Give a longer step=")
    J = arrays(ub.Problem.from_function(noisy, X, derivatives="forward", step=1e-2))[1]
    np.testing.assert_allclose(J, 2 * X[:, :, None] * np.eye(2), atol=0.05)


def test_rounded_functions_are_refused_with_advice() -> None:
    refused(lambda x: np.round(x**2, 3), derivatives="forward", says="so f is rounded. Give a longer step=")


@pytest.mark.parametrize("derivatives", ["forward", "central"])
def test_outputs_far_from_zero_get_longer_steps(derivatives: Any) -> None:
    J = arrays(ub.Problem.from_function(lambda x: 1e5 + np.sin(x), X, derivatives=derivatives))[1]
    np.testing.assert_allclose(J, np.cos(X)[:, :, None] * np.eye(2), atol=1e-4)


@pytest.mark.parametrize("derivatives", ["forward", "central"])
def test_outputs_and_inputs_that_do_nothing_are_not_refused(derivatives: Any) -> None:
    J = arrays(ub.Problem.from_function(lambda x: [1e6, x[0] ** 2], X, derivatives=derivatives))[1]
    np.testing.assert_array_equal(J[:, 0], 0.0)
    np.testing.assert_array_equal(J[:, 1, 1], 0.0)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"jobs": 0}, "jobs must be a whole number of at least 1, got 0"),
        ({"jobs": "all"}, "jobs must be a whole number"),
        ({"step": 1e-3}, "step is that of"),
        ({"step": 0.0, "derivatives": "forward"}, "step must be a number from"),
        ({"derivatives": "backward"}, "'forward', 'central' and None, got 'backward'"),
        ({"jacobian": exact_jacobians, "derivatives": None}, "leave one of them out"),
        ({"cache": 3}, "path must be the path of a file"),
    ],
)
def test_settings_that_do_not_exist_are_refused_before_any_call(settings: dict[str, Any], says: str) -> None:
    def f(x: Array) -> Array:
        raise AssertionError

    refused(f, says=says, **settings)


def test_a_jump_out_of_a_call_ends_the_others() -> None:
    def f(x: Array) -> Array:
        if x[0] == X[7, 0]:
            raise SystemExit("enough")
        return x

    with pytest.raises(SystemExit):
        ub.Problem.from_function(f, X, derivatives=None, jobs=2)


# Who is told.


@pytest.mark.parametrize(("derivatives", "total"), [(None, 40), ("forward", 120), ("central", 200)])
@pytest.mark.parametrize("f", [of_a_point, of_a_batch])
def test_the_number_of_calls_is_told_before_the_first(
    f: Any, derivatives: Any, total: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "REPORTED", 0.0)
    seen: list[Progress] = []

    def called(x: Array) -> Any:
        assert seen, "called before anything was told"
        return f(x)

    ub.Problem.from_function(called, X, derivatives=derivatives, callback=seen.append)
    assert seen[0][:3] == ("calls", 0, total)
    assert seen[-1][:3] == ("calls", total, total)
    assert seen[-1].left == 0.0
    assert [one.done for one in seen] == sorted(one.done for one in seen)


def test_the_time_left_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock is a second: a call takes one."""
    clock, seen = itertools.count(0.0), list[Progress]()
    monkeypatch.setattr(sampling, "monotonic", lambda: next(clock))
    ub.Problem.from_function(of_a_batch, X, derivatives=None, chunk=10, callback=seen.append)
    assert [(one.done, one.left) for one in seen[1:]] == [(10, 3.0), (20, 2.0), (30, 1.0), (40, 0.0)]


def test_a_callback_can_stop_it_before_the_first_call() -> None:
    def stop(progress: Progress) -> None:
        raise KeyboardInterrupt

    def f(x: Array) -> Array:
        raise AssertionError

    with pytest.raises(KeyboardInterrupt):
        ub.Problem.from_function(f, X, derivatives=None, callback=stop)
