"""What fits change of their process, and give back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import unbraid as ub
from unbraid.runtime.process import single_blas_thread


def blas_threads() -> set[int]:
    """How many threads the BLAS libraries of this process have."""
    return {int(one["num_threads"]) for one in threadpool_info() if one["user_api"] == "blas"}


@pytest.fixture
def two_threads() -> Iterator[None]:
    """BLAS has two threads, whatever the machine and its settings."""
    with single_blas_thread():  # SciPy has brought its own by then
        pass
    given = threadpool_limits(2, user_api="blas")
    lay_no_claim()
    assert blas_threads() == {2}
    yield
    given.restore_original_limits()
    lay_no_claim()


def lay_no_claim() -> None:
    """Let other threads set limits as well, which threadpoolctl keeps to the thread that has set the last one."""
    with threadpool_limits(None):
        pass


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("first_out", [0, 1])
def test_limits_of_two_threads_overlap_in_any_order(first_out: int) -> None:
    """In two threads, blocks need not be left in the order in which they were not entered."""
    limits = [single_blas_thread(), single_blas_thread()]
    for limit in limits:
        limit.__enter__()
        assert blas_threads() == {1}
    limits[first_out].__exit__(None, None, None)
    assert blas_threads() == {1}
    limits[1 - first_out].__exit__(None, None, None)
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_two_fits_in_two_threads_give_the_process_its_threads_back() -> None:
    """The fit that began first ends first, while the other one is under way."""
    problem, _ = ub.datasets.trig(S=50, rng=0)
    began, ended = threading.Event(), threading.Event()
    first_ended: list[set[int]] = []

    def fit(callback: Any) -> None:
        method = ub.methods.default(max_sweeps=2, max_steps=2)
        ub.decouple(problem, 1, starts=1, rng=0, jobs=1, method=method, callback=callback)

    def wait_for_the_other(progress: object) -> None:
        began.set()
        assert ended.wait(60.0)

    def second_begins(progress: object) -> None:
        if not began.is_set():
            second.start()
            assert began.wait(60.0)

    second = threading.Thread(target=fit, args=(wait_for_the_other,))
    fit(second_begins)
    first_ended.append(blas_threads())
    ended.set()
    second.join()
    assert first_ended == [{1}]
    assert blas_threads() == {2}
