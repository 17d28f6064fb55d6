"""What a fit makes of a worker that is killed: fits on a cluster of two, one worker of which dies at some moment.

    python benchmarks/lost_workers.py [kills] [seed]

Once with samples in memory, whose starts are spread over the workers, and once with samples that the workers hold. A
third of the kills come within 20 ms, before or after, of the moment in which samples are sent to workers, the others at
any moment of the fit. Prints, for both: how many of the fits are those of an undisturbed cluster to the last bit, how
many were refused in a sentence, and how many did anything else, such as going on for ten minutes; how many of the first
have a note of the loss; and seconds of an undisturbed fit and of the longest.
"""

import os
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

import unbraid as ub

NEAR = 0.02
"""Seconds between a kill and the moment it is aimed at, at most."""
ENDLESS = 600.0
"""Seconds after which a fit counts as one that does not end."""
RANK = 3
SOURCE = ub.datasets.random_system(3, 3, RANK, 1500, "sine", rng=0)[0]


def spread(client: Any) -> ub.Fit:
    """A fit whose starts are spread over workers."""
    return ub.decouple(SOURCE, RANK, starts=12, rng=0, client=client)


def held(client: Any) -> ub.Fit:
    """A fit to samples that workers hold."""
    import dask.array as da

    F, J = SOURCE.F, SOURCE.J
    assert F is not None
    assert J is not None
    X = da.from_array(SOURCE.X, chunks=(250, 3))
    quick = ub.methods.dejonghe2025(max_sweeps=15, tolerance=0.0)
    return ub.decouple(ub.Problem(X, F, J), RANK, method=quick, starts=1, rng=0, client=client)


KINDS: dict[str, tuple[Callable[[Any], ub.Fit], str]] = {
    "starts spread": (spread, "scatter"),
    "samples held": (held, "compute"),
}
"""Fits, and by which call of a client samples are sent to workers."""


class Killer:
    """Kills a worker once, and remembers when."""

    def __init__(self, pid: int) -> None:
        self.pid, self.when, self.timer = pid, np.inf, threading.Timer(0.0, self.kill)

    def after(self, seconds: float) -> None:
        """Kill it in so many seconds."""
        self.timer = threading.Timer(seconds, self.kill)
        self.timer.start()

    def kill(self) -> None:
        """Kill it now."""
        self.when = time.perf_counter()
        os.kill(self.pid, signal.SIGKILL)


class Moments:
    """The moments of a fit at which samples are sent; a kill may be aimed at one of them."""

    def __init__(self, send: Callable[..., Any], aim: int | None, killer: Killer, away: float) -> None:
        self.send, self.aim, self.killer, self.away, self.count = send, aim, killer, away, 0

    def __call__(self, *given: Any, **settings: Any) -> Any:
        """Send them, and kill so many seconds before or after this begins."""
        self.count += 1
        if self.count - 1 == self.aim:
            self.killer.after(max(0.0, self.away))
            time.sleep(max(0.0, -self.away))
        return self.send(*given, **settings)


@contextmanager
def two_workers() -> Iterator[Any]:
    """A client of a cluster of two worker processes, which are started again when they die."""
    import dask
    import distributed

    settings = {"distributed.deploy.lost-worker-timeout": "1h", "distributed.logging.distributed": "critical"}
    with dask.config.set(settings):
        local = distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=":0", silence_logs=50)
        with local as cluster, distributed.Client(cluster, set_as_default=False) as client:
            yield client


def outcome(fit: Callable[[], ub.Fit], expected: ub.Fit | None) -> tuple[str, float, ub.Fit | None]:
    """What became of a fit, how many seconds it took, and the fit."""
    ended: list[ub.Fit | BaseException] = []

    def work() -> None:
        try:
            ended.append(fit())
        except BaseException as error:
            ended.append(error)

    began = time.perf_counter()
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(ENDLESS)
    took = time.perf_counter() - began
    found = ended[0] if ended else None
    if isinstance(found, ub.UnbraidError):
        print(f"  refused after {took:.1f} s: {found}")
        return "refused", took, None
    if not isinstance(found, ub.Fit):
        print(f"  after {took:.1f} s: {found!r}")
        return "else", took, None
    return "same" if expected is None or same(found, expected) else "else", took, found


def same(one: ub.Fit, other: ub.Fit) -> bool:
    """Whether two fits are the same to the last bit."""
    X = SOURCE.X[:50]
    pairs = [(one.model.W0, other.model.W0), (one.model.W1, other.model.W1), (one.model(X), other.model(X))]
    return all(np.array_equal(*pair) for pair in pairs) and np.array_equal(one.trace.objective, other.trace.objective)


def workers_of(client: Any) -> list[int]:
    """The processes of both workers, as soon as there are two that answer."""
    while len(found := client.run(os.getpid, on_error="ignore")) < 2:
        client.wait_for_workers(2, timeout=300)
        time.sleep(0.1)
    return list(found.values())


def campaign(kind: str, kills: int, rng: np.random.Generator) -> None:
    """So many fits of a kind, a worker killed in each."""
    fit, call = KINDS[kind]
    began = time.perf_counter()
    with two_workers() as client:
        fit(client)  # workers import what they need
        moments = Moments(getattr(client, call), None, Killer(0), 0.0)
        with patch.object(client, call, moments):
            _, usual, expected = outcome(lambda: fit(client), None)
    counts: Counter[str] = Counter()
    longest, noted = 0.0, 0
    while counts.total() < kills:
        with two_workers() as client:  # another cluster after everything but the same fit
            what = "same"
            fit(client)
            while counts.total() < kills and what == "same":
                killer = Killer(int(rng.choice(workers_of(client))))
                aim = int(rng.integers(moments.count)) if counts.total() % 3 == 0 else None
                if aim is None:
                    killer.after(float(rng.uniform(0.0, usual)))
                aimed = Moments(getattr(client, call), aim, killer, float(rng.uniform(-NEAR, NEAR)))
                with patch.object(client, call, aimed):
                    what, took, found = outcome(lambda client=client: fit(client), expected)  # type: ignore[misc]
                ended = time.perf_counter()
                if killer.timer.is_alive():
                    killer.timer.join()
                if killer.when > ended:  # this fit was faster than the undisturbed one, and not disturbed
                    continue
                longest = max(longest, took)
                counts[what] += 1
                noted += found is not None and any("lost on the way" in note for note in found.notes)
    print(
        f"{kind:14s} {kills:5d} {counts['same']:6d} {counts['refused']:8d} {counts['else']:6d} {noted:6d} "
        f"{usual:12.1f} {longest:8.1f}   ({time.perf_counter() - began:.0f} s in all)"
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    given = [int(word) for word in sys.argv[1:]]
    print(
        f"{'':14s} {'kills':>5s} {'same':>6s} {'refused':>8s} {'else':>6s} {'noted':>6s} {'undisturbed':>12s} longest"
    )
    for kind in KINDS:
        campaign(kind, given[0] if given else 30, np.random.default_rng(given[1] if len(given) > 1 else 0))
