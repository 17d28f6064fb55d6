r"""Gauss–Newton steps of penalised splines that choose how much to smooth as they go.

Every step chooses the strengths of the penalties anew, by one update towards the greatest restricted likelihood
(`kernels.restricted_likelihood`), moves all unknowns, and sets λ for the next one so that values and Jacobians count by
their noise, as the residuals show it,

    λ = (‖J - Ĵ‖² / S n m) / (‖F - F̂‖² / S n).

One update a step: strengths that run ahead of the other unknowns make branches vanish that are needed. The best iterate
is the most likely one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from unbraid.bases.smoothing import PlacedSmoothing
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.results.outcome import Event
from unbraid.solvers.batch import Batch
from unbraid.solvers.gauss_newton import FIRST_DAMPING, GaussNewton
from unbraid.solvers.iterates import Iterates, Measure
from unbraid.solvers.linearised import Linearised
from unbraid.solvers.surroundings import Surroundings, count_equations

COUPLINGS = (1e-6, 1e6)
"""Least and largest λ: exact values or Jacobians should not make the others' weight vanish."""
PLACE_AT = frozenset((4, 10, 20, 35))
"""Steps before which knots are placed anew."""
LEAST_STEPS = 12
"""Steps before nothing is at rest."""
MOST_DAMPED = 1.0
"""Strengths that change make steps fail now and then; damping does not grow beyond this."""


@dataclass(frozen=True)
class SmoothingState(Batch):
    """One model between two steps: `iterates`, how good they are, and the model that the step led to.

    `objective` and `jacobian` (1,) are those of the iterates at their strengths and the λ of the step; `coupling` is
    the next one. `criterion` (1,) is their restricted likelihood to the power -2/E, E being how many numbers are
    fitted: like a variance, the less the better.
    """

    iterates: Iterates
    objective: Array
    jacobian: Array
    criterion: Array
    ahead: Linearised
    coupling: float
    damping: Array
    steps: int


@dataclass(frozen=True)
class SmoothingSteps:
    """The solver; `coupling_open`: whether λ is chosen as well. A batch of one."""

    resolution: ClassVar[float] = 0.0
    solver: GaussNewton
    coupling_open: bool

    def start(self, iterates: Iterates, held: int = 0) -> SmoothingState:
        """Begin at a model whose penalties have strengths, which are held for some steps: those are counted below 0."""
        ahead, nothing = self.solver.linearised(iterates), np.full(1, np.inf)
        coupling, damping = self.balanced(ahead), np.full(1, FIRST_DAMPING)
        return SmoothingState(iterates, nothing, nothing, nothing, ahead, coupling, damping, -held)

    def step(self, state: SmoothingState) -> tuple[SmoothingState, list[tuple[int, Event]]]:
        """Strengths anew, one damped step, and λ anew."""
        solver, at = replace(self.solver, coupling=state.coupling), state.ahead.with_coupling(state.coupling)
        if state.steps in PLACE_AT:
            at = solver.linearised(solver.placed_anew(at.iterates))
        iterates, placement = at.iterates, at.iterates.placement
        assert isinstance(placement, PlacedSmoothing)
        assert placement.strength is not None
        around = Surroundings.of(solver, at)
        before = solver.measured(at)
        strength = placement.strength if state.steps < 0 else around.updated_strengths(placement.strength)
        stronger = replace(placement, strength=strength)
        tried = solver.attempt(solver.state_at(at.with_penalty(stronger), state.damping))
        there = tried.there if tried.better[0] else at.with_penalty(stronger)
        return SmoothingState(
            iterates,
            before[1],
            before[0],
            np.array([self.criterion(around, state.coupling)]),
            there,
            self.balanced(there),
            np.minimum(tried.damping, MOST_DAMPED),
            state.steps + 1,
        ), []

    def criterion(self, around: Surroundings, coupling: float) -> float:
        """The restricted likelihood of a model to the power -2/E."""
        data = self.solver.samples
        values = data.entries.values * data.has_jacobians
        return float(np.exp((around.deviance() - values * np.log(coupling)) / count_equations(data)))

    def balanced(self, at: Linearised) -> float:
        """λ from the residuals of a model; the solver's where it is given, or there are values or Jacobians only."""
        data = self.solver.samples
        if not (self.coupling_open and data.has_jacobians and data.has_values):
            return self.solver.coupling
        jacobian, values = (float(one[0]) for one in at.misfits())
        each = jacobian * data.entries.values / max(data.entries.jacobians, 1)
        least, most = COUPLINGS
        return most if each >= most * values else max(each / values, least)

    def measure(self, state: SmoothingState) -> Measure:
        """The objective of the iterates, and the criterion that the best of them are known by."""
        scale = self.solver.samples.norm
        return Measure(state.objective / scale, state.jacobian / scale, state.criterion)

    def may_converge(self, state: SmoothingState) -> BoolArray | bool:
        """Whether there were steps enough."""
        return state.steps > LEAST_STEPS

    def iterates(self, state: SmoothingState) -> Iterates:
        """The models that the measures belong to."""
        return state.iterates
