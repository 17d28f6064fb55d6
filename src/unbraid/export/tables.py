r"""Several piecewise polynomials as one table, in which the pieces of many inputs are found by halving.

Row j has the pieces of function j, and its breaks in the same places, in 2^k columns; what is too much is NaN, beyond
which no input lies. An input's piece is how many breaks it has reached. One compares it with a break in the middle,
then with one a quarter further up or down, and so on: k comparisons, whatever the input is, and no array larger than
the inputs'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.kernels.arrays import Array, IndexArray
from unbraid.kernels.pieces import Pieces


@dataclass(frozen=True, eq=False)
class PieceTable:
    """Piecewise polynomials g_j(u) = Σ_p powers[p, j, i] t^p, t = (u - middle[j, i]) rate[j, i], of r functions.

    Attributes
    ----------
    breaks, middle, rate
        (r, 2^k): where piece i + 1 of function j begins, and the variables of the pieces.
    powers
        (q + 1, r, 2^k).
    """

    breaks: Array
    middle: Array
    rate: Array
    powers: Array

    @property
    def start(self) -> IndexArray:
        """(r,), the place, counted through the whole table, of the break that each input is compared with first."""
        r, width = self.breaks.shape
        return np.asarray(np.arange(r) * width + width // 2 - 1)

    @property
    def ends(self) -> IndexArray:
        """(2, r), the places of the first and the last piece of each function."""
        first = np.arange(len(self.breaks)) * self.breaks.shape[1]
        return np.stack([first, first + np.isfinite(self.breaks).sum(axis=1)])

    @property
    def turns(self) -> list[tuple[int, int]]:
        """How far to go in the table after each comparison, where u has reached the break, and where it has not.

        After the last, the place is that of the piece.
        """
        width = int(self.breaks.shape[1])
        halves = [width >> k for k in range(2, width.bit_length())]
        return [*((half, -half) for half in halves), (1, 0)]


def tabulate(functions: Sequence[Pieces]) -> PieceTable:
    """One table of some functions, at least one."""
    most = max(len(one.middle) for one in functions)
    width = 1 << (most - 1).bit_length()
    breaks, middle, rate = np.full((3, len(functions), width), np.nan)
    powers = np.zeros((max(len(one.powers) for one in functions), len(functions), width))
    for j, one in enumerate(functions):
        count = len(one.middle)
        breaks[j, : count - 1] = one.breaks
        middle[j, :count], rate[j, :count] = one.middle, one.rate
        powers[: len(one.powers), j, :count] = one.powers
    return PieceTable(breaks, middle, rate, powers)
