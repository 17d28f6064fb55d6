"""`unbraid inspect`: what a model file holds."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from unbraid.arrays import Array
from unbraid.branch import Branch, FittedBranch
from unbraid.cli.output import print_table, say
from unbraid.constraints import CONSTRAINTS
from unbraid.model import DecoupledModel
from unbraid.problem import counted

MOST_ENTRIES = 6


@click.command("inspect", short_help="Print what a model file holds.")
@click.argument("model", type=click.Path(path_type=Path))
def command(model: Path) -> None:
    """Print the branches of MODEL: basis, training range, certified shape, direction and weights."""
    loaded = DecoupledModel.load(model)
    sizes = counted(loaded.m, "input"), counted(loaded.rank, "branch", "branches"), counted(loaded.n, "output")
    say(f"{model}: {', '.join(sizes)}.")
    rows = [branch_row(loaded, j, branch) for j, branch in enumerate(loaded.branches)]
    columns = ("branch", "basis", "u from", "u to", "certified", "direction (row of W0)", "weights (column of W1)")
    print_table("f(x) = W1 g(W0 x) + bias", columns, rows)
    say(f"bias: {listed(loaded.bias)}")


def branch_row(model: DecoupledModel, j: int, branch: Branch) -> tuple[str, ...]:
    """One row of the table."""
    basis = repr(branch.basis) if isinstance(branch, FittedBranch) else repr(branch)
    low, high = branch.domain
    certified = ", ".join(one.means for one in CONSTRAINTS if branch.certified(one())) or "-"
    return str(j + 1), basis, f"{low:.4g}", f"{high:.4g}", certified, listed(model.W0[j]), listed(model.W1[:, j])


def listed(vector: Array) -> str:
    """The first entries of a vector."""
    shown = ", ".join(f"{entry:.4g}" for entry in np.asarray(vector)[:MOST_ENTRIES])
    return shown + (f", ... ({len(vector)})" if len(vector) > MOST_ENTRIES else "")
