r"""Alternating projections: Algorithm 1 and its relatives.

A sweep updates W1, W0, G and R by linear least squares as if the factors were free, then projects G and R
onto what r univariate functions of u = W0 x can produce. The solver is a composition: which minimiser
the G and R steps take (`anchored`), the projection (basis and constraints), the gauge (`unit_rows`),
the coupling λ, whether the model carries an output offset, and how evenly knots are spaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from unbraid.arrays import Array, IndexArray
from unbraid.bases import Basis, Placement
from unbraid.coupling import Coupling
from unbraid.gauge import revive, row_lengths, unit_rows, vanished
from unbraid.iterate import Iterates, Measure, Run
from unbraid.kernels import factors
from unbraid.projection import Projection
from unbraid.samples import Samples
from unbraid.trace import Event, EventKind


@dataclass(frozen=True)
class State:
    """A batch of B starts between two sweeps.

    G and R are (B, S, r). T = Jᵀ G, GG = Gᵀ G, CT (T contracted with W0) and gram = GG ∘ W0 W0ᵀ belong to
    these G and W0: they serve the measure of this sweep and the W1 and W0 steps of the next.
    """

    samples: Samples
    W0: Array
    W1: Array
    placement: Placement
    a: Array
    G: Array
    R: Array | None
    T: Array
    GG: Array
    CT: Array
    gram: Array
    sweep: int
    rngs: tuple[np.random.Generator, ...]


@dataclass(frozen=True)
class GivenModel:
    """A model to start from, in the solver's units: W0 (r, m), W1 (n, r), slopes G and values R (S, r)."""

    W0: Array
    W1: Array
    G: Array
    R: Array


@dataclass(frozen=True)
class AlternatingProjection:
    """The solver, on given samples. See the module's text for its parts."""

    resolution: ClassVar[float] = 1e-14
    samples: Samples
    basis: Basis
    projection: Projection
    coupling: Coupling
    anchored: bool
    normalised: bool
    offset: bool
    evenness: float = 0.0

    def random_start(self, rank: int, rngs: Sequence[np.random.Generator]) -> State:
        """Random directions W0 and random functions of u = W0 x, one start per generator.

        The paper starts from random W0, G and R. Here G and R are those of random functions that obey
        the constraints, so that the order of the samples does not matter.
        """
        data = self.samples
        m = data.X.shape[-1]
        W0 = np.stack([rng.standard_normal((rank, m)) for rng in rngs])
        z = np.stack([rng.standard_normal((rank, self.basis.size)) for rng in rngs])
        length = np.linalg.norm(W0, axis=-1, keepdims=True)
        W0 = W0 / np.where(length > 0.0, length, 1.0)
        placement, at, _ = self._place(data, W0)
        return self._state(data, W0, placement, at, self.projection.feasible(placement, z), tuple(rngs))

    def project_model(self, model: GivenModel) -> Iterates:
        """The model nearest to a given one in the basis and its constraints, as a batch of one."""
        placement, at, _ = self._place(self.samples, model.W0[None])
        a = self.projection(placement, at, model.G.T[None], model.R.T[None], max(self.coupling.final, 1.0))
        return Iterates(model.W0[None], model.W1[None], placement, a)

    def start_from(self, model: GivenModel, rng: np.random.Generator) -> State:
        """A single start at a given model."""
        one = self.project_model(model)
        placement, at, _ = self._place(self.samples, one.W0)
        return self._state(self.samples, one.W0, placement, at, one.a, (rng,), one.W1)

    def finish(self, run: Run) -> Run:
        """What the loop gave is complete already."""
        return run

    def step(self, state: State) -> tuple[State, list[tuple[int, Event]]]:
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
            events += happened(EventKind.REVIVED, sweep, dead)
        placement, at, u = self._place(data, W0)
        a = self._functions(state, W0, W1, placement, at, coupling)
        a, constant = self.projection.replace_constant(placement, at, u, a, coupling)
        if constant.any():
            events += happened(EventKind.REPLACED, sweep, constant)
        return self._state(data, W0, placement, at, a, state.rngs, W1, sweep), events

    def _functions(self, state: State, W0: Array, W1: Array, placement: Placement, at: Any, coupling: float) -> Array:
        """The functions a (B, r, K) of a sweep: G and R as if they were free, projected branch by branch."""
        data = state.samples
        if self.anchored:
            G = factors.nearest_slopes(data.jacobians, data.weight, W1, W0, state.G)
        else:
            G = factors.least_norm_slopes(data.jacobians, data.weight, W1, W0)
        R = self._values_step(data, W1, state.R)
        return self.projection(placement, at, G.mT, None if R is None else R.mT, coupling, data.rows)

    def measure(self, state: State) -> Measure:
        """Both residuals of the model that the state stands for, at the final λ."""
        data = state.samples
        jacobian = factors.jacobian_misfit(state.CT, state.gram, state.W1, data.jacobian_norm)
        scale = data.norm
        if data.F is None or state.R is None:
            return Measure(jacobian / scale, jacobian / scale)
        F, R = self._centred(data, data.F), self._centred(data, state.R)
        values = factors.values_misfit(data.rooted(F), state.W1, data.rooted(R))
        return Measure((jacobian + self.coupling.final * values) / scale, jacobian / scale)

    def settled(self, state: State) -> bool:
        """Whether λ has reached its final value."""
        return self.coupling.at(state.sweep) == self.coupling.final

    def iterates(self, state: State) -> Iterates:
        """The models that the state stands for."""
        return Iterates(state.W0, state.W1, state.placement, state.a)

    def take(self, state: State, index: IndexArray) -> State:
        """Some of the starts."""
        return replace(
            state,
            samples=state.samples.take(index),
            W0=state.W0[index],
            W1=state.W1[index],
            placement=state.placement.select(index),
            a=state.a[index],
            G=state.G.mT[index].mT,
            R=None if state.R is None else state.R.mT[index].mT,
            T=state.T[index],
            GG=state.GG[index],
            CT=state.CT[index],
            gram=state.gram[index],
            rngs=tuple(state.rngs[i] for i in index),
        )

    def _state(
        self,
        data: Samples,
        W0: Array,
        placement: Placement,
        at: Any,
        a: Array,
        rngs: tuple[np.random.Generator, ...],
        W1: Array | None = None,
        sweep: int = 0,
    ) -> State:
        """The state of given functions, with the products that the next sweep needs."""
        values, slopes = placement.value_and_slope(a, at)
        G, R = slopes.mT, None if data.F is None else values.mT
        wG = data.weighted(G)
        T = factors.jacobian_products(data.jacobians, data.weight, wG)
        GG, CT = G.mT @ wG, factors.contract_inputs(T, W0)
        if W1 is None:
            W1 = np.zeros((len(W0), data.weight.shape[-1] // W0.shape[-1], W0.shape[-2]))
        return State(data, W0, W1, placement, a, G, R, T, GG, CT, GG * (W0 @ W0.mT), sweep, rngs)

    def _place(self, data: Samples, W0: Array) -> tuple[Placement, Any, Array]:
        """The basis placed on u = W0 x, and u (B, r, S), prepared and as it is."""
        u = W0 @ data.X.mT
        placement = self.basis.place(u, self.evenness)
        return placement, placement.at(u), u

    def _outer(self, state: State, coupling: float) -> Array:
        """The W1 step, from Jacobians and values."""
        FR: Array | float = 0.0
        RR: Array | float = 0.0
        data = state.samples
        if data.F is not None and state.R is not None:
            R = self._centred(data, state.R)
            wR = data.weighted(R)
            FR = coupling * (self._centred(data, data.F).mT @ wR)
            RR = coupling * (R.mT @ wR)
        return factors.outer_step(state.CT, state.gram, FR, RR)

    def _inner(self, state: State, W1: Array) -> Array:
        """The W0 step, from Jacobians."""
        return factors.inner_step(state.T, W1, state.GG)

    def _values_step(self, data: Samples, W1: Array, R: Array | None) -> Array | None:
        """The R step, or None without values."""
        if data.F is None or R is None:
            return None
        F = self._centred(data, data.F)
        if self.anchored:
            return factors.nearest_values(F, W1, self._centred(data, R))
        return factors.least_norm_values(F, W1)

    def _centred(self, data: Samples, values: Array) -> Array:
        """Values (..., S, ·) less their mean over samples, where an output offset takes the mean."""
        return values - data.mean(values) if self.offset else values

    def _coupling_events(self, state: State, coupling: float) -> list[tuple[int, Event]]:
        before = self.coupling.at(max(state.sweep - 1, 0))
        if coupling == before:
            return []
        event = Event(state.sweep + 1, EventKind.COUPLING_RAISED, value=coupling)
        return [(start, event) for start in range(len(state.W0))]


def happened(kind: EventKind, sweep: int, where: Array | Any) -> list[tuple[int, Event]]:
    """An event for every true entry of `where` (B, r)."""
    return [(int(start), Event(sweep, kind, int(branch))) for start, branch in zip(*np.nonzero(where), strict=True)]
