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
from unbraid.results.carrying import name_superfluous, superfluous
from unbraid.results.model import DecoupledModel
from unbraid.runtime.text import name_list, quoted_name

SHOWN_ENTRIES = 6


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
        say_document(model_document(loaded, model))
        return
    sizes = counted(loaded.m, "input"), counted(loaded.rank, "branch", "branches"), counted(loaded.n, "output")
    say(f"{model}: {', '.join(sizes)}.")
    rows = [branch_row(loaded, j, branch) for j, branch in enumerate(loaded.branches)]
    columns = ("branch", "basis", "u from", "u to", "certified", "direction (row of W0)", "weights (column of W1)")
    print_table("f(x) = W1 g(W0 x) + bias", columns, rows)
    say(f"bias: {vector_text(loaded.bias)}")
    for what, names in (("inputs", loaded.input_names), ("outputs", loaded.output_names)):
        if names is not None:
            say(f"{what}: {name_list(map(quoted_name, names), len(names))}")
    idle = superfluous(loaded)
    if idle:
        theirs = "its direction means" if len(idle) == 1 else "their directions mean"
        say(f"{name_superfluous(idle)}, and {theirs} nothing.")


def model_document(model: DecoupledModel, path: Path) -> dict[str, Any]:
    """What `unbraid inspect --json` prints: all of a model but the coefficients of its branches."""
    idle = superfluous(model)
    branches = [
        {
            "basis": basis_text(one),
            "domain": one.domain,
            "certified": [] if j in idle else certified_shapes(one),
            "carries": j not in idle,
        }
        for j, one in enumerate(model.branches)
    ]
    sizes = {"rank": model.rank, "inputs": model.m, "outputs": model.n}
    names = {"input_names": model.input_names, "output_names": model.output_names}
    return {"model": path, **sizes, **names, "W0": model.W0, "W1": model.W1, "bias": model.bias, "branches": branches}


def basis_text(branch: Branch) -> str:
    """What a branch is made of: its basis, or its formula."""
    return repr(branch.basis) if isinstance(branch, FittedBranch) else repr(branch)


def certified_shapes(branch: Branch) -> list[str]:
    """The shapes that the coefficients of a branch prove."""
    return [one.means for one in CONSTRAINTS if branch.certified(one())]


def branch_row(model: DecoupledModel, j: int, branch: Branch) -> tuple[str, ...]:
    """The row of the table about branch j."""
    if j in superfluous(model):
        return (str(j + 1), basis_text(branch), "-", "-", "-", "-", "carries nothing")
    low, high = branch.domain
    shapes = ", ".join(certified_shapes(branch)) or "-"
    return (
        str(j + 1),
        basis_text(branch),
        f"{low:.4g}",
        f"{high:.4g}",
        shapes,
        vector_text(model.W0[j]),
        vector_text(model.W1[:, j]),
    )


def vector_text(vector: Array) -> str:
    """The first entries of a vector, and how many there are of more."""
    first = ", ".join(f"{entry:.4g}" for entry in np.asarray(vector)[:SHOWN_ENTRIES])
    return first + (f", ... ({len(vector)})" if len(vector) > SHOWN_ENTRIES else "")
