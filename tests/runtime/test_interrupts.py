"""Ctrl-C and time limits on a cluster: what was found is kept, and what waits is not begun."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import pytest

import unbraid as ub
from clusters import ANY_PORT, assert_same, interrupted_after, once
from grid_functions import marked, waiting
from unbraid.runtime.dask_cluster import ClusterWorkers
from unbraid.runtime.progress import Progress
from unbraid.studies.tasks import Task, run_tasks


def test_ctrl_c_cancels_what_waits(tmp_path: Path, client: distributed.Client) -> None:
    once(lambda: any(tmp_path.iterdir()), lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt), ClusterWorkers(client) as workers:
        workers.each(marked, [(str(tmp_path), k) for k in range(40)], lambda k, result: None)
    deadline = time.monotonic() + 300.0
    while any(client.processing().values()) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.6)
    after = len(list(tmp_path.iterdir()))
    assert after < 20, "no other pieces were begun, but for some that were on their way to a worker"


def test_ctrl_c_among_the_starts_keeps_the_best_so_far(
    problem: ub.Problem, client: distributed.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unbraid.fitting.search.SEARCH_ENTRIES", 1)
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
    ranks = [row.settings.rank for row in selection.rows]
    whole = ub.select(noisy, ranks, rng=0, starts=1)  # complete ones: which, depends on who was quick
    assert selection.interrupted
    assert 0 < len(ranks) < 4
    for one, other in zip(selection.rows, whole.rows, strict=True):
        assert np.array_equal(one.squares, other.squares)


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
