r"""Natural cubic splines: g'' = 0 at both ends, so the linear continuation of a branch is smooth to second order.

On breakpoints b_0 < … < b_I a cubic spline g = Σ_k a_k N_{k,3} has I + 3 coefficients and a natural one, by two
conditions less, I + 1: with df degrees of freedom there are I = df intervals, of lengths h_1, …, h_I. At a clamped
end g'' = 0 says that the first two slopes of the control polygon are the same,

    (a_1 - a_0) / h_1 = (a_2 - a_1) / (h_1 + h_2),   or   a_1 = a_0 + w (a_2 - a_0),   w = h_1 / (2 h_1 + h_2),

and likewise at the other end: each condition gives the coefficient next to the end from its two neighbours. The
others are the coordinates, z = (a_0, a_2, …, a_df, a_{df+2}), and a = P z. A straight line (df = 1) has no a_2
that is free; there w = 1/3 from end to end.

Because 0 < w < 1/2, the rows of P are nonnegative and sum to one: the functions that belong to z are nonnegative
and sum to one, as B-splines do, and a branch starts at z_0 and ends at z_df. A coefficient that is left out lies on the
chord between its neighbours, so z is the same control polygon as a, without two corners that are none: it is
nonnegative, increasing or convex if and only if a is, and z carries constraints as a does.
P depends on ratios of lengths alone, so scaling or shifting u moves the breakpoints and leaves z as it is.
It has two rows that are not of the identity, and is applied without being formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from unbraid.bases.base import NormalEquations
from unbraid.bases.polygon import PolygonBasis, PolygonPlacement
from unbraid.bases.splines import PlacedSpline
from unbraid.errors import check_whole
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.kernels.knots import breakpoints
from unbraid.kernels.splines import Located, widths


@dataclass(frozen=True)
class NaturalCubic(PolygonBasis):
    """Natural cubic splines: cubic between df + 1 knots placed by the method, linear beyond them, g'' continuous.

    Parameters
    ----------
    df
        Degrees of freedom: coefficients of a branch beside its constant. With 1, branches are straight lines.

    Notes
    -----
    The reported coefficients are c_0 = g at the left end and, beside it, how far the other B-spline coefficients lie
    above: g = c_0 + Σ_{j=1}^{df} c_j N_j, the first natural function dropped.

    A function that bends at the ends of the data is followed less closely than by `BSpline`, whose ends are free.

    Examples
    --------
    >>> import unbraid as ub
    >>> ub.NaturalCubic(df=8).size
    9
    """

    df: int = 12

    def __post_init__(self) -> None:
        check_whole("df", self.df, 1)

    def place(self, u: Array, evenness: float = 0.0) -> PlacedNatural:
        return PlacedNatural(PlacedSpline(breakpoints(u, self.df, evenness), 3))

    def placement_from(self, arrays: dict[str, Array]) -> PlacedNatural:
        return PlacedNatural(PlacedSpline(arrays["breakpoints"], 3))


@dataclass(frozen=True)
class PlacedNatural(PolygonPlacement):
    """The natural ones among clamped cubic splines; its coordinates are the z of the module's equations."""

    spline: PlacedSpline

    @cached_property
    def shares(self) -> Array:
        """The weights w of the module's equations, at both ends: (..., 2)."""
        h = widths(self.spline.breakpoints)
        last = h.shape[-1] - 1
        outer, inner = h[..., [0, last]], h[..., [min(1, last), max(last - 1, 0)]]
        return outer / (2.0 * outer + inner)

    def arrays(self) -> dict[str, Array]:
        return self.spline.arrays()

    def select(self, index: Any) -> Self:
        return type(self)(self.spline.select(index))

    def merged(self, which: BoolArray, other: Self) -> Self:
        return type(self)(self.spline.merged(which, other.spline))

    def joined(self, others: Sequence[Self]) -> Self:
        return type(self)(self.spline.joined([other.spline for other in others]))

    def domain(self) -> Array:
        return self.spline.domain()

    def knots(self) -> Array:
        return self.spline.knots()

    def pieces(self, a: Array) -> Array:
        return self.spline.pieces(unfold(a, self.shares))

    def moved(self, scale: Array, shift: Array) -> Self:
        return type(self)(self.spline.moved(scale, shift))

    def at(self, u: Array) -> Located:
        return self.spline.at(u)

    def evaluate(self, a: Array, at: Located, derivative: int = 0) -> Array:
        return self.spline.evaluate(unfold(a, self.shares), at, derivative)

    def value_and_slope(self, a: Array, at: Located) -> tuple[Array, Array]:
        return self.spline.value_and_slope(unfold(a, self.shares), at)

    def design_at(self, at: Located, derivative: int = 0) -> Array:
        return fold(self.spline.design_at(at, derivative), self.shares[..., None, :])

    def normal_equations(
        self, at: Located, G: Array, R: Array | None, coupling: float, weight: Array | None = None
    ) -> NormalEquations:
        sums = self.normal_sums(at, G, R, coupling, weight)
        return self.assembled(sums, 0.0 if R is None else coupling)

    def normal_sums(
        self, at: Located, G: Array, R: Array | None, coupling: float, weight: Array | None = None
    ) -> tuple[Array, Array]:
        return self.spline.normal_sums(at, G, R, coupling, weight)

    def assembled(self, sums: tuple[Array, Array], coupling: float) -> NormalEquations:
        gram, right, total = self.spline.assembled(sums, coupling)
        rows = self.shares[..., None, :]
        return NormalEquations(fold(fold(gram, rows).mT, rows), fold(right, self.shares), fold(total, self.shares))

    def adjoint(self, at: Located, G: Array, R: Array | None) -> Array:
        return fold(self.spline.adjoint(at, G, R), self.shares)

    def supports(self) -> Array:
        """The cubic spline's, the first two and the last two taken together (all three of a straight line)."""
        supports = self.spline.supports()
        intervals = supports.shape[-1] - 2
        return np.add.reduceat(supports, [0, *range(2, intervals + 1)], axis=-1)

    def support_rounding(self) -> Array:
        return 2.0 * self.spline.support_rounding()  # the outermost are sums of two


def unfold(z: Array, shares: Array) -> Array:
    """The product P z: (..., df + 1) -> (..., df + 3), increasing to the last bit if z is."""
    a = np.empty((*z.shape[:-1], z.shape[-1] + 2))
    a[..., 0], a[..., 2:-2], a[..., -1] = z[..., 0], z[..., 1:-1], z[..., -1]
    a[..., 1] = z[..., 0] + shares[..., 0] * (z[..., 1] - z[..., 0])
    a[..., -2] = z[..., -1] + shares[..., 1] * (z[..., -2] - z[..., -1])
    return a


def fold(y: Array, shares: Array) -> Array:
    """The product Pᵀ y: (..., df + 3) -> (..., df + 1)."""
    z = np.concatenate([y[..., :1], y[..., 2:-2], y[..., -1:]], axis=-1)
    for end, beside, w in ((0, 1, shares[..., 0]), (-1, -2, shares[..., 1])):
        z[..., end] += (1.0 - w) * y[..., beside]
        z[..., beside] += w * y[..., beside]
    return z
