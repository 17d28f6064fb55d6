r"""All coefficients at once: sweeps whose third factor is fitted jointly rather than branch by branch.

Given W0 and W1, Ĵ_s = Σ_j (B'_j a_j)_s d_j with d_j = vec(w1_j w0_jᵀ) is linear in all coefficients, and

    Σ_l ⟨B'_j, B'_l⟩ (d_jᵀ Q d_l) a_l = B'_jᵀ (J Q d_j)      for every j

are the normal equations of min Σ_s (J_s - Ĵ_s)ᵀ Q (J_s - Ĵ_s), Q being a weight of the entries of J, or the identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unbraid.bases.projection import Projection
from unbraid.data.in_memory import Samples
from unbraid.kernels import factors
from unbraid.kernels.arrays import Array, blocks
from unbraid.kernels.decompositions import pseudo_inverse
from unbraid.solvers.alternating import AlternatingProjection, SweepState
from unbraid.solvers.evaluated import BranchInputs, Placed
from unbraid.solvers.iterates import Measure


@dataclass(frozen=True)
class JointProjection(AlternatingProjection):
    """Sweeps on Jacobians alone, with a joint problem for the functions; `entry_weight` is Q (n·m, n·m), or None."""

    entry_weight: Array | None = None

    samples: Samples

    def _functions(self, state: SweepState, placed: Placed, W1: Array, coupling: float) -> Array:
        assert isinstance(state.samples, Samples)
        inputs = BranchInputs(state.samples.X, placed.W0, placed.placement)
        return joint_coefficients(state.samples, inputs, W1, self.projection, self.entry_weight)

    def _outer(self, state: SweepState, coupling: float) -> Array:
        if self.entry_weight is None:
            return super()._outer(state, coupling)
        m, n = state.iterates.W0.shape[-1], state.iterates.W1.shape[-2]
        Q = self.entry_weight.reshape(n, m, n, m)
        T = state.T.reshape(-1, n, m, state.T.shape[-1])
        A = np.einsum("bjl,bjk,ikpq,blq->bijpl", state.GG, state.iterates.W0, Q, state.iterates.W0, optimize=True)
        b = np.einsum("bjk,ikpq,bpqj->bij", state.iterates.W0, Q, T, optimize=True)
        return solve_pairs(A, b)

    def _inner(self, state: SweepState, W1: Array) -> Array:
        if self.entry_weight is None:
            return super()._inner(state, W1)
        m, n = state.iterates.W0.shape[-1], W1.shape[-2]
        Q = self.entry_weight.reshape(n, m, n, m)
        T = state.T.reshape(-1, n, m, state.T.shape[-1])
        A = np.einsum("bjl,bij,ikpq,bpl->bjklq", state.GG, W1, Q, W1, optimize=True)
        b = np.einsum("bij,ikpq,bpqj->bjk", W1, Q, T, optimize=True)
        return solve_pairs(A, b)

    def measure(self, state: SweepState) -> Measure:
        """The weighted residual of the Jacobians, over their weighted norm."""
        plain = super().measure(state)
        if self.entry_weight is None:
            return plain
        Q, D = self.entry_weight, factors.khatri_rao(state.iterates.W1, state.iterates.W0)
        inner = np.sum(D * (Q @ state.T), axis=(-2, -1))
        square = np.sum(state.GG * (D.mT @ Q @ D), axis=(-2, -1))
        misfit = np.maximum(self._weighted_norm - 2.0 * inner + square, 0.0)
        return Measure(misfit / self._weighted_norm, plain.jacobian_error)

    @cached_property
    def _weighted_norm(self) -> float:
        assert self.entry_weight is not None
        total = 0.0
        for part in blocks(len(self.samples.X), self.samples.weight.size):
            J = self.samples.jacobian(part)
            total += float(np.sum(J * (J @ self.entry_weight)))
        return total or 1.0


def solve_pairs(A: Array, b: Array) -> Array:
    """Solve Σ_pl A[i, j, p, l] x[p, l] = b[i, j] for x, of least norm where there are several."""
    size = b[0].size
    x = pseudo_inverse(A.reshape(len(b), size, size)) @ b.reshape(len(b), size, 1)
    return np.asarray(x.reshape(b.shape), dtype=np.float64)


def joint_coefficients(
    samples: Samples, inputs: BranchInputs, W1: Array, projection: Projection, Q: Array | None = None
) -> Array:
    """The coordinates a (B, r, K) of all branches that fit the Jacobians best; their mean values are zero.

    `inputs` are those of the branches at all of the samples, and Q (n·m, n·m) weighs the entries of a Jacobian.
    """
    u, placement, prepared = inputs.u, inputs.placement, inputs.prepared
    D = factors.khatri_rao(W1, inputs.W0)
    QD = D if Q is None else Q @ D
    B, r, S = u.shape
    mean = placement.adjoint(prepared, np.zeros_like(u), np.full_like(u, 1.0 / S))
    K = mean.shape[-1]
    along, gram = np.empty((B, S, r)), np.zeros(())
    for part in blocks(S, max(D.shape[-2], 4 * r * K)):
        along[:, part] = samples.jacobian(part) @ QD
        design = np.moveaxis(placement.design(u[..., part], 1), 1, 2)  # (B, S, r, K)
        flat = design.reshape(B, design.shape[1], -1)
        gram = gram + flat.mT @ flat
    right = placement.adjoint(prepared, along.mT, None)
    N = gram.reshape(B, r, K, r, K) * (D.mT @ QD)[:, :, None, :, None]
    every = np.arange(r)
    own, square = placement.penalty(), np.broadcast_to(np.asarray(samples.jacobian_norm), (B,))
    penalty = placement.chosen_penalty(N, right, square, samples.weight.size * S) if own is None else own
    if penalty is not None:
        weight = 1.0 if own is None else np.sum(D * QD, axis=-2)[..., None, None]
        N[:, every, :, every, :] += np.moveaxis(weight * penalty, 1, 0)
    level = np.einsum("brkrk->b", N)[:, None, None] / (r * K)
    pin = level[..., None] * mean[..., :, None] * mean[..., None, :] / np.sum(mean * mean, axis=-1)[..., None, None]
    N[:, every, :, every, :] += np.moveaxis(pin, 1, 0)
    diagonal = np.einsum("brkrk->brk", N)
    diagonal += 1e-13 * np.maximum(diagonal, 1e-300)
    return projection.solve_together(placement, N, right)
