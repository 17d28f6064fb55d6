"""`unbraid demo`: the paper's f_trig, taken apart and drawn beside the truth."""

from __future__ import annotations

from pathlib import Path

import click

from unbraid import datasets, plots
from unbraid.bases import BSpline
from unbraid.cli.bars import progress_bar
from unbraid.cli.cells import this_command
from unbraid.cli.errors import INTERRUPTED, file_is_there, in_options
from unbraid.cli.options.data import OutputFile
from unbraid.cli.output import error_columns, error_rows, fit_quality, json_option, print_table, say, say_document
from unbraid.cli.report import check_report, say_report
from unbraid.decouple import decouple
from unbraid.kernels.arrays import Array
from unbraid.metrics import direction_angles
from unbraid.plots.palette import PANEL
from unbraid.plots.panels import legend_above, settle_layout
from unbraid.report import check_packages, write_report
from unbraid.results.fit import Fit
from unbraid.results.model import DecoupledModel
from unbraid.results.outcome import Status
from unbraid.runtime.files import check_writable, make_folder, replacing

CAPTION = (
    "A decoupling fixes branches up to their order, the sign and length of their directions and the scale and constant "
    "of their values,\nso each true curve is laid under the found branch that it belongs to, in that one's scale."
)


EXAMPLES = """\b
Examples:
  unbraid demo
  unbraid demo --seed 1 -o branches.svg
  unbraid demo --json
"""


@click.command("demo", short_help="Decouple a known function and draw the result.", epilog=EXAMPLES)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the samples and the starts.")
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    default=Path("unbraid-demo/branches.png"),
    show_default=True,
    help="Where the picture goes: .png, .svg, .pdf or .jpg.",
)
@json_option
def command(seed: int, output: Path, as_json: bool) -> None:
    """Decouple the paper's f_trig (2 inputs, 2 outputs, 3 branches) and draw what was found."""
    check_packages()
    page = output.with_name("report.html")
    make_folder(output.parent, named=output)
    check_writable(output)
    check_report(page, output)
    problem, truth = datasets.trig(S=100, rng=seed)
    with progress_bar("Decoupling f_trig") as callback:
        result = decouple(problem, rank=3, basis=BSpline(df=20), rng=seed, callback=callback)
    draw(result, truth, output)
    file_is_there("picture", output)
    write_report(result, page, truth=truth, command=this_command("unbraid demo"))
    angles = direction_angles(result.model.W0, truth.W0)
    if as_json:
        sizes = {"rank": 3, "samples": problem.S, "inputs": problem.m, "outputs": problem.n}
        say_document(
            {"picture": output, "report": page, **sizes, **fit_quality(result), "angles": angles, "seed": seed}
        )
    else:
        print_demo(result, problem.S, angles, output)
        say_report(page)
    if result.status is Status.INTERRUPTED:
        raise click.exceptions.Exit(INTERRUPTED)


def print_demo(result: Fit, S: int, angles: Array, output: Path) -> None:
    """Print how good the model is and where its picture went."""
    outputs = None if result.output_errors is None else list(result.output_errors)
    columns = error_columns(result.held_out)
    rows, none = error_rows(result.jacobian_error, outputs, held=result.held_out), ("",) * (len(columns) - 2)
    for j, angle in enumerate(angles):
        rows.append((f"angle between found and true direction {j + 1}", f"{angle:.2g} degrees", *none))
    rows.append((f"time, {len(result.starts)} starts", f"{result.seconds:.2f} s", *none))
    print_table(f"f_trig: {S} samples, rank 3, {result.basis!r}", columns, rows)
    say(f"Starts: {result.agreement}.")
    say(f"Status: {result.status.name}. {in_options(result.status.advice)}")
    say(f"Picture of found against true branches: {output}; directions are numbered as branches are there.")


def draw(result: Fit, truth: DecoupledModel, output: Path) -> None:
    """Draw found against true branches, without touching a display."""
    from matplotlib.figure import Figure

    width, height = PANEL
    figure = Figure(figsize=(width * truth.rank, height + 0.9), layout="constrained")
    legend_above(plots.branches(result, truth, figure.subplots(1, truth.rank)))
    figure.supxlabel(CAPTION, fontsize="small", x=0.01, horizontalalignment="left")
    settle_layout(figure)
    with replacing(output) as file:
        figure.savefig(file, dpi=150, format=picture_format(output))


def picture_format(output: Path) -> str:
    """png, or what the file's name ends in where matplotlib can write it."""
    ending = output.suffix.lower().removeprefix(".")
    return ending if ending in ("pdf", "svg", "jpg") else "png"
