"""One univariate function of a decoupled model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unbraid.arrays import Array, IndexArray
from unbraid.bases import Basis, Placement
from unbraid.constraints import Constraint, describe
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
    """A branch in a placed basis. Outside its domain it continues linearly, or first as a parabola (`Basis.bend`).

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
        outside = np.flatnonzero(beyond)
        if outside.size:
            slope, curvature, bent = self._continued(at, beyond, outside)
            far = beyond[outside]
            with np.errstate(invalid="ignore"):  # a flat branch at infinity: 0 · inf
                value[outside] += slope * far
            bends = curvature != 0.0
            value[outside[bends]] += (curvature * bent * (far - 0.5 * bent))[bends]
        return value.reshape(points.shape)

    def derivative(self, u: npt.ArrayLike, order: int = 1) -> Array:
        if order not in (1, 2):
            raise SettingError(f"order must be 1 or 2, got {order!r}.")
        points = np.asarray(u, dtype=np.float64)
        at, beyond = self._inside(points)
        result = self.placement.evaluate(self.coordinates, at, order)
        outside = np.flatnonzero(beyond)
        if outside.size:
            _, curvature, bent = self._continued(at, beyond, outside)
            if order == 1:
                result[outside] += curvature * bent
            else:
                result[outside] = np.where(bent == beyond[outside], curvature, 0.0)
        result[np.isnan(beyond)] = np.nan  # a piece of degree 0 does not see u
        return result.reshape(points.shape)

    def certified(self, constraint: Constraint) -> bool:
        if not isinstance(constraint, Constraint):
            raise SettingError(f"constraint must be one such as ub.Increasing(), got {describe(constraint)}.")
        return constraint.holds(self.placement, self.coordinates)

    def _inside(self, points: Array) -> tuple[object, Array]:
        """The nearest points of the domain, prepared, and how far each given point lies beyond it."""
        flat = points.ravel()
        inside = np.clip(flat, *self.domain)
        return self.placement.at(inside), flat - inside

    def _continued(self, at: object, beyond: Array, outside: IndexArray) -> tuple[Array, Array, Array]:
        """Slope and curvature at the ends that outside points are nearest to, and how far the branch keeps bending.

        It bends for a share of the domain, `Basis.bend`, and not past a turning point, so that what increases goes on
        increasing.
        """
        slope = self.placement.evaluate(self.coordinates, at, 1)[outside]
        if self.basis.bend == 0.0:
            return slope, np.zeros_like(slope), np.zeros_like(slope)
        curvature = self.placement.evaluate(self.coordinates, at, 2)[outside]
        far, (low, high) = beyond[outside], self.domain
        towards = np.sign(far)
        turning = np.divide(-slope, curvature * towards, where=curvature != 0.0, out=np.full_like(slope, np.inf))
        turning = np.where(turning > 0.0, turning, np.where(slope == 0.0, 0.0, np.inf))
        return slope, curvature, towards * np.minimum(np.abs(far), np.minimum(self.basis.bend * (high - low), turning))

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
