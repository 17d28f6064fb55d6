"""What a page says of errors on records, row by row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbraid.dynamics.fit import RecordError
from unbraid.dynamics.models.base import SimulationStatus
from unbraid.kernels.arrays import Array
from unbraid.report.dynamic.subject import DynamicSubject
from unbraid.report.words import in_percent, plain_number


class ErrorRow(NamedTuple):
    """The errors of an output, ready to be shown; all but `rmse` in % of its standard deviation."""

    name: str
    simulation: str
    rmse: str
    inside: str
    outside: str
    ahead: str
    linear: str
    noise: str


def fit_rows(subject: DynamicSubject) -> list[ErrorRow]:
    """One row an output, on the records of the fit."""
    fit = subject.fit
    noise = np.full(fit.model.ny, np.nan) if fit.noise is None else in_spreads(fit.simulation_error, fit.noise)
    others = (fit.prediction_error.percent, fit.linear_error.percent, noise)
    cells = [
        ["diverged" if np.isinf(one[i]) else in_percent(float(one[i])) for one in others] for i in range(fit.model.ny)
    ]
    return [
        ErrorRow(name, *simulation_cells(fit.simulation_error, i), ahead, linear, heard)
        for i, (name, (ahead, linear, heard)) in enumerate(zip(subject.outputs, cells, strict=True))
    ]


def fresh_rows(subject: DynamicSubject) -> list[ErrorRow]:
    """One row an output and further record, without what is known of the fit's records alone."""
    several = len(subject.tests) > 1
    return [
        ErrorRow(f"{name}, record {k + 1}" if several else name, *simulation_cells(error, i), "", "", "")
        for k, error in enumerate(subject.test_errors)
        for i, name in enumerate(subject.outputs)
    ]


def simulation_cells(error: RecordError, i: int) -> tuple[str, str, str, str]:
    """The simulation error of output i: in %, in its units, and in % inside and outside the range seen."""
    if error.status is SimulationStatus.DIVERGED and not np.isfinite(error.rmse[i]):
        return "diverged", "–", "–", "–"
    inside, outside = (in_percent(float(in_spreads(error, one)[i])) for one in (error.inside, error.outside))
    return in_percent(float(error.percent[i])), plain_number(float(error.rmse[i])), inside, outside


@np.errstate(all="ignore")
def in_spreads(error: RecordError, values: Array) -> Array:
    """Values (ny,) in the units of y in % of its standard deviation; NaN where nothing tells that."""
    return np.asarray(values * error.percent / error.rmse)
