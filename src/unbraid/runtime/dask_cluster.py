"""Dask clusters: what `client=` may be, whether the workers there can do this library's work, and the work itself.

What is shared by all pieces is sent to the workers once, and anew where it was lost with them. A piece whose worker
dies is done by another: the scheduler tries some times, and then it is submitted again from here.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from unbraid.errors import MissingDependencyError, SettingError, TaskError
from unbraid.runtime.interrupts import Result
from unbraid.runtime.workers import Shared, Workers
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
    """The address of the scheduler of a client."""
    return str(client.scheduler.address) if client.scheduler is not None else "an unknown address"


def version_here() -> str:
    """The version of this library in the process where this is called."""
    return __version__


AGAIN = 3
"""How often a piece is submitted again after it was lost."""
LOOKING = 5.0
"""Seconds between looks at whether there is still somebody who works."""
SENDING, SLOWEST = 5.0, 5e6
"""Seconds in which a value has to reach the workers, and bytes a second beyond that."""
DESERTED = 120.0
"""Seconds without any worker after which nobody is waited for."""


def within(seconds: float, call: Callable[[], Result]) -> Result:
    """What the call gives; a TimeoutError where it has not after so many seconds, and then it is left to itself."""
    ended: Future[Result] = Future()

    def work() -> None:
        try:
            ended.set_result(call())
        except BaseException as error:
            ended.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return ended.result(timeout=seconds)


def sizeof(value: Any) -> int:
    """About how many bytes a value has that is sent to workers."""
    from dask.sizeof import sizeof as bytes_of

    parts = vars(value).values() if hasattr(value, "__dict__") else [value]
    return int(sum(bytes_of(part) for part in parts))


class ClusterWorkers(Workers):
    """The workers of a cluster, by its client or the address of its scheduler.

    On Ctrl-C what waits is cancelled; pieces that have begun go on to their ends, and what they find is dropped.
    """

    def __init__(self, client: Any) -> None:
        self.client: Client = as_client(client)
        self.own = self.client is not client
        try:
            check_workers(self.client)
        except BaseException:
            self.close()
            raise
        self.executor = self.client.get_executor(pure=False)

    @property
    def losses(self) -> tuple[type[BaseException], ...]:  # type: ignore[override]
        """What a piece ends with whose worker was killed again and again, or whose data were lost with a worker."""
        from distributed import KilledWorker

        return KilledWorker, CancelledError

    @property
    def count(self) -> int:
        """How many threads the workers have now: workers come and go."""
        return max(1, int(sum(self.client.nthreads().values())))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection where it was made here."""
        if self.own:
            self.client.close()

    def submit(
        self, function: Callable[..., Result], piece: tuple[Any, ...], shared: Shared[Any] | None
    ) -> Future[Result]:
        """On whichever worker is free; what is shared is sent to all of them first, and again where it was lost."""
        if shared is not None and (shared.sent is None or shared.sent.status != "finished"):
            shared.sent = self.scatter(shared.value)
        arguments = piece if shared is None else (shared.sent, *piece)
        future: Future[Result] = self.executor.submit(function, *arguments)
        return future

    def scatter(self, value: Any) -> Any:
        """Send a value to all workers; a worker that dies meanwhile spoils it, and it is tried again.

        Killed in the very moment in which it is sent to, a worker would be waited for for ever; so it is for some
        seconds, and for twice as many after every loss.
        """
        losses = 0
        while True:
            try:
                [future] = within(
                    2**losses * (SENDING + sizeof(value) / SLOWEST),
                    lambda: self.client.scatter([value], broadcast=True, hash=False, timeout=DESERTED),
                )
                return future
            except (OSError, KeyError, ValueError) as error:
                losses += 1
                self.check_hope(losses, error)
                if isinstance(error, TimeoutError) and not self.client.nthreads():
                    raise TaskError(self.deserted) from error

    def ended(self, pending: Collection[Future[Result]]) -> Collection[Future[Result]]:
        """Wait for the first; not for ever where there is no scheduler any more, or nobody works."""
        seen = time.monotonic()
        while not (done := wait(pending, timeout=LOOKING, return_when=FIRST_COMPLETED).done):
            if self.client.status != "running":
                raise TaskError(self.gone)
            if self.client.nthreads():
                seen = time.monotonic()
            elif time.monotonic() - seen > DESERTED:
                raise TaskError(self.deserted)
        return done

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
        """What is said where the cluster has no workers any more."""
        where = address(self.client)
        return f"The cluster at {where} has had no workers for {DESERTED:.0f} s: start some, and then this again."

    @property
    def gone(self) -> str:
        """What is said where there is no scheduler any more."""
        return "The connection to the scheduler was lost: see whether it still runs, and start this again."
