"""`unbraid simulate`: the outputs of a dynamic model under given inputs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click
import numpy as np

from unbraid.cli.bars import progress_bar
from unbraid.cli.dynamics.records import time_option
from unbraid.cli.errors import WRONG_INPUT, fail, file_is_there, in_options
from unbraid.cli.options.data import OutputFile, check_apart, named_files, names_option
from unbraid.cli.output import json_option, say, say_document
from unbraid.data.checks import counted
from unbraid.dynamics.fit import check_sampling_time
from unbraid.dynamics.models.base import DynamicModel, Simulation, SimulationStatus
from unbraid.dynamics.models.files import load_model
from unbraid.dynamics.reading import naming, read_inputs, read_sampling_time
from unbraid.errors import DataError, UnbraidError
from unbraid.reading.columns import Columns
from unbraid.reading.layout import FIRST
from unbraid.reading.predictions import WRITABLE, Predictions, find_writer, write_predictions

EXAMPLES = """\b
Examples:
  unbraid simulate dynamic.npz record.csv -o y.csv
  unbraid simulate dynamic.npz record.csv --inputs u --start-outputs y \\
      --first 50 -o y.mat
  unbraid simulate dynamic.npz record.npz --json
"""


@click.command("simulate", short_help="Simulate a dynamic model.", epilog=EXAMPLES)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@names_option(
    "--inputs", "Columns of a table that are inputs, if not MODEL's; or the arrays, if there is none named u."
)
@names_option(
    "--start-outputs", "Columns, or the array, with measured outputs, the first of which set the initial state."
)
@click.option("--first", type=click.IntRange(min=1), default=50, show_default=True, help="How many of them.")
@time_option("Column, or array, with the moments of sampling, refused where MODEL's are not as far apart.")
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    help=f"The outputs, in a file of just this name: {WRITABLE}, by its ending. With --json it may be left out, and y "
    "is printed.",
)
@json_option
def command(
    model: Path,
    data: Path,
    inputs: tuple[str, ...],
    start_outputs: tuple[str, ...],
    first: int,
    time: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Simulate MODEL, which `unbraid identify` has written, under the inputs in DATA: its outputs y (T, ny).

    DATA is a file of any kind that `unbraid identify` reads, with inputs alone or with more. The system is at rest at
    the beginning, unless --start-outputs names what was measured then.

    A simulation that leaves the range seen in training says so. One that leaves all bounds writes its outputs up to
    there, NaN behind it, and ends with exit code 2.
    """
    if output is not None:
        find_writer(output)
        check_apart(output, model, data, *named_files(Columns((*inputs, time or ""), start_outputs)))
    elif not as_json:
        raise click.UsageError("Missing option '-o' / '--output'. Or add --json, which prints y.")
    loaded = load_model(model)
    check_time(data, time, loaded, inputs)
    with progress_bar("Simulating") as callback:
        (u, u_names), start = read_inputs(data, inputs, start_outputs, loaded.input_names or (), callback)
        simulation = loaded.run(u, None if start is None else start[0][:first])
    names = loaded.input_names or u_names or letters("u", loaded.nu), loaded.output_names or letters("y", loaded.ny)
    predictions = Predictions(u, simulation.y, None, FIRST, *names, letter="y")
    if output is not None:
        written = write_predictions(output, predictions)
        file_is_there("simulation", output)
    outside, T = int(np.count_nonzero(simulation.outside)), len(u)
    if as_json:
        sizes = {"samples": T, "inputs": loaded.nu, "outputs": loaded.ny, "dt": loaded.dt}
        ended = {"status": simulation.status.name, "outside": outside, "diverged_at": simulation.diverged_at}
        say_document({"output": output, **sizes, **ended, **(predictions.arrays() if output is None else {})})
    else:
        say(f"Read {counted(T, 'sample')}; {start_words(start is not None, first)}.")
        say(f"Wrote {written} to {output}.")
    if simulation.status is SimulationStatus.LEFT_RANGE and not as_json:
        note = f"{outside} of {T} samples lie outside the range seen in training, where branches are continued."
        click.echo(f"Note: {note}", err=True)
    check_divergence(simulation, T)


def check_time(data: Path, time: str | None, model: DynamicModel, inputs: tuple[str, ...]) -> None:
    """Refuse moments of another sampling time than the model's; where nobody named them, a note tells of those in t."""
    if time is None and "t" in (inputs or model.input_names or ()):
        return
    dt = model.dt
    with suppress(*(() if time else (UnbraidError,))):  # there need be no t, and it may be anything
        dt = read_sampling_time(data, time or "t")
    try:
        with naming(data):
            check_sampling_time(model, dt)
    except DataError as error:
        if time is not None:
            raise
        click.echo(f"Note: {error}", err=True)


def check_divergence(simulation: Simulation, T: int) -> None:
    """End with a sentence and exit code 2 where a simulation left all bounds."""
    if simulation.status is SimulationStatus.DIVERGED:
        advice = in_options(simulation.status.advice)
        fail(f"At sample {simulation.diverged_at} of {T}: {advice}", WRONG_INPUT)


def start_words(measured: bool, first: int) -> str:
    """From where a simulation begins, in words."""
    return f"the first {first} measured outputs set the initial state" if measured else "it begins at rest"


def letters(letter: str, count: int) -> tuple[str, ...]:
    """'u', or 'u1', 'u2', …, for signals without names."""
    return (letter,) if count == 1 else tuple(f"{letter}{k + 1}" for k in range(count))
