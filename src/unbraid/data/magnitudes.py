"""Numbers of any size: samples near the ends of what floating point can hold are brought to ordinary sizes.

A fit squares, multiplies and adds up what it is given. Of numbers up to 2²⁰⁰ (10⁶⁰), and of columns that reach 2⁻²⁰⁰,
that is always possible; these are left as they are. Columns beyond are multiplied by powers of two,

    X[:, k] 2^-x[k],    F[:, i] 2^-f[i],    J[:, i, k] 2^(x[k] - f[i]),    weights 2^-w,

which changes no digit of theirs. The model found is that of the user's numbers when W0[:, k] has been multiplied by
2^-x[k], W1[i] and bias[i] by 2^f[i]. Samples that weigh less than 2⁻¹⁰⁰ of the heaviest cannot be heard beside it, and
weigh nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from unbraid.data.checks import is_mapped
from unbraid.data.problem import Problem
from unbraid.errors import DataError
from unbraid.kernels.arrays import Array, IndexArray

ORDINARY = 200
"""Numbers between 2 to the power of minus this and of this are of ordinary size."""
ORDINARY_WEIGHT = 100
"""The same for weights, and for what the lightest sample that counts may weigh less than the heaviest."""
FARTHEST = 960
"""Powers of two beyond which neither a model nor its slopes can be written down."""
UNLIKELIEST = 200
"""The power of two by which Jacobians may be larger or smaller than values and points make likely."""
NOTHING = -(1 << 20)
"""Stands for the power of two of zero."""


@dataclass(frozen=True)
class Extent:
    """The largest absolute values of each column of some samples, X (m,), F (n,) and J (n, m), and extreme weights.

    Those of other samples can be added.
    """

    X: Array
    F: Array | None
    J: Array | None
    heaviest: float
    lightest: float

    @classmethod
    def of(cls, block: Problem) -> Self:
        """The extent of a block of samples; the lightest is the one that weighs least and still something."""
        F, J = (None if array is None else largest(array) for array in (block.F, block.J))
        weights = np.ones(1) if block.weights is None else block.weights
        heaviest, lightest = float(weights.max()), float(np.where(weights > 0.0, weights, np.inf).min())
        return cls(largest(block.X), F, J, heaviest, lightest)

    def __add__(self, other: Extent) -> Extent:
        F = None if self.F is None or other.F is None else np.maximum(self.F, other.F)
        J = None if self.J is None or other.J is None else np.maximum(self.J, other.J)
        heaviest, lightest = max(self.heaviest, other.heaviest), min(self.lightest, other.lightest)
        return Extent(np.maximum(self.X, other.X), F, J, heaviest, lightest)


def largest(array: Array) -> Array:
    """The largest absolute value of each column, NaN left out; 0 where there is nothing else."""
    reached = np.fmax(np.fmax.reduce(array, axis=0), -np.fmin.reduce(array, axis=0))
    return np.where(np.isnan(reached), 0.0, reached)


def powers_of(sizes: Array) -> IndexArray:
    """The powers of two next above some sizes."""
    return np.where(sizes > 0.0, np.frexp(sizes)[1], NOTHING).astype(np.int64)


def unusual(powers: IndexArray) -> IndexArray:
    """The powers of two that have to be taken off; 0 where sizes are ordinary."""
    return np.where((powers == NOTHING) | (np.abs(powers) <= ORDINARY), 0, powers)


@dataclass(frozen=True)
class Magnitudes:
    """The powers of two by which samples differ from ones of ordinary size: x (m,), f (n,), w (None: none)."""

    x: IndexArray
    f: IndexArray
    w: int | None

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Those of a problem; a `DataError` where no powers of two make its samples ordinary."""
        extent = problem.sum(Extent.of)
        x = unusual(powers_of(extent.X))
        values = np.full(problem.n, NOTHING) if extent.F is None else powers_of(extent.F)
        f = unusual(values)
        if extent.J is not None:
            slopes = (powers_of(extent.J) + x).max(axis=1)  # of outputs as far as slopes tell
            f = np.where((values == NOTHING) & (slopes > NOTHING // 2), unusual(slopes), f)
            check_likely(extent, slopes - f, values)
            if (powers_of(extent.J) + powers_of(extent.X)).max() > FARTHEST:
                raise DataError(
                    f"J reaches {extent.J.max():.3g} and X {extent.X.max():.3g}: values of that size cannot be "
                    "represented. Use other units."
                )
        check_representable("X", x, extent.X)
        check_representable("F" if extent.J is None else "F or J", f, extent.F)
        if np.abs(f[:, None] - x).max() > FARTHEST:
            name, reached = ("J", extent.J) if extent.F is None else ("F", extent.F)
            assert reached is not None
            least = extent.X[extent.X > 0.0].min()
            raise DataError(
                f"{name} reaches {reached.max():.3g}, and columns of X between {least:.3g} and "
                f"{extent.X.max():.3g}: slopes of that size cannot be represented. Use other units."
            )
        heaviest, lightest = np.frexp([extent.heaviest, extent.lightest])[1].tolist()
        plain = abs(heaviest) <= ORDINARY_WEIGHT and heaviest - lightest <= ORDINARY_WEIGHT
        return cls(x, f, None if plain else heaviest)

    @property
    def ordinary(self) -> bool:
        """Whether there is nothing to change."""
        return self.w is None and not (self.x.any() or self.f.any())

    def problem(self, problem: Problem) -> Problem:
        """The samples with ordinary numbers; the same object where they have them."""
        if self.ordinary:
            return problem
        if problem.home is not None or is_mapped(problem.X):
            raise DataError(
                "The samples or their weights have numbers beyond 1e60, or all below 1e-60 in a column. In memory they "
                "would be brought to other sizes; in files and Dask arrays they are not: use other units."
            )
        return problem.with_parts(
            X=np.ldexp(problem.X, -self.x),
            F=None if problem.F is None else np.ldexp(problem.F, -self.f),
            J=None if problem.J is None else np.ldexp(problem.J, self.x - self.f[:, None]),
            weights=self._weights(problem.weights),
        )

    def _weights(self, weights: Array | None) -> Array | None:
        if self.w is None or weights is None:
            return weights
        ordinary = np.ldexp(weights, -self.w)
        return np.where(ordinary < 2.0**-ORDINARY_WEIGHT, 0.0, ordinary)


def check_representable(name: str, powers: IndexArray, sizes: Array | None) -> None:
    """Refuse columns whose inverse, or whose coefficients, floating point cannot hold."""
    if np.abs(powers).max() > FARTHEST:
        column = int(np.abs(powers).argmax())
        reached = "" if sizes is None else f", which reaches {sizes[column]:.3g} in column {column},"
        raise DataError(f"{name}{reached} is too close to the ends of what floating point holds: use other units.")


def check_likely(extent: Extent, powers: IndexArray, values: IndexArray) -> None:
    """Refuse Jacobians that cannot belong to the values and the points, by many powers of ten."""
    assert extent.J is not None
    off = np.where(powers < NOTHING // 2, 0, powers)
    off = np.where(values == NOTHING, np.maximum(off, 0), off)  # an output without values has any slopes
    if np.abs(off).max() > UNLIKELIEST:
        i = int(np.abs(off).argmax())
        raise DataError(
            f"J reaches {extent.J[i].max():.3g} in output {i}, {'more' if off[i] > 0 else 'less'} than F and X make "
            "likely by over 60 powers of ten: are they in the same units?"
        )
