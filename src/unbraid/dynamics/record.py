"""A measured record of a dynamic system: inputs u(t), outputs y(t), evenly sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unbraid.data.checks import as_names, check_finite, counted, numbers, read_only
from unbraid.errors import DataError, SettingError, check_number, check_whole, shown
from unbraid.kernels.arrays import Array

UNEVEN = 0.02
"""Of the sampling time: by so much the moments of a record may be off an even grid, being rounded."""


@dataclass(frozen=True, init=False, repr=False)
class Record:
    """A record u(t), y(t) of a system, evenly sampled.

    Parameters
    ----------
    u, y
        (T, nu) and (T, ny), or (T,) for one input or output. Gaps, NaN in y, are left out of all errors; u is known
        throughout.
    dt
        The sampling time; 1 if None.
    t
        (T,), the moments of sampling, instead of `dt`: refused where they are not even.
    burn_in
        So many samples at the beginning count in no error: a transient whose cause was not recorded.
    period
        Samples in a period, where u is periodic: whole periods are averaged, which lowers the noise, and what differs
        between them tells how strong it is. A first period is simulated and does not count.
    input_names, output_names
        nu and ny names, or None; taken from data frames.

    Examples
    --------
    >>> import numpy as np, unbraid as ub
    >>> u = np.sin(0.1 * np.arange(200))
    >>> ub.dynamics.Record(u, 0.5 * u, dt=0.01)
    Record(T=200 samples, 1 input, 1 output, dt=0.01)
    """

    u: Array
    y: Array
    dt: float
    burn_in: int
    period: int | None
    input_names: tuple[str, ...] | None
    output_names: tuple[str, ...] | None

    def __init__(
        self,
        u: npt.ArrayLike,
        y: npt.ArrayLike,
        dt: float | None = None,
        *,
        t: npt.ArrayLike | None = None,
        burn_in: int = 0,
        period: int | None = None,
        input_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
    ) -> None:
        names = (
            as_names("input_names", input_names, u, signal_count(u)),
            as_names("output_names", output_names, y, signal_count(y)),
        )
        inputs, outputs = signal("u", u), signal("y", y)
        check_finite("u", inputs, "an input has to be known at every moment: cut the record there into two records")
        if np.isinf(outputs).any():
            raise DataError("y has entries that are infinite: put NaN where an output is not known.")
        if len(inputs) != len(outputs):
            raise DataError(
                f"u and y must have one row a moment each, got {counted(len(inputs), 'row')} of u and "
                f"{len(outputs)} of y."
            )
        check_whole("burn_in", burn_in, 0)
        if burn_in >= len(inputs):
            raise SettingError(f"burn_in={burn_in}, but there are only {len(inputs)} samples: some of them must count.")
        if period is not None:
            check_whole("period", period, 2)
        if not np.isfinite(outputs[burn_in:]).any(axis=0).all():
            raise DataError("y has an output of which nothing is known: leave it out.")
        step = sampling_time(dt, t, len(inputs))
        values = (read_only(inputs), read_only(outputs), step, burn_in, period, *names)
        for name, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.u)

    @property
    def nu(self) -> int:
        """How many inputs there are."""
        return int(self.u.shape[1])

    @property
    def ny(self) -> int:
        """How many outputs there are."""
        return int(self.y.shape[1])

    @property
    def time(self) -> Array:
        """(T,), the moments of sampling, from 0."""
        return np.asarray(self.dt * np.arange(len(self)))

    def take(self, some: slice) -> Record:
        """A stretch of the record, such as ``record.take(slice(0, 1000))``; its burn-in is what is left of that."""
        begin, end, step = some.indices(len(self))
        if step != 1 or end <= begin:
            raise SettingError(f"A stretch of a record is a slice of consecutive samples, got {shown(some)}.")
        return Record(
            self.u[begin:end],
            self.y[begin:end],
            self.dt,
            burn_in=max(self.burn_in - begin, 0),
            input_names=self.input_names,
            output_names=self.output_names,
        )

    def __repr__(self) -> str:
        sizes = f"{counted(self.nu, 'input')}, {counted(self.ny, 'output')}"
        extras = "".join(
            f", {name}={value}" for name, value in (("burn_in", self.burn_in), ("period", self.period)) if value
        )
        return f"Record(T={counted(len(self), 'sample')}, {sizes}, dt={self.dt:.6g}{extras})"


def signal_count(given: Any) -> int:
    """How many columns a signal has, of whatever kind it is."""
    shape = np.shape(given)
    return int(shape[1]) if len(shape) > 1 else 1


def signal(name: str, given: npt.ArrayLike) -> Array:
    """A signal as an array (T, how many), or a sentence why it is none."""
    array = numbers(name, given)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.shape[1] < 1:
        raise DataError(f"{name} must be (T,) or (T, how many signals), got shape {np.shape(given)}.")
    if array.shape[0] < array.shape[1]:
        raise DataError(f"{name} must have one row a moment, got shape {array.shape}: transpose it.")
    return array


def sampling_time(dt: float | None, t: npt.ArrayLike | None, T: int) -> float:
    """The sampling time from dt or from the moments t (T,), which have to be even."""
    if t is None:
        if dt is None:
            return 1.0
        check_number("dt", dt, 0.0)
        if dt == 0:
            raise SettingError("dt must be above 0, got 0.")
        return float(dt)
    if dt is not None:
        raise SettingError("Give dt or t, not both: dt is the distance of the moments t.")
    moments = numbers("t", t)
    if moments.shape != (T,) or T < 2:
        raise DataError(f"t must be ({T},), one moment a sample, got shape {moments.shape}.")
    step = (moments[-1] - moments[0]) / (T - 1)
    off, rounding = np.abs(moments - moments[0] - step * np.arange(T)).max(), np.spacing(np.abs(moments).max())
    if not step > 0.0 or not off <= UNEVEN * step + 4.0 * rounding or np.diff(moments).min() <= 0.0:
        worst = int(np.argmax(np.abs(np.diff(moments) - step)))
        raise DataError(
            f"t must be even, and it is not: from sample {worst} to the next it is "
            f"{moments[worst + 1] - moments[worst]:.4g}, and {step:.4g} on average. Resample u and y to an even grid "
            "first (scipy.interpolate.make_interp_spline), or give the even stretches as several records; where single "
            "samples are missing, put them in with NaN in y."
        )
    return float(step)


def as_records(records: object) -> tuple[Record, ...]:
    """One record or several of them as a tuple, which belong to the same system."""
    several = (records,) if isinstance(records, Record) else records
    if not isinstance(several, Sequence) or not several or not all(isinstance(one, Record) for one in several):
        raise SettingError(f"records must be a ub.dynamics.Record or a list of them, got {shown(records)}.")
    first = several[0]
    for k, one in enumerate(several[1:], 2):
        if (one.nu, one.ny) != (first.nu, first.ny):
            raise DataError(
                f"Records must have the same signals: record 1 has {counted(first.nu, 'input')} and "
                f"{counted(first.ny, 'output')}, record {k} has {one.nu} and {one.ny}."
            )
        if not np.isclose(one.dt, first.dt, rtol=1e-6):
            raise DataError(
                f"Records must have the same sampling time: record 1 has {first.dt:.6g}, record {k} has {one.dt:.6g}. "
                "Resample one of them."
            )
    return tuple(averaged(one) for one in several)


def check_signals(records: Sequence[Record]) -> None:
    """Refuse records to be identified from in which an output does not vary."""
    y = np.concatenate([one.y for one in records])
    for i in range(y.shape[1]):
        known = y[np.isfinite(y[:, i]), i]
        if not np.any(known != known[:1]):
            name = (records[0].output_names or [f"output {k + 1}" for k in range(y.shape[1])])[i]
            raise DataError(f"{name} does not vary in any record: leave it out, or give records in which it does.")


def averaged(record: Record) -> Record:
    """A periodic record as two mean periods, the first of which does not count; others as they are."""
    P = record.period
    if P is None:
        return record
    u, y = whole_periods(record)
    apart = np.abs(u - u.mean(axis=0)).max()
    if apart > 1e-6 * np.abs(u).max():
        raise DataError(
            f"period={P}, but u differs from period to period by {apart:.3g}: give the right period, or None."
        )
    with np.errstate(all="ignore"):
        mean = np.nansum(y, axis=0) / np.sum(~np.isnan(y), axis=0)  # a moment that no period knows stays unknown
    return replace_signals(record, np.tile(u.mean(axis=0), (2, 1)), np.tile(mean, (2, 1)), burn_in=P)


def whole_periods(record: Record) -> tuple[Array, Array]:
    """U and y, (periods, P, ·), of the whole periods behind the burn-in."""
    P = record.period
    assert P is not None
    count = (len(record) - record.burn_in) // P
    if count < 1:
        raise DataError(
            f"period={P}, but only {len(record) - record.burn_in} samples count: give a whole period at least."
        )
    begin = len(record) - count * P
    return record.u[begin:].reshape(count, P, -1), record.y[begin:].reshape(count, P, -1)


def noise_between_periods(record: Record) -> Array | None:
    """The standard deviation (ny,) of what differs from period to period; None where nothing tells."""
    if record.period is None:
        return None
    _, y = whole_periods(record)
    if len(y) < 2:
        return None
    known = ~np.isnan(y)
    count = known.sum(axis=0)
    mean = np.where(known, y, 0.0).sum(axis=0) / np.maximum(count, 1)
    squares, freedom = np.where(known, (y - mean) ** 2, 0.0).sum(axis=(0, 1)), np.maximum(count - 1, 0).sum(axis=0)
    return np.asarray(np.sqrt(squares / freedom)) if freedom.all() else None


def replace_signals(record: Record, u: Array, y: Array, burn_in: int) -> Record:
    """The record with other signals, that has no period any more."""
    return Record(u, y, record.dt, burn_in=burn_in, input_names=record.input_names, output_names=record.output_names)
