"""Clusters: what `client=` may be, and whether the workers there can do this library's work."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from unbraid.errors import MissingDependencyError, SettingError
from unbraid.version import __version__

if TYPE_CHECKING:
    from distributed import Client

CONNECTING = 10.0
"""Seconds in which a scheduler has to answer."""
WAKING = 60.0
"""Seconds in which a cluster that has no workers has to start one."""
ACCEPTED = 'a distributed.Client or the address of a scheduler, such as "tcp://127.0.0.1:8786"'


def as_client(given: Any) -> Client:
    """A client from a client or the address of a scheduler; anything else is refused.

    A client that was made from an address is the caller's to close: `connected` does that.
    """
    try:
        import distributed
    except ImportError:
        raise MissingDependencyError(
            'Work on a cluster needs dask and distributed: pip install "unbraid[distributed]".'
        ) from None
    if isinstance(given, distributed.Client):
        if given.asynchronous:
            raise SettingError("client is asynchronous: give one that was made without asynchronous=True.")
        if given.status != "running":
            raise SettingError(f"client is not connected, its status is {given.status!r}: make a new one.")
        return given
    if not isinstance(given, str):
        hint = ": give its get_client()" if hasattr(given, "scheduler_address") else ""
        raise SettingError(f"client must be {ACCEPTED}, got a {type(given).__name__}{hint}.")
    check_scheduler(given)
    return distributed.Client(given, timeout=CONNECTING, set_as_default=False)


def check_scheduler(where: str) -> None:
    """Refuse an address where no scheduler answers.

    A client that cannot connect leaves a loop behind that is in the way of the next one, so none is made before.
    """
    if where.startswith("inproc://"):  # heard only where it was made
        return
    try:
        with ThreadPoolExecutor(1) as thread:  # this one may have a loop of its own, as in notebooks
            kind = thread.submit(asyncio.run, kind_at(where)).result()
    except (OSError, ValueError) as error:
        raise SettingError(
            f"There is no Dask scheduler at {where!r}: give the address that `dask scheduler` prints when it starts, "
            'such as "tcp://127.0.0.1:8786".'
        ) from error
    if kind != "Scheduler":
        raise SettingError(f"At {where!r} answers a {kind}: give the address of the scheduler.")


async def kind_at(where: str) -> str:
    """What answers at an address."""
    from distributed.core import connect
    from distributed.security import Security

    arguments = Security().get_connection_args("client")
    comm = await connect(where, timeout=CONNECTING, **arguments)
    try:
        await comm.write({"op": "identity", "reply": True})
        return str((await asyncio.wait_for(comm.read(), CONNECTING))["type"])
    finally:
        await comm.close()


@contextmanager
def connected(given: Any) -> Iterator[Client | None]:
    """A client as in `as_client`, closed at the end where it was made here; None stays None."""
    client = None if given is None else as_client(given)
    try:
        yield client
    finally:
        if client is not None and client is not given:
            client.close()


def check_workers(client: Client) -> None:
    """Refuse a cluster without workers, and workers that have not this very version."""
    try:
        if not client.nthreads():  # some clusters start workers only when there is work
            client.submit(version_here, pure=False).result(timeout=WAKING)
    except TimeoutError:
        raise SettingError(
            f"The cluster at {address(client)} has no workers: start some, for instance with "
            f"`dask worker {address(client)} --nthreads 1`."
        ) from None
    except ImportError:
        pass  # told below, with the worker's name
    for worker, found in client.run(version_here, on_error="return").items():
        if isinstance(found, ImportError):
            raise SettingError(
                f"The worker {worker} cannot import unbraid {__version__}: install it there as well ({found})."
            )
        if isinstance(found, str) and found != __version__:
            raise SettingError(
                f"The worker {worker} has unbraid {found}, and this is {__version__}: results could differ. Install "
                "the same version there."
            )


def address(client: Client) -> str:
    """Where its scheduler is."""
    return str(client.scheduler.address) if client.scheduler is not None else "an unknown address"


def version_here() -> str:
    """The version that a worker has."""
    return __version__
