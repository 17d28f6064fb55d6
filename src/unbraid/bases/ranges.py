"""Bases of functions on [-1, 1], stretched to the range of a branch's inputs: only the functions have to be written.

    g(u) = Σ_k a_k φ_k(t),   t = (2u - low - high) / (high - low),   φ_0 = 1.

A `RangeBasis` says what the φ_k and their derivatives are. Placing it fixes low and high; evaluation and least squares
follow from the functions.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from unbraid.bases.base import Basis, NormalEquations, Placement
from unbraid.kernels.arrays import Array, BoolArray, blocks
from unbraid.kernels.knots import breakpoints, kept_apart


class RangeBasis(Basis):
    """A family of functions of t, the input scaled to [-1, 1] on its range, by what they are at t.

    Subclasses are frozen dataclasses and have `functions`, `size` and `of_size`. They carry no constraints.
    """

    @abstractmethod
    def functions(self, t: Array, derivative: int = 0) -> Array:
        """All K functions, or their first or second derivatives by t, at t (..., S): (..., S, K).

        The first function is the constant 1.
        """

    def roughness(self) -> Array:
        """∫ φ_j'' φ_k'' dt over [-1, 1], (K, K), in units of its largest entry."""
        t, weights = np.polynomial.legendre.leggauss(4 * self.size)
        curvature = self.functions(t, 2)
        integral = curvature.T @ (weights[:, None] * curvature)
        return np.asarray(integral / (np.abs(integral).max() or 1.0))

    def place(self, u: Array, evenness: float = 0.0) -> PlacedOnRange:
        return self.placed_on(breakpoints(u, 1))

    def placement_from(self, arrays: dict[str, Array]) -> PlacedOnRange:
        return self.placed_on(arrays["range"])

    def placed_on(self, ranges: Array) -> PlacedOnRange:
        """The placement on ranges (..., 2)."""
        return PlacedOnRange(ranges, self)

    def paper_coefficients(self, placement: PlacedOnRange, a: Array) -> Array:
        return a.copy()

    def refusal(self) -> str | None:
        return "its coefficients say nothing about the shape of a branch; use BSpline"


@dataclass(frozen=True)
class PlacedOnRange(Placement):
    """A `RangeBasis` on ranges (..., 2) of u; inputs are prepared by scaling them to t in [-1, 1]."""

    range: Array
    basis: RangeBasis

    def arrays(self) -> dict[str, Array]:
        return {"range": self.range}

    def select(self, index: Any) -> Self:
        return type(self)(self.range[index], self.basis)

    def merged(self, which: BoolArray, other: Self) -> Self:
        return type(self)(np.where(which[:, None, None], other.range, self.range), self.basis)

    def joined(self, others: Sequence[Self]) -> Self:
        return type(self)(np.concatenate([self.range, *(other.range for other in others)]), self.basis)

    def domain(self) -> Array:
        return self.range

    def moved(self, scale: Array, shift: Array) -> Self:
        return type(self)(kept_apart(self.range * scale[..., None] + shift[..., None]), self.basis)

    def plus(self, a: Array, constant: Array) -> Array:
        a = a.copy()
        a[..., 0] += constant
        return a

    def at(self, u: Array) -> Array:
        low, high = self.range[..., :1], self.range[..., 1:]
        return (2.0 * u - low - high) / (high - low)

    def unit(self, derivative: int) -> Array:
        """(dt/du)^derivative, (..., 1)."""
        return (2.0 / np.diff(self.range)) ** derivative

    def evaluate(self, a: Array, at: Array, derivative: int = 0) -> Array:
        value = np.empty_like(at)
        for part in blocks(at.shape[-1], self.basis.size):
            value[..., part] = (self.basis.functions(at[..., part], derivative) @ a[..., None])[..., 0]
        return value * self.unit(derivative)

    def design_at(self, at: Array, derivative: int = 0) -> Array:
        return self.basis.functions(at, derivative) * self.unit(derivative)[..., None]

    def normal_equations(
        self, at: Array, G: Array, R: Array | None, coupling: float, weight: Array | None = None
    ) -> NormalEquations:
        S, size, lead = at.shape[-1], self.basis.size, at.shape[:-1]
        gram, right, total = np.zeros((*lead, size, size)), np.zeros((*lead, size)), np.zeros((*lead, size))
        weights = np.ones(S) if weight is None else weight
        for part in blocks(S, size):  # whatever the batch, so that its sums do not depend on it
            slopes, values = self.slopes(at[..., part]), self.basis.functions(at[..., part])
            w = weights[part, None]
            weighted_slopes, weighted_values = (slopes, values) if weight is None else (slopes * w, values * w)
            gram += slopes.mT @ weighted_slopes
            right += (weighted_slopes.mT @ G[..., part, None])[..., 0]
            total += (values.mT @ w)[..., 0]
            if R is not None:
                gram += coupling * (values.mT @ weighted_values)
                right += coupling * (weighted_values.mT @ R[..., part, None])[..., 0]
        return NormalEquations(gram, right, total)

    def adjoint(self, at: Array, G: Array, R: Array | None) -> Array:
        result = np.zeros((*at.shape[:-1], self.basis.size))
        for part in blocks(at.shape[-1], self.basis.size):
            result += (self.slopes(at[..., part]).mT @ G[..., part, None])[..., 0]
            if R is not None:
                result += (self.basis.functions(at[..., part]).mT @ R[..., part, None])[..., 0]
        return result

    def slopes(self, t: Array) -> Array:
        """The derivatives of all functions by u at t (..., S): (..., S, K)."""
        return self.basis.functions(t, 1) * self.unit(1)[..., None]

    def roughness(self) -> Array:
        return self.basis.roughness()

    def is_constant(self, a: Array) -> Any:
        return np.all(a[..., 1:] == 0.0, axis=-1)

    def shape_coefficients(self, a: Array, order: int) -> tuple[Array, Array]:
        """NaN, which certifies nothing."""
        return np.full_like(a, np.nan), np.zeros_like(a)
