"""Calls that take too long: they are ended, and their points are left out."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest
import torch

import unbraid as ub
from plain_functions import X, arrays, of_a_batch, of_a_point, refused, some_left_out
from stuck_functions import HANGS, corner, forever, where
from unbraid.kernels.arrays import Array
from unbraid.runtime.helpers import IDLE

POINTS = np.linspace(0.0, 0.9, 12)[:, None] * [1.0, 0.5]
"""The last two lie where the function hangs."""


@pytest.mark.parametrize("jobs", [1, 2])
def test_points_at_which_a_function_hangs_are_left_out(jobs: int) -> None:
    says = rf"2 of 12 .* there: 10, 11 \(from 0\)\. The first: f gave no answer within {HANGS:g} s at X\[10\]"
    problem = some_left_out(where(corner, forever), POINTS, says, derivatives=None, jobs=jobs, timeout=HANGS)
    np.testing.assert_array_equal(problem.X, POINTS[:10])


def test_a_function_that_computes_for_ever_is_ended() -> None:
    def busy(x: Array) -> Array:
        while x[0] > 0.85:
            pass
        return x

    some_left_out(busy, POINTS, "f gave no answer", derivatives=None, timeout=HANGS)
    assert all(helper.there for helper in IDLE)
    assert threading.active_count() < 20


@pytest.mark.parametrize("f", [of_a_point, of_a_batch])
@pytest.mark.parametrize("derivatives", ["forward", "differences"])
def test_calls_in_time_give_what_they_give_without_a_limit(f: Any, derivatives: Any) -> None:
    F, J = arrays(ub.Problem.from_function(f, X, derivatives=derivatives, timeout=60.0))
    expected = arrays(ub.Problem.from_function(f, X, derivatives=derivatives))
    np.testing.assert_array_equal(F, expected[0])
    np.testing.assert_array_equal(J, expected[1])


def test_a_jacobian_of_the_user_has_the_same_limit() -> None:
    def jacobian(x: Array) -> Array:
        time.sleep(0.0 if x[0] < 0.85 else 60.0)
        return np.eye(2)

    some_left_out(lambda x: x, POINTS, "jacobian gave no answer within", jacobian=jacobian, timeout=HANGS)


def test_ub_sample_has_one_too() -> None:
    found = ub.sample(where(corner, forever), [[0, 1]] * 2, 1, budget=8, first=4, starts=1, rng=0, timeout=HANGS)
    assert (found.problem.X[:, 0] <= 0.8).all()
    assert "f gave no answer" in found.notes[0]


def test_what_cannot_be_ended_is_refused() -> None:
    lock = threading.Lock()

    def locked(x: Array) -> Array:
        with lock:
            return x

    refused(locked, timeout=1.0, says="timeout= needs f in another process, .* cannot be sent there .*cloudpickle")
    refused(torch.nn.Linear(2, 1), timeout=1.0, says="leave it out for networks")
    refused(of_a_point, timeout=1.0, derivatives="torch", says="leave it out for .* a framework")
    refused(of_a_point, timeout=-1.0, says="timeout must be a finite number of at least 0.001")
