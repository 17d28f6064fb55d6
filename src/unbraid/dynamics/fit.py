"""The result of an identification: a dynamic model, how it came about, and its errors on records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unbraid.data.checks import counted
from unbraid.dynamics.models.base import DynamicModel, Simulation, SimulationStatus
from unbraid.dynamics.models.initial import first_outputs
from unbraid.dynamics.record import Record, as_records, known_means, known_spread, notes_on_periods, several
from unbraid.errors import DataError, SettingError, check_whole
from unbraid.fitting.request import seed_of
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.metrics import percents_of_spread
from unbraid.results.outcome import Status
from unbraid.results.worth.held_out import percents
from unbraid.runtime.files import StrPath

if TYPE_CHECKING:
    from unbraid.bases import Basis
    from unbraid.bases.constraints import Constraint


class Run(NamedTuple):
    """A record, what a model makes of it, and how many samples at the beginning do not count."""

    record: Record
    simulation: Simulation
    skip: int

    @property
    def residual(self) -> Array:
        """(T, ny), measured less simulated; NaN where that is not known or does not count."""
        left = self.record.y - self.simulation.y
        left[: self.skip] = np.nan
        return left


ADVICE = {
    Status.OUT_OF_SWEEPS: "The last steps still gained a little when their budget was spent: use the model as it is.",
    Status.OUT_OF_TIME: "The time limit was reached: raise `max_seconds`, or use the model as it is.",
    Status.FLAT: "Steps gain next to nothing any more: the minimum lies in a flat valley.",
}
"""What ways to end mean here."""


@dataclass(frozen=True, repr=False)
class RecordError:
    """How far a model is off records, output by output; samples that are not known or do not count are left out.

    Attributes
    ----------
    rmse
        (ny,), the root of the mean squared error, in the units of y.
    percent
        (ny,), the same in % of the standard deviation of y.
    inside, outside
        (ny,), the rmse where all branches were within the range seen in training, and where one was outside; NaN where
        there is no such sample.
    outside_share
        The share of samples that were outside.
    status
        The worst way in which a simulation ended.
    samples
        How many samples count.
    notes
        What of periodic records is worth knowing, in sentences.
    """

    rmse: Array
    percent: Array
    inside: Array
    outside: Array
    outside_share: float
    status: SimulationStatus
    samples: int
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        parts = [f"rmse {self.told(' of the spread')}"]
        if self.outside_share > 0.0:
            parts.append(
                f"{100.0 * self.outside_share:.2g} % of samples outside the range seen, with {figures(self.outside)}"
            )
        if self.status is SimulationStatus.DIVERGED:
            parts.append("DIVERGED")
        return f"RecordError({'; '.join((*parts, *self.notes))})"

    def told(self, what: str = "") -> str:
        """'0.0076, 1 %' and of what; 'diverged' where it is infinite."""
        return "diverged" if np.isinf(self.rmse).any() else f"{figures(self.rmse)}, {percents(self.percent)} %{what}"


class Asked(NamedTuple):
    """What was asked for: the function of `ub.dynamics`, its settings, and those of each record as it was given."""

    function: str
    settings: dict[str, Any]
    records: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, function: str, settings: dict[str, Any], rng: object, records: Sequence[Record]) -> Asked:
        """All of it; `rng` becomes None where it is no seed, but a generator."""
        names = ("dt", "burn_in", "period", "input_names", "output_names")
        own = tuple({name: getattr(one, name) for name in names} for one in records)
        return cls(function, {**settings, "rng": seed_of(rng)}, own)


@dataclass(frozen=True, repr=False)
class DynamicFit:
    """A dynamic model, and how it came about.

    Attributes
    ----------
    model
        The `StateSpaceModel` or `NarxModel`, in the user's units.
    simulation_error, prediction_error
        Errors on the records, simulated from the fitted initial states, and one step ahead.
    linear_error
        The simulation error of the best linear model of the same order or lags: what the branches are worth.
    records, simulations
        The records as they were used (of averaged ones two mean periods), and what the model makes of them.
    status
        How the last steps ended; its text is advice.
    objectives
        The mean squared simulation error, in units of the outputs' spread, step by step of the best start.
    starts
        The mean squared simulation errors that all starts came to, best first.
    basis, constraints
        What the branches are made of.
    noise
        (ny,), the standard deviation of the noise on the records as they were used, from what differs from period to
        period: an average over P periods has 1/√P of it. None where no periods agree.
    notes
        Reasons for what was chosen, and anything else worth knowing, in sentences.
    seconds
        How long it took.
    linear
        The best linear model (BLA) whose error `linear_error` is, a model without branches; None where it was not kept.
    asked
        What was asked for, which repeats the fit; None where that is not known.
    """

    model: DynamicModel
    simulation_error: RecordError
    prediction_error: RecordError
    linear_error: RecordError
    records: tuple[Record, ...]
    simulations: tuple[Simulation, ...]
    status: Status
    objectives: Array
    starts: tuple[float, ...]
    basis: Basis | None
    constraints: tuple[Constraint | None, ...]
    noise: Array | None = None
    notes: tuple[str, ...] = field(default=())
    seconds: float = 0.0
    linear: DynamicModel | None = None
    asked: Asked | None = None

    @property
    def runs(self) -> list[Run]:
        """The records of the fit with what the model makes of them."""
        return [Run(one, run, one.burn_in) for one, run in zip(self.records, self.simulations, strict=True)]

    @property
    def close(self) -> int:
        """How many starts came within 1 % of the best error, which is squared; none where all diverged."""
        return sum(one <= 1.02 * self.starts[0] < np.inf for one in self.starts)

    @property
    def advice(self) -> str:
        """What the status means here, and what to do."""
        return ADVICE.get(self.status, self.status.advice)

    def error_on(self, records: Record | list[Record] | tuple[Record, ...], first: int | None = None) -> RecordError:
        """The simulation error on records, the first outputs of which set the initial state and do not count.

        Parameters
        ----------
        records
            One or several.
        first
            How many outputs; None: 50, but at most a tenth of the record. 0: the system is at rest at the beginning.
        """
        error = simulation_error(runs_on(self.model, records, first))
        return replace(error, notes=notes_on_periods(several(records)))

    def report(self, path: StrPath, test: Record | list[Record] | tuple[Record, ...] = ()) -> None:
        """Write a page about the fit: simulated against measured, curves, poles, spectra, errors.

        Parameters
        ----------
        path
            Where the page goes, one HTML file.
        test
            Further records, which the fit did not see, to be simulated on the page.
        """
        from unbraid.report.dynamic import write_report

        write_report(self, path, test=test)

    def __repr__(self) -> str:
        lines = [
            f"Fit of a dynamic model: simulation error {self.simulation_error.told(' of the spread')}",
            f"  model    {self.model!r}",
            f"  one step {self.prediction_error.told()}",
            f"  linear   {self.linear_error.told()}: the best without branches",
        ]
        if self.noise is not None:
            lines.append(f"  noise    {figures(self.noise)}, of averaged periods")
        lines.append(f"  basis    {self.basis!r}")
        if self.starts:
            lines.append(f"  starts   {len(self.starts)}, {self.close} within 1 % of the best")
        lines.append(f"  status   {self.status.name}: {self.advice}")
        lines += [f"  note     {note}" for note in self.notes]
        return "\n".join(lines)


def runs_on(
    model: DynamicModel, records: Record | list[Record] | tuple[Record, ...], first: int | None = None
) -> list[Run]:
    """Simulations of records, the first outputs of which set the initial state and do not count; see `error_on`."""
    if first is not None:
        check_whole("first", first, 0)
    runs = []
    for record in as_records(records):
        check_sampling_time(model, record.dt)
        count = max(first_outputs(len(record)), model.lead) if first is None else first
        if count >= len(record):
            what = f"{counted(count, 'first output')} would set the state" if first is None else f"first={count}"
            length = counted(len(record), "sample")
            raise SettingError(f"{what}, but the record has only {length}: some of them must count.")
        start = record.y[:count] if count else None
        runs.append(Run(record, model.begun(record.u, start), max(count, record.burn_in)))
    return runs


def check_sampling_time(model: DynamicModel, dt: float) -> None:
    """Refuse a record of another sampling time than a model's."""
    if not np.isclose(dt, model.dt, rtol=1e-3):
        raise DataError(
            f"The record has a sampling time of {dt:.6g}, and the model one of {model.dt:.6g}: resample the record, or "
            "correct its dt or times."
        )


def figures(values: Array) -> str:
    """'0.31, 0.35' of numbers in their own units, of the first six."""
    return ", ".join(f"{one:.3g}" for one in values[:6]) + (", …" if len(values) > 6 else "")


def simulation_error(runs: Sequence[tuple[Record, Simulation, int]]) -> RecordError:
    """The error of simulations of records, of which so many samples each at the beginning do not count."""
    status = max((run.status for _, run, _ in runs), key=list(SimulationStatus).index)
    y = np.concatenate([record.y[skip:] for record, _, skip in runs])
    simulated = np.concatenate([run.y[skip:] for _, run, skip in runs])
    outside = np.concatenate([run.outside[skip:] for _, run, skip in runs])
    return error_of(y, simulated, outside, status)


@np.errstate(all="ignore")
def error_of(y: Array, simulated: Array, outside: BoolArray, status: SimulationStatus) -> RecordError:
    """The error of outputs (T, ny), told apart by where (T,) a branch was outside its range.

    From where a simulation diverged on, every known output is off by infinity.
    """
    known = np.isfinite(y)
    center, spread, unit = known_means(y), known_spread(y), known_spread(y, 1.0)
    square = np.where(known, ((simulated - y) / unit) ** 2, 0.0)
    square[known & np.isnan(simulated)] = np.inf

    def rmse(some: BoolArray) -> Array:
        count = known[some].sum(axis=0)
        return np.where(count > 0, unit * np.sqrt(square[some].sum(axis=0) / np.maximum(count, 1)), np.nan)

    whole = rmse(np.ones(len(y), dtype=bool))
    return RecordError(
        whole,
        np.where(np.isnan(whole), np.nan, percents_of_spread((whole / unit) ** 2, (spread / unit) ** 2, center / unit)),
        rmse(~outside),
        rmse(outside),
        float(outside.mean()) if len(outside) else 0.0,
        status,
        int(known.any(axis=1).sum()),
    )
