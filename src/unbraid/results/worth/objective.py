"""What a fit minimised, for whoever wants to know how well it is determined."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from unbraid.data.problem import Problem
from unbraid.data.units import Units
from unbraid.kernels.arrays import IndexArray


@dataclass(frozen=True)
class Objective:
    """‖J - Ĵ‖² + λ ‖F - F̂‖² in some units, plus the penalties of the branches.

    Attributes
    ----------
    units
        The units in which both are measured.
    coupling
        λ.
    offset
        Whether every output had a free constant.
    """

    units: Units
    coupling: float
    offset: bool

    def rescaled(self, inputs: IndexArray, outputs: IndexArray) -> Self:
        """The same for the model of 2^outputs · f(2^-inputs · x), for powers (m,) and (n,)."""
        units = self.units
        center, x_scale = np.ldexp(units.center, inputs), np.ldexp(units.x_scale, inputs)
        return replace(self, units=Units(center, x_scale, np.ldexp(units.f_scale, outputs)))

    @classmethod
    def default(cls, problem: Problem) -> Self:
        """What a fit of values and Jacobians that weigh the same minimises, for models whose fit is not known."""
        return cls(Units.balanced(problem), 1.0, True)
