"""Numbers of any size: samples near the ends of what floating point can hold are brought to ordinary sizes.

A fit squares, multiplies and adds up what it is given. Of numbers up to 2²⁰⁰ (10⁶⁰), and of columns that reach 2⁻²⁰⁰,
that is always possible; these are left as they are. Columns beyond are multiplied by powers of two,

    X[:, k] 2^-x[k],    F[:, i] 2^-f[i],    J[:, i, k] 2^(x[k] - f[i]),    weights 2^-w,

which changes no digit of theirs, and the model found is that of the user's numbers when W0[:, k] has been multiplied by
2^-x[k], W1[i] and bias[i] by 2^f[i].
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from unbraid.data.checks import is_mapped
from unbraid.data.problem import Problem
from unbraid.data.sample_arrays import SampleArrays
from unbraid.errors import DataError
from unbraid.kernels.arrays import Array, IndexArray

ORDINARY = 200
"""Numbers between 2 to the power of minus this and of this are of ordinary size."""
FARTHEST = 960
"""Powers of two beyond which neither a model nor its slopes can be written down."""
STEEPEST = 400
"""The power of two up to which Jacobians may be larger than values and points make likely."""


@dataclass(frozen=True)
class Largest:
    """The largest absolute values of each column of some samples; those of others can be added."""

    X: Array
    F: Array | None
    J: Array | None
    weights: Array | None

    @classmethod
    def of(cls, block: Problem) -> Self:
        """Those of the columns of a block: X (m,), F (n,), J (n, m), weights ()."""
        return cls(*(None if array is None else largest(array) for array in (block.X, block.F, block.J, block.weights)))  # type: ignore[arg-type]

    def __add__(self, other: Largest) -> Largest:
        return Largest(*(None if one is None else np.fmax(one, vars(other)[name]) for name, one in vars(self).items()))  # type: ignore[arg-type]


def largest(array: Array) -> Array:
    """The largest absolute value of each column, NaN left out, and 0 where there is nothing else."""
    reached = np.fmax(np.fmax.reduce(array, axis=0), -np.fmin.reduce(array, axis=0))
    return np.where(np.isnan(reached), 0.0, reached)


def exponents(sizes: Array) -> IndexArray:
    """The powers of two next above some sizes; 0 where they are ordinary."""
    powers = np.frexp(sizes)[1].astype(np.int64)
    return np.where((sizes == 0.0) | (np.abs(powers) <= ORDINARY), 0, powers)


@dataclass(frozen=True)
class Magnitudes:
    """The powers of two by which samples differ from ones of ordinary size: x (m,), f (n,) and w."""

    x: IndexArray
    f: IndexArray
    w: int

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Those of a problem; a `DataError` where no power of two makes its samples ordinary."""
        sizes = problem.sum(Largest.of)
        x = exponents(sizes.X)
        f = np.zeros(problem.n, dtype=np.int64) if sizes.F is None else exponents(sizes.F)
        if sizes.J is not None:
            slopes = np.frexp(sizes.J)[1] + x
            steepest = np.where(sizes.J > 0.0, slopes, -(1 << 20)).max(axis=1)
            alone = np.zeros(problem.n) if sizes.F is None else sizes.F
            f = np.where((alone == 0.0) & (steepest > -(1 << 20)) & (np.abs(steepest) > ORDINARY), steepest, f)
            check_steepness(sizes.J, steepest - f)
        w = 0 if sizes.weights is None else int(exponents(sizes.weights))
        for name, powers, reached in (("X", x, sizes.X), ("F" if sizes.J is None else "F or J", f, sizes.F)):
            check_representable(name, powers, reached)
        if sizes.F is not None and np.abs(f[:, None] - x).max() > FARTHEST:
            raise DataError(
                f"F reaches {np.max(sizes.F):.3g} and X {np.max(sizes.X):.3g}: slopes of that size cannot be "
                "represented. Use other units."
            )
        return cls(x, f, w)

    @property
    def ordinary(self) -> bool:
        """Whether there is nothing to change."""
        return not (self.x.any() or self.f.any() or self.w)

    def problem(self, problem: Problem) -> Problem:
        """The samples with ordinary numbers; the same object where they have them."""
        if self.ordinary:
            return problem
        if problem.home is not None or is_mapped(problem.X):
            raise DataError(
                "The samples reach beyond 1e60, or are all below 1e-60, in a column. In memory they would be brought "
                "to other sizes; in files and Dask arrays they are not: use other units."
            )
        arrays: dict[str, Any] = {
            "X": np.ldexp(problem.X, -self.x),
            "F": None if problem.F is None else np.ldexp(problem.F, -self.f),
            "J": None if problem.J is None else np.ldexp(problem.J, self.x - self.f[:, None]),
            "weights": None if problem.weights is None else np.ldexp(problem.weights, -self.w),
        }
        kept = {one.name: getattr(problem, one.name) for one in fields(SampleArrays) if one.name not in arrays}
        return Problem.unchecked(SampleArrays(**arrays, **kept))


def check_representable(name: str, powers: IndexArray, sizes: Array | None) -> None:
    """Refuse columns whose inverse, or whose coefficients, floating point cannot hold."""
    if np.abs(powers).max() > FARTHEST:
        column = int(np.abs(powers).argmax())
        reached = "" if sizes is None else f", which reaches {sizes[column]:.3g} in column {column},"
        raise DataError(f"{name}{reached} is too close to the ends of what floating point holds: use other units.")


def check_steepness(J: Array, powers: IndexArray) -> None:
    """Refuse Jacobians that cannot belong to the values and the points, by hundreds of powers of ten."""
    if powers.max() > STEEPEST:
        row = int(powers.argmax())
        raise DataError(
            f"J reaches {J[row].max():.3g} in output {row}, more than 1e120 times what F and X make likely: "
            "it cannot be brought to the same size as they. Are F, X and J in the same units?"
        )
