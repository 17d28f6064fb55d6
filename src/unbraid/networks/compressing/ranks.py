"""How many branches a part is replaced by: as asked for, within a budget of numbers, or as few as lose little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Self

from unbraid.errors import SettingError, shown
from unbraid.networks.compressing.fitting import FIRST_SAMPLES, PartFitting, Replacement
from unbraid.networks.compressing.parts import count_numbers
from unbraid.networks.compressing.result import Step


@dataclass(frozen=True)
class Asked:
    """A rank, or a share of the part's numbers that its replacement may have, or neither, and then what may be lost."""

    rank: int | None
    budget: float | None
    tolerance: float

    @classmethod
    def of(cls, rank: object, budget: float | None, tolerance: float) -> Self:
        """What was asked for, or an error."""
        if (rank is None) == (budget is None):
            raise SettingError("Give either rank (a number, or 'auto') or budget, a share of the part's numbers.")
        if rank is None or rank == "auto":
            return cls(None, budget, tolerance)
        if isinstance(rank, bool) or not isinstance(rank, Integral) or rank < 1:
            raise SettingError(f'rank must be a whole number, at least 1, or "auto", got {shown(rank)}.')
        return cls(int(rank), None, tolerance)


def numbers_of(fitting: PartFitting, rank: int) -> int:
    """How many numbers a replacement of so many branches has."""
    layout = fitting.activations.layout
    return rank * (layout.m + layout.n + fitting.settings.basis.size) + layout.n


def find_rank(
    fitting: PartFitting, asked: Asked, samples: int | None, coupling: float | None
) -> tuple[Replacement, list[Step]]:
    """The replacement that was asked for, and the ranks that were tried on the way."""
    first = min(samples or FIRST_SAMPLES, len(fitting.order))
    steps: list[Step] = []

    def tried(found: Replacement) -> Replacement:
        rank = found.fit.model.rank
        steps[:] = [one for one in steps if one.rank != rank]
        steps.append(Step(fitting.name, rank, numbers_of(fitting, rank), found.agreement))
        return found

    def fit(rank: int, weight: float | None) -> Replacement:
        return tried(fitting.best_coupling(rank, first) if weight is None else fitting.fit(rank, first, weight))

    if asked.rank is not None or asked.budget is not None:
        rank = rank_within(fitting, asked.budget) if asked.rank is None else asked.rank
        found = fit(rank, coupling)
    else:
        found = fewest_branches(fitting, asked.tolerance, fit, coupling)
    if samples is None:
        found = tried(fitting.enough(found))
    return found, sorted(steps, key=lambda one: one.rank)


def rank_within(fitting: PartFitting, budget: float | None) -> int:
    """The largest rank whose replacement has at most a share of the part's numbers."""
    assert budget is not None
    most = budget * count_numbers(fitting.function)
    each, fixed = numbers_of(fitting, 1) - numbers_of(fitting, 0), numbers_of(fitting, 0)
    rank = int((most - fixed) // each)
    if rank < 1:
        raise SettingError(
            f"budget={budget:g} leaves {most:,.0f} numbers, and one branch takes {each + fixed:,}: raise it to "
            f"{(each + fixed) / max(count_numbers(fitting.function), 1):.2g} or more, or choose a larger part."
        )
    return rank


def fewest_branches(
    fitting: PartFitting,
    tolerance: float,
    fit: Callable[[int, float | None], Replacement],
    coupling: float | None,
) -> Replacement:
    """The replacement of the smallest rank that loses at most the tolerance, or the best of all that are smaller."""
    fixed = numbers_of(fitting, 0)
    most = max(1, (count_numbers(fitting.function) - fixed) // (numbers_of(fitting, 1) - fixed))
    found: dict[int, Replacement] = {}

    def at(rank: int) -> Replacement:
        if rank not in found:
            known = next(iter(found.values())).coupling if found else coupling
            found[rank] = fit(rank, known)
        return found[rank]

    def within(rank: int) -> bool:
        return at(rank).agreement.loss <= tolerance

    low, high = 0, 1
    while not within(high) and high < most and not found[high].interrupted:
        low, high = high, min(2 * high, most)
    if not within(high):
        interrupted = found[high].interrupted
        return replace(min(found.values(), key=lambda one: one.agreement.loss), interrupted=interrupted)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if within(middle) else (middle, high)
        if found[middle].interrupted:
            return replace(found[high], interrupted=True)
    return found[high]
