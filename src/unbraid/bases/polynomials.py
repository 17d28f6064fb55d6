"""Polynomials, in Legendre polynomials on the range of u: well conditioned at any degree in use."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import factorial
from typing import Self

import numpy as np

from unbraid.bases.ranges import PlacedOnRange, RangeBasis
from unbraid.bases.splines import PlacedSpline
from unbraid.errors import check_whole
from unbraid.kernels.arrays import EPS, Array
from unbraid.kernels.legendre import legendre


@dataclass(frozen=True)
class Polynomial(RangeBasis):
    """Polynomial branches g(u) = Σ_k c_k P_k(t), t = u scaled to [-1, 1] on the range of the data.

    Examples
    --------
    >>> import unbraid as ub
    >>> ub.Polynomial(degree=3).size
    4
    """

    degree: int = 3

    def __post_init__(self) -> None:
        check_whole("degree", self.degree, 1)

    @property
    def size(self) -> int:
        return self.degree + 1

    def of_size(self, size: int) -> Self:
        return replace(self, degree=size - 1)

    @property
    def continued_degree(self) -> int:
        return self.degree

    def functions(self, t: Array, derivative: int = 0) -> Array:
        return legendre(t, self.degree, derivative)

    def roughness(self) -> Array:
        k = np.arange(self.size, dtype=np.float64)
        return np.diag(np.where(k >= 2, k**4, 0.0))

    def placed_on(self, ranges: Array) -> PlacedPolynomial:
        return PlacedPolynomial(ranges, self)

    def refusal(self) -> str | None:
        return (
            "nonnegative coefficients of a polynomial say nothing about its shape; "
            f"use BSpline(df={self.degree}, degree={self.degree}), the same polynomials in B-spline coordinates"
        )


@dataclass(frozen=True)
class PlacedPolynomial(PlacedOnRange):
    """Placed polynomials, whose shapes are read off their Bernstein coefficients."""

    def shape_coefficients(self, a: Array, order: int) -> tuple[Array, Array]:
        degree = self.basis.size - 1
        spline, convert = PlacedSpline(self.range, degree), bernstein_matrix(degree)
        control = (convert @ a[..., None])[..., 0]
        coefficients, _ = spline.shape_coefficients(control, order)
        rounding = 8.0 * EPS * (np.abs(convert) @ np.abs(a)[..., None]).max(axis=(-2, -1))
        largest_step = 1.0 if order < 2 else (2.0 / spline.supports().min(axis=-1))
        error = 2.0 ** min(order, 1) * rounding * largest_step
        return coefficients, np.broadcast_to(np.asarray(error)[..., None], coefficients.shape)

    def short_pieces(self, a: Array) -> tuple[Array, Array]:
        degree, (low, high) = self.basis.size - 1, self.domain()
        count = 1 if degree <= LOW else degree
        edges = 0.5 * (low + high) - 0.5 * (high - low) * np.cos(np.pi * np.arange(count + 1) / count)
        edges[0], edges[-1] = low, high
        middles, half = self.at(0.5 * (edges[1:] + edges[:-1])), 0.5 * np.diff(edges)
        powers = [self.evaluate(a, middles, k) * half**k / factorial(k) for k in range(degree + 1)]
        return edges, np.stack(powers)


LOW = 3
"""A degree up to which powers about one end of the range are accurate on all of it."""


def bernstein_matrix(degree: int) -> Array:
    """The matrix (degree + 1, degree + 1) from Legendre coefficients to those of splines without interior knots."""
    t = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    on_unit = PlacedSpline(np.array([-1.0, 1.0]), degree)
    return np.asarray(np.linalg.solve(on_unit.design(t), legendre(t, degree)), dtype=np.float64)
