"""`unbraid inspect`: what a model file holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from unbraid.bases.constraints import CONSTRAINTS
from unbraid.cli.output import json_option, print_table, say, say_document
from unbraid.data.checks import counted
from unbraid.dynamics.models.base import DynamicModel
from unbraid.dynamics.models.files import load_model
from unbraid.dynamics.models.state_space import StateSpaceModel
from unbraid.kernels.arrays import Array
from unbraid.results.branch import Branch, FittedBranch
from unbraid.results.carrying import name_superfluous, superfluous
from unbraid.results.files.model_file import is_dynamic
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
    """Print the branches of MODEL: basis, training range, certified shape, direction and weights.

    Of a dynamic model, which `unbraid identify` writes, it prints its kind, its sizes and its poles as well.
    """
    if is_dynamic(model):
        dynamic = load_model(model)
        if as_json:
            say_document(dynamic_document(dynamic, model))
        else:
            print_dynamic(dynamic, model)
        return
    loaded = DecoupledModel.load(model)
    if as_json:
        say_document(model_document(loaded, model))
        return
    sizes = counted(loaded.m, "input"), counted(loaded.rank, "branch", "branches"), counted(loaded.n, "output")
    say(f"{model}: {', '.join(sizes)}.")
    print_branches(loaded, "f(x) = W1 g(W0 x) + bias")
    for what, names in (("inputs", loaded.input_names), ("outputs", loaded.output_names)):
        if names is not None:
            say(f"{what}: {name_list(map(quoted_name, names), len(names))}")
    idle = superfluous(loaded)
    if idle:
        theirs = "its direction means" if len(idle) == 1 else "their directions mean"
        say(f"{name_superfluous(idle)}, and {theirs} nothing.")


def print_branches(model: DecoupledModel, title: str) -> None:
    """Print a table of the branches, and the constants."""
    rows = [branch_row(model, j, branch) for j, branch in enumerate(model.branches)]
    columns = ("branch", "basis", "u from", "u to", "certified", "direction (row of W0)", "weights (column of W1)")
    print_table(title, columns, rows)
    say(f"bias: {vector_text(model.bias)}")


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


def print_dynamic(model: DynamicModel, path: Path) -> None:
    """Print what a dynamic model is: kind, sizes, poles of its linear part, and branches."""
    signals = counted(model.nu, "input"), counted(model.ny, "output")
    sizes = *dynamic_sizes(model), *signals, counted(model.rank, "branch", "branches")
    say(f"{path}: a {dynamic_kind(model)} model, {', '.join(sizes)}, sampling time {model.dt:.6g}.")
    say(f"poles of the linear part: {poles_text(model)}")
    if model.rank:
        phi = "[x; u]" if isinstance(model, StateSpaceModel) else "φ"
        print_branches(model.nonlinearity, f"The nonlinear part, W1 g(W0 {phi}) + bias")
    for what, names in (("inputs", model.input_names), ("outputs", model.output_names)):
        if names is not None:
            say(f"{what}: {name_list(map(quoted_name, names), len(names))}")


def dynamic_kind(model: DynamicModel) -> str:
    """'state-space' or 'NARX'."""
    return "state-space" if isinstance(model, StateSpaceModel) else "NARX"


def dynamic_sizes(model: DynamicModel) -> tuple[str, ...]:
    """The order of a state-space model, or the lags of a NARX model."""
    if isinstance(model, StateSpaceModel):
        return (counted(model.order, "state"),)
    return f"input lags {lags_text(model.input_lags)}", f"output lags {lags_text(model.feedback.lags)}"


def lags_text(lags: tuple[int, ...]) -> str:
    """'0 1 2'."""
    return " ".join(map(str, lags))


def poles_text(model: DynamicModel) -> str:
    """The poles, of pairs one with ±, and whether all lie in the unit circle."""
    poles = sorted(model.poles, key=lambda pole: -abs(pole))
    shown = [
        f"{pole.real:.4g} ± {pole.imag:.4g}i" if pole.imag > 0.0 else f"{pole.real:.4g}"
        for pole in poles
        if pole.imag >= 0.0
    ]
    more = f", ... ({len(poles)})" if len(shown) > SHOWN_ENTRIES else ""
    return ", ".join(shown[:SHOWN_ENTRIES]) + more + f"; the largest has size {abs(poles[0]):.4g}"


def dynamic_document(model: DynamicModel, path: Path) -> dict[str, Any]:
    """What `unbraid inspect --json` prints of a dynamic model."""
    inner = model_document(model.nonlinearity, path)
    sizes = {"rank": model.rank, "inputs": model.nu, "outputs": model.ny}
    names = {"input_names": model.input_names, "output_names": model.output_names}
    kind: dict[str, Any] = {"kind": dynamic_kind(model), "dt": model.dt, "L": model.function.L}
    if isinstance(model, StateSpaceModel):
        kind["order"] = model.order
    else:
        kind |= {"input_lags": model.input_lags, "output_lags": model.feedback.lags}
    poles = {"poles": [[float(pole.real), float(pole.imag)] for pole in model.poles]}
    return {**inner, **sizes, **names, **kind, **poles}


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
