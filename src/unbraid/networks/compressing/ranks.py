"""How many branches a part is replaced by: as asked for, within a budget of numbers, or as few as lose little."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Self

from unbraid.errors import SettingError, shown
from unbraid.networks.compressing.part_fitting import FIRST_SAMPLES, PartFitting, Replacement
from unbraid.networks.compressing.parts import count_numbers
from unbraid.networks.compressing.result import Step
from unbraid.runtime.interrupts import attempt

ROUNDING = 1e-9
"""What a loss may be above the tolerance: 1 - 0.99 is more than 0.01."""
FEW_HELD = 200
"""Held-out inputs by which a loss is known only roughly."""


@dataclass(frozen=True)
class Asked:
    """A rank, or a share of the part's numbers that its replacement may have, or neither, and then what may be lost."""

    rank: int | None
    budget: float | None
    tolerance: float

    def accepts(self, found: Replacement) -> bool:
        """Whether a replacement loses no more than it may; of a rank or budget that was given, any will do."""
        chosen = self.rank is not None or self.budget is not None
        return chosen or found.agreement.loss <= self.tolerance + ROUNDING

    @classmethod
    def of(cls, rank: object, budget: float | None, tolerance: float) -> Self:
        """What was asked for, or an error."""
        if rank is not None and budget is not None:
            raise SettingError("Give rank (a number, or 'auto') or budget, a share of the part's numbers, not both.")
        if rank is None or rank == "auto":
            return cls(None, budget, tolerance)
        if isinstance(rank, bool) or not isinstance(rank, Integral) or rank < 1:
            raise SettingError(f'rank must be a whole number, at least 1, or "auto", got {shown(rank)}.')
        return cls(int(rank), None, tolerance)


def numbers_of(fitting: PartFitting, rank: int) -> int:
    """How many numbers a replacement of so many branches has."""
    layout = fitting.activations.layout
    return rank * (layout.m + layout.n + fitting.settings.basis.size) + layout.n


def rank_of(fitting: PartFitting, numbers: float) -> int:
    """The largest rank with at most so many numbers."""
    fixed = numbers_of(fitting, 0)
    return int((numbers - fixed) // (numbers_of(fitting, 1) - fixed))


def find_rank(
    fitting: PartFitting, asked: Asked, samples: int | None, coupling: float | None
) -> tuple[Replacement, list[Step]]:
    """The replacement that was asked for, and the ranks that were tried on the way."""
    first = min(samples or FIRST_SAMPLES, len(fitting.order))
    known = first * fitting.activations.layout.n * (1 + fitting.activations.layout.m)
    most = max(1, rank_of(fitting, known))
    if asked.rank is not None and asked.rank > most:
        raise SettingError(
            f"rank={asked.rank} has {numbers_of(fitting, asked.rank):,} unknown numbers, and {first} samples tell of "
            f"{known:,}: give a rank of at most {most}, or more samples."
        )
    steps: list[Step] = []

    def tried(found: Replacement) -> Replacement:
        rank = found.fit.model.rank
        steps[:] = [one for one in steps if one.rank != rank]
        steps.append(Step(fitting.part.name, rank, numbers_of(fitting, rank), found.samples, found.agreement))
        return found

    def fit(rank: int, weight: float | None) -> Replacement:
        return tried(fitting.best_coupling(rank, first) if weight is None else fitting.fit(rank, first, weight))

    if asked.rank is not None or asked.budget is not None:
        rank = min(most, rank_within(fitting, asked.budget)) if asked.rank is None else asked.rank
        found = fit(rank, coupling)
    else:
        found = fewest_branches(fitting, asked, fit, coupling, most)
        if coupling is None and found.fit.model.rank > 1 and not found.interrupted:
            other = fitting.best_coupling(found.fit.model.rank, first)
            found = tried(replace(min(found, other, key=lambda one: one.agreement.loss), interrupted=other.interrupted))
    if samples is None:
        more = fitting.with_more_samples(found)
        kept = more if asked.accepts(more) or not asked.accepts(found) else found
        found = tried(replace(kept, interrupted=more.interrupted))
    return found, sorted(steps, key=lambda one: one.rank)


def notes_on_replacement(fitting: PartFitting, asked: Asked, found: Replacement) -> list[str]:
    """What should be known of a replacement that its figures do not say."""
    notes = []
    part = f"part {fitting.part.name!r}" if fitting.part.name else "the network"
    after, before = numbers_of(fitting, found.fit.model.rank), count_numbers(fitting.function)
    if after >= before:
        notes.append(
            f"What replaces {part} has {after:,} numbers, no fewer than the {before:,} of before: give a smaller rank, "
            "or a larger part."
        )
    if not asked.accepts(found) and not found.interrupted:
        notes.append(
            f"No rank with fewer numbers than {part} was found to lose at most {100 * asked.tolerance:g} %, and this "
            "is the one that lost least: give more inputs, a larger tolerance or a larger part, or train on."
        )
    if fitting.misses_classes():
        notes.append(
            "Labels are numbers, but no integers, so outputs are not taken for classes: if they stand for classes, "
            "give integers 0, 1, …"
        )
    held = len(fitting.activations.inputs)
    if held < FEW_HELD:
        notes.append(f"Only {held} inputs are held out, and what is lost is roughly known: give more inputs.")
    return notes


def rank_within(fitting: PartFitting, budget: float | None) -> int:
    """The largest rank whose replacement has at most a share of the part's numbers."""
    assert budget is not None
    most = budget * count_numbers(fitting.function)
    rank, one = rank_of(fitting, most), numbers_of(fitting, 1)
    if rank < 1:
        least = math.ceil(100 * one / max(count_numbers(fitting.function), 1)) / 100
        advice = f"raise it to {least:g} or more, or choose a larger part" if least < 1.0 else "choose a larger part"
        raise SettingError(f"budget={budget:g} leaves {most:,.0f} numbers, and one branch takes {one:,}: {advice}.")
    return rank


def fewest_branches(
    fitting: PartFitting,
    asked: Asked,
    fit: Callable[[int, float | None], Replacement],
    coupling: float | None,
    highest: int,
) -> Replacement:
    """The replacement of the smallest rank that loses at most the tolerance; if none does, the one that loses least."""
    most = max(1, min(highest, rank_of(fitting, count_numbers(fitting.function))))
    found: dict[int, Replacement] = {}

    def at(rank: int) -> Replacement:
        if not found:
            found[rank] = fit(rank, coupling)
        elif rank not in found:
            known = next(iter(found.values())).coupling
            found[rank] = attempt(partial(fit, rank, known), lambda: replace(best(), interrupted=True), safe=True)
        return found[rank]

    def best() -> Replacement:
        return min(found.values(), key=lambda one: one.agreement.loss)

    def within(rank: int) -> bool:
        return asked.accepts(at(rank))

    low, high = 0, 1
    while not within(high) and high < most and not found[high].interrupted:
        low, high = high, min(2 * high, most)
    if found[high].interrupted or not within(high):
        return replace(found[high] if within(high) else best(), interrupted=found[high].interrupted)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if within(middle) else (middle, high)
        if found[middle].interrupted:
            return replace(found[high], interrupted=True)
    return found[high]
