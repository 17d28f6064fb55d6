"""Polynomials, in Legendre polynomials on the range of u: well conditioned at any degree in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from unbraid.bases.base import Basis, NormalEquations, Placement
from unbraid.bases.splines import PlacedSpline
from unbraid.errors import check_whole
from unbraid.kernels.arrays import Array, BoolArray, blocks
from unbraid.kernels.knots import breakpoints
from unbraid.kernels.legendre import legendre


@dataclass(frozen=True)
class Polynomial(Basis):
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

    def place(self, u: Array, evenness: float = 0.0) -> PlacedPolynomial:
        return PlacedPolynomial(breakpoints(u, 1), self.degree)

    def placement_from(self, arrays: dict[str, Array]) -> PlacedPolynomial:
        return PlacedPolynomial(arrays["range"], self.degree)

    def paper_coefficients(self, placement: PlacedPolynomial, a: Array) -> Array:
        return a.copy()

    def refusal(self) -> str | None:
        return (
            "nonnegative coefficients of a polynomial say nothing about its shape; "
            f"use BSpline(df={self.degree}, degree={self.degree}), the same polynomials in B-spline coordinates"
        )


class Prepared(NamedTuple):
    """Inputs on [-1, 1], (..., S)."""

    t: Array


@dataclass(frozen=True)
class PlacedPolynomial(Placement):
    """Polynomials of one degree on ranges (..., 2)."""

    range: Array
    degree: int

    def arrays(self) -> dict[str, Array]:
        return {"range": self.range}

    def select(self, index: Any) -> Self:
        return type(self)(self.range[index], self.degree)

    def merged(self, which: BoolArray, other: Self) -> Self:
        return type(self)(np.where(which[:, None, None], other.range, self.range), self.degree)

    def joined(self, others: Sequence[Self]) -> Self:
        return type(self)(np.concatenate([self.range, *(other.range for other in others)]), self.degree)

    def domain(self) -> Array:
        return self.range

    def moved(self, scale: Array, shift: Array) -> Self:
        return type(self)(self.range * scale[..., None] + shift[..., None], self.degree)

    def plus(self, a: Array, constant: Array) -> Array:
        a = a.copy()
        a[..., 0] += constant
        return a

    def at(self, u: Array) -> Prepared:
        low, high = self.range[..., :1], self.range[..., 1:]
        return Prepared((2.0 * u - low - high) / (high - low))

    def unit(self, derivative: int) -> Array:
        """(dt/du)^derivative, (..., 1)."""
        return (2.0 / np.diff(self.range)) ** derivative

    def evaluate(self, a: Array, at: Prepared, derivative: int = 0) -> Array:
        value = np.empty_like(at.t)
        for part in blocks(at.t.shape[-1], self.degree + 1):
            value[..., part] = (legendre(at.t[..., part], self.degree, derivative) @ a[..., None])[..., 0]
        return value * self.unit(derivative)

    def design(self, u: Array, derivative: int = 0) -> Array:
        return legendre(self.at(u).t, self.degree, derivative) * self.unit(derivative)[..., None]

    def normal_equations(
        self, at: Prepared, G: Array, R: Array | None, coupling: float, weight: Array | None = None
    ) -> NormalEquations:
        S, size, lead = at.t.shape[-1], self.degree + 1, at.t.shape[:-1]
        gram, right, total = np.zeros((*lead, size, size)), np.zeros((*lead, size)), np.zeros((*lead, size))
        unit, weights = self.unit(1), np.ones(S) if weight is None else weight
        for part in blocks(S, size):  # whatever the batch, so that its sums do not depend on it
            t = at.t[..., part]
            slopes, values = legendre(t, self.degree, 1) * unit[..., None], legendre(t, self.degree)
            w = weights[part, None]
            weighted_slopes, weighted_values = (slopes, values) if weight is None else (slopes * w, values * w)
            gram += slopes.mT @ weighted_slopes
            right += (weighted_slopes.mT @ G[..., part, None])[..., 0]
            total += (values.mT @ w)[..., 0]
            if R is not None:
                gram += coupling * (values.mT @ weighted_values)
                right += coupling * (weighted_values.mT @ R[..., part, None])[..., 0]
        return NormalEquations(gram, right, total)

    def adjoint(self, at: Prepared, G: Array, R: Array | None) -> Array:
        result = np.zeros((*at.t.shape[:-1], self.degree + 1))
        for part in blocks(at.t.shape[-1], self.degree + 1):
            t = at.t[..., part]
            slopes = legendre(t, self.degree, 1) * self.unit(1)[..., None]
            result += (slopes.mT @ G[..., part, None])[..., 0]
            if R is not None:
                result += (legendre(t, self.degree).mT @ R[..., part, None])[..., 0]
        return result

    def roughness(self) -> Array:
        k = np.arange(self.degree + 1.0)
        return np.diag(np.where(k >= 2, k**4, 0.0))

    def is_constant(self, a: Array) -> Any:
        return np.all(a[..., 1:] == 0.0, axis=-1)

    def bernstein(self) -> tuple[PlacedSpline, Array]:
        """The same polynomials as splines without interior knots, and the matrix that converts a."""
        t = np.cos(np.pi * (np.arange(self.degree + 1) + 0.5) / (self.degree + 1))
        on_unit = PlacedSpline(np.array([-1.0, 1.0]), self.degree)
        convert = np.asarray(np.linalg.solve(on_unit.design(t), legendre(t, self.degree)), dtype=np.float64)
        return PlacedSpline(self.range, self.degree), convert

    def shape_coefficients(self, a: Array, order: int) -> tuple[Array, Array]:
        spline, convert = self.bernstein()
        control = (convert @ a[..., None])[..., 0]
        coefficients, _ = spline.shape_coefficients(control, order)
        rounding = 8.0 * np.finfo(float).eps * (np.abs(convert) @ np.abs(a)[..., None]).max(axis=(-2, -1))
        largest_step = 1.0 if order < 2 else (2.0 / spline.supports().min(axis=-1))
        error = 2.0 ** min(order, 1) * rounding * largest_step
        return coefficients, np.broadcast_to(np.asarray(error)[..., None], coefficients.shape)
