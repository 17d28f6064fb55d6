r"""Bases and placements whose coordinates are the heights of a control polygon, from which shapes are read off.

The coefficient a_k of a clamped spline of degree d stands above the mean of its inner knots,
ξ_k = (τ_{k+1} + … + τ_{k+d}) / d, and the polygon through these points has the shape of the spline: the slope of the
polygon between two neighbours,

    s_j = (a_j - a_{j-1}) / (ξ_j - ξ_{j-1}),        ξ_j - ξ_{j-1} = (τ_{j+d} - τ_j) / d,

is the j-th B-spline coefficient of g', and s_{j+1} - s_j is, but for a positive factor, one of g'' (for d = 1: a kink).
So a function is nonnegative, increasing or convex if its polygon is.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import cache
from typing import Any, Self

import numpy as np

from unbraid.bases.base import Basis, Placement
from unbraid.kernels.arrays import EPS, Array


class PolygonBasis(Basis):
    """A basis whose placements are `PolygonPlacement`s; subclasses are frozen dataclasses with a field `df`.

    It has df + 1 coefficients, and those of the paper are c_0 = a_0 and c_j = a_j - a_0: the first function is dropped
    in favour of a constant.
    """

    df: int

    @property
    def size(self) -> int:
        return self.df + 1

    def of_size(self, size: int) -> Self:
        return replace(self, df=size - 1)  # type: ignore[type-var]

    def paper_coefficients(self, placement: Any, a: Array) -> Array:
        c = a - a[..., :1]
        c[..., 0] = a[..., 0]
        return c


class PolygonPlacement(Placement):
    """A placement in whose coordinates a shape of the function is a shape of the polygon; it carries constraints."""

    @abstractmethod
    def supports(self) -> Array:
        """The distances (..., K - 1) along u between neighbouring coordinates: a_j - a_{j-1} = s_j · this."""

    @abstractmethod
    def support_rounding(self) -> Array:
        """How far (..., 1) `supports` may be off because knots are rounded: much, where they lie far from zero."""

    def plus(self, a: Array, constant: Array) -> Array:
        return a + constant[..., None]

    def roughness(self) -> Array:
        return second_differences(self.supports().shape[-1] + 1)

    def is_constant(self, a: Array) -> Any:
        return np.all(a[..., 1:] == a[..., :-1], axis=-1)

    def slope_coefficients(self, a: Array) -> Array:
        """The slopes s (..., K - 1) of the polygon."""
        return np.diff(a) / self.supports()

    def shape_coefficients(self, a: Array, order: int) -> tuple[Array, Array]:
        if order == 0:
            return a, np.zeros_like(a)
        if order == 1:
            return np.diff(a), np.zeros_like(a[..., 1:])
        slopes, supports, rounding = self.slope_coefficients(a), self.supports(), EPS * np.abs(a)
        error = 2.0 * (rounding[..., 1:] + rounding[..., :-1]) / supports
        error += np.abs(slopes) * (self.support_rounding() / supports)
        return np.diff(slopes), error[..., 1:] + error[..., :-1]

    def differentiate(self, a: Array, order: int) -> Array:
        if order == 2:
            slopes = self.slope_coefficients(a)
            return np.concatenate([a[..., :1], slopes[..., :1], np.diff(slopes)], axis=-1)
        return a.copy() if order == 0 else np.diff(a, prepend=0.0)

    def integrate(self, z: Array, order: int) -> Array:
        return integrate_polygon(z, self.supports(), order)

    def integration_matrix(self, order: int) -> Array:
        supports = self.supports()
        size = supports.shape[-1] + 1
        unit = np.broadcast_to(np.eye(size), (*supports.shape[:-1], size, size))
        return integrate_polygon(unit, supports[..., None, :], order).mT


def integrate_polygon(z: Array, supports: Array, order: int) -> Array:
    """The polygon whose differences (order 1) or differences of slopes (order 2) are z[order:]."""
    if order == 0:
        return z
    if order == 1:  # sums of nonnegative numbers are monotone in floating point as well
        return np.cumsum(z, axis=-1)
    steps = np.cumsum(z[..., 1:], axis=-1) * supports
    return np.cumsum(np.concatenate([z[..., :1], steps], axis=-1), axis=-1)


@cache
def second_differences(size: int) -> Array:
    """DᵀD, (size, size), for the second differences D of a sequence."""
    D = np.diff(np.eye(size), 2, axis=0)
    return D.T @ D
