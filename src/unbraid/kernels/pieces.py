r"""Piecewise polynomials on the whole line: what branches are once they have been found.

The pieces of a function lie between breaks β_1 ≤ … ≤ β_{P-1}, and the i-th is

    g(u) = Σ_p powers[p, i] t^p,        t = (u - middle_i) rate_i,        β_i ≤ u < β_{i+1},

so that a value costs the search for its piece and a few products, whatever basis it came from. At infinity the outer
pieces have their limits: infinities, or the constant that is left of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb, isinf
from typing import NamedTuple

import numpy as np

from unbraid.kernels.arrays import Array, BoolArray, IndexArray
from unbraid.kernels.splines import Located, Lookup, exponents, horner, horner_with_slope, lookup


class Piece(NamedTuple):
    """One piece in numbers of Python, which are quicker than arrays of one; the highest power comes first."""

    middle: float
    rate: float
    powers: Sequence[float]


@dataclass(frozen=True)
class Pieces:
    """A piecewise polynomial.

    Attributes
    ----------
    breaks
        (P - 1,), increasing; at least one.
    middle, rate
        (P,), of the pieces' variables t.
    powers
        (q + 1, P), q ≥ 1.
    """

    breaks: Array
    middle: Array
    rate: Array
    powers: Array

    @cached_property
    def _cells(self) -> Lookup | None:
        """Even cells with at most one break in each, or None where breaks are too close to each other."""
        around = 0.5 * (self.breaks[-1] - self.breaks[0]) or 1.0
        ends = self.breaks[0] - around, self.breaks[-1] + around
        return lookup(np.array([ends[0], *self.breaks, ends[1]]))

    def find(self, u: Array) -> IndexArray:
        """The pieces of inputs u (S,); the first where u is not a number."""
        if self._cells is not None:
            return self._cells.intervals(u)
        return np.where(np.isnan(u), 0, np.searchsorted(self.breaks, u, side="right"))

    def _locate(self, u: Array) -> tuple[Located, BoolArray | None]:
        """Inputs u (S,) as `horner` wants them, and where t is infinite, if anywhere: 0 · t is not 0 then, so t is."""
        piece = self.find(u)
        rate = self.rate.take(piece)
        t = u - self.middle.take(piece)
        t *= rate
        far = np.isinf(t)
        if not far.any():
            return Located(piece, t, rate, len(self.middle)), None
        t[far] = 0.0
        return Located(piece, t, rate, len(self.middle)), far

    def value(self, u: Array) -> Array:
        """The values g(u) at u (S,)."""
        at, far = self._locate(u)
        value = horner(self.powers, at)
        if far is not None:
            value[far] = [self.value_at(one) for one in u[far].tolist()]
        return value

    def slope(self, u: Array) -> Array:
        """The slopes g'(u) at u (S,)."""
        at, far = self._locate(u)
        slope = horner_with_slope(self.powers, at)[1]
        if far is not None:
            slope[far] = [self.slope_at(one) for one in u[far].tolist()]
        return slope

    def bend(self, u: Array) -> Array:
        """The second derivative at u (S,); not a number where u is not one."""
        (at, _), powers = self._locate(u), self.powers
        if len(powers) == 2:
            return np.where(np.isnan(u), u, 0.0)
        bend = horner(exponents(len(powers), 2)[1:] * exponents(len(powers), 2)[:-1] * powers[2:], at)
        bend *= at.rate**2
        bend[np.isnan(u)] = np.nan  # a piece of degree 0 does not see u
        return bend

    @cached_property
    def _numbers(self) -> tuple[list[float], list[Piece]]:
        """Breaks and pieces in numbers of Python."""
        powers = self.powers[::-1].T.tolist()
        pieces = [Piece(*one) for one in zip(self.middle.tolist(), self.rate.tolist(), powers, strict=True)]
        return self.breaks.tolist(), pieces

    def value_at(self, u: float) -> float:
        """The value at one u: the number that `value` gives."""
        breaks, pieces = self._numbers
        middle, rate, powers = pieces[bisect_right(breaks, u)]
        t, value = (u - middle) * rate, 0.0
        for power in powers:
            value = value * t + power
        return leading(powers, t) if isinf(t) else value

    def slope_at(self, u: float) -> float:
        """The slope at one u: the number that `slope` gives."""
        breaks, pieces = self._numbers
        middle, rate, powers = pieces[bisect_right(breaks, u)]
        t, value, slope = (u - middle) * rate, 0.0, 0.0
        for power in powers:
            slope = slope * t + value
            value = value * t + power
        if isinf(t):
            count = len(powers)
            slope = leading([(count - 1 - k) * power for k, power in enumerate(powers[:-1])], t)
        return slope * rate


def about(powers: Array, starts: Array) -> Array:
    """The polynomials Σ_p powers[p] t^p, (q + 1, I), in powers of t - start."""
    count = len(powers)
    shifted = [sum(comb(p, k) * powers[p] * starts ** (p - k) for p in range(k, count)) for k in range(count)]
    return np.array(shifted).reshape(count, len(starts))


def leading(powers: Sequence[float], t: float) -> float:
    """The first term that is not zero of a polynomial at an infinite t, the highest power first; 0 if none is."""
    for k, power in enumerate(powers):
        if power != 0.0:
            exponent = len(powers) - 1 - k
            return power * t**exponent if exponent else power
    return 0.0
