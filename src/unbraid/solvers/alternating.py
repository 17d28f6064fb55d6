r"""Alternating projections: Algorithm 1 of CMTF-BSD (docs/method.md) and its relatives.

A sweep updates W1, W0, G = g'(u) and R = g(u) by linear least squares as if the factors were free, then projects G
and R onto what r univariate functions of u = W0 x can produce. The solver is a composition: which minimiser
the G and R steps take (`anchored`), the projection (basis and constraints), the gauge (`unit_rows`),
the coupling λ, whether the model carries an output offset, and how evenly knots are spaced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from unbraid.bases import Basis, Placement
from unbraid.bases.projection import Projection, Targets, targets
from unbraid.data.in_memory import Samples
from unbraid.data.sample_set import SampleSet
from unbraid.kernels import factors
from unbraid.kernels.arrays import Array
from unbraid.kernels.gauge import revive, row_lengths, unit_rows, vanished
from unbraid.results.outcome import Event, EventKind
from unbraid.solvers.batch import Batch, Generators
from unbraid.solvers.coupling import Coupling
from unbraid.solvers.evaluated import BranchInputs, BranchOutputs, Evaluated, Placed
from unbraid.solvers.iterates import Iterates, Measure, Run
from unbraid.solvers.translate import GivenModel


@dataclass(frozen=True)
class SweepState(Batch):
    """A batch of B starts between two sweeps.

    T = Jᵀ G, GG = Gᵀ G, CT (T contracted with W0), gram = GG ∘ W0 W0ᵀ, FR = Fᵀ R and RR = Rᵀ R belong to the slopes G
    and values R (B, S, r) of the models that are `evaluated`: they serve the measure of this sweep and the W1 and W0
    steps of the next. With an output offset F and R are centred; `mean` (B, 1, r) is that of R.
    """

    samples: SampleSet
    evaluated: Evaluated
    T: Array
    GG: Array
    CT: Array
    gram: Array
    FR: Array | None
    RR: Array | None
    mean: Array | None
    sweep: int
    rngs: Generators

    @property
    def iterates(self) -> Iterates:
        """The models that the state stands for."""
        return self.evaluated.iterates


class StateSums(NamedTuple):
    """What blocks of samples add to a state: Gᵀ J (B, r, n·m) in the user's units, GG, FR, RR, and the sum of R."""

    GJ: Array
    GG: Array
    FR: Array | None
    RR: Array | None
    R: Array | None


@dataclass(frozen=True)
class AlternatingProjection:
    """The solver, on given samples. See the module's text for its parts."""

    resolution: ClassVar[float] = 1e-14
    samples: SampleSet
    basis: Basis
    projection: Projection
    coupling: Coupling
    anchored: bool
    normalised: bool
    offset: bool
    evenness: float = 0.0

    def random_start(self, rank: int, rngs: Sequence[np.random.Generator]) -> SweepState:
        """Random directions W0 and random functions of u = W0 x, one start per generator.

        The paper starts from random W0, G and R. Here G and R are those of random functions that obey
        the constraints, so that the order of the samples does not matter.
        """
        data = self._data
        W0 = np.stack([rng.standard_normal((rank, data.m)) for rng in rngs])
        z = np.stack([rng.standard_normal((rank, self.basis.size)) for rng in rngs])
        length = np.linalg.norm(W0, axis=-1, keepdims=True)
        W0 = W0 / np.where(length > 0.0, length, 1.0)
        placement = place_basis(self.basis, data, W0, self.evenness)
        W1, a = np.zeros((len(W0), data.n, rank)), self.projection.feasible(placement, z)
        return self._state(data, Evaluated.on(data, Iterates(W0, W1, placement, a)), 0, tuple(rngs))

    def project_model(self, model: GivenModel) -> Iterates:
        """The model nearest to a given one in the basis and its constraints, as a batch of one."""
        W0 = model.W0[None]
        placement = place_basis(self.basis, self.samples, W0, self.evenness)
        coupling = max(self.coupling.final, 1.0)
        placed = Placed.on(self.samples, W0, placement)
        near = self.samples.sum(given_targets, placed, model.at, coupling, width=W0.shape[1])
        return Iterates(W0, model.W1[None], placement, self.projection.nearest(placement, near, coupling))

    def start_from(self, model: GivenModel, rng: np.random.Generator) -> SweepState:
        """A single start at a given model."""
        data = self._data
        return self._state(data, Evaluated.on(data, self.project_model(model)), 0, (rng,))

    def finish(self, run: Run) -> Run:
        """What the loop gave is complete already."""
        return run

    def step(self, state: SweepState) -> tuple[SweepState, list[tuple[int, Event]]]:
        """One sweep of Algorithm 1."""
        data, coupling = state.samples, self.coupling.at(state.sweep)
        events = self._coupling_events(state, coupling)
        sweep = state.sweep + 1
        W1 = self._outer(state, coupling)
        W0 = self._inner(state, W1)
        length = row_lengths(W0)
        dead = vanished(length)
        if self.normalised:
            W0, W1 = unit_rows(W0, W1, length)
        if dead.any():
            W0, W1 = revive(W0, W1, dead, state.rngs)
            events += events_at(EventKind.REVIVED, sweep, dead)
        placed = Placed.on(data, W0, place_basis(self.basis, data, W0, self.evenness))
        a = self._functions(state, placed, W1, coupling)

        def stand_in() -> Targets:
            return data.sum(leaky_targets, placed, self.projection, coupling, width=W0.shape[-2])

        a, constant = self.projection.replace_constant(placed.placement, a, stand_in, coupling)
        if constant.any():
            events += events_at(EventKind.REPLACED, sweep, constant)
        return self._state(data, placed.evaluate(W1, a), sweep, state.rngs), events

    def _functions(self, state: SweepState, placed: Placed, W1: Array, coupling: float) -> Array:
        """The functions a (B, r, K) of a sweep: G and R as if they were free, projected branch by branch."""
        data = state.samples
        free = FreeStep(data.weight, placed.W0, W1, coupling, state.mean if self.offset else None)
        before = state.evaluated if self._looks_back(state.iterates) else None
        near = data.sum(free_targets, placed, before, free, width=W1.shape[-1])
        return self.projection.nearest(placed.placement, near, coupling if data.has_values else 0.0)

    def measure(self, state: SweepState) -> Measure:
        """Both residuals of the model that the state stands for, at the final λ."""
        data, W1 = state.samples, state.iterates.W1
        jacobian = factors.misfit(state.CT, state.gram, W1, data.jacobian_norm)
        scale = data.norm
        if state.FR is None or state.RR is None:
            return Measure(jacobian / scale, jacobian / scale)
        values = factors.misfit(state.FR, state.RR, W1, data.values_norm)
        return Measure((jacobian + self.coupling.final * values) / scale, jacobian / scale)

    def may_converge(self, state: SweepState) -> bool:
        """Whether λ has reached its final value."""
        return self.coupling.at(state.sweep) == self.coupling.final

    def iterates(self, state: SweepState) -> Iterates:
        """The models that the state stands for."""
        return state.iterates

    @property
    def _data(self) -> SampleSet:
        """The samples, their values centred where an output offset takes the mean."""
        return self.samples.centred if self.offset else self.samples

    def _state(self, data: SampleSet, evaluated: Evaluated, sweep: int, rngs: Generators) -> SweepState:
        """The state of given models, with the products that the next sweep needs."""
        W0 = evaluated.iterates.W0
        sums = data.sum(state_sums, evaluated, width=W0.shape[-2])
        T = sums.GJ.mT * data.weight[..., None]
        CT = factors.contract_inputs(T, W0)
        RR, mean = sums.RR, None if sums.R is None else sums.R / data.size
        if self.offset and RR is not None and mean is not None:
            RR = RR - data.size * (mean.mT @ mean)
        gram = sums.GG * (W0 @ W0.mT)
        return SweepState(data, evaluated, T, sums.GG, CT, gram, sums.FR, RR, mean, sweep, rngs)

    def _looks_back(self, it: Iterates) -> bool:
        """Whether the G and R steps of the next sweep look at the slopes and values of these models."""
        return self.anchored and (factors.slopes_are_open(it.W1, it.W0) or factors.values_are_open(it.W1))

    def _outer(self, state: SweepState, coupling: float) -> Array:
        """The W1 step, from Jacobians and values."""
        if state.FR is None or state.RR is None:
            return factors.outer_step(state.CT, state.gram, 0.0, 0.0)
        return factors.outer_step(state.CT, state.gram, coupling * state.FR, coupling * state.RR)

    def _inner(self, state: SweepState, W1: Array) -> Array:
        """The W0 step, from Jacobians."""
        return factors.inner_step(state.T, W1, state.GG)

    def _coupling_events(self, state: SweepState, coupling: float) -> list[tuple[int, Event]]:
        before = self.coupling.at(max(state.sweep - 1, 0))
        if coupling == before:
            return []
        event = Event(state.sweep + 1, EventKind.COUPLING_RAISED, value=coupling)
        return [(start, event) for start in range(len(state.rngs))]


def place_basis(basis: Basis, data: SampleSet, W0: Array, evenness: float) -> Placement:
    """The placement of a basis on u = W0 x, W0 (B, r, m)."""
    u = data.inputs_for_knots(W0)
    placement = basis.place(u, evenness)
    return placement if u.shape[-1] == data.size else placement.of_samples(u.shape[-1], data.size)


@dataclass(frozen=True)
class FreeStep:
    """The G and R steps of a sweep: the same for all blocks of samples.

    Where slopes and values of the models before say which minimiser is taken, `mean` (B, 1, r) is that of these values,
    if an output offset takes it.
    """

    weight: Array
    W0: Array
    W1: Array
    coupling: float
    mean: Array | None

    @cached_property
    def _from_jacobians(self) -> Array:
        return factors.slopes_operator(self.weight, self.W1, self.W0)

    @cached_property
    def _from_values(self) -> Array:
        return factors.pseudo_inverse_of(self.W1)

    @cached_property
    def _open_slopes(self) -> Array:
        return factors.undetermined_slopes(self.W1, self.W0)

    def slopes(self, block: Samples, before: BranchOutputs | None) -> Array:
        """G at the samples of a block, (B, S, r): nearest to that of the models before, or of least norm."""
        G = (self._from_jacobians @ block.jacobians.mT).mT
        if before is None or not factors.slopes_are_open(self.W1, self.W0):
            return G
        return G + (self._open_slopes @ before.slopes.mT).mT

    def values(self, block: Samples, before: BranchOutputs | None) -> Array | None:
        """R at the samples of a block, (B, S, r), chosen likewise; None without values."""
        if block.F is None:
            return None
        if before is None or not factors.values_are_open(self.W1):
            return factors.least_norm_values(block.F, self._from_values)
        R = before.values if self.mean is None else before.values - self.mean
        return factors.nearest_values(block.F, self.W1, self._from_values, R)


def free_targets(block: Samples, inputs: BranchInputs, before: BranchOutputs | None, free: FreeStep) -> Targets:
    """G and R as if they were free, to be projected."""
    G, R = free.slopes(block, before), free.values(block, before)
    return targets(inputs.placement, inputs.prepared, G.mT, None if R is None else R.mT, free.coupling, block.rows)


def given_targets(
    block: Samples, inputs: BranchInputs, functions: Callable[[Array], tuple[Array, Array]], coupling: float
) -> Targets:
    """Slopes and values of a given model, to be projected."""
    G, R = functions(block.X)
    return targets(inputs.placement, inputs.prepared, G.T[None], R.T[None], coupling)


def leaky_targets(block: Samples, inputs: BranchInputs, projection: Projection, coupling: float) -> Targets:
    """Slopes and values that stand in for branches without any slope, to be projected."""
    slopes, values = projection.leaky(inputs.u)
    return targets(inputs.placement, inputs.prepared, slopes, values, coupling)


def state_sums(block: Samples, at: BranchOutputs) -> StateSums:
    """What a block adds to the state of given models."""
    wG = block.weighted(at.slopes)
    GJ, GG = wG.mT @ block.jacobians, at.slopes.mT @ wG
    if block.F is None:
        return StateSums(GJ, GG, None, None, None)
    wR = block.weighted(at.values)
    return StateSums(GJ, GG, block.F.mT @ wR, at.values.mT @ wR, wR.sum(axis=-2, keepdims=True))


def events_at(kind: EventKind, sweep: int, where: Array | Any) -> list[tuple[int, Event]]:
    """An event for every true entry of `where` (B, r)."""
    return [(int(start), Event(sweep, kind, int(branch))) for start, branch in zip(*np.nonzero(where), strict=True)]
