"""`unbraid predict`: values and Jacobians of a model at given points."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from unbraid.cli.bars import progress_bar
from unbraid.cli.data import OUTPUT_ENDING, check_output, layout_asked_for, layout_options, named_files, names_option
from unbraid.cli.errors import file_is_there, in_options
from unbraid.cli.output import json_option, say, say_document
from unbraid.data.checks import counted
from unbraid.kernels.arrays import Array, blocks
from unbraid.reading import read_points
from unbraid.reading.columns import Columns
from unbraid.reading.layout import LAST
from unbraid.results.model import DecoupledModel
from unbraid.runtime.files import replacing
from unbraid.runtime.npz import write_npz
from unbraid.runtime.progress import Callback, Progress
from unbraid.selection.diagnostics import beyond_training

EXAMPLES = """\b
Examples:
  unbraid predict model.npz points.npz -o values.npz
  unbraid predict model.npz points.mat -o values.npz
  unbraid predict model.npz points.csv -o values.npz
  unbraid predict model.npz points.csv --inputs x1,x2 -o values.npz
  unbraid predict model.npz points.csv --inputs x1,x2 --json
"""


@click.command("predict", short_help="Evaluate a model at the points in a file.", epilog=EXAMPLES)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("points", metavar="X", type=click.Path(path_type=Path))
@names_option("--inputs", "Columns of a table that are inputs; or the array to take for X.")
@layout_options
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help=f"F and J, {OUTPUT_ENDING}. With --json it may be left out: they are then printed.",
)
@json_option
def command(
    model: Path,
    points: Path,
    inputs: tuple[str, ...],
    layout: str | None,
    paper_layout: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Evaluate MODEL at the points X (S, m) in a file: F (S, n) and J (S, n, m), laid out as X is.

    X is a file of any kind that `unbraid fit` reads, or a single array, X.npy. A table has the columns that MODEL was
    fitted to, in any order and among others; or --inputs names them.
    """
    if output is not None:
        check_output(output, model, points, *named_files(Columns(inputs)))
    elif not as_json:
        raise click.UsageError("Missing option '-o' / '--output'. Or add --json, which prints F and J.")
    loaded = DecoupledModel.load(model)
    with progress_bar("Evaluating") as callback:
        asked = layout_asked_for(layout, paper_layout)
        read = read_points(points, loaded.m, inputs, asked, callback, encoding=loaded.columns)
        X = read.X
        F, J = evaluate(loaded, X, callback)
    if read.layout == LAST:
        F, J = F.T, np.moveaxis(J, 0, -1)
    if output is not None:
        with replacing(output) as file:
            write_npz(file, {"F": F, "J": J})
        file_is_there("prediction", output)
    outside, gaps = int(np.count_nonzero(beyond_training(loaded, X))), int(np.isnan(X).any(axis=1).sum())
    if as_json:
        sizes = {"points": len(X), "inputs": loaded.m, "outputs": loaded.n}
        values = {"F": F, "J": J} if output is None else {}
        say_document({"output": output, **sizes, "layout": read.layout, "outside": outside, "gaps": gaps, **values})
        return
    say(f"Read {counted(len(X), 'point')}, {in_options(read.taken)}.")
    say(f"Wrote F {F.shape} and J {J.shape} to {output}.")
    if gaps:
        have = "has gaps: its prediction is" if gaps == 1 else "have gaps: their predictions are"
        say(f"{gaps} of {len(X)} points {have} NaN.")
    if outside:
        say(f"{outside} of {len(X)} points lie outside the training range of a branch, which is continued there.")


def evaluate(model: DecoupledModel, X: Array, callback: Callback | None) -> tuple[Array, Array]:
    """Values F (S, n) and Jacobians J (S, n, m) of a model at X (S, m), some points at a time."""
    S = len(X)
    F, J = np.empty((S, model.n)), np.empty((S, model.n, model.m))
    for part in blocks(S, model.n * model.m):
        F[part], J[part] = model(X[part]), model.jacobian(X[part])
        if callback is not None:
            callback(Progress("evaluate", part.stop, S))
    return F, J
