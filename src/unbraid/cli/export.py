"""`unbraid export`: a model in another language."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from unbraid.cli.errors import file_is_there
from unbraid.cli.options.data import OutputFile, check_apart
from unbraid.cli.output import json_option, say, say_document
from unbraid.dynamics import load
from unbraid.export import ENDINGS
from unbraid.results.files.model_file import is_dynamic
from unbraid.results.model import DecoupledModel

EXAMPLES = """\b
Examples:
  unbraid export model.npz -o model.c
  unbraid export model.npz -o model.c --name plant --dtype float32
  unbraid export model.npz -o decoupled.m
  unbraid export model.npz -o model.py --json
"""


@click.command("export", short_help="Write a model in another language.", epilog=EXAMPLES)
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    required=True,
    help=f"The file; its ending says the language: {', '.join(ENDINGS)}.",
)
@click.option("--name", help="What the function is called, in place of the file's name.")
@click.option(
    "--dtype",
    type=click.Choice(["float64", "float32"]),
    default="float64",
    show_default=True,
    help="The type of numbers in C and ONNX.",
)
@click.option("--jacobian", is_flag=True, help="Add the Jacobian to ONNX; C, MATLAB and Python have it always.")
@json_option
def command(
    model: Path,
    output: Path,
    name: str | None,
    dtype: Literal["float64", "float32"],
    jacobian: bool,
    as_json: bool,
) -> None:
    """Write MODEL in another language, so that it runs without unbraid.

    C99 needs nothing else (.c and its header .h), a Python module NumPy alone (.py), a function for MATLAB and Octave
    no toolbox (.m); a struct for both has the parts of the model (.mat). Models of dynamic systems become a step in C,
    or a simulation in MATLAB and Octave.
    """
    check_apart(output, model)
    if is_dynamic(model):
        written = load(model).export(output, name=name, dtype=dtype)
    else:
        written = DecoupledModel.load(model).export(output, name=name, dtype=dtype, jacobian=jacobian)
    file_is_there("exported model", output)
    if as_json:
        say_document({"model": model, "files": written, "dtype": dtype})
        return
    say(f"Wrote {' and '.join(map(str, written))}.")
