"""What commands print: tables on stdout, a progress bar on a terminal's stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from unbraid.printable import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from unbraid.progress import Callback, Progress
    from unbraid.tasks import Done

PIPED_WIDTH = 200
"""Columns for output that no terminal shows: nothing should be cut there."""
MOST_ROWS = 20


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a title and a table; the first column is text, the others are aligned to the right."""
    table = Table(show_edge=False, pad_edge=False, show_header=any(columns))
    for index, column in enumerate(columns):
        table.add_column(Text(column), justify="right" if index else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    say(title)
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False)
    console.print(table)


def error_rows(
    jacobian_error: float | None, output_errors: Sequence[float] | None, names: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """The rows of a table of errors: each output (the first ones of many), by name if it has one, then Error(J)."""
    errors = [] if output_errors is None else [float(error) for error in output_errors]
    called = [shown(name) for name in names] or [f"output {i + 1}" for i in range(len(errors))]
    rows = [(name, f"{error:.3g} %") for name, error in list(zip(called, errors, strict=True))[:MOST_ROWS]]
    if len(errors) > MOST_ROWS:
        worst = max(range(len(errors)), key=errors.__getitem__)
        left = len(errors) - MOST_ROWS
        rows.append((f"... {left} more; the worst of all is {called[worst]}", f"{errors[worst]:.3g} %"))
    if jacobian_error is not None:
        rows.append(("Error(J)", f"{jacobian_error:.2e}"))
    return rows


@contextmanager
def progress_bar(title: str) -> Iterator[Callback | None]:
    """A callback for `decouple` that draws a bar on stderr, or None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    told = TextColumn("{task.fields[told]}")
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), told)
    with Bar(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(title, total=None, told="")

        def show(progress: Progress) -> None:
            told = f"{progress.phase}, {progress.running} running, best {progress.best:.3g} (Ctrl-C keeps the best)"
            bar.update(task, completed=progress.done, total=progress.total, told=told)

        yield show


@contextmanager
def task_bar(title: str) -> Iterator[Callable[[Done], object] | None]:
    """A callback for `run_tasks` that draws a bar with the time left on stderr, or None where that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, TextColumn("{task.fields[left]}"), console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(title, total=None, left="")

        def show(progress: Done) -> None:
            left = "" if progress.seconds_left is None else f"about {clock(progress.seconds_left)} left"
            bar.update(task, completed=progress.done, total=progress.total, left=left)

        yield show


def clock(seconds: float) -> str:
    """'0:42', '12:05', '1:02:05'."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def say(text: str) -> None:
    """Print a line on stdout."""
    click.echo(text)
