"""When is one candidate as good as another, and which one is to be recommended: the one-standard-error rule.

Candidates are compared fold by fold on the same samples, so what is hard about a fold is hard for both and cancels.
With d_k the difference of their errors in fold k, one is *as good as* another if mean d ≤ the standard error of that
mean. Errors below `EXACT` count as `EXACT`: what is predicted to 0.01 % is predicted.

That alone would take too many branches where there is no noise and the basis is what limits the fit: any
further branch then helps a little, and significantly so. Therefore a branch must also be worth its unknowns: it does
not count if as many unknowns in a finer basis, and no further branch, do as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unbraid.data.problem import Problem
from unbraid.selection.validation import Row, Settings, standard_error

EXACT = 1e-8
"""A relative squared error below which held-out samples count as predicted exactly."""
CLEAR = 3.0
"""Branches that lower the error by more than this factor are needed: where the basis is the limit, they gain less."""


def as_good(one: Row, other: Row) -> bool:
    """Whether the error of one is at most one standard error (of the difference) above the other's."""
    both = one.inside & other.inside
    first, second = (np.maximum(row.fold_means(both), EXACT) for row in (one, other))
    difference = first - second
    return bool(difference.mean() <= standard_error(difference))


def exact(row: Row) -> bool:
    """Whether a candidate predicts the held-out samples of every fold exactly."""
    return bool(row.errors.max() <= EXACT)


def clearly_better(one: Row, other: Row) -> bool:
    """Whether the error of one is lower than that of the other by more than the factor `CLEAR`."""
    return CLEAR * max(one.error, EXACT) < other.error


def finer(problem: Problem, kept: Row, more: Row) -> Settings:
    """The settings kept, in a basis so fine that there are as many unknowns as with more branches."""
    rank, others = kept.settings.rank, problem.n + problem.m - 2
    size = -(-more.unknowns // rank) - others
    return replace(kept.settings, basis=kept.settings.basis.of_size(max(size, kept.settings.basis.size + 1)))


def lowest(rows: Sequence[Row]) -> Row:
    """The row of least error."""
    return min(rows, key=lambda row: row.error)


def simplest(rows: Sequence[Row], kept: Row) -> Row:
    """Of all that are as good as the one kept, the one with the fewest unknowns, and of those the best."""
    return min((row for row in rows if row is kept or as_good(row, kept)), key=lambda row: (row.unknowns, row.error))
