r"""Damped Gauss–Newton on all unknowns at once: W1, W0 and the coefficients of every branch.

Alternating projections stop at a fixed point near the minimiser of the objective; this solver goes to the minimiser.
A step solves (N + μ D) δ = -gradient with the structured normal matrix N of `kernels.gauss_newton` and D its
diagonal; where branches are constrained, the same quadratic model is minimised over the cone, so that every
iterate is feasible and the limit satisfies the constrained optimality conditions. Knots stay fixed
while steps are taken; at a few scheduled steps they are placed anew on the branches' inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from unbraid.arrays import Array, BoolArray, IndexArray, blocks
from unbraid.bases import Basis, Placement
from unbraid.gauge import row_lengths
from unbraid.iterate import Iterates, Measure
from unbraid.kernels import factors
from unbraid.kernels import gauss_newton as kernel
from unbraid.kernels.quadratics import minimise, minimise_nonnegative
from unbraid.projection import Projection
from unbraid.samples import Samples
from unbraid.trace import Event

FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-14, 1e6
SHRINK, GROW = 0.1, 5.0
PLACE_KNOTS_AT = frozenset((3, 6, 10, 15, 22, 30))
"""Steps before which knots are placed anew; after the last one they stay."""


@dataclass(frozen=True)
class State:
    """A batch of B starts between two steps, with the quadratic model at the current point."""

    iterates: Iterates
    jacobian: Array
    values: Array
    normal: Array
    descent: Array
    damping: Array
    moved: BoolArray
    steps: int


class Evaluated(NamedTuple):
    """Branch inputs u (B, r, S), and values R and slopes G (B, S, r) there."""

    u: Array
    R: Array
    G: Array


@dataclass(frozen=True)
class GaussNewton:
    """The solver, on given samples, at one λ; with `directions_fixed` W0 and the knots stay as they are."""

    resolution: ClassVar[float] = 0.0
    samples: Samples
    basis: Basis
    projection: Projection
    coupling: float
    offset: bool
    evenness: float = 0.0
    directions_fixed: bool = False

    def start(self, iterates: Iterates) -> State:
        """Begin at given models."""
        damping = np.full(len(iterates.W0), FIRST_DAMPING)
        misfits = self._misfits(iterates, self._evaluate(iterates))
        return self._linearised(iterates, *misfits, damping, damping > 0.0, 0)

    def step(self, state: State) -> tuple[State, list[tuple[int, Event]]]:
        """One damped step for every start; a step that does not improve is taken back and damped more."""
        now = state
        if state.steps in PLACE_KNOTS_AT and not self.directions_fixed:
            iterates = self.placed_anew(state.iterates)
            misfits = self._misfits(iterates, self._evaluate(iterates))
            now = self._linearised(iterates, *misfits, state.damping, state.moved, state.steps)
        trial, promised = self._trial(now)
        jacobian, values = self._misfits(trial, self._evaluate(trial))
        gained = self._objective(now.jacobian, now.values) - self._objective(jacobian, values)
        better = gained > 0.0
        quality = gained / np.where(promised > 0.0, promised, 1.0)
        factor = np.where(better, np.clip(1.0 - (2.0 * quality - 1.0) ** 3, SHRINK, 2.0), GROW)
        damping = np.clip(now.damping * factor, LEAST_DAMPING, MOST_DAMPING)
        if not better.any():
            return replace(now, damping=damping, moved=better, steps=now.steps + 1), []
        merged = now.iterates.merged(better, trial)
        jacobian, values = np.where(better, jacobian, now.jacobian), np.where(better, values, now.values)
        return self._linearised(merged, jacobian, values, damping, better, now.steps + 1), []

    def measure(self, state: State) -> Measure:
        """The objective of the models that the state stands for."""
        scale = self.samples.norm
        return Measure(self._objective(state.jacobian, state.values) / scale, state.jacobian / scale)

    def settled(self, state: State) -> BoolArray:
        """Whether knots have found their place and the last step was not taken back (or none can be made)."""
        return (state.moved | (state.damping >= MOST_DAMPING)) & (
            self.directions_fixed or state.steps > max(PLACE_KNOTS_AT)
        )

    def iterates(self, state: State) -> Iterates:
        """The models that the state stands for."""
        return state.iterates

    def take(self, state: State, index: IndexArray) -> State:
        """Some of the starts."""
        return State(
            state.iterates.take(index),
            state.jacobian[index],
            state.values[index],
            state.normal[index],
            state.descent[index],
            state.damping[index],
            state.moved[index],
            state.steps,
        )

    def _objective(self, jacobian: Array, values: Array) -> Array:
        return jacobian + self.coupling * values

    def _evaluate(self, iterates: Iterates) -> Evaluated:
        """Branches at the samples; where u has left the knots, their last pieces go on."""
        u = iterates.W0 @ self.samples.X.T
        values, slopes = iterates.placement.value_and_slope(iterates.a, iterates.placement.at(u))
        return Evaluated(u, values.mT, slopes.mT)

    def _values_residual(self, W1: Array, R: Array) -> Array:
        """F - R W1ᵀ, (B, S, n), centred where an output offset takes the mean."""
        assert self.samples.F is not None
        residual = self.samples.F - R @ W1.mT
        return residual - residual.mean(axis=-2, keepdims=True) if self.offset else residual

    def _misfits(self, iterates: Iterates, at: Evaluated) -> tuple[Array, Array]:
        """‖J - Ĵ‖² and ‖F - F̂‖², (B,) each, from residuals, so exact to their own last digits."""
        jacobian, values = np.zeros(len(iterates.W0)), np.zeros(len(iterates.W0))
        directions = factors.khatri_rao(iterates.W1, iterates.W0).mT
        for part in blocks(len(self.samples.X), directions.shape[-1]):
            residual = self.samples.jacobian(part) - at.G[:, part] @ directions
            jacobian += np.sum(residual * residual, axis=(-2, -1))
        if self.samples.F is not None:
            residual = self._values_residual(iterates.W1, at.R)
            values += np.sum(residual * residual, axis=(-2, -1))
        return jacobian, values

    def _linearised(
        self, iterates: Iterates, jacobian: Array, values: Array, damping: Array, moved: BoolArray, steps: int
    ) -> State:
        """The state at given models: normal matrix and steepest descent, in the coordinates that steps are taken in."""
        N, descent = self._quadratic_model(iterates, self._evaluate(iterates))
        (B, r, q), n = descent.shape, iterates.W1.shape[-2]
        change_coordinates(N, descent, n, turning_frames(iterates.W0))
        hold(N, descent, n)
        T = self._coordinates(iterates.placement)
        if T is not None:
            change_coordinates(N, descent, q - T.shape[-1], T)
        normal, flat = N.reshape(B, r * q, r * q), descent.reshape(B, r * q)
        return State(iterates, jacobian, values, normal, flat, damping, moved, steps)

    def _quadratic_model(self, iterates: Iterates, at: Evaluated) -> tuple[Array, Array]:
        """Normal matrix (B, r, q, r, q) and -gradient (B, r, q), summed over blocks of samples."""
        W0, W1 = iterates.W0, iterates.W1
        (B, n, r), f = W1.shape, W0.shape[-1] + self.basis.size
        descent = np.zeros((B, r, n + f))
        slopes = self._slopes_part(iterates, at, descent)
        if self.samples.F is None:
            values = np.zeros((B, r * f, r * f)), np.zeros((B, r * f, r)), np.zeros((B, r, r))
        else:
            values = self._values_part(iterates, at, descent)
        return kernel.normal_matrix(W0, W1, kernel.Moments(*slopes, *values)), descent

    def _slopes_part(self, iterates: Iterates, at: Evaluated, descent: Array) -> tuple[Array, Array, Array]:
        """The sums ⟨φ, φ⟩, ⟨φ, g'⟩ and ⟨g', g'⟩; what the Jacobians' residuals push goes into `descent`."""
        W0, W1, placement, a = iterates.W0, iterates.W1, iterates.placement, iterates.a
        (B, n, r), m = W1.shape, W0.shape[-1]
        f = m + a.shape[-1]
        phi_phi, phi_g, T = np.zeros((B, r * f, r * f)), np.zeros((B, r * f, r)), np.zeros((B, n * m, r))
        directions = factors.khatri_rao(W1, W0)
        for part in blocks(len(self.samples.X), 4 * r * f):
            u, G = at.u[..., part], at.G[:, part]
            curvature = placement.evaluate(a, placement.at(u), 2)
            phi = kernel.features(self.samples.X[part], curvature, placement.design(u, 1))
            residual = self.samples.jacobian(part) - G @ directions.mT
            descent[..., n:] += np.einsum("bsrf,bsr->brf", phi, residual @ directions)
            T += residual.mT @ G
            flat = phi.reshape(B, -1, r * f)
            phi_phi += flat.mT @ flat
            phi_g += flat.mT @ G
        descent[..., :n] += factors.contract_inputs(T, W0).mT
        descent[..., n : n + m] += factors.contract_outputs(T, W1).mT
        return phi_phi, phi_g, at.G.mT @ at.G

    def _values_part(self, iterates: Iterates, at: Evaluated, descent: Array) -> tuple[Array, Array, Array]:
        """The sums λ ⟨ψ, ψ⟩, λ ⟨ψ, g⟩ and λ ⟨g, g⟩, centred where the offset is free, and the values' push."""
        W1, placement = iterates.W1, iterates.placement
        (B, n, r), S = W1.shape, len(self.samples.X)
        f = iterates.W0.shape[-1] + iterates.a.shape[-1]
        psi_psi, psi_r, mean = np.zeros((B, r * f, r * f)), np.zeros((B, r * f, r)), np.zeros((B, r * f))
        residual = self.coupling * self._values_residual(W1, at.R)
        R = at.R - at.R.mean(axis=-2, keepdims=True) if self.offset else at.R
        descent[..., :n] += (residual.mT @ R).mT
        along = residual @ W1
        for part in blocks(S, 4 * r * f):
            psi = kernel.features(self.samples.X[part], at.G[:, part].mT, placement.design(at.u[..., part]))
            descent[..., n:] += np.einsum("bsrf,bsr->brf", psi, along[:, part])
            flat = psi.reshape(B, -1, r * f)
            psi_psi += flat.mT @ flat
            psi_r += flat.mT @ R[:, part]
            mean += flat.sum(axis=-2) / S
        if self.offset:
            psi_psi -= S * mean[:, :, None] * mean[:, None, :]
        return self.coupling * psi_psi, self.coupling * psi_r, self.coupling * (R.mT @ R)

    def _coordinates(self, placement: Placement) -> Array | None:
        """The matrices T (B, r, K, K) with a = T z, the z that steps are taken in; None where no branch is bounded."""
        if not self.projection.bounded(self.basis.size).any():
            return None
        B, r = placement.domain().shape[:2]
        K = self.basis.size
        T = np.broadcast_to(np.eye(K), (B, r, K, K)).copy()
        for constraint, branches in self.projection.groups:
            if constraint is not None:
                some = (slice(None), list(branches))
                sign = np.where(np.arange(K) < constraint.order, 1.0, float(constraint.sign))
                T[some] = placement.select(some).integration_matrix(constraint.order) * sign
        return T

    def _trial(self, state: State) -> tuple[Iterates, Array]:
        """The models one step ahead, and the decrease of the objective that the quadratic model promises."""
        it = state.iterates
        (B, n, r), m = it.W1.shape, it.W0.shape[-1]
        diagonal = np.einsum("bpp->bp", state.normal)
        floor = 1e-14 * diagonal.max(axis=-1, keepdims=True)
        scale = 1.0 / np.sqrt(np.where(diagonal > floor, diagonal, np.where(floor > 0.0, floor, 1.0)))
        if self.directions_fixed:
            np.reshape(scale, (B, r, -1))[..., n : n + m] = 0.0
        H = state.normal * scale[:, :, None] * scale[:, None, :]
        np.einsum("bpp->bp", H)[...] += state.damping[:, None]
        bounded = self.projection.bounded(self.basis.size)
        if not bounded.any():
            delta = (minimise(H, state.descent * scale) * scale).reshape(B, r, -1)
            a = it.a + delta[..., n + m :]
        else:
            z = self.projection.shape_coordinates(it.placement, it.a)
            x = np.zeros((B, r, n + m + z.shape[-1]))
            x[..., n + m :] = np.where(bounded, z, 0.0)
            x = x.reshape(B, -1) / np.where(scale > 0.0, scale, np.inf)
            free = np.concatenate([np.ones((r, n + m), dtype=bool), ~bounded], axis=-1).ravel()
            y = minimise_nonnegative(H, (H @ x[..., None])[..., 0] + state.descent * scale, free)
            delta = ((y - x) * scale).reshape(B, r, -1)
            z = z + delta[..., n + m :]
            a = self.projection.from_shape_coordinates(it.placement, np.where(bounded, np.maximum(z, 0.0), z))
        flat = delta.reshape(B, -1)
        promised = np.sum(flat * (2.0 * state.descent - (state.normal @ flat[..., None])[..., 0]), axis=-1)
        W0 = it.W0 + (turning_frames(it.W0) @ delta[..., n : n + m, None])[..., 0]
        length, before = row_lengths(W0), row_lengths(it.W0)
        W0 *= np.divide(before, length, where=length > 0.0, out=np.ones_like(length))[..., None]
        return Iterates(W0, it.W1 + delta[..., :n].mT, it.placement, a), promised

    def placed_anew(self, iterates: Iterates) -> Iterates:
        """Unit rows of W0, branches of unit slope, and knots placed on today's u."""
        at = self._evaluate(iterates)
        length = row_lengths(iterates.W0)
        length = np.where(length > 0.0, length, 1.0)
        W0 = iterates.W0 / length[..., None]
        G = at.G.mT * length[..., None]
        size = np.sqrt(np.mean(G * G, axis=-1))
        size = np.where(size > 0.0, size, 1.0)
        u = W0 @ self.samples.X.T
        placement = self.basis.place(u, self.evenness)
        slopes, values = G / size[..., None], at.R.mT / size[..., None]
        a = self.projection(placement, placement.at(u), slopes, values, max(self.coupling, 1.0))
        return Iterates(W0, iterates.W1 * size[:, None, :], placement, a)


def turning_frames(W0: Array) -> Array:
    """Orthonormal frames (B, r, m, m), symmetric, whose first axis is the row of W0: Householder reflections.

    A row may turn but not stretch: its length is a gauge, and left free it would stretch u against the
    knots, which stay, and so move the domain of a branch away from the data.
    """
    length = row_lengths(W0)[..., None]
    v = W0 / np.where(length > 0.0, length, 1.0)
    v[..., 0] += np.where(v[..., 0] >= 0.0, 1.0, -1.0)
    v /= np.sqrt(np.sum(v * v, axis=-1, keepdims=True))
    return np.eye(W0.shape[-1]) - 2.0 * v[..., :, None] * v[..., None, :]


def change_coordinates(N: Array, descent: Array, first: int, T: Array) -> None:
    """Replace the unknowns x[first : first + p] of every branch by z with x = T z, T (B, r, p, p), in place."""
    part = slice(first, first + T.shape[-1])
    N[..., part] = np.einsum("brqlk,blkz->brqlz", N[..., part], T)
    N[:, :, part] = np.einsum("brkz,brklq->brzlq", T, N[:, :, part])
    descent[..., part] = (T.mT @ descent[..., part, None])[..., 0]


def hold(N: Array, descent: Array, which: int) -> None:
    """Keep one unknown of every branch from moving, in place."""
    N[:, :, which], N[..., which], descent[..., which] = 0.0, 0.0, 0.0
    every = np.arange(N.shape[1])
    N[:, every, which, every, which] = 1.0
