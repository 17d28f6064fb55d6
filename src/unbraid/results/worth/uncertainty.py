"""How far a fit can be trusted, for the user: intervals of values, slopes, branches and weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unbraid.errors import SettingError
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.results.model import DecoupledModel
from unbraid.results.worth.fresh import beyond_training
from unbraid.runtime.progress import Callback

LEVEL = 0.95
"""The share of cases that intervals cover, unless another is asked for."""
BAND_POINTS = 161
"""Points of a band over the range of a branch."""


class Drawing(NamedTuple):
    """How a bootstrap draws: how many fits, the seed, how many processes, and who is told of the progress."""

    draws: int = 100
    rng: np.random.Generator | int | None = None
    jobs: int | None = None
    callback: Callback | None = None


class Interval(NamedTuple):
    """Values or Jacobians at points: estimates, standard deviations, and the ends of intervals, of one shape each.

    `outside` (S,) says which points lie outside the range of a branch that was seen in training. The branch is
    continued there, and what it really does nobody has seen: intervals there are too narrow.
    """

    estimate: Array
    std: Array
    low: Array
    high: Array
    outside: BoolArray


class Band(NamedTuple):
    """A branch or its slope at u (P,), its standard deviation, and the ends of its interval point by point."""

    u: Array
    estimate: Array
    std: Array
    low: Array
    high: Array


@dataclass(frozen=True, repr=False, eq=False)
class Uncertainty(ABC):
    """What `fit.uncertainty()` gives.

    Attributes
    ----------
    model
        The model whose uncertainty it is.
    noise
        (n,), the standard deviation of the noise of each output, in its units; None without values.
    slope_noise
        (n, m), that of the entries of Jacobians; None without them.
    freedom
        The degrees of freedom that the fit uses, of all unknowns together.
    left
        How many numbers are left over to tell noise from.
    doubt
        Why intervals mean little: what is left of the samples is no noise, say. None where there is no reason to doubt.
    """

    model: DecoupledModel
    noise: Array | None
    slope_noise: Array | None
    freedom: float
    left: float
    doubt: str | None

    @property
    @abstractmethod
    def method(self) -> str:
        """'linearised' or 'bootstrap'."""

    @property
    def reliable(self) -> bool:
        """Whether there is no reason to doubt the intervals."""
        return self.doubt is None

    # What the kinds of uncertainty differ in: standard deviations.

    @abstractmethod
    def _value_std(self, X: Array) -> Array:
        """(S, n) at X (S, m)."""

    @abstractmethod
    def _slope_std(self, X: Array) -> Array:
        """(S, n, m) at X (S, m)."""

    @abstractmethod
    def _curve_std(self, j: int, u: Array, derivative: int) -> Array:
        """(P,) of branch j or its slope, in the model's gauge, at u (P,)."""

    @property
    @abstractmethod
    def W0(self) -> Array:
        """Standard errors of the entries of W0, (r, m)."""

    @property
    @abstractmethod
    def W1(self) -> Array:
        """Standard errors of the entries of W1, (n, r)."""

    @property
    @abstractmethod
    def bias(self) -> Array:
        """Standard errors of the bias, (n,)."""

    @property
    @abstractmethod
    def angles(self) -> Array:
        """Standard errors of the directions, (r,), in degrees, inputs in units of their spread."""

    # What all have.

    def values(self, X: npt.ArrayLike, level: float = LEVEL, new: bool = False) -> Interval:
        """The values at X (S, m), (S, n) each: of the function itself or, with `new`, of new noisy observations."""
        points = np.atleast_2d(self.model._points(X))
        std = self._value_std(points)
        if new:
            std = np.hypot(std, np.nan if self.noise is None else self.noise)
        return Interval(*self._ends(self.model(points), std, level), beyond_training(self.model, points))

    def jacobian(self, X: npt.ArrayLike, level: float = LEVEL, new: bool = False) -> Interval:
        """The Jacobians at X (S, m), (S, n, m) each: of the function itself or, with `new`, of new observations."""
        points = np.atleast_2d(self.model._points(X))
        std = self._slope_std(points)
        if new:
            std = np.hypot(std, np.nan if self.slope_noise is None else self.slope_noise)
        return Interval(*self._ends(self.model.jacobian(points), std, level), beyond_training(self.model, points))

    def branch(self, j: int, u: npt.ArrayLike | None = None, level: float = LEVEL) -> Band:
        """Branch j, from 0, at u (P,), or at points over its range."""
        return self._band(j, u, level, 0)

    def slope(self, j: int, u: npt.ArrayLike | None = None, level: float = LEVEL) -> Band:
        """The slope of branch j, from 0, at u (P,), or at points over its range."""
        return self._band(j, u, level, 1)

    def _band(self, j: int, u: npt.ArrayLike | None, level: float, derivative: int) -> Band:
        if not -self.model.rank <= j < self.model.rank:
            raise SettingError(f"Branches are counted from 0 to {self.model.rank - 1}, got {j}.")
        branch = self.model.branches[j]
        points = np.linspace(*branch.domain, BAND_POINTS) if u is None else np.asarray(u, dtype=np.float64).ravel()
        estimate = branch.derivative(points) if derivative else branch(points)
        return Band(points, *self._ends(estimate, self._curve_std(j % self.model.rank, points, derivative), level))

    def _ends(self, estimate: Array, std: Array, level: float) -> tuple[Array, Array, Array, Array]:
        """Estimates, their standard deviations, and the lower and upper ends of their intervals."""
        wide = self.quantile(level) * std
        return estimate, std, estimate - wide, estimate + wide

    def quantile(self, level: float) -> float:
        """How many standard deviations to either side cover a share `level`: Student's distribution."""
        from scipy.special import stdtrit

        if not 0.0 < level < 1.0:
            raise SettingError(f"level must be between 0 and 1, 0.95 say, got {level!r}.")
        return float(stdtrit(max(self.left, 1.0), 0.5 + 0.5 * level))

    @cached_property
    def _words(self) -> list[str]:
        lines = [f"Uncertainty of {self.model!r}, {self.method}"]
        if self.noise is not None:
            lines.append(f"  noise       {numbers(self.noise)} in the units of the outputs")
        lines.append(f"  freedom     {self.freedom:.1f} degrees used, {self.left:.0f} numbers left over")
        lines.append(f"  directions  {numbers(self.angles)} degrees")
        return lines + ([] if self.doubt is None else [f"  doubt       {self.doubt}"])

    def __repr__(self) -> str:
        return "\n".join(self._words)


def numbers(values: Array) -> str:
    """'0.012, 0.5' of the first eight numbers, with two digits."""
    listed = ", ".join(f"{one:.2g}" for one in values[:8])
    return f"{listed}{', …' if len(values) > 8 else ''}"
