"""The result of an identification: the models found, and their errors on the records."""

from __future__ import annotations

from collections.abc import Sequence

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

LOST_AHEAD = "One step ahead the model diverges on these records: do not rely on this model for predictions."


def make_fit(
    data: Data, model: DynamicModel, pasts: Sequence[Array], basis: Basis | None, notes: tuple[str, ...]
) -> DynamicFit:
    """The fit of a model in the user's units with its pasts in balanced ones; how it came about is still to come."""
    skips = [max(record.burn_in, model.lead) for record in data.records]
    starts = [max(skip, first_outputs(len(record))) for skip, record in zip(skips, data.records, strict=True)]
    runs = simulations(data, model, pasts)
    error = simulation_error(list(zip(data.records, runs, skips, strict=True)))
    ahead = prediction_error(model, data.records, starts)
    lost = np.isinf(ahead.percent).any()
    return DynamicFit(
        model,
        error,
        ahead,
        error,
        tuple(data.records),
        tuple(runs),
        Status.CONVERGED,
        np.zeros(0),
        (),
        basis,
        (),
        notes=(*notes, LOST_AHEAD) if lost else notes,
    )


def size_of(error: RecordError) -> float:
    """How far a model is off over all outputs, each in units of its spread."""
    return float(np.linalg.norm(np.nan_to_num(error.percent, nan=0.0, posinf=np.inf)))


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
