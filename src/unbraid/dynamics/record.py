"""A measured record of a dynamic system: inputs u(t), outputs y(t), evenly sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unbraid.data.checks import as_names, check_finite, counted, numbers, read_only
from unbraid.errors import DataError, SettingError, check_number, check_whole, shown
from unbraid.kernels.arrays import Array

UNEVEN = 0.02
"""Of the sampling time: by so much the moments of a record may be off an even grid, being rounded."""
NOT_PERIODIC, ROUNDING, CONSTANT = 0.1, 1e-6, 1e-12
"""Of its spread: an input that differs by more from period to period is not periodic; by less it is measured. Of its
size: what differs by less between periods is rounded, and what varies by less at all is constant."""


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
        between them tells how strong it is. A first period is simulated and does not count. Where no periods
        agree, noise cannot be told from a transient, and all is used as it is.
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
        whole = isinstance(some, slice) and all(isinstance(one, Integral | None) for one in (some.start, some.stop))
        begin, end, _ = some.indices(len(self)) if whole and some.step in (None, 1) else (0, 0, 1)
        if end <= begin:
            raise SettingError(f"A stretch of a record is a slice of consecutive samples, got {shown(some)}.")
        return replace_signals(self, self.u[begin:end], self.y[begin:end], max(self.burn_in - begin, 0))

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
    found = [records] if isinstance(records, Record) else records
    if not isinstance(found, Sequence) or not found or not all(isinstance(one, Record) for one in found):
        raise SettingError(f"records must be a ub.dynamics.Record or a list of them, got {shown(records)}.")
    first = found[0]
    for k, one in enumerate(found[1:], 2):
        check_alike(first, one, k)
        if not np.isclose(one.dt, first.dt, rtol=1e-6):
            raise DataError(
                f"Records must have the same sampling time: record 1 has {first.dt:.6g}, record {k} has {one.dt:.6g}. "
                "Resample one of them."
            )
    return tuple(averaged(one) for one in found)


def check_alike(first: Record, one: Record, k: int) -> None:
    """Refuse a record, the k-th, of other signals than the first has."""
    if (one.nu, one.ny) != (first.nu, first.ny):
        raise DataError(
            f"Records must have the same signals: record 1 has {counted(first.nu, 'input')} and "
            f"{counted(first.ny, 'output')}, record {k} has {one.nu} and {one.ny}."
        )


def several(records: Record | Sequence[Record]) -> Sequence[Record]:
    """One record or several of them as a sequence."""
    return [records] if isinstance(records, Record) else records


@np.errstate(all="ignore")
def known_means(signal: Array) -> Array:
    """The means over the first axis of what is known, not NaN; NaN where nothing is."""
    known = ~np.isnan(signal)
    return np.asarray(np.where(known, signal, 0.0).sum(axis=0) / known.sum(axis=0))


def known_spread(signal: Array, constant: float = 0.0, rounding: float = 0.0) -> Array:
    """The standard deviation (k,) of what is known of the columns of a signal (T, k), of any size.

    It is `constant` where it is at most a share `rounding` of that size.
    """
    size = np.abs(np.nan_to_num(signal)).max(axis=0, initial=0.0)
    scaled = signal / np.where(size > 0.0, size, 1.0)
    spread = np.sqrt(known_means((scaled - known_means(scaled)) ** 2))
    return np.where(spread > rounding, size * spread, constant)


def moving_spread(signal: Array, constant: float) -> Array:
    """The same, `constant` of what varies by rounding alone."""
    return known_spread(signal, constant, CONSTANT)


class Periods(NamedTuple):
    """U and y, (count, P, ·), of the whole periods of a record without transient; and what is worth knowing of them.

    Where they are not averaged, they are one, all samples from `begin` on.
    """

    u: Array
    y: Array
    begin: int
    notes: tuple[str, ...]


@np.errstate(all="ignore")
def periods_of(record: Record) -> Periods:
    """The periods of a record behind its burn-in; all that counts is one where it has no period."""
    known, notes = len(record) - record.burn_in, []
    P = record.period or known
    if known < P:
        raise DataError(f"period={P}, but only {known} samples count: give a whole period at least.")
    begin = len(record) - known // P * P
    u, y = record.u[begin:].reshape(-1, P, record.nu), record.y[begin:].reshape(-1, P, record.ny)
    left = transient_length(y)
    if left:
        off, noise = np.sqrt(known_means((y[0] - known_means(y[left:])) ** 2)), noise_of(y[left:])
        worst = int(np.nanargmax(off / noise))
        notes.append(
            f"A transient is left out, {counted(left, 'period')} of {len(y)}: the first differs from the later ones by "
            f"{off[worst]:.3g}, and these from each other by {noise[worst]:.3g}. Give burn_in={begin + left * P}."
        )
    apart = np.sqrt(np.mean((u - u.mean(axis=0)) ** 2, axis=(0, 1)))
    share = np.where(apart > ROUNDING * np.abs(u).max(axis=(0, 1)), apart / u.std(axis=(0, 1)), 0.0)
    worst = int(np.argmax(share))
    if share[worst] > NOT_PERIODIC:
        name = (record.input_names or [f"input {k + 1}" for k in range(record.nu)])[worst]
        raise DataError(
            f"period={P}, but u differs from period to period by {100.0 * share[worst]:.3g} % of its spread ({name}): "
            "give the right period, or None."
        )
    if share[worst]:
        notes.append(
            f"Inputs differ from period to period by {100.0 * share[worst]:.2g} % of their spread: look at period={P} "
            "if they should be equal."
        )
    begin = begin + left * P if left else record.burn_in
    u, y = u[left:], y[left:]
    if not is_settled(y):
        u, y = record.u[None, begin:], record.y[None, begin:]
        if record.period is not None:
            notes.append(
                "What differs between the periods may be a transient or noise: they are not averaged, and no noise is "
                "given. More periods tell them apart."
            )
    return Periods(u, y, begin, tuple(notes))


def transient_length(y: Array) -> int:
    """How many periods (count, P, ny) at the beginning, at most half, are left out as a transient."""
    left = 0
    while left < min(len(y) // 2, len(y) - 2) and not is_settled(y[left:]):
        left += 1
    return left


def is_settled(y: Array) -> bool:
    """Whether the first of several periods (count, P, ny) has no transient that an average is better without.

    With noise of variance σ² the first is off the mean of the others by σ² count / (count - 1), and by its transient;
    the mean squared error of the average is smaller without it where that is more than twice as much. Two periods are
    settled where their difference is white: noise may be, a transient is not. One period tells nothing.
    """
    if len(y) < 2:
        return False
    size = known_means(y.reshape(-1, y.shape[-1]) ** 2)
    if len(y) == 2:
        apart = y[0] - y[1]
        white = 2.0 / np.sqrt(len(apart)) * known_means(apart**2)
        return not np.any(np.abs(known_means(apart[1:] * apart[:-1])) > white + ROUNDING**2 * size)
    off, noise = known_means((y[0] - known_means(y[1:])) ** 2), noise_of(y[1:]) ** 2 * len(y) / (len(y) - 1)
    return not np.any(off > 2.0 * noise + ROUNDING**2 * size)


@np.errstate(all="ignore")
def noise_of(y: Array) -> Array:
    """The standard deviation (ny,) of what differs between periods (count, P, ny); NaN where nothing tells."""
    freedom = np.maximum(np.sum(~np.isnan(y), axis=0) - 1, 0).sum(axis=0)
    return np.asarray(np.sqrt(np.nansum((y - known_means(y)) ** 2, axis=(0, 1)) / freedom))


def averaged(record: Record) -> Record:
    """A periodic record as two mean periods, the first of which does not count; others as they are."""
    if record.period is None:
        return record
    periods = periods_of(record)
    if len(periods.y) == 1:
        return replace_signals(record, record.u, record.y, burn_in=periods.begin)
    u, y = (np.tile(known_means(one), (2, 1)) for one in periods[:2])
    return replace_signals(record, u, y, burn_in=record.period)


@np.errstate(all="ignore")
def noise_left(records: Sequence[Record]) -> Array | None:
    """The standard deviation (ny,) of the noise on records as they are used; None where no periods tell it.

    An average over P periods has noise smaller by √P; a record without periods has all of it.
    """
    periods = [periods_of(one).y for one in records]
    variance = known_means(np.stack([noise_of(y) for y in periods]) ** 2)
    many = np.concatenate([np.sum(~np.isnan(y), axis=0) for y in periods])
    return None if np.isnan(variance).any() else np.sqrt(variance * known_means(np.where(many > 0, 1.0 / many, np.nan)))


def notes_on_periods(records: Sequence[Record]) -> tuple[str, ...]:
    """What of periodic records is worth knowing: transients that are left out, and inputs that differ."""
    which = "Record {}: " if len(records) > 1 else ""
    return tuple(which.format(k) + note for k, one in enumerate(records, 1) for note in periods_of(one).notes)


def replace_signals(record: Record, u: Array, y: Array, burn_in: int) -> Record:
    """The record with other signals, that has no period any more."""
    return Record(u, y, record.dt, burn_in=burn_in, input_names=record.input_names, output_names=record.output_names)
