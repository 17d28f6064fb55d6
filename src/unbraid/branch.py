"""One univariate function of a decoupled model."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from unbraid.arrays import Array, IndexArray
from unbraid.bases import Basis, Placement
from unbraid.constraints import CONSTRAINTS, Constraint, describe
from unbraid.continuation import Continuation
from unbraid.errors import SettingError


class Branch(ABC):
    """A univariate function g with its derivative and the range of inputs it was learned on."""

    @property
    @abstractmethod
    def domain(self) -> tuple[float, float]:
        """The range (lo, hi) of u seen in training."""

    @property
    def knots(self) -> Array:
        """The points, ends included, at which its pieces meet; none where it has no pieces."""
        return np.zeros(0)

    @abstractmethod
    def __call__(self, u: npt.ArrayLike) -> Array:
        """g(u), of the shape of u."""

    @abstractmethod
    def derivative(self, u: npt.ArrayLike, order: int = 1) -> Array:
        """The first or second derivative of g at u, of the shape of u."""

    @abstractmethod
    def certified(self, constraint: Constraint) -> bool:
        """Whether the constraint is guaranteed on the whole domain, decided from coefficients."""


@dataclass(frozen=True, repr=False)
class FittedBranch(Branch):
    """A branch in a placed basis. Outside its domain it goes on as `continuation` says.

    Attributes
    ----------
    basis
        The specification, e.g. `BSpline(df=12)`.
    placement
        The basis placed on the training inputs (no leading axes).
    coordinates
        (K,), the function in the placement's own coordinates; `coefficients` has the paper's.
    """

    basis: Basis
    placement: Placement
    coordinates: Array

    @property
    def domain(self) -> tuple[float, float]:
        low, high = self.placement.domain()
        return float(low), float(high)

    @property
    def knots(self) -> Array:
        return self.placement.knots()

    @property
    def coefficients(self) -> Array:
        """The paper's coefficients c, with c[0] the constant: (K,)."""
        return self.basis.paper_coefficients(self.placement, self.coordinates)

    def __call__(self, u: npt.ArrayLike) -> Array:
        points = np.asarray(u, dtype=np.float64)
        at, beyond = self._inside(points)
        value = self.placement.evaluate(self.coordinates, at)
        for outside, continuation in self._outside(beyond):
            value[outside] += continuation.value(beyond[outside])
        return value.reshape(points.shape)

    def derivative(self, u: npt.ArrayLike, order: int = 1) -> Array:
        if order not in (1, 2):
            raise SettingError(f"order must be 1 or 2, got {order!r}.")
        points = np.asarray(u, dtype=np.float64)
        at, beyond = self._inside(points)
        result = self.placement.evaluate(self.coordinates, at, order)
        for outside, continuation in self._outside(beyond):
            result[outside] = continuation.derivative(beyond[outside], order)
        result[np.isnan(beyond)] = np.nan  # a piece of degree 0 does not see u
        return result.reshape(points.shape)

    @cached_property
    def continuations(self) -> tuple[Continuation, Continuation]:
        """How it goes on below its domain, and above."""
        low, high = self.domain
        ends = self.placement.at(np.array([low, high]))
        degree, reaches = self.basis.continued_degree, self.placement.reaches() * (high - low)
        taylor = [self.placement.evaluate(self.coordinates, ends, k) / math.factorial(k) for k in range(degree + 1)]
        shapes = [shape() for shape in CONSTRAINTS if shape.order > 0] if degree > 1 else []
        kept = [shape for shape in shapes if shape.holds(self.placement, self.coordinates)]
        (below, above), (down, up) = np.stack(taylor, axis=-1), map(float, reaches)
        return Continuation.keeping(below, down, -1, kept), Continuation.keeping(above, up, 1, kept)

    def certified(self, constraint: Constraint) -> bool:
        if not isinstance(constraint, Constraint):
            raise SettingError(f"constraint must be one such as ub.Increasing(), got {describe(constraint)}.")
        return constraint.holds(self.placement, self.coordinates)

    def _inside(self, points: Array) -> tuple[object, Array]:
        """The nearest points of the domain, prepared, and how far each given point lies beyond it."""
        flat = points.ravel()
        inside = np.clip(flat, *self.domain)
        return self.placement.at(inside), flat - inside

    def _outside(self, beyond: Array) -> Iterator[tuple[IndexArray, Continuation]]:
        """The points below the domain with the continuation there, then those above."""
        for side, outside in enumerate((np.flatnonzero(beyond < 0.0), np.flatnonzero(beyond > 0.0))):
            if outside.size:
                yield outside, self.continuations[side]

    def __repr__(self) -> str:
        low, high = self.domain
        return f"FittedBranch({self.basis!r} on [{low:.4g}, {high:.4g}])"


@dataclass(frozen=True)
class FunctionBranch(Branch):
    """A branch given by formulas: the truth of a data set, say.

    Attributes
    ----------
    value, slope
        Functions of an array, elementwise.
    formula
        What to print.
    domain
        The range of inputs of interest.
    """

    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    formula: str
    domain: tuple[float, float] = (-np.inf, np.inf)

    def __call__(self, u: npt.ArrayLike) -> Array:
        return self.value(np.asarray(u, dtype=np.float64))

    def derivative(self, u: npt.ArrayLike, order: int = 1) -> Array:
        if order != 1:
            raise SettingError(f"A branch given by a formula has its first derivative only, got order={order!r}.")
        return self.slope(np.asarray(u, dtype=np.float64))

    def certified(self, constraint: Constraint) -> bool:
        """Always False: a formula has no coefficients to decide from."""
        return False

    def __repr__(self) -> str:
        return f"FunctionBranch({self.formula})"
