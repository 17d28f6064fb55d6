"""Dask clusters: what `client=` may be, whether the workers there can do this library's work, and the work itself.

What is shared by all pieces is sent to the workers once, and anew where it was lost with them. A piece whose worker
dies is done by another: the scheduler tries some times, and then it is submitted again from here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from unbraid.errors import MissingDependencyError, SettingError, TaskError, UnbraidError, install_hint
from unbraid.runtime import cluster_waits
from unbraid.runtime.cluster_waits import Roll, Watch, address, ask, check_connected, loss_errors, within
from unbraid.runtime.interrupts import Result
from unbraid.runtime.workers import Crew, Shared
from unbraid.version import __version__

if TYPE_CHECKING:
    from types import TracebackType

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
            f"Work on a cluster needs dask and distributed: {install_hint('distributed')}."
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
    import asyncio  # here, for it takes a tenth of the time in which unbraid is imported

    try:  # in another thread: this one may have a loop of its own, as in notebooks
        kind = within(2 * CONNECTING, lambda: asyncio.run(kind_at(where)))
    except Exception as error:  # whatever else listens there may say anything, or nothing for ever
        raise SettingError(
            f"There is no Dask scheduler at {where!r}: give the address that `dask scheduler` prints when it starts, "
            'such as "tcp://127.0.0.1:8786".'
        ) from error
    if kind != "Scheduler":
        raise SettingError(f"At {where!r} answers a {kind}: give the address of the scheduler.")


async def kind_at(where: str) -> str:
    """What answers at an address."""
    import asyncio

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
            close(client)


def close(client: Client) -> None:
    """Close a client; one that cannot be closed in time, as its scheduler does not answer, is left to itself."""
    with suppress(OSError):
        client.close(timeout=CONNECTING)


def check_workers(roll: Roll) -> None:
    """Refuse a cluster without workers, and workers that have not this very version."""
    client = roll.client
    try:
        if not roll.threads():  # some clusters start workers only when there is work
            client.submit(version_here, pure=False).result(timeout=WAKING)
    except TimeoutError:
        raise SettingError(
            f"The cluster at {address(client)} has no workers: start some, for instance with "
            f"`dask worker {address(client)} --nthreads 1`."
        ) from None
    except UnbraidError:
        raise
    except Exception:  # told below, with the worker's name, or it is gone already and others may come
        pass
    roll.threads()
    for worker, found in ask(client, partial(client.run, version_here, on_error="return")).items():
        if isinstance(found, Exception) and not isinstance(found, OSError):  # which ends those that are gone
            raise SettingError(
                f"The worker {worker} cannot import unbraid {__version__}: install it there as well ({found})."
            )
        if isinstance(found, str) and found != __version__:
            raise SettingError(
                f"The worker {worker} has unbraid {found}, and this is {__version__}: results could differ. Install "
                "the same version there."
            )


def version_here() -> str:
    """The version of this library in the process where this is called."""
    return __version__


SENDING, SLOWEST = 5.0, 5e6
"""Seconds in which a value has to reach the workers, and bytes a second beyond that."""


def sizeof(value: Any) -> int:
    """About how many bytes a value has that is sent to workers."""
    from dask.sizeof import sizeof as bytes_of

    parts = vars(value).values() if hasattr(value, "__dict__") else [value]
    return int(sum(bytes_of(part) for part in parts))


class ClusterWorkers(Crew):
    """The workers of a cluster, by its client or the address of its scheduler.

    On Ctrl-C what waits is cancelled; pieces that have begun go on to their ends, and what they find is dropped.
    """

    def __init__(self, client: Any) -> None:
        self.client: Client = as_client(client)
        self.own = self.client is not client
        self.roll = Roll(self.client)
        try:
            check_workers(self.roll)
        except BaseException:
            self.close()
            raise
        self.executor = self.client.get_executor(pure=False)

    @property
    def losses(self) -> tuple[type[BaseException], ...]:  # type: ignore[override]
        """What a piece ends with that was lost with its worker."""
        return loss_errors()

    @property
    def count(self) -> int:
        """How many threads the workers have now: workers come and go."""
        return max(1, int(sum(self.roll.threads().values())))

    def lost(self) -> frozenset[str]:
        """The addresses of workers that were lost since this was made."""
        return self.roll.lost()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection where it was made here."""
        if self.own:
            close(self.client)

    def submit(
        self, function: Callable[..., Result], piece: tuple[Any, ...], shared: Shared[Any] | None
    ) -> Future[Result]:
        """On whichever worker is free; what is shared is sent to them first, and again where it was lost."""
        if shared is not None and (shared.sent is None or shared.sent.status != "finished"):
            shared.sent = self.scatter(shared.value)
        arguments = piece if shared is None else (shared.sent, *piece)
        future: Future[Result] = self.executor.submit(function, *arguments)
        return future

    def scatter(self, value: Any) -> Any:
        """Send a value to the workers; a worker that dies meanwhile spoils it, and it is tried again, with others.

        It goes to one worker, which passes it on. Dask's own way to send something to all (`broadcast=True`) never ends
        where one of them dies in that moment, nor does any that somebody tries after it.
        """
        tried = 0
        while True:
            limit = 2**tried * (SENDING + sizeof(value) / SLOWEST)
            Watch(self.roll).until_manned()
            try:
                [future] = within(limit, partial(self.client.scatter, [value], hash=False, timeout=limit))
                self.pass_on(future, limit)
                return future
            except Exception as error:
                tried += 1
                self.check_hope(tried, error)

    def pass_on(self, future: Any, limit: float) -> None:
        """Have a value copied to all workers that have nothing else to do; not longer than the limit."""
        from distributed import wait as wait_for_all

        idle = [worker for worker, tasks in ask(self.client, self.client.processing).items() if not tasks]
        there = {"allow_other_workers": True, "pure": False}
        copies = [self.client.submit(id, future, workers=[worker], **there) for worker in idle]
        with suppress(TimeoutError), self.client.as_current():
            wait_for_all(copies, timeout=limit)

    def ended(self, pending: Collection[Future[Result]]) -> Collection[Future[Result]]:
        """Wait for the first; those that nobody works on any more have ended as well, and are done again."""
        watch = Watch(self.roll)
        while not (done := wait(pending, timeout=cluster_waits.LOOKING, return_when=FIRST_COMPLETED).done):
            if watch.stalled():
                for future in (forgotten := list(pending)):
                    future.cancel()
                return forgotten
        return done

    def check_hope(self, losses: int, error: BaseException) -> None:
        """Give up where something is lost again and again, or the scheduler is gone."""
        check_connected(self.client, error)
        if losses > cluster_waits.AGAIN:
            check_workers(self.roll)  # one that came later may not have this library
            raise TaskError(
                f"Workers of the cluster at {address(self.client)} were ended again and again, perhaps for want of "
                "memory: give each more of it (`dask worker --memory-limit`) or fewer threads, and see their logs."
            ) from error
