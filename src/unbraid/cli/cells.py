"""What `reproduce` and `compare` share: many cells of work, kept in a folder, and the lines about them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from shlex import quote

import click

from unbraid.cli.bars import bar, task_bar
from unbraid.cli.errors import kept_on_interrupt
from unbraid.cli.output import say
from unbraid.runtime.files import make_folder
from unbraid.runtime.helpers import cores
from unbraid.studies.tasks import Rows, Task, run_tasks


def worker_options(function: click.decorators.FC) -> click.decorators.FC:
    """Add --jobs and --scheduler, which say who does the work."""
    jobs = "Processes; as many as there are cores by default."
    function = scheduler_option("Work on the Dask cluster at this address, not in processes here.")(function)
    return click.option("--jobs", type=click.IntRange(min=1), help=jobs)(function)


def scheduler_option(text: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """Make the option --scheduler, with this text as its help."""
    return click.option("--scheduler", metavar="ADDRESS", help=text)


def run_cells(
    title: str, tasks: Sequence[Task], output: Path, jobs: int | None, scheduler: str | None = None
) -> tuple[list[Rows], int]:
    """The rows of every cell, and how many cells were there from before. Ctrl-C says what is kept, and exits."""
    if jobs is not None and scheduler is not None:
        raise click.UsageError("--jobs counts processes here, and --scheduler is a cluster: give one of them.")
    cells = make_folder(output / "cells")  # refused before the work where that fails
    kept = count_kept(tasks, cells)
    with cells_kept(tasks, cells), task_bar(title) as callback:
        here = 1 if scheduler is not None else jobs or cores()
        done = run_tasks(tasks, cells, here, callback, scheduler)
    return done, kept


@contextmanager
def keeping(tasks: Sequence[Task], output: Path, title: str) -> Iterator[None]:
    """Something more to do with finished cells, with a line on the terminal where it takes long."""
    with cells_kept(tasks, output / "cells"), bar(title):
        yield


def cells_kept(tasks: Sequence[Task], cells: Path) -> AbstractContextManager[None]:
    """A block of work after which Ctrl-C says how many of the cells are kept."""

    def tell() -> str:
        now = f"{count_kept(tasks, cells)} of {len(tasks)}"
        return f"Interrupted: {now} cells are kept, and the same command goes on from there."

    return kept_on_interrupt(tell)


def say_done(seconds: float, cells: str, kept: int, page: Path) -> None:
    """Print how long it took, how many cells there were, and where the summary is."""
    reused = f", {kept} of them from before" if kept else ""
    say(f"Time: {seconds:.0f} s, {cells}{reused}.")
    say(f"Summary: {page}")


def count_kept(tasks: Sequence[Task], cells: Path) -> int:
    """How many of the cells have been computed before."""
    return sum((cells / task.file_name).exists() for task in tasks)


def this_command(name: str, left_out: Container[str | None] = ("jobs", "scheduler", "output", "as_json")) -> str:
    """The command as it was given, without what is as by default and what does not change the numbers."""
    context = click.get_current_context()
    words = [name]
    for option in context.command.params:
        value = context.params[option.name or ""]
        if isinstance(option, click.Argument):
            words += [quote(str(one)) for one in (value if isinstance(value, tuple) else (value,))]
        elif option.name not in left_out and not (value is None or value is False or value in ((), option.default)):
            if isinstance(value, tuple) and not option.multiple:
                value = ",".join(map(str, value))
            for one in value if isinstance(value, tuple) else (value,):
                words += [option.opts[0]] if one is True else [option.opts[0], quote(str(one))]
    return " ".join(words)
