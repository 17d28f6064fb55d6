"""`unbraid predict`: values and Jacobians of a model at given points."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from unbraid.cli.bars import progress_bar
from unbraid.cli.errors import file_is_there, in_options
from unbraid.cli.options.data import (
    OutputFile,
    check_apart,
    layout_asked_for,
    layout_options,
    named_files,
    names_option,
)
from unbraid.cli.output import json_option, say, say_document
from unbraid.data.checks import counted
from unbraid.kernels.arrays import Array, blocks
from unbraid.reading import read_points
from unbraid.reading.columns import Columns
from unbraid.reading.predictions import WRITABLE, Predictions, with_jacobians, write_predictions
from unbraid.results.model import DecoupledModel
from unbraid.results.worth.fresh import beyond_training
from unbraid.runtime.progress import Callback, Progress
from unbraid.runtime.text import name_list, printable

EXAMPLES = """\b
Examples:
  unbraid predict model.npz points.npz -o values.npz
  unbraid predict model.npz points.mat -o values.mat
  unbraid predict model.npz points.mat --inputs data/test/X -o values.mat
  unbraid predict model.npz points.csv -o values.csv
  unbraid predict model.npz points.csv --inputs x1,x2 --jacobians \\
      -o values.parquet
  unbraid predict model.npz points.csv --inputs x1,x2 --json
"""


@click.command("predict", short_help="Evaluate a model at the points in a file.", epilog=EXAMPLES)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("points", metavar="X", type=click.Path(path_type=Path))
@names_option(
    "--inputs", "Columns of a table that are inputs, if not MODEL's; or the array for X, data/X of a struct or group."
)
@layout_options
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    help=f"What is predicted, in a file of just this name: {WRITABLE}, by its ending. With --json it may be left out, "
    "and F and J are printed.",
)
@click.option(
    "--jacobians/--no-jacobians",
    default=None,
    help="Whether Jacobians are written, too. By default they are in arrays (.npz, .mat), and not in tables.",
)
@json_option
def command(
    model: Path,
    points: Path,
    inputs: tuple[str, ...],
    layout: str | None,
    paper_layout: bool,
    output: Path | None,
    jacobians: bool | None,
    as_json: bool,
) -> None:
    """Evaluate MODEL at the points X (S, m) in a file: values F (S, n) and Jacobians J (S, n, m).

    X is a file of any kind that `unbraid fit` reads, or a single array, X.npy. A table has the columns that MODEL was
    fitted to, in any order and among others; or --inputs names them.

    Arrays are written as X is laid out. A table, .csv or .parquet, has a row a point: inputs as they were given,
    outputs, and with --jacobians their derivatives. Rows with gaps, or with texts that MODEL does not know, keep their
    place: what is predicted there is left empty, NaN in arrays.
    """
    slopes = jacobians is not False
    if output is not None:
        slopes = with_jacobians(output, jacobians)
        check_apart(output, model, points, *named_files(Columns(inputs)))
    elif not as_json:
        raise click.UsageError("Missing option '-o' / '--output'. Or add --json, which prints F and J.")
    loaded = DecoupledModel.load(model)
    with progress_bar("Evaluating") as callback:
        asked = layout_asked_for(layout, paper_layout)
        read = read_points(points, loaded.m, inputs, asked, callback, encoding=loaded.columns)
        X = read.X
        F, J = evaluate(loaded, X, slopes, callback)
    names = read.names or loaded.input_names, loaded.output_names
    predictions = Predictions(X, F, J, read.layout, *names, cells=read.cells)
    outside, gaps = int(np.count_nonzero(beyond_training(loaded, X))), int(np.isnan(X).any(axis=1).sum())
    if output is not None:
        written = write_predictions(output, predictions)
        file_is_there("prediction", output)
    if read.told:
        left = f"cannot be predicted and {'is' if gaps == 1 else 'are'} left empty (NaN in arrays)"
        why = name_list(read.told, len(read.told), between="; ")
        click.echo(printable(f"Note: {gaps} of {counted(len(X), 'point')} {left}: {why}."), err=True)
    if as_json:
        sizes = {"points": len(X), "inputs": loaded.m, "outputs": loaded.n}
        values = predictions.arrays() if output is None else {}
        say_document({"output": output, **sizes, "layout": read.layout, "outside": outside, "gaps": gaps, **values})
        return
    say(f"Read {counted(len(X), 'point')}, {in_options(read.taken)}.")
    say(f"Wrote {written} to {output}.")
    if outside:
        say(f"{outside} of {len(X)} points lie outside the training range of a branch, which is continued there.")


def evaluate(model: DecoupledModel, X: Array, slopes: bool, callback: Callback | None) -> tuple[Array, Array | None]:
    """Values F (S, n) of a model at X (S, m), and Jacobians J (S, n, m) where slopes are wanted, block by block."""
    S = len(X)
    F, J = np.empty((S, model.n)), np.empty((S, model.n, model.m)) if slopes else None
    for part in blocks(S, model.n * model.m):
        F[part] = model(X[part])
        if J is not None:
            J[part] = model.jacobian(X[part])
        if callback is not None:
            callback(Progress("evaluate", part.stop, S))
    return F, J
