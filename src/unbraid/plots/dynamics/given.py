"""What pictures of dynamic models are given: fits and records, outputs by number or name."""

from __future__ import annotations

from unbraid.dynamics.fit import DynamicFit, Run, runs_on
from unbraid.dynamics.models.base import DynamicModel
from unbraid.dynamics.record import Record
from unbraid.errors import DataError
from unbraid.plots.labels import labels


def dynamic_fit(picture: str, given: object) -> DynamicFit:
    """What was given to a picture that draws fits of dynamic models, refused if it is none."""
    if not isinstance(given, DynamicFit):
        raise DataError(
            f"{picture} draws a DynamicFit, which ub.dynamics.state_space and ub.dynamics.narx return, got a "
            f"{type(given).__name__}."
        )
    return given


def run_to_draw(fit: DynamicFit, record: int | Record) -> Run:
    """The record of the fit of that number, from 0, or another one, simulated from its first outputs."""
    if isinstance(record, Record):
        return runs_on(fit.model, record)[0]
    runs = fit.runs
    if not 0 <= record < len(runs):
        raise DataError(f"record must be one of the fit's, from 0 to {len(runs) - 1}, or a Record, got {record!r}.")
    return runs[record]


def check_signal(output: int, model: DynamicModel) -> int:
    """The number of an output, from 0, refused where there is none."""
    if not 0 <= output < model.ny:
        raise DataError(f"output must be from 0 to {model.ny - 1}, got {output!r}.")
    return output


def output_labels(model: DynamicModel) -> list[str]:
    """The names of the outputs, fit to stand in a picture; y, or y₁, y₂, …."""
    return signal_labels(model.output_names, "y", model.ny)


def input_labels(model: DynamicModel) -> list[str]:
    """The names of the inputs, fit to stand in a picture; u, or u₁, u₂, …."""
    return signal_labels(model.input_names, "u", model.nu)


def signal_labels(names: tuple[str, ...] | None, letter: str, count: int) -> list[str]:
    """Names, or the letter, with indices where there are several."""
    return [letter] if names is None and count == 1 else labels(names, letter, count)
