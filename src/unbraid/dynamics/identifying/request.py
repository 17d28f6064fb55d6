"""What was asked for of an identification, checked once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint, per_branch
from unbraid.data.problem import Problem
from unbraid.dynamics.identifying.choosing import ladder
from unbraid.dynamics.identifying.forms import Units
from unbraid.dynamics.record import Record, known_spread
from unbraid.errors import DataError, SettingError, check_number, check_whole, shown
from unbraid.fitting.checkpoints.checkpoint import journal_at
from unbraid.fitting.request import Continuing
from unbraid.fitting.session import Session
from unbraid.runtime.files import StrPath
from unbraid.runtime.progress import Callback

Auto = Literal["auto"]
MOST_BRANCHES = 5
"""Branches that are tried where their number is to be found."""
FARTHEST = 1e290
"""Sizes of signals, and their ratios, are at most this, and at least its inverse."""


def is_auto(given: object) -> bool:
    """Whether a size is to be found; an array is compared with no text."""
    return isinstance(given, str) and given == "auto"


@dataclass(frozen=True)
class Request:
    """The settings of an identification.

    Attributes
    ----------
    rank
        r, or "auto".
    basis, constraint, continuation, starts
        As `state_space` has them.
    max_seconds
        The time limit, or None.
    """

    rank: int | Auto
    basis: Basis | None
    constraint: Constraint | Sequence[Constraint | None] | None
    continuation: Continuing
    starts: int
    max_seconds: float | None

    def __post_init__(self) -> None:
        if not is_auto(self.rank):
            check_whole("rank", self.rank, 0)
        if self.basis is not None and not isinstance(self.basis, Basis):
            raise SettingError(f"basis must be one such as ub.BSpline(8), or None, got {shown(self.basis)}.")
        if not isinstance(self.continuation, str) or self.continuation not in get_args(Continuing):
            raise SettingError(f"continuation must be one of {get_args(Continuing)}, got {shown(self.continuation)}.")
        check_whole("starts", self.starts, 1)
        if self.max_seconds is not None:
            check_number("max_seconds", self.max_seconds, 0.0)
            if self.max_seconds == 0.0:
                raise SettingError("max_seconds must be above 0, got 0: use None for no limit.")
        if self.rank == "auto" and isinstance(self.constraint, Sequence):
            raise SettingError('With rank="auto" give one constraint for all branches, or the rank.')
        _ = self.constraints

    @property
    def most(self) -> int:
        """The largest rank that may be fitted."""
        return MOST_BRANCHES if self.rank == "auto" else int(self.rank)

    @property
    def constraints(self) -> tuple[Constraint | None, ...]:
        """One constraint, or None, for each branch that there may be."""
        from unbraid.dynamics.identifying.search import CUBIC

        return per_branch(self.constraint, self.most, self.basis or CUBIC)

    @property
    def bases(self) -> tuple[Basis, ...]:
        """What branches may be made of."""
        return ladder(self.basis, self.constraints)


def check_enough(records: Sequence[Record], unknowns: int) -> None:
    """Refuse records that have fewer numbers than a model has unknowns."""
    known = sum(int(np.isfinite(record.y[record.burn_in :]).sum()) for record in records)
    if known < 2 * unknowns:
        raise DataError(
            f"The records have {known} known outputs that count, too few for a model of some {unknowns} unknowns: "
            "lower the order or the rank, or give longer records."
        )


@np.errstate(all="ignore")
def check_signals(records: Sequence[Record]) -> None:
    """Refuse outputs that do not vary, inputs of which none does, and signals whose numbers overflow in their units."""
    units, (u, y) = Units.of(records), (np.concatenate([getattr(one, name) for one in records]) for name in ("u", "y"))
    if not np.isfinite(units.u_scale).any():
        raise DataError("No input varies in any record: nothing can be learned of how outputs answer to them.")
    still = np.flatnonzero(~(known_spread(y) > 0.0))
    if still.size:
        name = (records[0].output_names or [f"output {k + 1}" for k in range(y.shape[1])])[still[0]]
        raise DataError(f"{name} does not vary in any record: leave it out, or give records in which it does.")
    sizes, largest = np.concatenate([units.u_scale, units.y_scale]), max(np.abs(u).max(), np.nanmax(np.abs(y)))
    sizes = sizes[np.isfinite(sizes)]
    if not (largest <= FARTHEST and sizes.min() * FARTHEST >= max(1.0, sizes.max())):
        raise DataError(
            f"The signals of the records have sizes from {sizes.min():.1g} to {largest:.1g}, more than floating-point "
            "numbers can carry: give u and y in other units."
        )


@contextmanager
def open_session(
    records: Sequence[Record],
    settings: dict[str, Any],
    rng: object,
    callback: Callback | None,
    checkpoint: StrPath | None,
) -> Iterator[Session]:
    """A session for an identification, with a checkpoint that knows by records and settings what it belongs to."""
    check_signals(records)
    u, y = (np.concatenate([getattr(record, name) for record in records]) for name in ("u", "y"))
    lengths = [len(record) for record in records]
    own = Problem(u, np.nan_to_num(y))
    further = {
        "lengths": lengths,
        "burn_in": [record.burn_in for record in records],
        "gaps": np.packbits(np.isnan(y)),
        "dt": records[0].dt,
        "names": [records[0].input_names, records[0].output_names],
    }
    journal = journal_at(checkpoint, own, rng, {**settings, **further})
    with Session.open(journal, rng, callback) as session:
        yield session
