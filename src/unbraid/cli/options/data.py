"""The samples that commands read, and where they may write."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import fields, replace
from functools import wraps
from pathlib import Path
from typing import Any, get_args

import click
from click.shell_completion import CompletionItem

from unbraid.data.checks import Missing
from unbraid.errors import FileError
from unbraid.reading.columns import Columns
from unbraid.reading.kinds import FILE_KINDS, TABLE_SUFFIXES, VAGUE_SUFFIX
from unbraid.reading.layout import LAST, LAYOUTS
from unbraid.reading.problems import open_source
from unbraid.reading.sources import Table
from unbraid.results.model import DecoupledModel
from unbraid.runtime.files import check_writable, names_folder
from unbraid.runtime.npz import SUFFIX
from unbraid.runtime.text import printable

OUTPUT_ENDING = "an .npz file of just this name, or JSON where it ends in .json"
"""What commands write: the name is the one given, and no ending is added to it."""
OTHER_ENDINGS = {*TABLE_SUFFIXES, *(suffix for kind in FILE_KINDS for suffix in kind.suffixes)} - {".npz", VAGUE_SUFFIX}


class OutputFile(click.Path):
    """A file that a command writes; its path is checked as it was typed, for `Path` forgets a slash at the end."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        if names_folder(value):
            check_writable(value)
        return super().convert(value, param, ctx)


def layout_options(function: click.decorators.FC) -> click.decorators.FC:
    """Add --layout and --paper-layout, which say where samples stand in arrays."""
    function = click.option("--paper-layout", is_flag=True, help=f"The same as --layout {LAST}.")(function)
    return click.option(
        "--layout",
        type=click.Choice(LAYOUTS),
        help="Of arrays: X (S, m), F (S, n), J (S, n, m), or X (m, S), F (n, S), J (n, m, S). By default MATLAB's are "
        "read as their shapes fit, and all others samples first.",
    )(function)


def complete_file(context: click.Context, option: click.Parameter, begun: str) -> list[CompletionItem]:
    """What the Tab key offers: .npy files may be named as well."""
    return [CompletionItem(begun, type="file")]


def names_option(option: str, help_: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """Make an option that names columns or an array, and may be repeated."""
    return click.option(option, multiple=True, metavar="NAMES", help=help_, shell_complete=complete_file)


def sample_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say what in a file is what; a command gets them as one `Columns`, `columns`."""

    @wraps(command)
    def function(*, layout: str | None, paper_layout: bool, **others: Any) -> None:
        options = [field.name for field in fields(Columns) if field.name not in ("layout", "encoding")]
        named = {name: others.pop(name) for name in options}
        command(columns=Columns(**named, layout=layout_asked_for(layout, paper_layout)), **others)

    for add in (
        layout_options,
        click.option(
            "--missing",
            type=click.Choice(get_args(Missing)),
            default="error",
            show_default=True,
            help="What NaN and empty cells are: errors; in outputs and Jacobians (mask) what is not known; or (drop) "
            "reasons to leave those samples out.",
        ),
        names_option("--exclude", "Columns of a table that are no inputs, where --inputs is left out."),
        click.option(
            "--categories", is_flag=True, help="Columns of texts are inputs as well: indicators of what they say."
        ),
        click.option(
            "--weights",
            metavar="NAME",
            shell_complete=complete_file,
            help="Column of a table with the weights of samples; or the array, if it is not named weights.",
        ),
        names_option(
            "--jacobians", "Columns with ∂f_1/∂x_1, ∂f_1/∂x_2, ..., row after row; or the array to take for J."
        ),
        names_option("--outputs", "Columns of a table that are outputs; or the array to take for F."),
        names_option(
            "--inputs",
            "Columns of a table that are inputs, by default all numbers that are nothing else; or the array for X, "
            "data/X of a struct or group.",
        ),
    ):
        function = add(function)
    return function


def ask_for_outputs(data: Path, columns: Columns, silent: bool = False) -> Columns:
    """What was asked for; of a table whose outputs were not named, somebody at a terminal is asked for them."""
    if silent or columns.outputs or columns.jacobians or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return columns
    with open_source(data, columns) as source:
        if not isinstance(source, Table):
            return columns
        click.echo(f"{data} is a table: it holds {printable(source.holds())}.", err=True)
    named = click.prompt("Which of them are outputs (with commas between them)", err=True)
    return replace(columns, outputs=(named,))


def columns_of_model(model: DecoupledModel, data: Path, columns: Columns) -> Columns:
    """What was asked for; of a table whose columns were not named, those that a model knows by name."""
    if columns.inputs or columns.outputs or model.columns is None or model.output_names is None:
        return columns
    with open_source(data, columns) as source:
        if not isinstance(source, Table):
            return columns
    texts = model.encoding is not None or columns.categories
    x, f = model.columns.column_names, model.output_names
    return replace(columns, inputs=x, outputs=f, categories=texts, encoding=model.encoding)


def layout_asked_for(layout: str | None, paper_layout: bool) -> str | None:
    """The layout that the two options ask for, or None; refused where they contradict each other."""
    if paper_layout and layout not in (None, LAST):
        raise click.UsageError(f"--paper-layout contradicts --layout {layout}: keep one of them.")
    return LAST if paper_layout else layout


def check_output(output: Path, *inputs: Path) -> None:
    """Refuse an output that cannot be written, or that would replace an input, before any work is done."""
    check_apart(output, *inputs)
    if output.suffix.lower() in OTHER_ENDINGS:
        name = output.with_suffix(".npz")
        raise FileError(f"{output} would not be a {output.suffix} file, for .npz is what is written: use -o {name}.")


def check_apart(output: Path, *inputs: Path) -> None:
    """Refuse an output of any kind that cannot be written, or that would replace an input."""
    target = check_writable(output)
    for one in inputs if target.exists() else ():
        read = one.glob("*" + SUFFIX) if one.is_dir() else [one]
        if any(file.exists() and target.samefile(file) for file in read):
            raise FileError(f"{output} is also an input of this command: give -o another name.")


def named_files(columns: Columns) -> list[Path]:
    """The `.npy` files that stand among the names of columns and arrays."""
    names = (*columns.inputs, *columns.outputs, *columns.jacobians, columns.weights or "")
    return [Path(name) for name in names if name.endswith(SUFFIX)]
