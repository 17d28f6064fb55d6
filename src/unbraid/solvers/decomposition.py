r"""An unstructured decomposition: J ≈ [[W1, W0ᵀ, G]] by alternating least squares, G being free.

Only when it has ended do functions come in: with u = W0 x all of them together are one linear least-squares problem,
against the values, or against the Jacobians where there are no values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from unbraid.bases import Basis
from unbraid.bases.projection import Projection
from unbraid.data.in_memory import Samples
from unbraid.kernels import factors
from unbraid.kernels.arrays import Array
from unbraid.kernels.gauge import revive, row_lengths, unit_rows, vanished
from unbraid.results.outcome import Event, EventKind
from unbraid.solvers.alternating import events_at
from unbraid.solvers.batch import Batch, Generators
from unbraid.solvers.evaluated import BranchInputs
from unbraid.solvers.iterates import Iterates, Measure, Run
from unbraid.solvers.joint import joint_coefficients
from unbraid.solvers.linearised import Linearised
from unbraid.solvers.translate import GivenModel


@dataclass(frozen=True)
class DecompositionState(Batch):
    """A batch of B starts between two sweeps: factors, and products of G as in `alternating.SweepState`."""

    W0: Array
    W1: Array
    G: Array
    T: Array
    GG: Array
    sweep: int
    rngs: Generators


@dataclass(frozen=True)
class Decomposition:
    """The solver, on given samples; `coupling` and `offset` are those of the objective of the finished model."""

    resolution: ClassVar[float] = 1e-14
    samples: Samples
    basis: Basis
    projection: Projection
    coupling: float
    offset: bool

    def random_start(self, rank: int, rngs: Sequence[np.random.Generator]) -> DecompositionState:
        """Entries of W0 and G from normal distributions, one start per generator."""
        S, m = self.samples.X.shape
        W0 = np.stack([rng.standard_normal((rank, m)) for rng in rngs])
        G = np.stack([rng.standard_normal((S, rank)) for rng in rngs])
        n = self.samples.weight.size // m
        return self._state(W0, np.zeros((len(rngs), n, rank)), G, 0, tuple(rngs))

    def start_from(self, model: GivenModel, rng: np.random.Generator) -> DecompositionState:
        """A single start at a given model's factors."""
        return self._state(model.W0[None], model.W1[None], model.at(self.samples.X)[0][None], 0, (rng,))

    def project_model(self, model: GivenModel) -> Iterates:
        """The given directions, with functions fitted to the data."""
        return self._with_functions(model.W0[None], model.W1[None])

    def step(self, state: DecompositionState) -> tuple[DecompositionState, list[tuple[int, Event]]]:
        """One sweep of alternating least squares: W1, W0, G."""
        data, sweep = self.samples, state.sweep + 1
        W0 = state.W0
        W1 = factors.outer_step(factors.contract_inputs(state.T, W0), state.GG * (W0 @ W0.mT), 0.0, 0.0)
        W0 = factors.inner_step(state.T, W1, state.GG)
        length = row_lengths(W0)
        dead = vanished(length)
        W0, W1 = unit_rows(W0, W1, length)
        events: list[tuple[int, Event]] = []
        if dead.any():
            W0, W1 = revive(W0, W1, dead, state.rngs)
            events = events_at(EventKind.REVIVED, sweep, dead)
        G = factors.nearest_slopes(data.jacobians, data.weight, W1, W0, state.G)
        return self._state(W0, W1, G, sweep, state.rngs), events

    def measure(self, state: DecompositionState) -> Measure:
        """The residual of the decomposition."""
        W0 = state.W0
        CT, gram = factors.contract_inputs(state.T, W0), state.GG * (W0 @ W0.mT)
        misfit = factors.misfit(CT, gram, state.W1, self.samples.jacobian_norm) / self.samples.norm
        return Measure(misfit, misfit)

    def may_converge(self, state: DecompositionState) -> bool:
        """Always true: the objective has one form only."""
        return True

    def iterates(self, state: DecompositionState) -> Iterates:
        """The directions, with functions yet to come."""
        placement = self.basis.place(state.W0 @ self.samples.X.T)
        return Iterates(state.W0, state.W1, placement, np.zeros((*state.W0.shape[:2], self.basis.size)))

    def finish(self, run: Run) -> Run:
        """The directions of a run with functions fitted to the data, and the objective of that model."""
        best = self._with_functions(run.best.W0, run.best.W1)
        jacobian, values = Linearised(self.samples, self.coupling, self.offset, best).misfits()
        return replace(run, best=best, objective=float((jacobian + self.coupling * values)[0] / self.samples.norm))

    def _state(self, W0: Array, W1: Array, G: Array, sweep: int, rngs: Generators) -> DecompositionState:
        T = factors.jacobian_products(self.samples.jacobians, self.samples.weight, G)
        return DecompositionState(W0, W1, G, T, G.mT @ G, sweep, rngs)

    def _with_functions(self, W0: Array, W1: Array) -> Iterates:
        u = W0 @ self.samples.X.T
        placement = self.basis.place(u)
        it = Iterates(W0, W1, placement, np.zeros((*W0.shape[:2], self.basis.size)))
        if self.samples.F is None:
            a = joint_coefficients(self.samples, BranchInputs(self.samples.X, W0, placement), W1, self.projection)
            return replace(it, a=a)
        here = Linearised(self.samples.without_jacobians(), 1.0, self.offset, it)
        r, first = it.a.shape[1], W1.shape[-2] + W0.shape[-1]
        N, b = here.normal_matrix()[:, :, first:, :, first:], here.descent()[..., first:]
        penalty = placement.chosen_penalty(N, b, here.misfits()[1], self.samples.F.size)
        if penalty is not None:
            N[:, np.arange(r), :, np.arange(r), :] += np.moveaxis(penalty, 1, 0)
        diagonal = np.einsum("brkrk->brk", N)
        level = diagonal.mean(axis=(-2, -1), keepdims=True)
        diagonal += 1e-14 * np.where(level > 0.0, level, 1.0)  # constants are the offset's
        return replace(it, a=self.projection.solve_together(placement, N, b))
