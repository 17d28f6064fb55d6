"""What callbacks are told while something takes its time."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan, nan
from typing import NamedTuple


class Progress(NamedTuple):
    """What a progress callback is told after each sweep, or each chunk of samples.

    `phase` is "read" while a file is read, "values" and "Jacobians" while `Problem.from_function` evaluates, or "calls"
    where it knows how many calls it makes, of which it tells before the first one; "select" while `select` makes fits,
    "linear" for steps on a linear model of a dynamic system, "search" for sweeps, "polish" for Gauss–Newton steps, "all
    samples" for those on all after a search on some, and "smooth" for those that choose the strength of a
    `SmoothingSpline`; "evaluate" while a model is evaluated, "draw" while figures of a report are drawn. `done` counts
    samples, figures, fits, or sweeps or steps over all starts of the phase; `total` is the most there can be. `running`
    starts are at work and `best` is the lowest objective so far: 0 and nan where there is none. `rank` is the one that
    a selection is trying, the highest of several at once, and 0 elsewhere. `left` are about the seconds that the phase
    will still take, nan where nobody knows.
    `share` is how much of a whole fit, or of a whole selection, is done, from 0 to 1: it never falls, while `done`
    begins anew with every phase and rank. How long phases take is not known before, so it is no measure of time. nan
    where there is no fit.
    """

    phase: str
    done: int
    total: int
    running: int = 0
    best: float = nan
    rank: int = 0
    left: float = nan
    share: float = nan


Callback = Callable[[Progress], object]

PHASES_OF_A_FIT = {
    "linear": (0.0, 0.1),
    "search": (0.0, 0.4),
    "polish": (0.4, 0.7),
    "all samples": (0.7, 0.8),
    "smooth": (0.8, 1.0),
}
"""From where to where each phase takes the share of a fit."""


def share_done(progress: Progress) -> float:
    """The share that is known, or the one that the phase and what is done of it come to."""
    if not isnan(progress.share):
        return progress.share
    low, high = PHASES_OF_A_FIT.get(progress.phase, (0.0, 1.0))
    return low + (high - low) * min(1.0, progress.done / max(progress.total, 1))


class Forward:
    """A callback that tells another one of a share that never falls: phases may come back, and pieces overlap."""

    def __init__(self, callback: Callback) -> None:
        self.callback, self.share = callback, 0.0
        self.last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        """Tell of the progress with the largest share until now."""
        self.share = max(self.share, min(1.0, share_done(progress)))
        self.last = progress._replace(share=self.share)
        self.callback(self.last)

    def finish(self) -> None:
        """Tell once more of the last progress, as the end of all, where that is not clear yet."""
        if self.last is not None and self.share < 1.0:
            self(self.last._replace(running=0, share=1.0))


def tell_as_part(callback: Callback, low: float, high: float, rank: int = 0) -> Callback:
    """A callback for a fit that is part of something larger, from one share of that to another; `rank`: is tried."""
    return lambda progress: callback(
        progress._replace(share=low + (high - low) * share_done(progress), rank=rank or progress.rank)
    )
