r"""B-splines: the paper's internal functions, equations (4) and (5).

With df degrees of freedom and degree d there are df - d interior knots, at quantiles of u or closer to
evenly spaced ones, and a branch has df + 1 coefficients. The two representations of the paper,

    (value)  g(u)  = c_0 + Σ_{j=1}^{df} c_j N_{j,d}(u)            (first function dropped)
    (slope)  g'(u) =       Σ_{j=1}^{df} c_j N_{j,d-1}(u),   g = c_0 + ∫ g'

span the same functions. Both are computed in the coordinates a of the full clamped basis,
g = Σ_{k=0}^{df} a_k N_{k,d}, in which everything is local:

    (value)  c_0 = a_0, c_j = a_j - a_0,        (slope)  c_0 = a_0, c_j = d (a_j - a_{j-1}) / (τ_{j+d} - τ_j),

because a clamped spline starts at a_0. Scaling or shifting u moves the knots and leaves a as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from unbraid.bases.base import NormalEquations
from unbraid.bases.polygon import PolygonBasis, PolygonPlacement
from unbraid.errors import SettingError, check_whole, shown
from unbraid.kernels import splines as kernel
from unbraid.kernels.arrays import EPS, Array, BoolArray
from unbraid.kernels.knots import breakpoints, kept_apart

Representation = Literal["value", "slope"]
LOOKED_UP = 1 << 13
"""Inputs from which on it pays to look up their intervals in a table."""


class SplineBasis(PolygonBasis):
    """Clamped splines of one degree; subclasses are frozen dataclasses that have `df` and `degree`."""

    degree: int

    def place(self, u: Array, evenness: float = 0.0) -> PlacedSpline:
        return PlacedSpline(breakpoints(u, self.df - self.degree + 1, evenness), self.degree)

    def placement_from(self, arrays: dict[str, Array]) -> PlacedSpline:
        return PlacedSpline(arrays["breakpoints"], self.degree)


@dataclass(frozen=True)
class BSpline(SplineBasis):
    """B-splines. The method places the knots: at quantiles of the branch's inputs, or more evenly.

    Parameters
    ----------
    df
        Degrees of freedom: coefficients of a branch beside its constant. At least `degree`.
    degree
        Polynomial degree of the branch g (its slope has one less).
    of
        Which of the paper's representations the reported coefficients are in: ``"value"``, a
        spline of g, or ``"slope"``, a spline of g'. Both describe the same functions.

    Examples
    --------
    >>> import unbraid as ub
    >>> ub.BSpline(df=12, degree=3)
    BSpline(df=12, degree=3, of='value')
    """

    df: int = 12
    degree: int = 3
    of: Representation = "value"

    def __post_init__(self) -> None:
        check_whole("degree", self.degree, 1)
        check_whole("df", self.df, 1)
        if self.df < self.degree:
            raise SettingError(
                f"df must be at least the degree, got df={self.df} with degree={self.degree}: "
                f"raise df to {self.degree} or lower the degree."
            )
        if self.of not in ("value", "slope"):
            raise SettingError(f"of must be 'value' or 'slope', got {shown(self.of)}.")

    @property
    def continued_degree(self) -> int:
        return self.degree

    def paper_coefficients(self, placement: PlacedSpline, a: Array) -> Array:
        if self.of == "value":
            return super().paper_coefficients(placement, a)
        return np.concatenate([a[..., :1], placement.slope_coefficients(a)], axis=-1)


@dataclass(frozen=True)
class PiecewiseLinear(SplineBasis):
    """Continuous piecewise-linear branches with df - 1 interior kinks, placed by the method.

    Examples
    --------
    >>> import unbraid as ub
    >>> ub.PiecewiseLinear(df=8).degree
    1
    """

    df: int = 12
    degree = 1

    def __post_init__(self) -> None:
        check_whole("df", self.df, 1)


@dataclass(frozen=True)
class PlacedSpline(PolygonPlacement):
    """Clamped splines of one degree on breakpoints (..., I + 1)."""

    breakpoints: Array
    degree: int

    @cached_property
    def value_pieces(self) -> Array:
        return kernel.pieces(self.breakpoints, self.degree)

    @cached_property
    def lookup(self) -> kernel.Lookup | None:
        """A table that finds the intervals of many inputs, or None where it would not pay."""
        return kernel.lookup(self.breakpoints)

    def arrays(self) -> dict[str, Array]:
        return {"breakpoints": self.breakpoints}

    def select(self, index: Any) -> Self:
        return type(self)(self.breakpoints[index], self.degree)

    def merged(self, which: BoolArray, other: Self) -> Self:
        return type(self)(np.where(which[:, None, None], other.breakpoints, self.breakpoints), self.degree)

    def joined(self, others: Sequence[Self]) -> Self:
        return type(self)(np.concatenate([self.breakpoints, *(other.breakpoints for other in others)]), self.degree)

    def domain(self) -> Array:
        return self.breakpoints[..., [0, -1]]

    def knots(self) -> Array:
        return self.breakpoints

    def pieces(self, a: Array) -> Array:
        return kernel.combine(a, self.value_pieces)

    def moved(self, scale: Array, shift: Array) -> Self:
        return type(self)(kept_apart(self.breakpoints * scale[..., None] + shift[..., None]), self.degree)

    def at(self, u: Array) -> kernel.Located:
        return kernel.locate(u, self.breakpoints, self.lookup if u.size >= LOOKED_UP else None)

    def evaluate(self, a: Array, at: kernel.Located, derivative: int = 0) -> Array:
        P = self.pieces(a)
        for _ in range(derivative):
            P = kernel.differentiate(P, self.breakpoints)
        return kernel.horner(P, at)

    def value_and_slope(self, a: Array, at: kernel.Located) -> tuple[Array, Array]:
        return kernel.horner_with_slope(self.pieces(a), at)

    def design_at(self, at: kernel.Located, derivative: int = 0) -> Array:
        dense = np.zeros((*at.t.shape, self.breakpoints.shape[-1] - 1 + self.degree))
        kernel.write_basis(dense.reshape(-1, dense.shape[-1]), np.arange(at.t.size), self.functions(derivative), at)
        return dense

    def write_design(self, out: Array, at: kernel.Located, derivative: int = 0) -> None:
        B, S, r, width = out.shape
        K = self.breakpoints.shape[-1] - 1 + self.degree
        out[..., width - K :] = 0.0
        start, branch, sample = np.arange(B)[:, None, None], np.arange(r)[:, None], np.arange(S)
        rows = (start * S + sample) * r + branch
        kernel.write_basis(out.reshape(-1, width), rows, self.functions(derivative), at, width - K)

    def functions(self, derivative: int) -> Array:
        """The polynomial pieces of the basis functions, or of their derivatives."""
        M = self.value_pieces
        for _ in range(derivative):
            M = kernel.differentiate_basis(M, self.breakpoints)
        return M

    def normal_equations(
        self, at: kernel.Located, G: Array, R: Array | None, coupling: float, weight: Array | None = None
    ) -> NormalEquations:
        sums = self.normal_sums(at, G, R, coupling, weight)
        return self.assembled(sums, 0.0 if R is None else coupling)

    def normal_sums(
        self, at: kernel.Located, G: Array, R: Array | None, coupling: float, weight: Array | None = None
    ) -> tuple[Array, Array]:
        """Moments of the inputs, and of slopes and values, in each interval."""
        inputs = kernel.moments(at, 2 * self.degree + 1, weight)
        if weight is not None:
            G, R = G * weight, None if R is None else R * weight
        return inputs, kernel.right_moments(at, self.degree, G, R, coupling)

    def assembled(self, sums: tuple[Array, Array], coupling: float) -> NormalEquations:
        M, (inputs, right) = self.value_pieces, sums
        return NormalEquations(
            kernel.assemble_matrix(kernel.gram_shares(M, inputs, self.breakpoints, coupling)),
            kernel.assemble_vector(kernel.basis_sums(M, right)),
            kernel.assemble_vector(kernel.basis_sums(M, inputs)),
        )

    def adjoint(self, at: kernel.Located, G: Array, R: Array | None) -> Array:
        right = kernel.right_moments(at, self.degree, G, R, 1.0)
        return kernel.assemble_vector(kernel.basis_sums(self.value_pieces, right))

    def supports(self) -> Array:
        knots = kernel.clamped_knots(self.breakpoints, self.degree)
        size = self.breakpoints.shape[-1] - 1 + self.degree
        return (knots[..., self.degree + 1 : self.degree + size] - knots[..., 1:size]) / self.degree

    def support_rounding(self) -> Array:
        largest: Array = np.abs(self.breakpoints).max(axis=-1, keepdims=True)
        return (2.0 * EPS / self.degree) * largest
