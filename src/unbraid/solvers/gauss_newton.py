r"""Damped Gauss–Newton on all unknowns at once: W1, W0 and the coefficients of every branch.

Alternating projections stop at a fixed point near the minimiser of the objective; this solver goes to the minimiser of

    f(W1, W0, a) = Σ_s ‖J_s - W1 diag(g'(W0 x_s)) W0‖² + λ Σ_s ‖F_s - W1 g(W0 x_s) - offset‖² + penalties.

With residuals ρ and their derivatives D = ∂ρ, the unknowns being δ = (δw1_j, δw0_j, δa_j) branch by branch, a step
minimises

    ½ δᵀ (N + μ diag N) δ - descentᵀ δ,        N = Dᵀ D,        descent = -Dᵀ ρ = -½ ∇f,

over all δ or, where branches are constrained, over those that lead to points of the cone, so that every iterate is
feasible and the limit satisfies the constrained optimality conditions. The decrease that the quadratic model promises
is δᵀ (2 descent - N δ); its share that is gained says how μ goes on (Nielsen's rule), and a step that gains nothing is
taken back.

`linearised` gives ρ, descent and products with N at given models, and N itself by `kernels.gauss_newton`;
`local_models` has the coordinates that steps are taken in (rows of W0 turn and do not stretch; constraints read ζ ≥ 0)
and the minimisers, dense or by conjugate gradients. Knots stay fixed while steps are taken; at a few scheduled steps
they are placed anew on the branches' inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from unbraid.bases import Basis, Placement
from unbraid.bases.projection import Projection, Targets, targets
from unbraid.data.in_memory import Samples
from unbraid.data.sample_set import SampleSet
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.kernels.gauge import row_lengths
from unbraid.results.outcome import Event
from unbraid.solvers.alternating import place_basis
from unbraid.solvers.batch import Batch
from unbraid.solvers.evaluated import BranchInputs, BranchOutputs, Evaluated, Placed
from unbraid.solvers.iterates import Iterates, Measure
from unbraid.solvers.linearised import Linearised
from unbraid.solvers.local_models import Coordinates, DenseModel, LocalModel, ProductModel, turning_frames

FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-14, 1e6
SHRINK, GROW = 0.1, 5.0
PLACE_KNOTS_AT = frozenset((3, 6, 10, 15, 22, 30))
"""Steps before which knots are placed anew, by default; after the last one they stay."""
DENSE_LIMIT, DENSE_STEPS = 3000, 1200
"""Beyond so many unknowns no normal matrix is built; beyond the second, none for steps alone, unless coefficients are
bounded: conjugate gradients are faster there."""


@dataclass(frozen=True)
class GaussNewtonState(Batch):
    """A batch of B starts between two steps, with the quadratic model at the current point."""

    iterates: Iterates
    jacobian: Array
    objective: Array
    model: LocalModel
    damping: Array
    moved: BoolArray
    steps: int


class Attempt(NamedTuple):
    """Where a step leads: ‖J - Ĵ‖² and the objective there, whether that is better, and the next damping, (B,) each."""

    there: Linearised
    jacobian: Array
    objective: Array
    better: BoolArray
    damping: Array


@dataclass(frozen=True)
class GaussNewton:
    """The solver, on given samples, at one λ; with `directions_fixed` W0 stays as it is, with `weights_fixed` W1.

    Beyond `dense_steps` unknowns free steps come from conjugate gradients; beyond `dense_limit` nobody looks at how all
    unknowns hang together.
    """

    resolution: ClassVar[float] = 0.0
    samples: SampleSet
    basis: Basis
    projection: Projection
    coupling: float
    offset: bool
    evenness: float = 0.0
    place_knots_at: frozenset[int] = PLACE_KNOTS_AT
    directions_fixed: bool = False
    weights_fixed: bool = False
    dense_limit: int = DENSE_LIMIT
    dense_steps: int = DENSE_STEPS

    def start(self, iterates: Iterates) -> GaussNewtonState:
        """Begin at given models."""
        damping = np.full(len(iterates.W0), FIRST_DAMPING)
        return self.state_at(self.linearised(iterates), damping)

    def step(self, state: GaussNewtonState) -> tuple[GaussNewtonState, list[tuple[int, Event]]]:
        """One damped step for every start; a step that does not improve is taken back and damped more."""
        now = state
        if state.steps in self.place_knots_at:
            at = self.linearised(self.placed_anew(state.iterates))
            now = self._state(at, *self.measured(at), state.damping, state.moved, state.steps)
        tried = self.attempt(now)
        if not tried.better.any():
            return replace(now, damping=tried.damping, moved=tried.better, steps=now.steps + 1), []
        if tried.better.all():
            arrived = tried.there, tried.jacobian, tried.objective, tried.damping, tried.better
            return self._state(*arrived, now.steps + 1), []
        return self._partly_moved(now, tried), []

    def _partly_moved(self, now: GaussNewtonState, tried: Attempt) -> GaussNewtonState:
        """The state after a step that some starts take back: theirs stays, so that only the others' is made anew."""
        moved, stayed = np.flatnonzero(tried.better), np.flatnonzero(~tried.better)
        ahead = self._state(
            tried.there.take(moved),
            tried.jacobian[moved],
            tried.objective[moved],
            tried.damping[moved],
            tried.better[moved],
            now.steps + 1,
        )
        back = replace(now, damping=tried.damping, moved=tried.better, steps=now.steps + 1).take(stayed)
        return ahead.join([ahead, back]).take(np.argsort(np.concatenate([moved, stayed])))

    def attempt(self, now: GaussNewtonState) -> Attempt:
        """Where one damped step leads, from a state."""
        trial, promised = self._trial(now)
        there = self.linearised(trial)
        jacobian, objective = self.measured(there)
        gained = now.objective - objective
        better = gained > 0.0
        quality = gained / np.where(promised > 0.0, promised, 1.0)
        factor = np.where(better, np.clip(1.0 - (2.0 * quality - 1.0) ** 3, SHRINK, 2.0), GROW)
        damping = np.clip(now.damping * factor, LEAST_DAMPING, MOST_DAMPING)
        return Attempt(there, jacobian, objective, better, damping)

    def state_at(self, at: Linearised, damping: Array) -> GaussNewtonState:
        """The state at linearised models, before the first step."""
        return self._state(at, *self.measured(at), damping, damping > 0.0, 0)

    def measure(self, state: GaussNewtonState) -> Measure:
        """The objective of the models that the state stands for."""
        scale = self.samples.norm
        return Measure(state.objective / scale, state.jacobian / scale)

    def objective(self, iterates: Iterates) -> Array:
        """The relative objective of given models, (B,); infinite where floating point cannot hold it."""
        with np.errstate(all="ignore"):
            objective = self.measured(self.linearised(iterates))[1] / self.samples.norm
        return np.where(np.isnan(objective), np.inf, objective)

    def may_converge(self, state: GaussNewtonState) -> BoolArray:
        """Whether knots have found their place and the last step was not taken back (or none can be made)."""
        placed = state.steps > max(self.place_knots_at, default=-1)
        return (state.moved | (state.damping >= MOST_DAMPING)) & placed

    def iterates(self, state: GaussNewtonState) -> Iterates:
        """The models that the state stands for."""
        return state.iterates

    def linearised(self, iterates: Iterates) -> Linearised:
        """Models at the samples, to first order."""
        return Linearised(self.samples, self.coupling, self.offset, iterates)

    def measured(self, at: Linearised) -> tuple[Array, Array]:
        """‖J - Ĵ‖² and the objective, (B,) each."""
        jacobian, values = at.misfits()
        return jacobian, jacobian + self.coupling * values + at.penalty_value()

    def _state(
        self, at: Linearised, jacobian: Array, objective: Array, damping: Array, moved: BoolArray, steps: int
    ) -> GaussNewtonState:
        """The state at given models, with the quadratic model in the coordinates that steps are taken in."""
        it, unknown = at.iterates, at.descent()
        (B, r, q), n = unknown.shape, it.W1.shape[-2]
        coordinates = Coordinates(n, turning_frames(it.W0), self._shape_coordinates(it.placement))
        descent = coordinates.gradient(unknown).reshape(B, r * q)
        model: LocalModel
        if r * q <= (self.dense_limit if coordinates.T is not None else min(self.dense_steps, self.dense_limit)):
            model = DenseModel(descent, coordinates.matrix(at.normal_matrix()).reshape(B, r * q, r * q))
        else:
            model = ProductModel(descent, at, coordinates)
        return GaussNewtonState(it, jacobian, objective, model, damping, moved, steps)

    def _shape_coordinates(self, placement: Placement) -> Array | None:
        """The matrices T (B, r, K, K) with a = T z, the z that steps are taken in; None where no branch is bounded."""
        if not self.projection.bounded(self.basis.size).any():
            return None
        B, r = placement.domain().shape[:2]
        return self.projection.shape_matrices(placement, B, r, self.basis.size)

    def _trial(self, state: GaussNewtonState) -> tuple[Iterates, Array]:
        """The models one step ahead, and the decrease of the objective that the quadratic model promises."""
        it, model = state.iterates, state.model
        (B, n, r), m = it.W1.shape, it.W0.shape[-1]
        diagonal = model.diagonal
        counts = diagonal > 1e-14 * diagonal.max(axis=-1, keepdims=True)  # what changes nothing stays
        scale = np.where(counts, 1.0 / np.sqrt(np.where(counts, diagonal, 1.0)), 0.0)
        if self.directions_fixed:
            np.reshape(scale, (B, r, -1))[..., n : n + m] = 0.0
        if self.weights_fixed:
            np.reshape(scale, (B, r, -1))[..., :n] = 0.0
        bounded = self.projection.bounded(self.basis.size)
        if not bounded.any():
            flat = model.minimiser(state.damping, scale, None)
            delta = flat.reshape(B, r, -1)
            a = it.a + delta[..., n + m :]
        else:
            z = self.projection.shape_coordinates(it.placement, it.a)
            lower = np.full((B, r, n + m + z.shape[-1]), -np.inf)
            lower[..., n + m :] = np.where(bounded, -z, -np.inf)
            flat = model.minimiser(state.damping, scale, lower.reshape(B, -1))
            delta = flat.reshape(B, r, -1)
            z = z + delta[..., n + m :]
            a = self.projection.from_shape_coordinates(it.placement, np.where(bounded, np.maximum(z, 0.0), z))
        promised = np.sum(flat * (2.0 * model.descent - model.product(flat)), axis=-1)
        W0 = it.W0 + (turning_frames(it.W0) @ delta[..., n : n + m, None])[..., 0]
        length, before = row_lengths(W0), row_lengths(it.W0)
        W0 *= np.divide(before, length, where=length > 0.0, out=np.ones_like(length))[..., None]
        return Iterates(W0, it.W1 + delta[..., :n].mT, it.placement, a), promised

    @np.errstate(all="ignore")
    def placed_anew(self, iterates: Iterates) -> Iterates:
        """Unit rows of W0, branches of unit slope, and knots placed on today's u; not finite where these are lost."""
        r = iterates.W0.shape[1]
        length = row_lengths(iterates.W0)
        length = np.where(length > 0.0, length, 1.0)
        W0 = iterates.W0 / length[..., None]
        before = Evaluated.on(self.samples, iterates)
        size = length * np.sqrt(self.samples.sum(slope_squares, before, width=r) / self.samples.size)
        size = np.where(size > 0.0, size, 1.0)
        placement = place_basis(self.basis, self.samples, W0, self.evenness).keeping(iterates.placement)
        same = SameFunctions(length / size, 1.0 / size, max(self.coupling, 1.0))
        near = self.samples.sum(same_targets, before, Placed.on(self.samples, W0, placement), same, width=r)
        a = self.projection.nearest(placement, near, same.coupling)
        return Iterates(W0, iterates.W1 * size[:, None, :], placement, a)


@dataclass(frozen=True)
class SameFunctions:
    """Functions to be put on other knots, in other units: what their slopes and values (B, r) are multiplied by."""

    slopes: Array
    values: Array
    coupling: float


def same_targets(block: Samples, before: BranchOutputs, inputs: BranchInputs, same: SameFunctions) -> Targets:
    """Slopes and values as they are, to be projected."""
    G, R = before.slopes.mT * same.slopes[..., None], before.values.mT * same.values[..., None]
    return targets(inputs.placement, inputs.prepared, G, R, same.coupling)


def slope_squares(block: Samples, at: BranchOutputs) -> Array:
    """The sum of g'² over samples, (B, r)."""
    return np.asarray(np.sum(at.slopes**2, axis=-2))
