"""No wait on a cluster is without end: it is tried again, and then there is a sentence."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import distributed
import numpy as np
import pytest

import unbraid as ub
from clusters import ANY_PORT
from unbraid.runtime import cluster_waits
from unbraid.runtime.cluster_waits import Roll, Watch, ask, told_of_losses, within
from unbraid.runtime.dask_cluster import ClusterWorkers
from unbraid.runtime.workers import Shared


class Silent:
    """A client of a cluster that answers some questions, and not others."""

    def __init__(self, *processing: str) -> None:
        self.status, self.scheduler = "running", SimpleNamespace(address="tcp://10.0.0.1:8786")
        self.workers: dict[str, int] = {"tcp://10.0.0.2:1": 2}
        self.tasks = list(processing)

    def nthreads(self) -> dict[str, int]:
        return self.workers

    def processing(self) -> dict[str, list[str]]:
        return dict.fromkeys(self.workers, self.tasks)


def answers(*given: Any) -> Any:
    """A question that is answered with these, one after another."""
    left: Iterator[Any] = iter(given)

    def question() -> Any:
        answer = next(left)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return question


def test_what_takes_too_long_is_left_to_itself() -> None:
    with pytest.raises(TimeoutError):
        within(0.05, lambda: time.sleep(10.0))
    assert within(5.0, lambda: 3) == 3
    with pytest.raises(KeyError):
        within(5.0, lambda: {"here": 1}["missing"])


def test_a_question_is_asked_again_and_then_given_up_with_a_sentence() -> None:
    client: Any = Silent()
    lost = ConnectionResetError("lost")
    assert ask(client, answers(TimeoutError(), lost, 3)) == 3
    with pytest.raises(ub.UnbraidError, match=r"at tcp://10\.0\.0\.1:8786 did not answer, .* asked 4 times: see"):
        ask(client, answers(*[lost] * 4))
    with pytest.raises(ZeroDivisionError):
        ask(client, answers(ZeroDivisionError()))
    client.status = "closed"
    with pytest.raises(ub.UnbraidError, match="connection to the scheduler was lost, its client is closed"):
        ask(client, answers(lost, 3))


def test_a_question_that_is_never_answered_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_waits, "ANSWERING", 0.01)
    client: Any = Silent()
    with pytest.raises(ub.UnbraidError, match="did not answer"):
        ask(client, lambda: time.sleep(10.0))


def test_work_that_nobody_does_is_noticed_and_work_that_takes_long_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(cluster_waits, "time", SimpleNamespace(monotonic=lambda: clock.now))
    client: Any = Silent("search-1")
    watch = Watch(Roll(client))
    clock.now = 3600.0
    assert not watch.stalled()
    client.tasks = []
    clock.now += cluster_waits.STALLED - 1.0
    assert not watch.stalled()
    clock.now += 2.0
    assert watch.stalled()
    client.workers = {}  # nobody is there, who could do anything
    assert not watch.stalled()
    clock.now += cluster_waits.DESERTED - 5.0
    assert not watch.stalled()
    client.workers = {"tcp://10.0.0.3:1": 1}
    assert not watch.stalled()
    client.workers = {}
    clock.now += cluster_waits.DESERTED + 1.0
    with pytest.raises(ub.UnbraidError, match="has had no workers for 120 s: start some"):
        watch.stalled()


def test_pieces_that_a_cluster_has_forgotten_are_done_again(
    client: distributed.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = [True, False]
    monkeypatch.setattr(Watch, "stalled", lambda self: looks.pop(0) if looks else False)
    monkeypatch.setattr(cluster_waits, "LOOKING", 0.0)
    found: dict[int, Any] = {}
    with ClusterWorkers(client) as workers:
        workers.each(np.add, [(1,), (2,)], found.__setitem__, Shared(np.arange(3.0)))
    assert not looks
    assert {k: sums.tolist() for k, sums in found.items()} == {0: [1.0, 2.0, 3.0], 1: [2.0, 3.0, 4.0]}


def test_workers_that_are_sent_away_are_not_lost() -> None:
    with (
        distributed.LocalCluster(n_workers=2, processes=False, dashboard_address=ANY_PORT) as made,
        made.get_client() as client,
    ):
        roll = Roll(client)
        first, *_ = roll.threads()
        client.retire_workers([first])
        assert first not in roll.threads()
        assert roll.lost() == frozenset()
    assert roll.lost() == frozenset()  # and where nobody can be asked, none is told of


def test_losses_are_told_in_a_sentence() -> None:
    assert told_of_losses(0) == ()
    assert told_of_losses(1) == ("1 worker of the cluster was lost on the way; its work was done again by others.",)
    assert told_of_losses(2) == ("2 workers of the cluster were lost on the way; their work was done again by others.",)
