"""What every method has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from unbraid.bases import Basis
from unbraid.bases.projection import Projection
from unbraid.data.sample_set import SampleSet
from unbraid.fitting.memory_plan import Sweeps
from unbraid.fitting.polish import Polish
from unbraid.fitting.search import Search
from unbraid.solvers.coupling import Coupling
from unbraid.solvers.loop import Stopping


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A way to decouple: the solver that random starts go through, and what surrounds it.

    Attributes
    ----------
    weighted
        Whether its sweeps know weights of samples.
    coupled
        Whether λ has a say in its sweeps.
    sweeps
        What kind of sweeps it makes, which decides about its memory.
    compressible
        Whether its sweeps find the same in compressed Jacobians.
    name
        What to call it in results.
    basis
        The default basis.
    stopping
        When a start is done.
    coupling
        λ, fixed or growing.
    offset
        Let the model have a free output offset.
    scaled
        Work in balanced units, so that the user's do not matter.
    evenness
        Knots at quantiles of a branch's inputs (0), evenly over their range (1), or in between.
    values
        Let the solver see values; without, they only set the output offset at the end.
    polish
        Gauss–Newton steps from where the starts end, or None.
    """

    weighted: ClassVar[bool] = False
    coupled: ClassVar[bool] = False
    compressible: ClassVar[bool] = False
    sweeps: ClassVar[Sweeps] = "alternating"
    name: str
    basis: Basis
    stopping: Stopping
    coupling: Coupling
    offset: bool
    scaled: bool
    evenness: float = 0.0
    values: bool = True
    polish: Polish | None = None

    @abstractmethod
    def solver(self, samples: SampleSet, basis: Basis, projection: Projection) -> Search[Any]:
        """The solver that starts go through, on given samples."""
