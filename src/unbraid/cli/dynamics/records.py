"""The records that `unbraid identify` reads, and the options that say what in a file is what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from unbraid.cli.options.data import complete_file, names_option
from unbraid.dynamics.reading import read_record
from unbraid.dynamics.record import Record
from unbraid.runtime.progress import Callback


@dataclass(frozen=True)
class Signals:
    """How files of records are read; see `read_record`.

    Attributes
    ----------
    inputs, outputs, time
        Columns or arrays.
    dt, burn_in, period
        As of a `Record`.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    time: str | None
    dt: float | None
    burn_in: int
    period: int | None

    def read(self, path: Path, callback: Callback | None) -> Record:
        """The record in a file."""
        sampled = {"time": self.time, "burn_in": self.burn_in, "period": self.period}
        return read_record(path, self.inputs, self.outputs, self.dt, **sampled, callback=callback)  # type: ignore[arg-type]

    @property
    def files(self) -> list[Path]:
        """The `.npy` files that stand among the names."""
        return [Path(name) for name in (*self.inputs, *self.outputs, self.time or "") if name.endswith(".npy")]


def time_option(text: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """The option that says where the moments of sampling are."""
    return click.option("--time", metavar="NAME", shell_complete=complete_file, help=text)


def record_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say what in a file is what; a command gets them as one `Signals`, `signals`."""

    @wraps(command)
    def function(
        *,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
        time: str | None,
        dt: float | None,
        burn_in: int,
        period: int | None,
        **others: Any,
    ) -> None:
        if dt is not None and time is not None:
            raise click.UsageError("--dt is the distance of the moments that --time names: give one of them.")
        command(signals=Signals(inputs, outputs, time, dt, burn_in, period), **others)

    for add in (
        click.option(
            "--period",
            type=click.IntRange(min=2),
            help="Samples in a period of the inputs in DATA: whole periods are averaged, and tell the noise.",
        ),
        click.option(
            "--burn-in",
            type=click.IntRange(min=0),
            default=0,
            show_default=True,
            help="Samples at the beginning of each record of DATA that count in no error.",
        ),
        time_option("Column, or array, with the moments of sampling, which have to be even; instead of --dt."),
        click.option("--dt", type=float, help="The sampling time; 1 by default."),
        names_option("--outputs", "Columns of a table that are outputs; or the arrays, if there is none named y."),
        names_option("--inputs", "Columns of a table that are inputs; or the arrays, if there is none named u."),
    ):
        function = add(function)
    return function
