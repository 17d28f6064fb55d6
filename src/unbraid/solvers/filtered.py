r"""Branches by their values at the samples, their slopes by finite differences: no basis until the end.

With V (S, r) the values of the branches and H_j = D(u_j) V_j their slopes, D being a three-point formula on the sorted
u_j,

    α_F ‖F - V W1ᵀ‖² + α_J Σ_D ‖J - [[W1, W0ᵀ, H]]‖² + penalty / (r S) Σ_j ‖(D_left - D_right) V_j‖²

is minimised in turn over W0 (Levenberg–Marquardt; D depends on it through u), V (one dense linear problem of size r S)
and W1 (linear). α_F = 1 / ‖F - mean F‖², α_J = 1 / ‖J‖². Last, functions of the basis are put through (u_j, V_j).
Constants are left to the output offset: F and V are centred.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from unbraid.bases import Basis, NormalEquations
from unbraid.bases.projection import Projection
from unbraid.data.in_memory import Samples
from unbraid.kernels import factors
from unbraid.kernels.arrays import Array
from unbraid.kernels.differences import formula
from unbraid.kernels.gauge import directions
from unbraid.kernels.quadratics import minimise
from unbraid.results.outcome import Event
from unbraid.solvers.batch import Batch
from unbraid.solvers.iterates import Iterates, Measure, Run
from unbraid.solvers.linearised import Linearised
from unbraid.solvers.translate import GivenModel

LINEAR_EVERY = 5
"""Every so many sweeps the search for W0 begins at its linear update instead of at the last W0."""
EVALUATIONS = 5
"""Steps of Levenberg–Marquardt for W0 in a sweep, in units of its number of entries."""


@dataclass(frozen=True)
class FilteredState(Batch):
    """A batch of B starts: W0 (B, r, m), W1 (B, n, r), V (B, S, r)."""

    W0: Array
    W1: Array
    V: Array
    sweep: int


@dataclass(frozen=True)
class Filtered:
    """The solver; `sides` are the formulas that Jacobians are fitted with, one or all three."""

    resolution: ClassVar[float] = 1e-14
    samples: Samples
    basis: Basis
    projection: Projection
    coupling: float
    penalty: float
    sides: tuple[str, ...]

    def random_start(self, rank: int, rngs: Sequence[np.random.Generator]) -> FilteredState:
        """Random directions, and random quadratic functions of u."""
        m = self.samples.X.shape[1]
        n = self.samples.weight.size // m
        W0 = directions(np.stack([rng.standard_normal((rank, m)) for rng in rngs]))
        W1 = np.stack([rng.standard_normal((n, rank)) for rng in rngs])
        shape = np.stack([rng.standard_normal((2, rank)) for rng in rngs])
        u = self.samples.X @ W0.mT
        return FilteredState(W0, W1, subtract_mean(shape[:, :1] * u + shape[:, 1:] * u * u), 0)

    def start_from(self, model: GivenModel, rng: np.random.Generator) -> FilteredState:
        """A single start at a given model."""
        return FilteredState(
            directions(model.W0[None]), model.W1[None], subtract_mean(model.at(self.samples.X)[1][None]), 0
        )

    def project_model(self, model: GivenModel) -> Iterates:
        """Functions of the basis through the values of a given model."""
        return self._with_functions(model.W0[None], model.W1[None], model.at(self.samples.X)[1][None])

    def step(self, state: FilteredState) -> tuple[FilteredState, list[tuple[int, Event]]]:
        """One sweep: W0, V, W1, start by start."""
        linear = state.sweep % LINEAR_EVERY == 0
        done = [self._sweep(*one, linear) for one in zip(state.W0, state.W1, state.V, strict=True)]
        W0, W1, V = (np.stack(parts) for parts in zip(*done, strict=True))
        return FilteredState(W0, W1, V, state.sweep + 1), []

    def measure(self, state: FilteredState) -> Measure:
        """The objective, and its part from the Jacobians."""
        objective, jacobian = [], []
        for one in zip(state.W0, state.W1, state.V, strict=True):
            residual = self._residuals(*one)
            values = 0.0 if self.samples.F is None else float(np.sum((self._values - one[2] @ one[1].T) ** 2))
            smooth = float(np.sum(self._kinks(one[0], one[2]) ** 2))
            jacobian.append(float(np.sum(residual[0] ** 2)) * self._jacobian_share)
            objective.append(float(np.sum(residual**2)) * self._jacobian_share + values * self._values_share + smooth)
        return Measure(np.array(objective), np.array(jacobian))

    def may_converge(self, state: FilteredState) -> bool:
        """Always true: the objective has one form only."""
        return True

    def iterates(self, state: FilteredState) -> Iterates:
        """Functions through the values as they are."""
        return self._with_functions(state.W0, state.W1, state.V)

    def finish(self, run: Run) -> Run:
        """The run with the objective of the model that it ended with, in place of the solver's own."""
        jacobian, values = Linearised(self.samples, self.coupling, True, run.best).misfits()
        return replace(run, objective=float((jacobian + self.coupling * values)[0] / self.samples.norm))

    @property
    def _values(self) -> Array:
        assert self.samples.F is not None
        return subtract_mean(self.samples.F)

    @property
    def _values_share(self) -> float:
        """α_F of the module's text; 0 where values do not vary."""
        square = float(np.sum(self._values**2)) if self.samples.F is not None else 0.0
        return 1.0 / square if square > 0.0 else 0.0

    @property
    def _jacobian_share(self) -> float:
        """α_J of the module's text."""
        return 1.0 / float(self.samples.norm)

    def _residuals(self, W0: Array, W1: Array, V: Array) -> Array:
        """J - Ĵ for each of the formulas: (sides, S, n·m)."""
        u, D = self.samples.X @ W0.T, factors.khatri_rao(W1, W0)
        J = self.samples.jacobian(slice(None))
        return np.stack([J - slopes(u, V, side) @ D.T for side in self.sides])

    def _kinks(self, W0: Array, V: Array) -> Array:
        """√(penalty / r S) (D_left - D_right) V, (S, r)."""
        u = self.samples.X @ W0.T
        weight = np.sqrt(self.penalty / V.size)
        return np.asarray(weight * (slopes(u, V, "left") - slopes(u, V, "right")), dtype=np.float64)

    def _sweep(self, W0: Array, W1: Array, V: Array, linear: bool) -> tuple[Array, Array, Array]:
        W0 = self._directions(self._linear_update(W0, W1, V) if linear else W0, W1, V)
        V = subtract_mean(self._values_of(W0, W1))
        size = np.sqrt(np.mean(V * V, axis=0))
        V = V / np.where(size > 0.0, size, 1.0)
        return W0, self._outer(W0, V), V

    def _linear_update(self, W0: Array, W1: Array, V: Array) -> Array:
        """W0 of alternating least squares, the slopes being those of the last W0."""
        data = self.samples
        H = slopes(data.X @ W0.T, V, self.sides[0])
        T = factors.jacobian_products(data.jacobians, data.weight, H)
        update = factors.inner_step(T, W1, H.T @ H)
        return update if np.all(np.linalg.norm(update, axis=1) > 0.0) else W0

    def _directions(self, W0: Array, W1: Array, V: Array) -> Array:
        """Levenberg–Marquardt on W0; what does not improve is dropped."""
        from scipy.optimize import least_squares

        share = np.sqrt(self._jacobian_share)

        def residuals(flat: Array) -> Array:
            one = flat.reshape(W0.shape)
            return np.concatenate([share * self._residuals(one, W1, V).ravel(), self._kinks(one, V).ravel()])

        found = least_squares(residuals, directions(W0).ravel(), max_nfev=EVALUATIONS).x
        return directions(np.asarray(found, dtype=np.float64).reshape(W0.shape))

    def _values_of(self, W0: Array, W1: Array) -> Array:
        """All values (S, r) from one linear least-squares problem; of least norm where there are several."""
        S, r = len(self.samples.X), len(W0)
        u, D = self.samples.X @ W0.T, factors.khatri_rao(W1, W0)
        M1, M = W1.T @ W1, D.T @ D
        along = self.samples.jacobian(slice(None)) @ D
        N, b = np.zeros((r, S, r, S)), np.zeros((r, S))
        for side in self.sides:
            formulas = [formula(u[:, j], side).matrix() for j in range(r)]
            for j in range(r):
                b[j] += self._jacobian_share * (formulas[j].T @ along[:, j])
                for k in range(r):
                    N[j, :, k] += self._jacobian_share * M[j, k] * (formulas[j].T @ formulas[k])
        for j in range(r):
            kink = formula(u[:, j], "left").matrix() - formula(u[:, j], "right").matrix()
            N[j, :, j] += self.penalty / (r * S) * (kink.T @ kink)
        if self.samples.F is not None:
            b += self._values_share * (self._values @ W1).T
            N += self._values_share * M1[:, None, :, None] * np.eye(S)[:, None, :]
        flat = N.reshape(r * S, r * S)
        flat[np.diag_indices(r * S)] += 1e-10 * np.trace(flat) / (r * S)
        return minimise(flat, b.ravel()).reshape(r, S).T

    def _outer(self, W0: Array, V: Array) -> Array:
        """W1 from Jacobians and values together."""
        data = self.samples
        total, gram = np.zeros((data.weight.size // W0.shape[1], len(W0))), np.zeros((len(W0), len(W0)))
        for side in self.sides:
            H = slopes(data.X @ W0.T, V, side)
            T = factors.jacobian_products(data.jacobians, data.weight, H)
            total += self._jacobian_share * factors.contract_inputs(T, W0)
            gram += self._jacobian_share * (H.T @ H) * (W0 @ W0.T)
        if data.F is None:
            return factors.outer_step(total, gram, 0.0, 0.0)
        return factors.outer_step(
            total, gram, self._values_share * (self._values.T @ V), self._values_share * (V.T @ V)
        )

    def _with_functions(self, W0: Array, W1: Array, V: Array) -> Iterates:
        """Functions of the basis through (u, V), by least squares, smoothed and constrained where asked."""
        u = W0 @ self.samples.X.T
        placement = self.basis.place(u)
        design, values = placement.design(u), V.mT
        gram, right = design.mT @ design, (design.mT @ values[..., None])[..., 0]
        penalty = placement.penalty()
        if penalty is None:
            square = np.sum(values * values, axis=-1)
            alone = gram[..., None, :, None, :], right[..., None, :]
            chosen = placement.chosen_penalty(*alone, square, u.shape[-1])
            penalty = None if chosen is None else chosen[..., 0, :, :]
        normal = NormalEquations(gram, right, design.sum(axis=-2))
        a = self.projection.solve(placement, normal, u.shape[-1], values.mean(axis=-1), penalty)
        return Iterates(W0, W1, placement, a)


def slopes(u: Array, V: Array, side: str) -> Array:
    """D(u_j) V_j for every branch: (S, r)."""
    return np.stack([formula(u[:, j], side)(V[:, j]) for j in range(V.shape[1])], axis=-1)


def subtract_mean(values: Array) -> Array:
    """Values (…, S, ·) less their mean over samples."""
    result: Array = values - values.mean(axis=-2, keepdims=True)
    return result
