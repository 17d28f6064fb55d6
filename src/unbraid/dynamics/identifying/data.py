"""Records as an identification sees them: in balanced units, as courses of a form of models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unbraid.dynamics.identifying.choosing import some_stretches
from unbraid.dynamics.identifying.forms import Form, Units
from unbraid.dynamics.models.feedback import Course
from unbraid.dynamics.record import Record

SOME = 4096
"""Samples that all but the last steps of an identification are made on, at most."""


@dataclass(frozen=True)
class Data:
    """Records, the form of the model that they are to be given, and their balanced units."""

    form: Form
    units: Units
    records: tuple[Record, ...]

    def stretches(self, most: int = SOME) -> list[tuple[int, slice]]:
        """The stretches to begin with, of so many samples in all."""
        peaks = [
            np.nan_to_num(np.abs((one.y - self.units.y_center) / self.units.y_scale)).max(axis=1)
            for one in self.records
        ]
        return some_stretches([len(record) for record in self.records], peaks, most)

    def courses(self, stretches: Sequence[tuple[int, slice]] | None = None) -> tuple[Course, ...]:
        """Stretches of the records as courses; all of them whole if None."""
        places = [(k, slice(None)) for k in range(len(self.records))] if stretches is None else stretches
        return tuple(self.form.course(self.units, self.records[k], some) for k, some in places)

    def signals(self) -> dict[str, Any]:
        """Sampling time, names, and the input at rest: the mean, or zero where that is among the inputs seen."""
        u = np.concatenate([record.u for record in self.records])
        zero = (u.min(axis=0) <= 0.0) & (u.max(axis=0) >= 0.0)
        first = self.records[0]
        return {
            "dt": first.dt,
            "input_names": first.input_names,
            "output_names": first.output_names,
            "rest_input": np.where(zero, 0.0, u.mean(axis=0)),
        }
