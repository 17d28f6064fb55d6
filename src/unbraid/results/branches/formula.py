"""A branch that is a closed formula everywhere, also beyond the range it was learned on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unbraid.bases.constraints import Constraint
from unbraid.errors import SettingError, shown
from unbraid.kernels.arrays import Array
from unbraid.results.branch import ParametricBranch
from unbraid.results.branches.forms import Formula


@dataclass(frozen=True, repr=False)
class FormulaBranch(ParametricBranch):
    """A branch in closed form, such as 0.64 sin(2 u + 0.3) + 1.

    Where a formula has no value, a logarithm of a negative number, say, the branch is NaN.

    Attributes
    ----------
    formula
        The form and its parameters.
    domain
        The range of u seen in training.
    """

    formula: Formula
    domain: tuple[float, float] = (-np.inf, np.inf)

    def __call__(self, u: npt.ArrayLike) -> Array:
        return self.formula(np.asarray(u, dtype=np.float64))

    def derivative(self, u: npt.ArrayLike, order: int = 1) -> Array:
        if order not in (1, 2):
            raise SettingError(f"order must be 1 or 2, got {shown(order)}.")
        derived = self.formula.slope if order == 1 else self.formula.bend
        return derived.evaluate(np.asarray(u, dtype=np.float64))

    @property
    def coordinates(self) -> Array:  # type: ignore[override]
        """The free parameters of its form, (K,)."""
        return np.array([self.formula.parameters[place] for place in self.formula.form.free])

    @property
    def constant(self) -> int | None:
        """Which of its coordinates is a constant that is added to it; None if none is."""
        form = self.formula.form
        return form.free.index(form.constant) if form.constant in form.free else None

    def design(self, u: Array, derivative: int = 0) -> Array:
        return self.formula.design(np.asarray(u, dtype=np.float64), derivative)

    def shifted(self, by: float, coordinates: Array) -> FormulaBranch:
        low, high = self.domain
        return FormulaBranch(self.formula.with_free(coordinates).shifted(by), (low + by, high + by))

    def certified(self, constraint: Constraint) -> bool:
        """Always False: shapes are certified from coefficients, and a formula has none."""
        return False

    def __repr__(self) -> str:
        return f"FormulaBranch({self.formula.form.name}, {', '.join(f'{one:.4g}' for one in self.formula.parameters)})"
