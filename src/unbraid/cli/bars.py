"""Progress on a terminal's stderr, with the time left, for whatever takes longer than a moment."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from unbraid.cli.output import console_on, is_terminal

if TYPE_CHECKING:
    from rich.console import Console

    from unbraid.runtime.progress import Callback, Progress
    from unbraid.studies.tasks import Done

DRAWN_AFTER = 2.0
"""Seconds of work before a bar is drawn: what is done by then needs none."""
ROOMY = 100
"""Columns of a terminal that has room for a word about Ctrl-C."""
PHASE_TITLES = {
    "read": "Reading",
    "calls": "Calling",
    "select": "Selecting",
    "linear": "Fitting a linear model",
    "search": "Searching",
    "polish": "Polishing",
    "all samples": "Polishing on all samples",
    "smooth": "Smoothing",
    "evaluate": "Evaluating",
    "draw": "Drawing the report",
}
BAR_STEPS = 1000
"""Steps of a bar that shows a share."""
BOUNDED = ("search", "polish", "smooth")
"""Phases whose total is the most there can be: most starts need less. Ctrl-C there keeps the best model so far."""
SURE = {**dict.fromkeys(BOUNDED, "at most"), "select": "at least"}
"""How sure a time is; in a selection more branches may turn out to be worth a try. Elsewhere it is just about right."""


class Bar:
    """A line on a terminal that appears once the work has taken `DRAWN_AFTER`, and goes when it is done."""

    def __init__(self, title: str, console: Console) -> None:
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Drawn

        self.wide = console.width >= ROOMY
        self._title = title
        self._drawn = Drawn(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[told]}", markup=False),
            console=console,
            transient=True,
            redirect_stdout=False,
            speed_estimate_period=math.inf,  # else no time is told where steps are far apart
        )
        self._task = self._drawn.add_task(title, total=None, told="")
        self._lock, self._over = threading.Lock(), False
        self._timer = threading.Timer(DRAWN_AFTER, self._begin)
        self._timer.daemon = True
        self._timer.start()

    def _begin(self) -> None:
        """Draw the line from now on, unless the work is over."""
        with self._lock:
            if not self._over:
                self._drawn.start()

    def update(self, done: int, total: int, title: str | None = None) -> float | None:
        """Draw how far it is, once there is a line; returns the seconds left as rich reckons them, None: too early.

        Rich goes by the pace of the last thousand steps, and begins anew where another title begins another phase.
        """
        if title not in (None, self._title):
            self._title = title
            self._drawn.update(self._task, total=math.inf)  # forgets the pace
        self._drawn.update(self._task, description=title, completed=done, total=total)
        return self._drawn.tasks[0].time_remaining

    def write(self, text: str) -> None:
        """Draw a text beside the bar, in place of the one before."""
        self._drawn.update(self._task, told=text)

    def close(self) -> None:
        """Take the line away, if it was drawn, and draw it no more."""
        self._timer.cancel()
        with self._lock:
            self._over = True
        if self._drawn.live.is_started:
            self._drawn.stop()


@contextmanager
def bar(title: str) -> Iterator[Bar | None]:
    """A bar on stderr, or None where that is no terminal that can redraw a line."""
    console = console_on(sys.stderr) if is_terminal(sys.stderr) else None
    if console is None or console.is_dumb_terminal:
        yield None
        return
    line = Bar(title, console)
    try:
        yield line
    finally:
        line.close()


@contextmanager
def progress_bar(title: str) -> Iterator[Callback | None]:
    """A callback that draws a `Progress` as a bar, or None where nobody looks."""
    with bar(title) as line:
        if line is None:
            yield None
            return

        def show(progress: Progress) -> None:
            left = line.update(*drawn_part(progress), PHASE_TITLES.get(progress.phase))
            line.write(in_words(progress, left, line.wide))

        yield show


@contextmanager
def task_bar(title: str) -> Iterator[Callable[[Done], object] | None]:
    """A callback for `run_tasks` that draws a bar, or None where nobody looks."""
    with bar(title) as line:
        if line is None:
            yield None
            return

        def show(progress: Done) -> None:
            left = "" if progress.seconds_left is None else f", about {clock(progress.seconds_left)} left"
            line.update(progress.done, progress.total)
            line.write(f"{progress.done} of {progress.total}{left}")

        yield show


def drawn_part(progress: Progress) -> tuple[int, int]:
    """How much of the bar is full, of how much: of a fit the share that never falls, else what is done."""
    if math.isnan(progress.share):
        return progress.done, progress.total
    return math.floor(BAR_STEPS * progress.share), BAR_STEPS


def in_words(progress: Progress, left: float | None, wide: bool = True) -> str:
    """What stands beside the bar: the time left, and the best until now.

    Of a fit that tells its share, the time is a guess; where its rank is open, nobody knows how much is left.
    """
    bounded = progress.phase in BOUNDED
    guessed = bounded and not math.isnan(progress.share)
    sure = "about" if guessed else SURE.get(progress.phase, "about")
    told = [] if left is None or (guessed and progress.rank) else [f"{sure} {clock(left)} left"]
    if progress.rank:
        told.insert(0, f"rank {progress.rank}")
    if math.isfinite(progress.best):
        error = "held-out error" if progress.phase == "select" else "best"
        told.append(f"{error} {progress.best:.3g}")
    if wide and bounded:
        told.append("Ctrl-C keeps the best")
    return ", ".join(told)


def clock(seconds: float) -> str:
    """Seconds as a clock shows them: '0:42', '12:05', '1:02:05'."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
