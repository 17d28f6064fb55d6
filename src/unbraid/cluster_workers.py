"""The workers of a Dask cluster.

What is shared by all pieces is sent to the workers once, and anew where it was lost with them. A piece whose worker
dies is done by another: the scheduler tries some times, and then it is submitted again from here.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from unbraid.clients import address, as_client, check_workers
from unbraid.errors import TaskError
from unbraid.journal import NOTHING_KEPT, Journal
from unbraid.workers import Result, Workers

if TYPE_CHECKING:
    from types import TracebackType

    from distributed import Client, Future

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
