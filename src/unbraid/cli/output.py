"""What commands print on stdout: lines, tables, or one JSON document."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import IO, Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from unbraid.cli.columns import lay_columns
from unbraid.cli.errors import in_options
from unbraid.results.advice import on_held_out
from unbraid.results.fit import Fit
from unbraid.results.worth.held_out import HeldOut
from unbraid.runtime.text import clean_name, printable
from unbraid.version import __version__

PIPED_WIDTH = 10_000
"""Columns for output that no terminal shows: nothing should be cut or folded there."""
MOST_ROWS = 20
"""Outputs that a table of errors lists one by one."""


def is_terminal(stream: IO[str] | None) -> bool:
    """Whether a stream leads to a terminal, where somebody looks; None leads nowhere."""
    return stream is not None and stream.isatty()


def console_on(stream: IO[str]) -> Console:
    """A rich console that writes to a stream: plain text where that is no terminal, no colours under NO_COLOR."""
    width = None if is_terminal(stream) else PIPED_WIDTH
    plain = not is_terminal(stream) or bool(os.environ.get("NO_COLOR"))
    return Console(
        file=stream,
        width=width,
        color_system=None if plain else "auto",
        force_terminal=is_terminal(stream),
        highlight=False,
    )


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], lead: int = 1) -> None:
    """Print a title and a table; the first column is text, the others are aligned to the right.

    Where a terminal is too narrow for all columns, those that are left follow below, beside the first `lead`.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    console = console_on(sys.stdout)
    say(title)
    for which, widths in lay_columns(columns, rows, lead, console.width):
        table = Table(show_edge=False, pad_edge=False, show_header=any(columns))
        for k, width in zip(which, widths, strict=True):
            table.add_column(Text(columns[k]), justify="right" if k else "left", overflow="fold", width=width)
        for row in rows:
            table.add_row(*(Text(row[k]) for k in which))
        with console.capture() as captured:  # and not by itself: rich has its own way to end where nobody reads
            console.print(table)
        click.echo(captured.get().rstrip("\n"))  # with the colours of a terminal


def error_rows(
    jacobian_error: float | None,
    output_errors: Sequence[float] | None,
    names: Sequence[str] = (),
    held: HeldOut | None = None,
) -> list[tuple[str, ...]]:
    """The rows of a table of errors: each output (the first ones of many), by name if it has one, then Error(J).

    With what is `held` out they have the columns of `error_columns`, one or three more.
    """
    errors = [] if output_errors is None else [float(error) for error in output_errors]
    called = [clean_name(name) for name in names] or [f"output {i + 1}" for i in range(len(errors))]
    columns = [errors, *held_out_columns(held, len(errors))]
    table = [tuple(f"{column[i]:.3g} %" for column in columns) for i in range(len(errors))]
    rows = [(name, *row) for name, row in list(zip(called, table, strict=True))[:MOST_ROWS]]
    if len(errors) > MOST_ROWS:
        worst = max(range(len(errors)), key=errors.__getitem__)
        left = len(errors) - MOST_ROWS
        rows.append((f"... {left} more; the worst of all is {called[worst]}", *table[worst]))
    if jacobian_error is not None:
        new = [] if held is None or held.jacobian_error is None else [f"{held.jacobian_error:.2e}"]
        slopes = ["Error(J)", f"{jacobian_error:.2e}", *new]
        rows.append((*slopes, *[""] * (len(error_columns(held)) - len(slopes))))
    return rows


def error_columns(held: HeldOut | None) -> tuple[str, ...]:
    """The columns of a table of errors, without titles where there is but one."""
    if held is None:
        return ("", "")
    apart = ("inside", "outside") if shown_apart(held) else ()
    return ("", "on the samples", "on new points", *apart)


def shown_apart(held: HeldOut) -> bool:
    """Whether errors inside and outside of the range seen are shown apart: where values tell them."""
    return held.outside_errors is not None and bool(np.isfinite(held.outside_errors).any())


def held_out_columns(held: HeldOut | None, outputs: int) -> list[list[float]]:
    """Errors that are expected on new points, in the order of `error_columns`."""
    if held is None:
        return []
    apart = (held.inside_errors, held.outside_errors) if shown_apart(held) else ()
    every = [[math.nan] * outputs if errors is None else errors for errors in (held.output_errors, *apart)]
    return [[float(error) for error in errors] for errors in every]


def say(text: str) -> None:
    """Print a line on stdout; what files and their names say in it cannot steer the terminal."""
    click.echo(printable(text))


def json_option(function: click.decorators.FC) -> click.decorators.FC:
    """Add the option --json, which the command gets as `as_json`."""
    text = "Print one JSON document, for programs, in place of the text."
    return click.option("--json", "as_json", is_flag=True, help=text)(function)


def say_document(document: Mapping[str, Any]) -> None:
    """Print a JSON document, an entry a line, and the version that wrote it first."""
    lines = [
        f"  {json.dumps(key)}: {json.dumps(as_json(value), allow_nan=False)}"
        for key, value in {"unbraid": __version__, **document}.items()
    ]
    say("{\n" + ",\n".join(lines) + "\n}")


def fit_quality(result: Fit) -> dict[str, Any]:
    """How good a fit is and how it ended, as the documents of several commands have it."""
    return {
        "jacobian_error": result.jacobian_error,
        "output_errors": result.output_errors,
        "held_out": held_out_document(result),
        "objective": result.objective,
        "converged": result.status.converged,
        "status": result.status.name,
        "advice": in_options(result.status.advice),
        "method": result.method,
        "basis": repr(result.basis),
        "smoothing": smoothing_document(result),
        "seconds": result.seconds,
    }


def held_out_document(result: Fit) -> dict[str, Any] | None:
    """The errors that are expected on new points, in a document; None where they are not known."""
    held = result.held_out
    if held is None:
        return None
    return {
        "output_errors": held.output_errors,
        "jacobian_error": held.jacobian_error,
        "outside": held.outside,
        "inside_errors": held.inside_errors,
        "outside_errors": held.outside_errors,
        "samples": held.samples,
        "advice": in_options(advice) if (advice := on_held_out(result)) else None,
    }


def smoothing_document(result: Fit) -> dict[str, Any] | None:
    """What a fit chose from the data, in a document; None where nothing was open."""
    chosen = result.smoothing
    if chosen is None:
        return None
    return {
        "degrees_of_freedom": chosen.freedom,
        "supported": chosen.supported,
        "coupling": chosen.coupling,
        "noise_percent": result.value_noise,
        "slope_noise_percent": result.slope_noise,
    }


def as_json(value: Any) -> Any:
    """The value as JSON has it: arrays are lists, paths are texts, and what is not a finite number is null.

    Examples
    --------
    >>> as_json({"W0": np.eye(2), "error": float("inf"), "notes": ("one",)})
    {'W0': [[1.0, 0.0], [0.0, 1.0]], 'error': None, 'notes': ['one']}
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: as_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(one) for one in value]
    return str(value) if isinstance(value, os.PathLike) else value
