"""`unbraid reproduce`: the paper's figures and table, with a verdict on every claim."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import click

from unbraid.cli.cells import keeping, run_cells, say_done, this_command, worker_options
from unbraid.cli.output import json_option, print_table, say, say_document
from unbraid.data.checks import counted
from unbraid.plots.panels import check_matplotlib
from unbraid.studies.reproduction.cells import MONOTONE_DFS, TRIG_DFS, monotone_tasks, trig_tasks
from unbraid.studies.reproduction.claims import Verdict, monotone_verdicts, trig_verdicts
from unbraid.studies.reproduction.output import Reproduction, write_reproduction
from unbraid.studies.reproduction.readings import VARIANTS, Readings

TITLES = {"trig": "f_trig", "monotone": "The monotone system"}
QUICK_RUNS, QUICK_TRIG_DFS, QUICK_MONOTONE_DFS = 4, (4, 12, 20, 28), (8, 14, 20)


EXAMPLES = """\b
Examples:
  unbraid reproduce all --quick
  unbraid reproduce trig --runs 10 --jobs 4 -o trig
  unbraid reproduce monotone --coupling 0.1 --json
"""


@click.command(
    "reproduce", short_help="Repeat the paper's experiments, with a verdict on every claim.", epilog=EXAMPLES
)
@click.argument("experiment", type=click.Choice(["trig", "monotone", "all"]))
@click.option("--quick", is_flag=True, help=f"A minute's version: {QUICK_RUNS} runs, fewer df.")
@click.option("--runs", type=click.IntRange(min=1), help="Executions of every cell; 30 by default, as in the paper.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of samples and starts.")
@worker_options
@click.option("--coupling", type=float, default=0.01, show_default=True, help="λ of CMTF-BSD.")
@click.option("--sweeps", type=int, default=300, show_default=True, help="Sweeps of CMTF-BSD.")
@click.option("--box", type=float, default=1.5, show_default=True, help="Monotone samples come from U(-box, box).")
@click.option(
    "--degree-of",
    type=click.Choice(["function", "spline"]),
    default="function",
    show_default=True,
    help="Whose degree the paper's d is: that of g, or of the spline that represents g or g'.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("unbraid-reproduction"),
    show_default=True,
    help="The folder for figures, numbers and the summary page.",
)
@json_option
def command(
    experiment: str,
    quick: bool,
    runs: int | None,
    seed: int,
    jobs: int | None,
    scheduler: str | None,
    coupling: float,
    sweeps: int,
    box: float,
    degree_of: Literal["function", "spline"],
    output: Path,
    as_json: bool,
) -> None:
    """Repeat the paper's experiments: f_trig over degrees and df, the monotone system, or both.

    Three variants run side by side: CMTF-BSD as printed, with the anchored step, and unbraid's default solver.
    Finished cells are kept in the output folder: started again, the command computes only what is missing.
    """
    check_matplotlib()
    began = time.perf_counter()
    readings = Readings(coupling, sweeps, box, degree_of)
    runs = runs or (QUICK_RUNS if quick else 30)
    trig_dfs, monotone_dfs = (QUICK_TRIG_DFS, QUICK_MONOTONE_DFS) if quick else (TRIG_DFS, MONOTONE_DFS)
    trig = trig_tasks(runs, seed, readings, trig_dfs) if experiment != "monotone" else []
    monotone = monotone_tasks(runs, seed, readings, monotone_dfs) if experiment != "trig" else []
    tasks = [*trig, *monotone]
    done, kept = run_cells("Reproducing", tasks, output, jobs, scheduler)
    trig_rows = [row for rows in done[: len(trig)] for row in rows]
    monotone_rows = [row for rows in done[len(trig) :] for row in rows]
    reproduced = Reproduction(trig_rows, monotone_rows, runs, seed, readings, this_command("unbraid reproduce"))
    with keeping(tasks, output, "Drawing"):
        written = write_reproduction(reproduced, output)
    verdicts = {"trig": trig_verdicts(trig_rows), "monotone": monotone_verdicts(monotone_rows)}
    seconds = time.perf_counter() - began
    if as_json:
        say_document(
            {
                "files": written,
                "runs": runs,
                "seed": seed,
                "cells": len(tasks),
                "cells_from_before": kept,
                "seconds": seconds,
                "verdicts": [{"experiment": name, **asdict(one)} for name, some in verdicts.items() for one in some],
                "readings": readings.sentences(experiment),
            }
        )
        return
    for name, some in verdicts.items():
        if some:
            print_verdicts(TITLES[name], some)
    for sentence in readings.sentences(experiment):
        say(f"Reading: {sentence}")
    say_done(seconds, f"{counted(len(tasks), 'cell')} of {counted(runs, 'run')}", kept, written[0])


def print_verdicts(title: str, verdicts: list[Verdict]) -> None:
    """Print the verdicts on a paper's claims as a table, one line a claim and variant."""
    rows = [(one.claim, VARIANTS[one.variant], one.verdict, one.measured) for one in verdicts]
    for k in range(len(rows) - 1, 0, -1):
        if rows[k][0] == rows[k - 1][0]:
            rows[k] = ("", *rows[k][1:])
    print_table(title, ("the paper says", "variant", "verdict", "measured"), rows)
