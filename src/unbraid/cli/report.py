"""`unbraid report`: a page about a model and samples; and the option --report of other commands."""

from __future__ import annotations

from pathlib import Path

import click

from unbraid.cli.cells import this_command
from unbraid.cli.data import check_output, chosen_layout, layout_options, named_files, names_option
from unbraid.cli.errors import in_options
from unbraid.cli.output import say
from unbraid.errors import FileError
from unbraid.model import DecoupledModel
from unbraid.problem import counted
from unbraid.reading import read_problem
from unbraid.report import check_packages, write_report

EXAMPLES = """\b
Examples:
  unbraid report model.npz samples.npz -o report.html
  unbraid report model.npz fresh.csv --inputs 'x*' --outputs y1,y2 -o report.html
"""


def report_option(function: click.decorators.FC) -> click.decorators.FC:
    """--report."""
    return click.option(
        "--report",
        "report_path",
        type=click.Path(path_type=Path),
        help="Write a page about the fit there as well (.html).",
    )(function)


def check_report(page: Path | None, *others: Path) -> None:
    """Refuse a page that cannot be made or written, or that would replace another file, before any work is done."""
    if page is None:
        return
    check_packages()
    check_output(page, *others)
    if any(page.resolve() == other.resolve() for other in others):
        raise FileError(f"{page} cannot be both the report and another file of this command: give it another name.")


def say_report(page: Path | None) -> None:
    """Where the page is."""
    if page is not None:
        say(f"Report: {page}, a page for your browser.")


@click.command("report", short_help="Write a page about a model and samples.", epilog=EXAMPLES)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@names_option("--inputs", "Columns of a table that are inputs; or the array to take for X.")
@names_option("--outputs", "Columns of a table that are outputs; or the array to take for F.")
@names_option("--jacobians", "Columns with ∂f_1/∂x_1, ∂f_1/∂x_2, ..., row after row; or the array to take for J.")
@layout_options
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Where the page goes (.html).")
def command(
    model: Path,
    data: Path,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    jacobians: tuple[str, ...],
    layout: str | None,
    paper_layout: bool,
    output: Path,
) -> None:
    """Write a page about MODEL, held against the samples in DATA: one HTML file that needs nothing else.

    DATA is read as `unbraid fit` reads it: the samples of the fit, or others. A model file does not tell how the
    model was found, so the page has nothing on that; that of `unbraid fit --report` has.
    """
    check_report(output, model, data, *named_files(*inputs, *outputs, *jacobians))
    loaded = DecoupledModel.load(model)
    samples = read_problem(data, inputs, outputs, jacobians, chosen_layout(layout, paper_layout))
    write_report(loaded, output, problem=samples.problem, command=this_command("unbraid report", left_out=()))
    say(f"Read {counted(samples.problem.S, 'sample')}, {in_options(samples.taken)}.")
    say_report(output)
