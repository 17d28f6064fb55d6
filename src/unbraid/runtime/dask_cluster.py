"""Dask clusters: what `client=` may be, whether the workers there can do this library's work, and the work itself.

What is shared by all pieces is sent to the workers once, and anew where it was lost with them. A piece whose worker
dies is done by another: the scheduler tries some times, and then it is submitted again from here.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from unbraid.errors import MissingDependencyError, SettingError, TaskError
from unbraid.runtime.journal import NOTHING_KEPT, Journal
from unbraid.runtime.workers import Result, Workers
from unbraid.version import __version__

if TYPE_CHECKING:
    from types import TracebackType

    from distributed import Client, Future


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


AGAIN = 3
"""How often a piece is submitted again after it was lost."""
LOOKING = 5.0
"""Seconds between looks at whether there is still somebody who works."""
DESERTED = 120.0
"""Seconds without any worker after which nobody is waited for."""


class ClusterWorkers(Workers):
    """The workers of a cluster, by its client or the address of its scheduler.

    On Ctrl-C what waits is cancelled; pieces that have begun go on to their ends, and what they find is dropped.
    """

    def __init__(self, client: Any, journal: Journal = NOTHING_KEPT) -> None:
        super().__init__(journal)
        self.client: Client = as_client(client)
        self.own = self.client is not client
        self.sent: dict[int, tuple[Any, Future]] = {}
        try:
            check_workers(self.client)
        except BaseException:
            self.close()
            raise

    @property
    def count(self) -> int:
        """Their threads, by now: workers come and go."""
        return max(1, int(sum(self.client.nthreads().values())))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of what was sent, and of the connection where it was made here."""
        self.sent.clear()
        if self.own:
            self.client.close()

    def each(
        self,
        function: Callable[..., Result],
        arguments: Sequence[tuple[Any, ...]],
        enter: Callable[[int, Result], object],
        shared: tuple[Any, ...] = (),
    ) -> None:
        """On whichever worker is free."""
        from distributed import CancelledError, KilledWorker

        pending: dict[str, tuple[int, Future]] = {}
        ended: SimpleQueue[str] = SimpleQueue()
        losses: Counter[int] = Counter()

        def submit(k: int) -> None:
            future = self.client.submit(function, *self.there(shared), *arguments[k], pure=False)
            pending[future.key] = k, future
            future.add_done_callback(lambda future: ended.put(future.key))

        try:
            for k in range(len(arguments)):
                submit(k)
            while pending:
                k, future = pending.pop(self.next_of(ended))
                try:
                    result = future.result()
                except (KilledWorker, CancelledError) as error:
                    losses[k] += 1
                    self.check_hope(losses[k], error)
                    submit(k)
                else:
                    enter(k, result)
        finally:
            if pending:
                with suppress(Exception):  # there may be nobody left to tell
                    self.client.cancel([future for _, future in pending.values()], force=True)

    def there(self, shared: tuple[Any, ...]) -> list[Future]:
        """What is shared, on the workers: sent once, and again where it was lost; what was shared before is let go."""
        kept = self.sent
        self.sent = {}
        for value in shared:
            future = kept[id(value)][1] if id(value) in kept else None
            if future is None or future.status != "finished":
                future = self.scattered(value)
            self.sent[id(value)] = value, future
        return [self.sent[id(value)][1] for value in shared]

    def scattered(self, value: Any) -> Future:
        """Sent to all workers; a worker that dies meanwhile spoils it, and it is tried again."""
        losses = 0
        while True:
            try:
                [future] = self.client.scatter([value], broadcast=True, hash=False, timeout=DESERTED)
                return future
            except (OSError, KeyError, ValueError) as error:
                losses += 1
                self.check_hope(losses, error)
                if isinstance(error, TimeoutError) and not self.client.nthreads():
                    raise TaskError(self.deserted) from error

    def next_of(self, ended: SimpleQueue[str]) -> str:
        """The key of the next piece that has ended, one way or another."""
        seen = time.monotonic()
        while True:
            try:
                return ended.get(timeout=LOOKING)
            except Empty:
                if self.client.status != "running":
                    raise TaskError(self.gone) from None
                if self.client.nthreads():
                    seen = time.monotonic()
                elif time.monotonic() - seen > DESERTED:
                    raise TaskError(self.deserted) from None

    def check_hope(self, losses: int, error: BaseException) -> None:
        """Give up where something is lost again and again, or the scheduler is gone."""
        if self.client.status != "running":
            raise TaskError(self.gone) from error
        if losses > AGAIN:
            raise TaskError(
                f"Workers of the cluster at {address(self.client)} were ended again and again, perhaps for want of "
                "memory: give each more of it (`dask worker --memory-limit`) or fewer threads, and see their logs."
            ) from error

    @property
    def deserted(self) -> str:
        """What is said where nobody works."""
        where = address(self.client)
        return f"The cluster at {where} has had no workers for {DESERTED:.0f} s: start some, and then this again."

    @property
    def gone(self) -> str:
        """What is said where there is no scheduler any more."""
        return "The connection to the scheduler was lost: see whether it still runs, and start this again."
