"""Waits on a Dask cluster whose workers may die at any moment, and who of them was lost meanwhile.

Every wait has an end. A question that is not answered in time is asked again (`ask`). What may take as long as it takes
is looked after (`Watch`): it is tried again where nobody works on it any more, and given up where nobody is there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from unbraid.errors import TaskError
from unbraid.runtime.interrupts import Result

if TYPE_CHECKING:
    from distributed import Client

ANSWERING = 10.0
"""Seconds in which a question has to be answered; each time it was not, it has twice as many."""
AGAIN = 3
"""How often something is tried again after it was lost."""
LOOKING = 5.0
"""Seconds between looks at whether there is still somebody who works."""
STALLED = 20.0
"""Seconds in which no worker had anything to do, after which what is awaited has been forgotten."""
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


def ask(client: Client, question: Callable[[], Result]) -> Result:
    """The answer of a cluster to a question; a sentence where it gives none, however often it is asked."""
    for tried in range(AGAIN + 1):
        try:
            return within(2**tried * ANSWERING, question)
        except Exception as error:
            check_connected(client, error)  # it may have been closed meanwhile, and say anything
            if not isinstance(error, OSError):  # such as a TimeoutError
                raise
            last = error
    raise TaskError(
        f"The cluster at {address(client)} did not answer, though it was asked {AGAIN + 1} times: see whether its "
        "scheduler and its workers still run, and start this again."
    ) from last


def check_connected(client: Client, error: BaseException | None = None) -> None:
    """Refuse a client that is not connected to its scheduler any more."""
    if client.status != "running":
        raise TaskError(
            f"The connection to the scheduler was lost, its client is {client.status}: see whether it still runs, and "
            "start this again."
        ) from error


def address(client: Client) -> str:
    """The address of the scheduler of a client."""
    return str(client.scheduler.address) if client.scheduler is not None else "an unknown address"


def loss_errors() -> tuple[type[BaseException], ...]:
    """What work ends with whose worker was killed again and again, or whose data were lost with a worker."""
    from distributed import KilledWorker

    return KilledWorker, CancelledError


class Roll:
    """The workers of a cluster as they were seen now and then, so that it can be told who was lost."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.seen: set[str] = set()

    def threads(self) -> dict[str, int]:
        """How many threads each of the workers has that are there now."""
        now: dict[str, int] = ask(self.client, self.client.nthreads)
        self.seen.update(now)
        return now

    def lost(self) -> frozenset[str]:
        """The addresses of those that were there and are not, but for those that the scheduler has let go.

        A worker that is started again has another address. Nobody where the scheduler does not tell.
        """
        with suppress(TaskError):
            gone = self.seen - self.threads().keys()
            return frozenset(worker for worker in gone if not self.let_go(worker))
        return frozenset()

    def let_go(self, worker: str) -> bool:
        """Whether the scheduler knew that a worker would leave, as where a cluster is made smaller."""
        events = ask(self.client, partial(self.client.get_events, worker))
        return any(isinstance(event, dict) and event.get("expected") for _, event in events)


class Watch:
    """Looks after a wait for work that may take as long as it takes."""

    def __init__(self, roll: Roll) -> None:
        self.roll = roll
        self.manned = self.at_work = time.monotonic()

    def stalled(self) -> bool:
        """Whether what is awaited is to be tried again, as there are workers and none does anything.

        A sentence where there is no scheduler any more, or where there have been no workers for long.
        """
        client, now = self.roll.client, time.monotonic()
        check_connected(client)
        if not self.roll.threads():
            if now - self.manned > DESERTED:
                raise TaskError(
                    f"The cluster at {address(client)} has had no workers for {DESERTED:g} s: start some, and then "
                    "this again."
                )
            self.at_work = now
            return False
        self.manned = now
        if any(ask(client, client.processing).values()):
            self.at_work = now
        return now - self.at_work > STALLED

    def until_manned(self) -> None:
        """Wait for a worker where there is none."""
        while not self.roll.threads():
            self.stalled()
            time.sleep(0.1)


def told_of_losses(count: int) -> tuple[str, ...]:
    """The sentence on workers that were lost; none where none was.

    Examples
    --------
    >>> told_of_losses(0), told_of_losses(1)
    ((), ('1 worker of the cluster was lost on the way; its work was done again by others.',))
    """
    who = "1 worker of the cluster was lost on the way; its" if count == 1 else ""
    who = who or f"{count} workers of the cluster were lost on the way; their"
    return (f"{who} work was done again by others.",) if count else ()
