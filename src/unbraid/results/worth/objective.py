"""What a fit minimised, for whoever wants to know how well it is determined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from unbraid.data.problem import Problem
from unbraid.data.units import Units


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

    @classmethod
    def default(cls, problem: Problem) -> Self:
        """What a fit of values and Jacobians that weigh the same minimises, for models whose fit is not known."""
        return cls(Units.balanced(problem), 1.0, True)
