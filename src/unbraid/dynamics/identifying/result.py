"""The result of an identification: the models found, and their errors on the records."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unbraid.dynamics.fit import Asked, DynamicFit, RecordError, error_of, simulation_error
from unbraid.dynamics.identifying.data import Data
from unbraid.dynamics.identifying.finishing import numbered
from unbraid.dynamics.identifying.forms import NarxForm
from unbraid.dynamics.models.base import DynamicModel, Simulation, SimulationStatus
from unbraid.dynamics.models.initial import first_outputs
from unbraid.dynamics.record import Record, moving_spread, noise_left, notes_on_periods, several
from unbraid.kernels.arrays import Array

LOST_AHEAD = "One step ahead the model diverges on these records: do not rely on this model for predictions."
STILL = "{} does not vary in any record: nothing is learned of it, and the model does not depend on it."


def make_fit(
    data: Data, model: DynamicModel, pasts: Sequence[Array], notes: tuple[str, ...], **parts: Any
) -> DynamicFit:
    """The fit of a model in the user's units with its pasts in balanced ones; `parts`: the others of a fit."""
    skips = [max(record.burn_in, model.lead) for record in data.records]
    runs = simulations(data, model, pasts)
    error = simulation_error(list(zip(data.records, runs, skips, strict=True)))
    ahead = prediction_error(model, data.records)
    lost = (LOST_AHEAD,) if np.isinf(ahead.percent).any() else ()
    return DynamicFit(model, error, ahead, error, data.records, tuple(runs), notes=(*notes, *lost), **parts)


def completed(
    fit: DynamicFit,
    function: str,
    settings: dict[str, Any],
    rng: object,
    records: Record | Sequence[Record],
    began: float,
) -> DynamicFit:
    """The fit with what was asked for, and with what the records tell as they were given: of noise, and in notes."""
    given, u = several(records), np.concatenate([one.u for one in fit.records])
    inputs = given[0].input_names or numbered("u", u.shape[1])
    still = [STILL.format(name) for name, spread in zip(inputs, moving_spread(u, 0.0), strict=True) if not spread]
    return replace(
        fit,
        noise=noise_left(given),
        notes=(*notes_on_periods(given), *still, *fit.notes),
        seconds=time.perf_counter() - began,
        asked=Asked.of(function, settings, rng, given),
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


def prediction_error(model: DynamicModel, records: Sequence[Record]) -> RecordError:
    """The error one step ahead, without the samples at the beginning of each record that set the state."""
    skips = [max(record.burn_in, model.lead, first_outputs(len(record))) for record in records]
    y = np.concatenate([record.y[skip:] for record, skip in zip(records, skips, strict=True)])
    ahead = [model.predicted(record.u, record.y)[skip:] for record, skip in zip(records, skips, strict=True)]
    return error_of(y, np.concatenate(ahead), np.zeros(len(y), dtype=bool), SimulationStatus.FINISHED)
