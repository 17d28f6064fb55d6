"""`unbraid inspect`: what a model file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from unbraid.bases.constraints import CONSTRAINTS
from unbraid.cli.output import json_option, print_table, say, say_document
from unbraid.data.checks import counted
from unbraid.kernels.arrays import Array
from unbraid.results.branch import Branch, FittedBranch
from unbraid.results.model import DecoupledModel

MOST_ENTRIES = 6


EXAMPLES = """\b
Examples:
  unbraid inspect model.npz
  unbraid inspect model.npz --json
"""


@click.command("inspect", short_help="Print what a model file holds.", epilog=EXAMPLES)
@click.argument("model", type=click.Path(path_type=Path))
@json_option
def command(model: Path, as_json: bool) -> None:
    """Print the branches of MODEL: basis, training range, certified shape, direction and weights."""
    loaded = DecoupledModel.load(model)
    if as_json:
        say_document(document(loaded, model))
        return
    sizes = counted(loaded.m, "input"), counted(loaded.rank, "branch", "branches"), counted(loaded.n, "output")
    say(f"{model}: {', '.join(sizes)}.")
    rows = [branch_row(loaded, j, branch) for j, branch in enumerate(loaded.branches)]
    columns = ("branch", "basis", "u from", "u to", "certified", "direction (row of W0)", "weights (column of W1)")
    print_table("f(x) = W1 g(W0 x) + bias", columns, rows)
    say(f"bias: {listed(loaded.bias)}")


def document(model: DecoupledModel, path: Path) -> dict[str, Any]:
    """All of a model but the coefficients of its branches."""
    branches = [{"basis": basis(one), "domain": one.domain, "certified": certified(one)} for one in model.branches]
    sizes = {"rank": model.rank, "inputs": model.m, "outputs": model.n}
    return {"model": path, **sizes, "W0": model.W0, "W1": model.W1, "bias": model.bias, "branches": branches}


def basis(branch: Branch) -> str:
    """What a branch is made of."""
    return repr(branch.basis) if isinstance(branch, FittedBranch) else repr(branch)


def certified(branch: Branch) -> list[str]:
    """The shapes that its coefficients prove."""
    return [one.means for one in CONSTRAINTS if branch.certified(one())]


def branch_row(model: DecoupledModel, j: int, branch: Branch) -> tuple[str, ...]:
    """One row of the table."""
    low, high = branch.domain
    shapes = ", ".join(certified(branch)) or "-"
    return str(j + 1), basis(branch), f"{low:.4g}", f"{high:.4g}", shapes, listed(model.W0[j]), listed(model.W1[:, j])


def listed(vector: Array) -> str:
    """The first entries of a vector."""
    shown = ", ".join(f"{entry:.4g}" for entry in np.asarray(vector)[:MOST_ENTRIES])
    return shown + (f", ... ({len(vector)})" if len(vector) > MOST_ENTRIES else "")
