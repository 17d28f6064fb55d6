"""The result of an identification: the models found, and their errors on the records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unbraid.bases import Basis
from unbraid.dynamics.fit import DynamicFit, RecordError, error_of, simulation_error
from unbraid.dynamics.identifying.data import Data
from unbraid.dynamics.identifying.forms import NarxForm
from unbraid.dynamics.models.base import DynamicModel, Simulation, SimulationStatus
from unbraid.dynamics.models.initial import first_outputs
from unbraid.dynamics.record import Record
from unbraid.kernels.arrays import Array
from unbraid.results.outcome import Status

LEAVES = "The simulation of the records themselves diverges once branches are continued."


class Finished(NamedTuple):
    """The model in the user's units and the best linear one, each with its pasts in balanced units, one a record."""

    model: DynamicModel
    pasts: Sequence[Array]
    linear: DynamicModel
    linear_pasts: Sequence[Array]


def make_fit(data: Data, found: Finished, basis: Basis | None, notes: tuple[str, ...]) -> DynamicFit:
    """The fit of models that were found, with their errors on all records; how it came about is still to come."""
    skips = [max(record.burn_in, found.model.lead) for record in data.records]
    starts = [max(skip, first_outputs(len(record))) for skip, record in zip(skips, data.records, strict=True)]
    runs = simulations(data, found.model, found.pasts)
    lines = simulations(data, found.linear, found.linear_pasts)
    error = simulation_error(list(zip(data.records, runs, skips, strict=True)))
    lost = error.status is SimulationStatus.DIVERGED
    return DynamicFit(
        found.model,
        error,
        prediction_error(found.model, data.records, starts),
        simulation_error(list(zip(data.records, lines, skips, strict=True))),
        tuple(data.records),
        tuple(runs),
        Status.CONVERGED,
        np.zeros(0),
        (),
        basis,
        (),
        notes=(*notes, LEAVES) if lost else notes,
        linear=found.linear,
    )


def simulations(data: Data, model: DynamicModel, pasts: Sequence[Array]) -> list[Simulation]:
    """The simulations of all records from fitted pasts."""
    narx = isinstance(data.form, NarxForm)
    scale, center = (data.units.y_scale, data.units.y_center) if narx else (1.0, 0.0)
    return [
        model.simulation_from(record.u, past * scale + center, record.y[: model.lead])
        for record, past in zip(data.records, pasts, strict=True)
    ]


def prediction_error(model: DynamicModel, records: Sequence[Record], skips: Sequence[int]) -> RecordError:
    """The error one step ahead, of which so many samples at the beginning of each record do not count."""
    y = np.concatenate([record.y[skip:] for record, skip in zip(records, skips, strict=True)])
    ahead = [model.predicted(record.u, record.y)[skip:] for record, skip in zip(records, skips, strict=True)]
    return error_of(y, np.concatenate(ahead), np.zeros(len(y), dtype=bool), SimulationStatus.FINISHED)
