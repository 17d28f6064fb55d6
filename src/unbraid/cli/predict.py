"""`unbraid predict`: values and Jacobians of a model at given points."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from unbraid.arrays import Array, BoolArray
from unbraid.cli.data import check_output, read_points
from unbraid.cli.output import say
from unbraid.files import replacing
from unbraid.model import DecoupledModel
from unbraid.npz import write_npz


@click.command("predict", short_help="Evaluate a model at the points in a file.")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("points", metavar="X", type=click.Path(path_type=Path))
@click.option("--paper-layout", is_flag=True, help="Samples come last: X (m, S), F (n, S), J (n, m, S).")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Where F and J go (.npz).")
def command(model: Path, points: Path, paper_layout: bool, output: Path) -> None:
    """Evaluate MODEL at the points X (S, m) in an .npz file: F (S, n) and J (S, n, m)."""
    check_output(output, model, points)
    loaded = DecoupledModel.load(model)
    X = read_points(points, loaded.m, paper_layout)
    F, J = loaded(X), loaded.jacobian(X)
    if paper_layout:
        F, J = F.T, np.moveaxis(J, 0, -1)
    with replacing(output) as file:
        write_npz(file, {"F": F, "J": J})
    say(f"Wrote F {F.shape} and J {J.shape} to {output}.")
    outside = np.count_nonzero(beyond_training(loaded, X))
    if outside:
        say(
            f"{outside} of {len(X)} points lie outside the training range of a branch, where it is continued, not fitted."
        )


def beyond_training(model: DecoupledModel, X: Array) -> BoolArray:
    """Which points lie outside the training range of any branch: (S,) of bool, by more than rounding."""
    u = X @ model.W0.T
    low, high = np.array([branch.domain for branch in model.branches]).T
    slack = 1e-9 * (high - low)
    outside: BoolArray = ((u < low - slack) | (u > high + slack)).any(axis=1)
    return outside
