"""A cluster of two worker processes, and a fit made without it."""

from __future__ import annotations

from collections.abc import Iterator

import dask
import distributed
import pytest

import unbraid as ub
from clusters import ANY_PORT


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
        made.wait_for_workers(2, timeout=300)
        yield made


@pytest.fixture(scope="module")
def problem() -> ub.Problem:
    made, _ = ub.datasets.random_system(n=2, m=3, r=2, S=80, rng=0)
    return made


@pytest.fixture(scope="module")
def fit(problem: ub.Problem) -> ub.Fit:
    return ub.decouple(problem, 2, rng=0, starts=5)
