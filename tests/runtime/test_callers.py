"""Callers: several calls at the same time, here or in other processes."""

from __future__ import annotations

import functools
import math
import os
import threading
import time
from typing import Any

import numpy as np
import pytest

from unbraid.runtime.callers import call_each, elsewhere
from unbraid.runtime.helpers import IDLE


def results(call: Any, pieces: list[Any], jobs: int) -> list[Any]:
    found: dict[int, Any] = {}
    call_each(call, pieces, jobs, found.__setitem__)
    return [found[k] for k in range(len(pieces))]


def test_calls_are_made_at_the_same_time() -> None:
    """Each of two calls waits for the other: one after another they would wait in vain."""
    both = threading.Barrier(2, timeout=120.0)
    assert sorted(results(lambda _: both.wait(), [0, 1], 2)) == [0, 1]


@pytest.mark.parametrize("jobs", [1, 3, 100])
def test_results_have_the_numbers_of_their_pieces_and_exceptions_are_results(jobs: int) -> None:
    squares = results(lambda k: 60 // (k - 3), list(range(7)), jobs)
    assert isinstance(squares[3], ZeroDivisionError)
    assert squares[4:] == [60, 30, 20]


@pytest.mark.parametrize("jobs", [1, 2])
def test_no_call_is_begun_after_the_last_that_was_wanted(jobs: int) -> None:
    begun: list[int] = []

    def call(k: int) -> None:
        begun.append(k)
        time.sleep(0.001)

    def enter(k: int, result: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call_each(call, list(range(10_000)), jobs, enter)
    assert len(begun) < 10_000


def test_threads_have_the_settings_of_numpy_of_this_one() -> None:
    with np.errstate(all="ignore"):
        found = results(lambda _: np.geterr()["divide"], [0, 1, 2], 2)
    assert found == ["ignore"] * 3


def test_other_processes_make_the_calls_and_are_kept() -> None:
    sent = elsewhere(functools.partial(math.pow, 2.0), 2)
    assert sent is not None
    with sent:
        assert results(sent, [1.0, 2.0, 3.0], 2) == [2.0, 4.0, 8.0]
        with pytest.raises(TypeError):
            sent("two")
        assert results(sent, [4.0, 5.0], 2) == [16.0, 32.0]
    assert len([helper for helper in IDLE if helper.there]) >= 2


def test_functions_of_a_script_are_sent_where_cloudpickle_is_there() -> None:
    pytest.importorskip("cloudpickle")
    here = os.getpid()
    sent = elsewhere(eval("lambda k: (__import__('os').getpid() != here, k * here)", {"here": here}), 2)
    assert sent is not None
    with sent:
        assert results(sent, [1, 2], 2) == [(True, here), (True, 2 * here)]


def test_what_fails_elsewhere_is_done_here() -> None:
    pytest.importorskip("cloudpickle")
    program = "lambda k: k if __import__('os').getpid() == here else 1 / 0"
    sent = elsewhere(eval(program, {"here": os.getpid()}), 2)
    assert sent is not None
    with sent:
        assert results(sent, [1, 2, 3], 2) == [1, 2, 3]


def test_what_cannot_be_sent_is_called_here() -> None:
    lock = threading.Lock()
    assert elsewhere(lambda k: lock.locked(), 2) is None


def test_a_process_that_is_gone_loses_nothing() -> None:
    sent = elsewhere(functools.partial(math.pow, 2.0), 2)
    assert sent is not None
    with sent:
        for helper in sent.all:
            helper.process.kill()
            helper.process.wait()
        assert results(sent, [1.0, 2.0, 3.0], 2) == [2.0, 4.0, 8.0]
