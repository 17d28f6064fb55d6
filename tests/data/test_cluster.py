"""Blocks on a cluster of two worker processes: the same sums, whoever computes them, and whoever dies."""

import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

import unbraid as ub
from block_functions import divide, end_worker, length, products, slow_products, unreadable, where
from unbraid.data.dask_blocks import Held
from unbraid.data.problem import Problem
from unbraid.data.units import Units
from unbraid.kernels.arrays import Array
from unbraid.results.fit import errors_on
from unbraid.runtime.cluster_waits import Watch
from unbraid.runtime.dask_cluster import as_client, connected

S, M, N = 900, 3, 2
LENGTHS = (200, 150, 250, 100, 200)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    quiet = {"distributed.logging.distributed": "critical", "distributed.admin.log-format": "%(message)s"}
    quiet["distributed.deploy.lost-worker-timeout"] = "1h"  # or workers killed twice in 15 s are not started again
    with (
        dask.config.set(quiet),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster: LocalCluster) -> Iterator[Client]:
    with Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=300)
        yield client


def arrays(weighted: bool = True) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    given = {"X": rng.normal(size=(S, M)), "F": rng.normal(size=(S, N)), "J": rng.normal(size=(S, N, M))}
    return {**given, "weights": rng.uniform(0.5, 2.0, S)} if weighted else given


def in_chunks() -> Problem:
    return ub.Problem(**{name: da.from_array(a, chunks=(LENGTHS, *a.shape[1:])) for name, a in arrays().items()})


def one_worker(cluster: LocalCluster) -> int:
    """The process of a worker."""
    pid: int = next(iter(cluster.workers.values())).pid
    return pid


def same(one: tuple[Array, int], other: tuple[Array, int]) -> bool:
    """To the last bit: results are added in the order of the blocks."""
    return np.array_equal(one[0], other[0]) and one[1] == other[1]


def test_sums_are_those_of_the_chunks_to_the_last_bit_and_of_arrays_to_rounding(client: Client) -> None:
    problem = in_chunks()
    held = problem.on(client)
    assert repr(held).endswith("weighted, in 5 blocks on a cluster)")
    factor = np.ones((M, M))
    assert same(held.sum(products, factor), problem.sum(products, factor))
    plain = ub.Problem(**arrays())
    np.testing.assert_allclose(held.sum(products, factor)[0], plain.sum(products, factor)[0], rtol=1e-12)
    model = ub.datasets.random_system(n=N, m=M, r=2, S=20, rng=0)[1]
    for error, expected in zip(errors_on(held, model), errors_on(plain, model), strict=True):
        np.testing.assert_allclose(error, expected, rtol=1e-12)  # type: ignore[arg-type]
    np.testing.assert_allclose(Units.balanced(held).x_scale, Units.balanced(plain).x_scale, rtol=1e-12)


def test_both_workers_sum_the_blocks_that_they_hold(client: Client) -> None:
    held = in_chunks().on(client)
    assert len(held.sum(where)) == 2
    assert isinstance(held.home, Held)
    assert sorted(i for group in held.home.grouped() for i in group) == list(range(len(LENGTHS)))
    assert len(held.home.grouped()) == 2


def test_large_arguments_travel_as_well(client: Client) -> None:
    held = in_chunks().on(client)
    large = np.ones(300_000)
    assert held.sum(length, large) == len(LENGTHS) * large.size


def test_samples_are_brought_from_the_workers(client: Client) -> None:
    held = in_chunks().on(client)
    index = [899, 3, 450, 3]
    some = held.take(index)
    assert some.in_memory
    for name, array in arrays().items():
        np.testing.assert_array_equal(getattr(some, name), array[index])
    assert held.thinned(10).S == 10


def test_a_problem_in_memory_is_left_where_it_is(client: Client) -> None:
    problem = ub.Problem(**arrays())
    assert problem.on(client) is problem


def test_a_worker_killed_between_sums_changes_nothing(client: Client, cluster: LocalCluster) -> None:
    problem, factor = in_chunks(), np.ones((M, M))
    held = problem.on(client)
    expected = held.sum(products, factor)
    os.kill(one_worker(cluster), signal.SIGKILL)
    assert same(held.sum(products, factor), expected)
    assert same(held.sum(products, factor), problem.sum(products, factor))


def test_a_worker_killed_during_a_sum_changes_nothing(client: Client, cluster: LocalCluster) -> None:
    problem, factor = in_chunks(), np.ones((M, M))
    held = problem.on(client)
    expected = held.sum(products, factor)
    doomed = threading.Timer(0.3, os.kill, (one_worker(cluster), signal.SIGKILL))
    doomed.start()
    assert same(held.sum(slow_products, factor), expected)
    assert not doomed.is_alive()


def test_a_worker_killed_in_mid_fit_changes_nothing(client: Client, cluster: LocalCluster) -> None:
    source, _ = ub.datasets.trig(S=600, rng=0)
    problem = ub.Problem(da.from_array(source.X, chunks=(150, 2)), source.F, source.J)
    settings: dict[str, Any] = {"method": ub.methods.dejonghe2025(max_sweeps=6, tolerance=0.0), "starts": 1, "rng": 0}
    expected = ub.decouple(problem, 3, **settings)
    doomed = [one_worker(cluster)]

    def kill_once(progress: ub.Progress) -> None:
        if progress.done >= 3 and doomed:
            os.kill(doomed.pop(), signal.SIGKILL)

    held = problem.on(client)
    fit = ub.decouple(held, 3, callback=kill_once, **settings)
    assert not doomed
    np.testing.assert_array_equal(fit.model.W0, expected.model.W0)
    np.testing.assert_array_equal(fit.trace.objective, expected.trace.objective)
    lost = "1 worker of the cluster was lost on the way; its work was done again by others."
    assert fit.notes == (*expected.notes, lost)
    assert ub.decouple(held, 3, **settings).notes == expected.notes  # none is lost in the next


def test_what_workers_have_forgotten_is_asked_again(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [True, False, True]
    monkeypatch.setattr(Watch, "stalled", lambda self: looks.pop(0) if looks else False)
    monkeypatch.setattr("unbraid.runtime.cluster_waits.LOOKING", 0.05)
    problem, factor = in_chunks(), np.ones((M, M))
    assert same(problem.on(client).sum(slow_products, factor), problem.sum(products, factor))
    assert not looks


def test_late_news_that_blocks_were_cancelled_do_not_reach_those_that_are_asked_for_again(client: Client) -> None:
    problem, factor = in_chunks(), np.ones((M, M))
    held = problem.on(client)
    assert isinstance(held.home, Held)
    cancelled = [future.key for future in held.home.futures]
    client.cancel(held.home.futures)
    assert not held.home.mend([]), "some were lost"
    client._handle_cancelled_keys(cancelled)
    assert not any(future.cancelled() for future in held.home.futures)
    assert same(held.sum(products, factor), problem.sum(products, factor))


def test_results_that_do_not_arrive_are_asked_for_again(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbraid.runtime.cluster_waits.ANSWERING", 0.5)
    problem, factor, gather, asked = in_chunks(), np.ones((M, M)), client.gather, []

    def deaf_once(*given: Any) -> Any:
        asked.append(given)
        return time.sleep(10.0) if len(asked) == 1 else gather(*given)

    monkeypatch.setattr(client, "gather", deaf_once)
    assert same(problem.on(client).sum(products, factor), problem.sum(products, factor))
    assert len(asked) > 1


def test_persisted_arrays_are_found_on_their_cluster(client: Client) -> None:
    given = {name: da.from_array(a, chunks=(LENGTHS, *a.shape[1:])) for name, a in arrays().items()}
    persisted = dict(zip(given, client.persist(list(given.values())), strict=True))
    problem = ub.Problem(**persisted)
    del persisted
    assert len(problem.sum(where)) == 2
    assert same(problem.sum(products, np.ones((M, M))), in_chunks().sum(products, np.ones((M, M))))


def test_the_default_client_is_used_where_there_is_one(cluster: LocalCluster) -> None:
    with Client(cluster):
        problem = in_chunks()
        assert problem.sum(where)
    with pytest.raises(ValueError, match="No worker found"):  # now it is computed here
        problem.sum(where)


def test_samples_that_cannot_be_made_again_are_told_of(client: Client, cluster: LocalCluster) -> None:
    (scattered,) = client.scatter([arrays()["X"]])
    X = da.from_delayed(dask.delayed(scattered), (S, M), dtype=np.float64)
    with client.as_current():
        problem = ub.Problem(X, arrays()["F"]).on(client)
    assert problem.sum(length, np.ones(3)) == 3
    for worker in cluster.workers.values():
        os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(ub.UnbraidError, match=r"lost with a worker.*read from files"):
        problem.sum(length, np.ones(3))
    del scattered


def test_a_sum_that_ends_its_workers_is_given_up(
    client: Client, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a cluster that has no patience with such tasks; by default Dask tries three more workers."""
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    held = in_chunks().on(client)
    with pytest.raises(ub.UnbraidError, match=r"ended again and again, perhaps for want of memory: use smaller"):
        held.sum(end_worker)


def test_a_cluster_without_workers_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("LOOKING", 0.1), ("DESERTED", 0.5)):
        monkeypatch.setattr(f"unbraid.runtime.cluster_waits.{name}", seconds)
    with (
        LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as empty,
        Client(empty, set_as_default=False) as client,
        pytest.raises(ub.UnbraidError, match=r"no workers for 0\.5 s: start some"),
    ):
        in_chunks().on(client).sum(length, np.ones(3))


def test_clusters_need_a_package_and_the_advice_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ub.UnbraidError, match=r'pip install -e "\.\[distributed\]"'):
        as_client("tcp://10.0.0.1:8786")


def test_errors_on_workers_come_back_as_they_are(client: Client) -> None:
    held = in_chunks().on(client)
    with pytest.raises(ZeroDivisionError):
        held.sum(divide)
    assert held.sum(length, np.ones(2)) == 10  # and the blocks are still there


def test_a_block_that_workers_cannot_compute_is_told_of(client: Client) -> None:
    X = da.map_blocks(unreadable, da.ones((S, M), chunks=(300, M)), dtype=np.float64, meta=np.empty((0, 0)))
    with (
        client.as_current(),
        pytest.raises(ub.UnbraidError, match=r"could not be computed \(FileNotFoundError: part-3\.npy\)"),
    ):
        ub.Problem(X, arrays()["F"])


def test_a_problem_on_a_cluster_is_pickled_as_its_recipe(client: Client) -> None:
    held = in_chunks().on(client)
    back = pickle.loads(pickle.dumps(held))
    factor = np.ones((M, M))
    assert not isinstance(back.home, Held)
    assert same(back.sum(products, factor), held.sum(products, factor))


def test_a_closed_connection_is_told_of(cluster: LocalCluster) -> None:
    client = Client(cluster, set_as_default=False)
    held = in_chunks().on(client)
    client.close()
    with pytest.raises(ub.UnbraidError, match="client"):
        held.sum(length, np.ones(3))


def test_clients_are_accepted_as_such_or_by_address(client: Client) -> None:
    assert as_client(client) is client
    with connected(client.scheduler.address) as other:
        assert other is not None
        assert other.scheduler.address == client.scheduler.address
    assert other.status == "closed"
    with connected(client) as given:
        assert given is client
    assert given is not None
    assert given.status == "running"


@pytest.mark.parametrize(
    ("given", "says"),
    [(3, "client must be a distributed.Client or the address .*, got a int"), ("nowhere", "no Dask scheduler at")],
    ids=["number", "nonsense"],
)
def test_what_is_no_client_is_refused(given: Any, says: str) -> None:
    with pytest.raises(ub.UnbraidError, match=says):
        as_client(given)
