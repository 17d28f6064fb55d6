"""`unbraid compare`: methods side by side on systems with a known answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from unbraid.cli.cells import keeping, run_cells, say_done, this_command, worker_options
from unbraid.cli.output import json_option, print_table, say_document
from unbraid.data.checks import counted
from unbraid.plots.panels import check_matplotlib
from unbraid.studies.comparison.cells import NOISES, comparison_tasks
from unbraid.studies.comparison.entries import contenders, systems
from unbraid.studies.comparison.figures import noise_words
from unbraid.studies.comparison.output import write_comparison
from unbraid.studies.tables import distinct, distinct_names, values
from unbraid.studies.tasks import Rows

EXAMPLES = """\b
Examples:
  unbraid compare --runs 3
  unbraid compare --system trig --noise 0 --noise 0.01
  unbraid compare --method default --method dejonghe2025 --runs 3 --json
  unbraid compare --scheduler tcp://127.0.0.1:8786
"""


def complete_from(names: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    """What the Tab key offers for an option: those names that go on as it was begun."""
    return lambda context, option, begun: [name for name in names() if name.startswith(begun)]


@click.command("compare", short_help="Methods side by side on systems with a known answer.", epilog=EXAMPLES)
@click.option(
    "--system",
    "system_names",
    multiple=True,
    shell_complete=complete_from(systems),
    help="Only this system; may be repeated.",
)
@click.option(
    "--method",
    "method_names",
    multiple=True,
    shell_complete=complete_from(contenders),
    help="Only this method; may be repeated.",
)
@click.option(
    "--noise",
    "noises",
    type=click.FloatRange(0.0, 1.0),
    multiple=True,
    help="Only this share of noise, 0.05 for 5 %; may be repeated.",
)
@click.option("--runs", type=click.IntRange(min=1), default=10, show_default=True, help="Draws of every system.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of samples, noise and starts.")
@worker_options
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("unbraid-comparison"),
    show_default=True,
    help="The folder for the figure, the numbers and the summary page.",
)
@json_option
def command(
    system_names: tuple[str, ...],
    method_names: tuple[str, ...],
    noises: tuple[float, ...],
    runs: int,
    seed: int,
    jobs: int | None,
    scheduler: str | None,
    output: Path,
    as_json: bool,
) -> None:
    """Fit every system with every method, at several levels of noise, and test on fresh points.

    Finished cells are kept in the output folder: started again, the command computes only what is missing.
    """
    check_matplotlib()
    began = time.perf_counter()
    chosen = check_names("system", system_names, list(systems()))
    methods = check_names("method", method_names, list(contenders()))
    tasks = comparison_tasks(chosen, methods, sorted(noises or NOISES), runs, seed)
    done, kept = run_cells("Comparing", tasks, output, jobs, scheduler)
    rows = [row for part in done for row in part]
    with keeping(tasks, output, "Drawing"):
        written = write_comparison(rows, output, this_command("unbraid compare"))
    seconds = time.perf_counter() - began
    if as_json:
        counts = {"runs": runs, "seed": seed, "cells": len(tasks), "cells_from_before": kept, "seconds": seconds}
        say_document({"files": written, **counts, "results": medians(rows)})
    else:
        print_errors(rows)
        say_done(seconds, f"{counted(len(tasks), 'cell')} of {counted(runs, 'draw')}", kept, written[0])


def check_names(what: str, asked: tuple[str, ...], names: list[str]) -> list[str]:
    """The names that were asked for, or all; others are refused."""
    strange = [name for name in asked if name not in names]
    if strange:
        raise click.UsageError(f"There is no {what} {strange[0]!r}: there are {', '.join(names)}.")
    return list(asked) or names


def medians(rows: Rows) -> Rows:
    """One row a system, noise and method: medians over its runs; errors in %, angles in degrees."""
    import numpy as np

    cells: dict[tuple[str, float, str], Rows] = {}
    for row in rows:
        cells.setdefault((row["system"], row["noise"], row["contender"]), []).append(row)
    return [
        {
            "system": system,
            "noise": noise,
            "method": contender,
            "error": np.median([row["fresh_error"] for row in some]),
            "worst_error": max(row["fresh_error"] for row in some),
            "jacobian_error": np.median([row["fresh_error_J"] for row in some]),
            "angle": None if some[0]["angle"] is None else np.median([row["angle"] for row in some]),
            "succeeded": sum(row["success"] for row in some),
            "seconds": np.median([row["seconds"] for row in some]),
        }
        for (system, noise, contender), some in cells.items()
    ]


def print_errors(rows: Rows) -> None:
    """Print the median errors as a table, one line a system and noise, one column a method."""
    import numpy as np

    methods = distinct_names(rows, "contender")
    lines = [
        (
            systems()[system].title,
            noise_words(noise),
            *(
                f"{np.median(values(rows, 'fresh_error', system=system, noise=noise, contender=one)):.2g}"
                for one in methods
            ),
        )
        for system in distinct_names(rows, "system")
        for noise in distinct(rows, "noise")
    ]
    titles = [contenders()[one].title for one in methods]
    several = ", median" if max(row["run"] for row in rows) > 0 else ""
    print_table(f"Worst output's error on fresh points, in %{several}", ("system", "", *titles), lines, lead=2)
