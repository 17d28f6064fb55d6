"""Starts, selections and grids on a cluster of two worker processes: the same numbers, whatever happens to workers."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import distributed
import numpy as np
import pytest
from click.testing import CliRunner

import unbraid as ub
from grid_functions import dying, dying_once, marked, missing, waiting
from unbraid.cli import app
from unbraid.errors import MissingDependencyError, SettingError
from unbraid.fitting.search import parts
from unbraid.kernels.arrays import Array
from unbraid.runtime import dask_cluster as clients
from unbraid.runtime import dask_cluster as cluster_workers
from unbraid.runtime.dask_cluster import ClusterWorkers
from unbraid.runtime.progress import Progress
from unbraid.runtime.workers import workers_for
from unbraid.studies.tasks import Done, Task, run_tasks

ANY_PORT = ":0"
"""Of the dashboard: other clusters may run beside this one."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[distributed.LocalCluster]:
    patient = {"distributed.deploy.lost-worker-timeout": "1h"}  # or workers killed twice in 15 s are not started again
    with (
        dask.config.set(patient),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=ANY_PORT) as made,
    ):
        yield made


@pytest.fixture
def client(cluster: distributed.LocalCluster) -> Iterator[distributed.Client]:
    with cluster.get_client() as made:
        made.wait_for_workers(2, timeout=30)
        yield made


@pytest.fixture(scope="module")
def problem() -> ub.Problem:
    made, _ = ub.datasets.random_system(n=2, m=3, r=2, S=80, rng=0)
    return made


@pytest.fixture(scope="module")
def fit(problem: ub.Problem) -> ub.Fit:
    return ub.decouple(problem, 2, rng=0, starts=5)


def pids(client: distributed.Client) -> list[int]:
    return list(client.run(os.getpid).values())


def kill_one(client: distributed.Client) -> Callable[[Progress], None]:
    """A callback that kills a worker, the first time."""
    killed: list[int] = []

    def callback(progress: Progress) -> None:
        if progress.done and not killed:
            killed.append(pids(client)[0])
            os.kill(killed[0], signal.SIGKILL)

    return callback


def assert_same(one: ub.Fit, other: ub.Fit) -> None:
    """Bit for bit, but for the time it took."""
    points = np.random.default_rng(1).standard_normal((7, one.model.m))
    assert np.array_equal(one.model.W0, other.model.W0)
    assert np.array_equal(one.model.W1, other.model.W1)
    assert np.array_equal(one.model(points), other.model(points))
    assert np.array_equal(one.trace.objective, other.trace.objective)
    assert one.starts == other.starts
    assert one.status is other.status


# The same numbers.


def test_starts_on_a_cluster_give_the_same_fit(problem: ub.Problem, fit: ub.Fit, client: distributed.Client) -> None:
    assert_same(fit, ub.decouple(problem, 2, rng=0, starts=5, client=client))


def test_starts_from_values_alone_give_the_same_fit(problem: ub.Problem, client: distributed.Client) -> None:
    values = ub.Problem(problem.X, problem.F)
    assert_same(ub.decouple(values, 2, rng=0, starts=4), ub.decouple(values, 2, rng=0, starts=4, client=client))


def test_sweeps_without_polish_give_the_same_fit(problem: ub.Problem, client: distributed.Client) -> None:
    settings: dict[str, Any] = {"method": ub.methods.dejonghe2025(max_sweeps=20), "rng": 0, "starts": 3}
    assert_same(ub.decouple(problem, 2, **settings), ub.decouple(problem, 2, **settings, client=client))


def test_polishing_ahead_changes_nothing(problem: ub.Problem, fit: ub.Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    """One candidate after another here, four at a time there."""
    monkeypatch.setattr("unbraid.fitting.polish.BATCH_ENTRIES", 1)
    here = ub.decouple(problem, 2, rng=0, starts=5)
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=4, dashboard_address=ANY_PORT) as client:
        assert_same(here, ub.decouple(problem, 2, rng=0, starts=5, client=client))


def test_threads_of_this_process_are_a_cluster_too(problem: ub.Problem, fit: ub.Fit) -> None:
    """Nothing is copied to them, so what they work on must stay as it is: they do it twice."""
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=ANY_PORT) as client:
        rngs = np.random.default_rng(0).spawn(3)
        for _ in range(2):
            assert_same(fit, ub.decouple(problem, 2, rng=0, starts=5, client=client))
        assert [rng.random() for rng in rngs] == [rng.random() for rng in np.random.default_rng(0).spawn(3)]


def test_a_selection_by_address_is_the_same(problem: ub.Problem, cluster: distributed.LocalCluster) -> None:
    here = ub.select(problem, rng=0, starts=1)
    seen: list[Progress] = []
    there = ub.select(problem, rng=0, starts=1, client=cluster.scheduler_address, callback=seen.append)
    assert here.recommended == there.recommended
    assert here.reason == there.reason
    for one, other in zip(here.rows, there.rows, strict=True):
        assert np.array_equal(one.squares, other.squares)
        assert_same(one.fit, other.fit)
    assert {one.running for one in seen} == {2}
    assert seen[-1].done == seen[-1].total


def test_dask_arrays_are_held_by_the_workers_of_the_client(problem: ub.Problem, client: distributed.Client) -> None:
    chunks = ub.Problem(*(da.from_array(array, chunks=(30, *array.shape[1:])) for array in given(problem)))
    quick: dict[str, Any] = {"method": ub.methods.dejonghe2025(max_sweeps=3), "rng": 0, "starts": 2}
    there = ub.decouple(chunks, 2, **quick, client=client)
    assert_same(ub.decouple(chunks.on(client), 2, **quick), there)
    here = ub.decouple(problem, 2, **quick)
    np.testing.assert_allclose(there.model.W0, here.model.W0, rtol=1e-6)


def given(problem: ub.Problem) -> tuple[Array, Array, Array]:
    assert problem.F is not None
    assert problem.J is not None
    return problem.X, problem.F, problem.J


def test_rank_auto_works_on_the_cluster_all_along(problem: ub.Problem, client: distributed.Client) -> None:
    auto = ub.decouple(problem, "auto", rng=0, starts=2, client=client)
    assert_same(ub.decouple(problem, "auto", rng=0, starts=2), auto)


def run(*words: str | Path) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_reproduce_on_a_cluster_has_the_same_results(
    tmp_path: Path, cluster: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unbraid.cli.reproduce.QUICK_TRIG_DFS", (12,))
    written: list[Any] = []

    def take(results: Any, folder: Path) -> list[Path]:
        """In place of drawing them, which takes longer."""
        written.append(results)
        return [folder]

    monkeypatch.setattr("unbraid.cli.reproduce.write_results", take)
    line = ("reproduce", "trig", "--quick", "--runs", "1", "--sweeps", "3")
    run(*line, "--jobs", "1", "-o", tmp_path / "here")
    run(*line, "--scheduler", cluster.scheduler_address, "-o", tmp_path / "there")
    here, there = written
    assert len(here.trig) == 9
    assert here == there


def test_compare_on_a_cluster_has_the_same_rows(tmp_path: Path, cluster: distributed.LocalCluster) -> None:
    line = [
        "compare",
        "--system",
        "dreesen_a",
        "--method",
        "default",
        "--method",
        "dreesen2015",
        "--noise",
        "0",
        "--runs",
        "1",
        "--json",
    ]
    here = json.loads(run(*line, "--jobs", "1", "-o", tmp_path / "here"))
    there = json.loads(run(*line, "--scheduler", cluster.scheduler_address, "-o", tmp_path / "there"))
    assert [timeless(row) for row in there["results"]] == [timeless(row) for row in here["results"]]


def timeless(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "seconds"}


def test_fit_on_a_cluster_writes_the_same_model(
    tmp_path: Path, problem: ub.Problem, cluster: distributed.LocalCluster
) -> None:
    X, F, J = given(problem)
    np.savez(tmp_path / "samples.npz", X=X, F=F, J=J)
    line = ("fit", tmp_path / "samples.npz", "--rank", "2", "--starts", "4", "-o")
    run(*line, tmp_path / "here.npz")
    run(*line, tmp_path / "there.npz", "--scheduler", cluster.scheduler_address)
    assert (tmp_path / "there.npz").read_bytes() == (tmp_path / "here.npz").read_bytes()


# Workers that die.


def test_a_worker_killed_among_the_starts_costs_nothing(
    problem: ub.Problem, fit: ub.Fit, client: distributed.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unbraid.fitting.search.BATCH_ENTRIES", 1)  # a start at a time, so that some are left
    assert_same(fit, ub.decouple(problem, 2, rng=0, starts=5, client=client, callback=kill_one(client)))


def test_a_worker_killed_in_a_selection_costs_nothing(problem: ub.Problem, client: distributed.Client) -> None:
    here = ub.select(problem, [1, 2], rng=0, starts=1)
    there = ub.select(problem, [1, 2], rng=0, starts=1, client=client, callback=kill_one(client))
    for one, other in zip(here.rows, there.rows, strict=True):
        assert np.array_equal(one.squares, other.squares)


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
    monkeypatch.setattr(cluster_workers, "AGAIN", 1)
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    with (
        ClusterWorkers(client) as workers,
        pytest.raises(ub.UnbraidError, match=r"again and again, perhaps for want of memory: .*--memory-limit"),
    ):
        workers.each(dying, [(1,)], lambda k, result: None)


def test_what_was_lost_with_its_workers_is_sent_again(client: distributed.Client) -> None:
    shared = np.arange(5.0)
    with ClusterWorkers(client) as workers:
        assert [found.sum() for found in workers.map(np.add, [(1,), (2,)], int, (shared,))] == [15.0, 20.0]
        for pid in pids(client):
            os.kill(pid, signal.SIGKILL)
        assert [found.sum() for found in workers.map(np.add, [(3,), (4,)], int, (shared,))] == [25.0, 30.0]


def test_what_is_shared_is_sent_once(client: distributed.Client) -> None:
    first, second = np.arange(3.0), np.ones(3)
    with ClusterWorkers(client) as workers:
        workers.map(np.add, [(1,), (2,)], int, (first,))
        sent = workers.there((first,))
        assert [one.key for one in workers.there((first,))] == [one.key for one in sent]
        assert [found.tolist() for found in workers.map(np.add, [(), ()], int, (first, second))] == [[1, 2, 3]] * 2
        assert workers.there((first, second))[0].key == sent[0].key
        workers.map(np.add, [(1,)], int, (second,))
        assert [value is second for value, _ in workers.sent.values()] == [True], "what is not needed is let go"


def test_a_scheduler_that_goes_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_workers, "LOOKING", 0.1)
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=ANY_PORT) as made:
        client = distributed.Client(made.scheduler_address, set_as_default=False)
        with ClusterWorkers(client) as workers:
            threading.Timer(0.3, client.close).start()
            with pytest.raises(ub.UnbraidError, match="connection to the scheduler was lost"):
                workers.each(time.sleep, [(2.0,)], lambda k, result: None)


def test_a_cluster_without_workers_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("LOOKING", 0.05), ("DESERTED", 0.2)):
        monkeypatch.setattr(cluster_workers, name, seconds)
    monkeypatch.setattr(clients, "WAKING", 0.2)
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=ANY_PORT) as made:
        with pytest.raises(ub.UnbraidError, match=r"has no workers: start some, for instance with `dask worker inproc"):
            ClusterWorkers(made.get_client())
        monkeypatch.setattr(cluster_workers, "check_workers", lambda client: None)
        with (
            ClusterWorkers(made.get_client()) as workers,
            pytest.raises(ub.UnbraidError, match="has had no workers for"),
        ):
            workers.each(time.sleep, [(0.0,)], lambda k, result: None)
        with (
            ClusterWorkers(made.get_client()) as workers,
            pytest.raises(ub.UnbraidError, match="has had no workers for"),
        ):
            workers.each(time.sleep, [()], lambda k, result: None, shared=("nobody",))


# Ctrl-C.


def interrupted_after(done: int) -> Callable[[Progress | Done], None]:
    """Ctrl-C while more is awaited."""

    def callback(progress: Progress | Done) -> None:
        if progress.done >= done:
            signal.raise_signal(signal.SIGINT)

    return callback


def test_ctrl_c_cancels_what_waits(tmp_path: Path, client: distributed.Client) -> None:
    threading.Timer(0.25, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt), ClusterWorkers(client) as workers:
        workers.each(marked, [(str(tmp_path), k) for k in range(8)], lambda k, result: None)
    deadline = time.monotonic() + 20.0
    while any(client.processing().values()) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.6)
    assert len(list(tmp_path.iterdir())) <= 4, "no other piece was begun"


def test_ctrl_c_among_the_starts_keeps_the_best_so_far(
    problem: ub.Problem, client: distributed.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unbraid.fitting.search.BATCH_ENTRIES", 1)
    fit = ub.decouple(problem, 2, rng=0, starts=6, client=client, callback=interrupted_after(1))
    assert fit.status is ub.Status.INTERRUPTED
    assert 1 <= len(fit.starts) < 6


def test_ctrl_c_in_the_polish_keeps_the_search(problem: ub.Problem, client: distributed.Client) -> None:
    def callback(progress: Progress) -> None:
        if progress.phase == "polish":
            signal.raise_signal(signal.SIGINT)

    fit = ub.decouple(problem, 2, rng=0, starts=6, client=client, callback=callback)
    assert fit.status is ub.Status.INTERRUPTED
    assert len(fit.starts) == 6


def test_a_search_by_workers_is_kept_in_the_checkpoint(
    tmp_path: Path, problem: ub.Problem, fit: ub.Fit, client: distributed.Client
) -> None:
    """The polish goes on with other workers: four threads of this process."""

    def interrupt(progress: Progress) -> None:
        if progress.phase == "polish":
            signal.raise_signal(signal.SIGINT)

    settings: dict[str, Any] = {"rng": 0, "starts": 5, "checkpoint": tmp_path / "fit"}
    cut = ub.decouple(problem, 2, **settings, client=client, callback=interrupt)
    assert cut.status is ub.Status.INTERRUPTED
    phases: list[str] = []
    with distributed.Client(processes=False, threads_per_worker=4, dashboard_address=ANY_PORT) as other:
        went_on = ub.decouple(problem, 2, **settings, client=other, callback=lambda one: phases.append(one.phase))
    assert set(phases) == {"polish"}
    assert_same(fit, went_on)


def test_ctrl_c_in_a_selection_keeps_complete_candidates(problem: ub.Problem, client: distributed.Client) -> None:
    assert problem.F is not None
    noisy = ub.Problem(problem.X, problem.F + 0.1 * np.random.default_rng(0).standard_normal((80, 2)))
    selection = ub.select(noisy, [1, 2, 3, 4], rng=0, starts=1, client=client, callback=interrupted_after(13))
    assert selection.interrupted
    assert [row.settings.rank for row in selection.rows] == [1, 2]


def test_ctrl_c_in_a_grid_keeps_finished_cells(tmp_path: Path, client: distributed.Client) -> None:
    tasks = [Task(f"wait-{k}", waiting, {"seconds": 0.2 * k}) for k in range(8)]
    with pytest.raises(KeyboardInterrupt):
        run_tasks(
            tasks,
            tmp_path,
            callback=lambda done: signal.raise_signal(signal.SIGINT) if done.done else None,
            client=client,
        )
    assert len(list(tmp_path.iterdir())) == 1


def test_the_time_limit_counts_from_the_beginning(problem: ub.Problem, client: distributed.Client) -> None:
    method = ub.methods.default(max_seconds=1e-6)
    fit = ub.decouple(problem, 2, rng=0, starts=4, method=method, client=client)
    assert fit.status is ub.Status.OUT_OF_TIME
    assert {start.sweeps for start in fit.starts} == {1}


# What is refused.


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("nonsense", "no Dask scheduler at 'nonsense': give the address that `dask scheduler` prints"),
        ("", "no Dask scheduler at ''"),
        ("gopher://127.0.0.1:8786", "no Dask scheduler at 'gopher"),
        ("tcp://127.0.0.1:1", "no Dask scheduler at 'tcp://127.0.0.1:1'"),
        (2, "client must be a distributed.Client or the address of a scheduler, .* got a int"),
    ],
)
def test_what_is_no_cluster_is_refused(
    problem: ub.Problem, monkeypatch: pytest.MonkeyPatch, given: Any, said: str
) -> None:
    monkeypatch.setattr(clients, "CONNECTING", 0.3)
    for function in (ub.select, lambda problem, client: ub.decouple(problem, 2, client=client)):
        with pytest.raises(SettingError, match=said):
            function(problem, client=given)


def test_a_cluster_in_place_of_its_client_is_refused(cluster: distributed.LocalCluster) -> None:
    with pytest.raises(SettingError, match=r"got a LocalCluster: give its get_client\(\)"):
        clients.as_client(cluster)


def test_the_address_of_a_worker_is_refused(client: distributed.Client) -> None:
    with pytest.raises(SettingError, match=r"At '.*' answers a Worker: give the address of the scheduler"):
        clients.as_client(next(iter(client.nthreads())))


def test_closed_and_asynchronous_clients_are_refused(cluster: distributed.LocalCluster) -> None:
    with clients.connected(cluster.scheduler_address) as client:
        assert clients.as_client(client) is client
    with pytest.raises(SettingError, match="not connected, its status is 'closed'"):
        clients.as_client(client)

    async def check() -> None:
        async with distributed.Client(cluster.scheduler_address, asynchronous=True) as other:
            with pytest.raises(SettingError, match="asynchronous"):
                clients.as_client(other)

    asyncio.run(check())


def test_workers_of_another_version_are_refused(client: distributed.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "__version__", "0.0.1")
    with pytest.raises(SettingError, match=rf"has unbraid {ub.__version__}, and this is 0\.0\.1: .* Install"):
        ClusterWorkers(client)


def test_workers_without_unbraid_are_refused(client: distributed.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "version_here", missing)
    with pytest.raises(SettingError, match=r"cannot import unbraid .*: install it there as well \(No module"):
        ClusterWorkers(client)


def test_without_distributed_it_says_what_to_install(problem: ub.Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "unbraid\[distributed\]"'):
        ub.select(problem, client="tcp://127.0.0.1:8786")


def test_jobs_and_a_cluster_exclude_each_other(problem: ub.Problem, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="leave out jobs=2"):
        ub.select(problem, jobs=2, client="tcp://127.0.0.1:8786")
    line = ["compare", "--jobs", "2", "--scheduler", "tcp://127.0.0.1:8786", "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(app, line)
    assert result.exit_code == 2
    assert result.stderr == "Error: --jobs counts processes here, and --scheduler is a cluster: give one of them.\n"
    assert not (tmp_path / "out").exists()


def test_parts_have_a_size_but_for_the_last() -> None:
    assert parts([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4], [5]]


def test_one_job_is_done_here() -> None:
    with workers_for(1) as workers:
        assert workers.map(os.getpid, [(), ()], int) == [os.getpid()] * 2
