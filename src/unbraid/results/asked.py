"""What `decouple` was asked for, kept with the fit so that it can be asked again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from unbraid.bases import Basis
    from unbraid.bases.constraints import Constraint
    from unbraid.methods import Method


@dataclass(frozen=True)
class Asked:
    """The arguments of one call of `decouple`.

    Attributes
    ----------
    rank, basis, constraint, method, polish, starts
        As given.
    continued
        Whether there was an `init` to start from.
    seed
        `rng` where it was a number; None where it was not, so that only the same generator repeats the fit.
    """

    rank: int | Literal["auto"]
    basis: Basis | None
    constraint: Constraint | Sequence[Constraint | None] | None
    method: Method | None
    polish: bool | None
    starts: int
    continued: bool
    seed: int | None
