"""What every method has, and how fits are polished."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

from unbraid.bases import Basis
from unbraid.bases.projection import Projection
from unbraid.data.sample_set import SampleSet
from unbraid.errors import check_whole
from unbraid.solvers.coupling import Coupling
from unbraid.solvers.iterates import StartingSolver
from unbraid.solvers.loop import Stopping

Sweeps = Literal["alternating", "filtered", "polynomial"]
"""Kinds of sweeps, by the memory they need."""


@dataclass(frozen=True)
class Polish:
    """How the best starts of a search are polished by Gauss–Newton steps.

    Parameters
    ----------
    stopping
        When a start has had enough steps.
    candidates
        How many starts are polished at most.
    at_once
        How many are polished as one group, in which they race; after two groups comes the look whether that is enough.
    """

    stopping: Stopping = field(default_factory=lambda: Stopping(300, tolerance=1e-5, target=1e-27, patience=5))
    candidates: int = 16
    at_once: int = 2

    @classmethod
    def with_budget(cls, max_steps: int, max_seconds: float | None) -> Self:
        """The default way to polish, with another budget of steps and time."""
        check_whole("max_steps", max_steps, 1)
        return cls(replace(cls().stopping, max_sweeps=max_steps, max_seconds=max_seconds))


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
        What kind of sweeps it makes, which decides how much memory they need.
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
    def solver(self, samples: SampleSet, basis: Basis, projection: Projection) -> StartingSolver[Any]:
        """The solver that random starts go through, on given samples."""
