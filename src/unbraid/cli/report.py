"""`unbraid report`: a page about a model and samples; and the option --report of other commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from unbraid.cli.bars import progress_bar
from unbraid.cli.cells import this_command
from unbraid.cli.errors import file_is_there, in_options
from unbraid.cli.options.data import OutputFile, check_apart, columns_of_model, named_files, sample_options
from unbraid.cli.output import error_rows, json_option, print_table, say, say_document
from unbraid.data.checks import counted
from unbraid.errors import FileError
from unbraid.reading import Samples
from unbraid.reading.columns import Columns
from unbraid.reading.problems import read_samples
from unbraid.report import check_ending, check_packages, write_report
from unbraid.report.subject import Subject
from unbraid.results.model import DecoupledModel

EXAMPLES = """\b
Examples:
  unbraid report model.npz samples.npz -o report.html
  unbraid report model.npz fresh.csv --inputs 'x*' --outputs y1,y2 \\
      -o report.html
"""


def report_option(function: click.decorators.FC) -> click.decorators.FC:
    """Add the option --report, which the command gets as `report_path`."""
    return click.option(
        "--report",
        "report_path",
        type=OutputFile(),
        help="Write a page about the fit there as well (.html).",
    )(function)


def check_report(page: Path | None, *others: Path) -> None:
    """Refuse a page that cannot be made or written, or that would replace another file, before any work is done."""
    if page is None:
        return
    check_packages()
    check_apart(page, *others)
    if any(page.resolve() == other.resolve() for other in others):
        raise FileError(f"{page} cannot be both the report and another file of this command: give it another name.")
    check_ending(page)


def say_report(page: Path | None) -> None:
    """Print where the page is, if there is one."""
    if page is not None:
        say(f"Report: {page}, a page for your browser.")


@click.command("report", short_help="Write a page about a model and samples.", epilog=EXAMPLES)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@sample_options
@click.option("-o", "--output", type=OutputFile(), required=True, help="Where the page goes (.html).")
@json_option
def command(
    model: Path,
    data: Path,
    columns: Columns,
    output: Path,
    as_json: bool,
) -> None:
    """Write a page about MODEL, held against the samples in DATA: one HTML file that needs nothing else.

    DATA is read as `unbraid fit` reads it: the samples of the fit, or others; of a table MODEL knows its columns by
    name. A model file does not tell how the model was found, so the page has nothing on that; that of
    `unbraid fit --report` has.
    """
    check_report(output, model, data, *named_files(columns))
    loaded = DecoupledModel.load(model)
    shell = this_command("unbraid report", left_out=("as_json",))
    with progress_bar("Reading") as callback:
        samples = read_samples(data, columns_of_model(loaded, data, columns), callback)
        subject = write_report(loaded, output, problem=samples.problem, command=shell, callback=callback)
        file_is_there("report", output)
    if as_json:
        say_document(report_document(subject, samples, model, output))
    else:
        errors = None if subject.output_errors is None else list(subject.output_errors)
        rows = error_rows(subject.jacobian_error, errors, samples.problem.output_names or ())
        print_table(f"Errors on the samples, rank {loaded.rank}", ("", ""), rows)
        say(f"Read {counted(samples.problem.S, 'sample')}, {in_options(samples.taken)}.")
        say_report(output)


def report_document(subject: Subject, samples: Samples, model: Path, output: Path) -> dict[str, Any]:
    """What `unbraid report --json` prints: the files, the samples and the errors on them."""
    return {
        "report": output,
        "model": model,
        "rank": subject.rank,
        "samples": samples.problem.S,
        "inputs": subject.model.m,
        "outputs": subject.model.n,
        "taken": in_options(samples.taken),
        "jacobian_error": subject.jacobian_error,
        "output_errors": subject.output_errors,
    }
