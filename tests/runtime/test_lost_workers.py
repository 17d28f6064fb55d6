"""Workers and schedulers that die: the same numbers, or a sentence that says what happened."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import pytest

import unbraid as ub
from clusters import ANY_PORT, QUICK, assert_same, kill_one, once, pids
from grid_functions import dying, dying_once, marked
from unbraid.fitting.session import Session
from unbraid.runtime import cluster_waits
from unbraid.runtime import dask_cluster as clients
from unbraid.runtime.dask_cluster import ClusterWorkers
from unbraid.runtime.workers import Shared
from unbraid.studies.tasks import Task, run_tasks

LOST = "1 worker of the cluster was lost on the way; its work was done again by others."


def test_a_worker_killed_among_the_starts_costs_nothing(
    problem: ub.Problem, fit: ub.Fit, client: distributed.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unbraid.fitting.search.SEARCH_ENTRIES", 1)  # a start at a time, so that some are left
    disturbed = ub.decouple(problem, 2, rng=0, starts=5, client=client, callback=kill_one(client))
    assert_same(fit, disturbed)
    assert disturbed.notes == (*fit.notes, LOST)


def test_a_fit_without_losses_tells_of_none(problem: ub.Problem, fit: ub.Fit, client: distributed.Client) -> None:
    assert ub.decouple(problem, 2, rng=0, starts=5, client=client).notes == fit.notes


def test_a_checkpoint_remembers_what_was_lost(
    problem: ub.Problem, client: distributed.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unbraid.fitting.search.SEARCH_ENTRIES", 1)
    settings: dict[str, Any] = {"rng": 0, "starts": 5, "client": client, "checkpoint": tmp_path / "kept"}
    disturbed = ub.decouple(problem, 2, **settings, callback=kill_one(client))
    assert LOST in disturbed.notes
    assert ub.decouple(problem, 2, **settings).notes == disturbed.notes


def test_a_worker_killed_in_a_selection_costs_nothing(problem: ub.Problem, client: distributed.Client) -> None:
    settings: dict[str, Any] = {"method": QUICK, "rng": 0, "starts": 1}
    here = ub.select(problem, [1, 2], **settings)
    there = ub.select(problem, [1, 2], **settings, client=client, callback=kill_one(client))
    for one, other in zip(here.rows, there.rows, strict=True):
        assert np.array_equal(one.squares, other.squares)
    assert there.reason == f"{here.reason} {LOST}"


@pytest.mark.parametrize("forgiving", [True, False], ids=["the scheduler tries again", "the scheduler gives up"])
def test_a_task_that_is_killed_in_the_middle_is_done_again(
    tmp_path: Path,
    cluster: distributed.LocalCluster,
    client: distributed.Client,
    forgiving: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 3 if forgiving else 0)
    settings = [{"number": k, "marker": str(tmp_path / f"died-{k}")} for k in range(2)]
    tasks = [Task(f"die-{k}", dying_once, one) for k, one in enumerate(settings)]
    assert run_tasks(tasks, tmp_path / "cells", client=client) == [[{"number": 0}], [{"number": 1}]]
    assert len(list((tmp_path / "cells").iterdir())) == 2


def test_what_kills_every_worker_is_given_up_with_advice(
    cluster: distributed.LocalCluster, client: distributed.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_waits, "AGAIN", 1)
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    with (
        ClusterWorkers(client) as workers,
        pytest.raises(ub.UnbraidError, match=r"again and again, perhaps for want of memory: .*--memory-limit"),
    ):
        workers.each(dying, [(1,)], lambda k, result: None)


def test_what_was_lost_with_its_workers_is_sent_again(client: distributed.Client) -> None:
    shared = Shared(np.arange(5.0))
    with ClusterWorkers(client) as workers:
        session = Session(workers=workers)
        assert [found.sum() for found in session.map_all(np.add, [(1,), (2,)], shared, int)] == [15.0, 20.0]
        for pid in pids(client):
            os.kill(pid, signal.SIGKILL)
        assert [found.sum() for found in session.map_all(np.add, [(3,), (4,)], shared, int)] == [25.0, 30.0]


def test_what_is_shared_is_sent_once(client: distributed.Client) -> None:
    shared = Shared(np.arange(3.0))
    with ClusterWorkers(client) as workers:
        session = Session(workers=workers)
        session.map_all(np.add, [(1,), (2,)], shared, int)
        sent = shared.sent.key
        assert [found.tolist() for found in session.map_all(np.add, [(1,), (2,)], shared, int)] == [
            [1, 2, 3],
            [2, 3, 4],
        ]
        assert shared.sent.key == sent


@pytest.mark.parametrize("when", ["while a piece is at work", "between two pieces"])
def test_a_scheduler_that_goes_is_told_in_a_sentence(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two pieces the connection is wholly closed before anybody looks again."""
    monkeypatch.setattr(cluster_waits, "LOOKING", 0.1)
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=ANY_PORT) as made:
        client = distributed.Client(made.scheduler_address, set_as_default=False)
        with ClusterWorkers(client) as workers:
            if when == "while a piece is at work":
                once(lambda: any(tmp_path.iterdir()), client.close)
            with pytest.raises(ub.UnbraidError, match="connection to the scheduler was lost"):
                workers.each(marked, [(str(tmp_path), k) for k in range(4)], lambda k, result: client.close())


def test_a_cluster_without_workers_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("LOOKING", 0.05), ("DESERTED", 0.2)):
        monkeypatch.setattr(cluster_waits, name, seconds)
    monkeypatch.setattr(clients, "WAKING", 0.2)
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=ANY_PORT) as made:
        with pytest.raises(ub.UnbraidError, match=r"has no workers: start some, for instance with `dask worker inproc"):
            ClusterWorkers(made.get_client())
        monkeypatch.setattr(clients, "check_workers", lambda roll: None)
        with (
            ClusterWorkers(made.get_client()) as workers,
            pytest.raises(ub.UnbraidError, match="has had no workers for"),
        ):
            workers.each(time.sleep, [(0.0,)], lambda k, result: None)
        with (
            ClusterWorkers(made.get_client()) as workers,
            pytest.raises(ub.UnbraidError, match="has had no workers for"),
        ):
            workers.each(time.sleep, [()], lambda k, result: None, shared=Shared("nobody"))


@pytest.mark.parametrize("before", [0.02, 0.005, 0.0, -0.005, -0.02], ids="{:g} s before".format)
def test_a_worker_killed_while_samples_are_sent_to_it_is_not_waited_for(
    problem: ub.Problem, fit: ub.Fit, client: distributed.Client, before: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask's scatter to all of them waits for it for ever, now and then."""
    monkeypatch.setattr(clients, "SENDING", 2.0)
    scatter = client.scatter
    killed: list[int] = []

    def scatter_to_the_dying(*given: Any, **settings: Any) -> Any:
        if not killed:
            killed.append(pids(client)[0])
            threading.Timer(max(0.0, -before), os.kill, (killed[0], signal.SIGKILL)).start()
            time.sleep(max(0.0, before))
        return scatter(*given, **settings)

    monkeypatch.setattr(client, "scatter", scatter_to_the_dying)
    disturbed = ub.decouple(problem, 2, rng=0, starts=5, client=client)
    assert_same(fit, disturbed)
    assert killed
    assert LOST in disturbed.notes
