"""What is no cluster, or one that cannot work, is refused with a sentence."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import distributed
import pytest
from click.testing import CliRunner

import unbraid as ub
from clusters import ANY_PORT
from grid_functions import missing
from unbraid.cli import app
from unbraid.errors import MissingDependencyError, SettingError
from unbraid.runtime import dask_cluster as clients
from unbraid.runtime.dask_cluster import ClusterWorkers


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


@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n" * 20])
def test_what_listens_and_is_no_scheduler_is_refused(
    problem: ub.Problem, monkeypatch: pytest.MonkeyPatch, says: bytes
) -> None:
    """Such as a scheduler that has been stopped: connections are accepted, and nothing is ever said."""
    monkeypatch.setattr(clients, "CONNECTING", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        accepted: list[socket.socket] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    accepted.append(listening.accept()[0])
                    accepted[-1].sendall(says)

        threading.Thread(target=accept, daemon=True).start()
        where = f"tcp://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(SettingError, match=f"no Dask scheduler at '{where}'"):
            ub.decouple(problem, 2, client=where)
        for one in accepted:
            one.close()


WITHOUT_UNBRAID = """
import sys
sys.modules["unbraid"] = None
from distributed.cli.dask_worker import main
main()
"""


def test_a_worker_that_cannot_import_unbraid_is_named(problem: ub.Problem) -> None:
    """It cannot even read what it is asked, and Dask passes that on as a bare Exception."""
    with (
        distributed.LocalCluster(n_workers=0, processes=False, protocol="tcp://", dashboard_address=ANY_PORT) as empty,
        empty.get_client() as client,
    ):
        options = ["--no-nanny", "--nthreads", "1", "--dashboard-address", ANY_PORT]
        command = [sys.executable, "-c", WITHOUT_UNBRAID, empty.scheduler_address, *options]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as worker:
            try:
                client.wait_for_workers(1, timeout=300)
                said = rf"worker {next(iter(client.nthreads()))} cannot import unbraid .*: install it there as well"
                with pytest.raises(SettingError, match=said):
                    ub.decouple(problem, 2, client=client)
            finally:
                worker.terminate()


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
    with pytest.raises(MissingDependencyError, match=r'pip install -e "\.\[distributed\]"'):
        ub.select(problem, client="tcp://127.0.0.1:8786")


def test_jobs_and_a_cluster_exclude_each_other(problem: ub.Problem, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="leave out jobs=2"):
        ub.select(problem, jobs=2, client="tcp://127.0.0.1:8786")
    line = ["compare", "--jobs", "2", "--scheduler", "tcp://127.0.0.1:8786", "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(app, line)
    assert result.exit_code == 2
    assert result.stderr == "Error: --jobs counts processes here, and --scheduler is a cluster: give one of them.\n"
    assert not (tmp_path / "out").exists()
