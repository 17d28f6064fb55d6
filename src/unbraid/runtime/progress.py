"""What callbacks are told while something takes its time."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import NamedTuple


class Progress(NamedTuple):
    """What a progress callback is told after each sweep, or each chunk of samples.

    `phase` is "read" while a file is read, "values" and "Jacobians" while `Problem.from_function` evaluates, or "calls"
    where it knows how many calls it makes, of which it tells before the first one; "select" while `select` makes fits,
    "search" for sweeps, "polish" for Gauss–Newton steps, "all samples" for those on all after a search on some, and
    "smooth" for those that choose the strength of a `SmoothingSpline`; "evaluate" while a model is evaluated, "draw"
    while figures of a report are drawn. `done` counts samples, figures, fits, or sweeps or steps over all starts of the
    phase; `total` is the most there can be. `running` starts are at work and `best` is the lowest objective so far: 0
    and nan where there is none. `rank` is the one that a selection is trying, the highest of several at once, and 0
    elsewhere. `left` are about the seconds that the phase will still take, nan where nobody knows.
    """

    phase: str
    done: int
    total: int
    running: int = 0
    best: float = nan
    rank: int = 0
    left: float = nan


Callback = Callable[[Progress], object]
