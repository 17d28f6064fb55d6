"""Starts, selections and grids on a cluster of two worker processes: the same numbers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import dask.array as da
import distributed
import numpy as np
import pytest

import unbraid as ub
from clusters import ANY_PORT, QUICK, assert_same, given, run
from unbraid.fitting.search import batches, shares
from unbraid.fitting.session import Session
from unbraid.runtime.progress import Progress
from unbraid.runtime.workers import Shared, workers_for


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
    monkeypatch.setattr("unbraid.fitting.polish.POLISH_ENTRIES", 1)
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
    settings: dict[str, Any] = {"method": QUICK, "rng": 0, "starts": 1}
    here = ub.select(problem, [1, 2, 3], **settings)
    seen: list[Progress] = []
    there = ub.select(problem, [1, 2, 3], **settings, client=cluster.scheduler_address, callback=seen.append)
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


def test_rank_auto_works_on_the_cluster_all_along(problem: ub.Problem, client: distributed.Client) -> None:
    settings: dict[str, Any] = {"method": ub.methods.default(max_sweeps=10, max_steps=5), "rng": 0, "starts": 2}
    auto = ub.decouple(problem, "auto", **settings, client=client)
    assert_same(ub.decouple(problem, "auto", **settings), auto)


def test_reproduce_on_a_cluster_has_the_same_results(
    tmp_path: Path, cluster: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unbraid.cli.reproduce.QUICK_TRIG_DFS", (12,))
    written: list[Any] = []

    def take(results: Any, folder: Path) -> list[Path]:
        """In place of drawing them, which takes longer."""
        written.append(results)
        return [folder]

    monkeypatch.setattr("unbraid.cli.reproduce.write_reproduction", take)
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


def test_batches_have_a_size_but_for_the_last() -> None:
    assert list(batches(5, 2)) == [range(2), range(2, 4), range(4, 5)]


def test_shares_are_even_and_hold_two_starts_at_least_where_they_may() -> None:
    assert shares(5, 100, 1) == [range(5)]
    assert shares(5, 100, 2) == [range(2), range(2, 5)]
    assert shares(5, 100, 8) == [range(2), range(2, 5)]
    assert shares(5, 4, 1) == [range(2), range(2, 5)]
    assert shares(3, 1, 1) == [range(1), range(1, 2), range(2, 3)]
    assert shares(1, 100, 8) == [range(1)]


def test_one_job_is_done_here() -> None:
    assert workers_for(1) is None
    assert Session().map_all(process_of, [(), ()], Shared(None), int) == [os.getpid()] * 2


def process_of(_: None) -> int:
    return os.getpid()
