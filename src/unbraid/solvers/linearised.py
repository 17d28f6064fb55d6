r"""Models at the samples, to first order: residuals, the gradient, and products with the Gauss–Newton matrix.

The letters are those of `kernels.gauss_newton`. A change (δw1, δw0, δa) of a branch changes its slopes and values by

    δG_j = g''_j (x · δw0_j) + B'_j δa_j,        δR_j = g'_j (x · δw0_j) + B_j δa_j,

and everything else is small matrices: with M1 = W1ᵀ W1, M0 = W0 W0ᵀ, A1 = W1ᵀ δW1, A0 = W0 δW0ᵀ, what the change of Ĵ
means for the slopes is δG (M1 ∘ M0) + G (A1 ∘ M0 + M1 ∘ A0)ᵀ, (S, r), without Ĵ itself ever being built.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from unbraid.arrays import Array, IndexArray, blocks
from unbraid.iterate import Iterates
from unbraid.kernels import factors
from unbraid.kernels import gauss_newton as kernel
from unbraid.samples import Samples
from unbraid.solvers.penalties import Penalty


@dataclass(frozen=True)
class Linearised:
    """A batch of models on given samples, at one λ; `offset`: an output offset takes the mean of the values.

    u, branch inputs, is (B, r, S), and `prepared` for the placement; slopes and values of the branches are (B, S, r).
    """

    samples: Samples
    coupling: float
    offset: bool
    iterates: Iterates
    u: Array
    prepared: Any
    slopes: Array
    values: Array

    @classmethod
    def at(cls, samples: Samples, coupling: float, offset: bool, iterates: Iterates) -> Self:
        """Branches at the samples; where u has left the knots, their last pieces go on."""
        u = iterates.W0 @ samples.X.T
        prepared = iterates.placement.at(u)
        values, slopes = iterates.placement.value_and_slope(iterates.a, prepared)
        return cls(samples, coupling, offset, iterates, u, prepared, slopes.mT, values.mT)

    def take(self, index: IndexArray) -> Self:
        """Some of the starts."""
        iterates, u = self.iterates.take(index), self.u[index]
        return replace(
            self,
            iterates=iterates,
            u=u,
            prepared=iterates.placement.at(u),
            slopes=self.slopes[index],
            values=self.values[index],
        )

    @cached_property
    def curvature(self) -> Array:
        """G'' at the samples, (B, S, r)."""
        return self.iterates.placement.evaluate(self.iterates.a, self.prepared, 2).mT

    def _centred(self, values: Array) -> Array:
        """Values (B, S, ·) less their mean over samples, where an output offset takes the mean."""
        return values - self.samples.mean(values) if self.offset else values

    def _values_residual(self) -> Array:
        """F - F̂, (B, S, n), with the best output offset where there is one."""
        assert self.samples.F is not None
        residual = self.samples.F - self.values @ self.iterates.W1.mT
        return residual - self.samples.mean_residual(residual) if self.offset else residual

    def misfits(self) -> tuple[Array, Array]:
        """‖J - Ĵ‖² and ‖F - F̂‖², (B,) each, from residuals, so exact to their own last digits."""
        jacobian, values = np.zeros(len(self.u)), np.zeros(len(self.u))
        if self.samples.J is not None:
            directions = factors.khatri_rao(self.iterates.W1, self.iterates.W0).mT
            for part in blocks(len(self.samples.X), directions.shape[-1]):
                residual = self.samples.jacobian(part) - self.slopes[:, part] @ directions
                jacobian += np.sum(residual * self.samples.weighted_jacobian(residual, part), axis=(-2, -1))
        if self.samples.F is not None:
            residual = self._values_residual()
            values += np.sum(residual * self.samples.weighted_values(residual), axis=(-2, -1))
        return jacobian, values

    @cached_property
    def penalty(self) -> Penalty | None:
        """The penalty that the basis adds to the objective."""
        return Penalty.of(self.iterates)

    def penalty_value(self) -> Array:
        """What it amounts to, (B,)."""
        return np.zeros(len(self.u)) if self.penalty is None else self.penalty.value()

    def descent(self) -> Array:
        """Minus half the gradient of the objective, (B, r, q)."""
        W0, W1 = self.iterates.W0, self.iterates.W1
        (B, n, r), m = W1.shape, W0.shape[-1]
        explicit = np.zeros((B, r, n + m))
        to_slopes = to_values = None
        if self.samples.J is not None:
            directions = factors.khatri_rao(W1, W0)
            to_slopes, T = np.empty_like(self.slopes), np.zeros((B, n * m, r))
            for part in blocks(len(self.samples.X), n * m):
                G = self.slopes[:, part]
                residual = self.samples.weighted_jacobian(self.samples.jacobian(part) - G @ directions.mT, part)
                to_slopes[:, part] = residual @ directions
                T += residual.mT @ G
            explicit[..., :n] += factors.contract_inputs(T, W0).mT
            explicit[..., n:] += factors.contract_outputs(T, W1).mT
        if self.samples.F is not None:
            residual = self.coupling * self.samples.weighted_values(self._values_residual())
            to_values = residual @ W1
            explicit[..., :n] += (residual.mT @ self._centred(self.values)).mT
        from_penalty = None if self.penalty is None else self.penalty.descent()
        return self._pulled_back(explicit, to_slopes, to_values, from_penalty)

    def _pulled_back(
        self, explicit: Array, to_slopes: Array | None, to_values: Array | None, more: tuple[Array, Array] | None
    ) -> Array:
        """Σ_s φ to_slopes + ψ to_values for every branch, (B, S, r) each, added to what is explicit in (w1, w0).

        `more` is added for w1 and a.
        """
        n = self.iterates.W1.shape[-2]
        push = np.zeros_like(self.slopes)
        if to_slopes is not None:
            push += to_slopes * self.curvature
        if to_values is not None:
            push += to_values * self.slopes
        explicit[..., n:] += push.mT @ self.samples.X
        slopes = np.zeros_like(self.slopes) if to_slopes is None else to_slopes
        values = None if to_values is None else to_values.mT
        a = self.iterates.placement.adjoint(self.prepared, slopes.mT, values)
        if more is not None:
            explicit[..., :n] += more[0]
            a += more[1]
        return np.concatenate([explicit, a], axis=-1)

    def product(self, change: Array) -> Array:
        """The Gauss–Newton matrix times changes (B, r, q) of the unknowns."""
        W0, W1 = self.iterates.W0, self.iterates.W1
        n, m = W1.shape[-2], W0.shape[-1]
        dW1, dW0, da = change[..., :n].mT, change[..., n : n + m], change[..., n + m :]
        du = self.samples.X @ dW0.mT
        dvalues, dslopes = self.iterates.placement.value_and_slope(da, self.prepared)
        M1, M0, A1, A0 = W1.mT @ W1, W0 @ W0.mT, W1.mT @ dW1, W0 @ dW0.mT
        explicit = np.zeros((*change.shape[:-1], n + m))
        to_slopes = to_values = None
        if self.samples.J is not None:
            G, dG = self.slopes, du * self.curvature + dslopes.mT
            to_slopes = self.samples.weighted(dG @ (M1 * M0) + G @ (A1 * M0 + M1 * A0).mT)
            GG, mixed = self._slopes_gram, dG.mT @ self.samples.weighted(G)
            explicit[..., :n] += (dW1 @ (GG * M0) + W1 @ (mixed * M0 + GG * A0.mT)).mT
            explicit[..., n:] += (A1 * GG + M1 * mixed.mT) @ W0 + (M1 * GG) @ dW0
        if self.samples.F is not None:
            R, dR = self._centred(self.values), self._centred(du * self.slopes + dvalues.mT)
            to_values = self.coupling * self.samples.weighted(dR @ M1 + R @ A1.mT)
            wR = self.samples.weighted(R)
            explicit[..., :n] += self.coupling * (dW1 @ (R.mT @ wR) + W1 @ (dR.mT @ wR)).mT
        from_penalty = None if self.penalty is None else self.penalty.product(dW1.mT, da)
        return self._pulled_back(explicit, to_slopes, to_values, from_penalty)

    @cached_property
    def _slopes_gram(self) -> Array:
        return self.slopes.mT @ self.samples.weighted(self.slopes)

    def normal_matrix(self) -> Array:
        """The Gauss–Newton matrix (B, r, q, r, q).

        Entries that are not known count in it as if they were fitted exactly, which keeps its structure: it is that of
        a function which lies above the objective and touches it here, so steps still lead down, in smaller strides.
        """
        N = kernel.normal_matrix(self.iterates.W0, self.iterates.W1, self._moments(together))
        if self.penalty is not None:
            every = np.arange(N.shape[1])
            own = N[:, every, :, every, :].swapaxes(0, 1)
            self.penalty.add_to(own)
            N[:, every, :, every, :] = own.swapaxes(0, 1)
        return N

    def branch_matrices(self) -> Array:
        """Its blocks of each branch with itself, (B·r, 1, q, 1, q)."""
        W0, W1 = self.iterates.W0, self.iterates.W1
        n, m = W1.shape[-2], W0.shape[-1]
        N = kernel.normal_matrix(W0.reshape(-1, 1, m), W1.mT.reshape(-1, n, 1), self._moments(one_by_one))
        if self.penalty is not None:
            self.penalty.add_to(N.reshape(*self.u.shape[:2], *N.shape[-3::2]))
        return N

    def _moments(self, arranged: Callable[[Array], Array]) -> kernel.Moments:
        """The sums over samples that either is made of."""
        X, placement = self.samples.X, self.iterates.placement
        (_, r, S), f = self.u.shape, X.shape[1] + self.iterates.a.shape[-1]
        roots = None if self.samples.rows is None else np.sqrt(self.samples.rows)[:, None]
        G, R = (arranged(self.samples.rooted(one)[..., None]) for one in (self.slopes, self._centred(self.values)))
        lead, branches, p = len(G), G.shape[-1], f * G.shape[-1]
        slopes = kernel.no_sums(lead, p, branches)
        values = kernel.no_sums(lead, p, branches)
        mean = np.zeros((lead, p, 1))
        for part in blocks(S, 4 * r * f):
            u = self.u[..., part]
            if self.samples.J is not None:
                phi = arranged(kernel.features(X[part], self.curvature[:, part], placement.design(u, 1)))
                kernel.add_sums(slopes, weighted(phi, roots, part), G[:, part])
            if self.samples.F is not None:
                psi = arranged(kernel.features(X[part], self.slopes[:, part], placement.design(u)))
                psi = weighted(psi, roots, part)
                kernel.add_sums(values, psi, R[:, part])
                mean += weighted(psi, roots, part).sum(axis=-2)[..., None] / S
        if self.offset:
            values[0][...] -= S * (mean @ mean.mT)
        return kernel.Moments(*slopes, *(self.coupling * one for one in values))


def weighted(by_sample: Array, roots: Array | None, part: slice) -> Array:
    """Numbers (..., S, ·) of a part of the samples times the roots (S, 1) of the samples' weights, or as they are."""
    return by_sample if roots is None else by_sample * roots[part]


def together(A: Array) -> Array:
    """(B, S, r, ·) with the branches side by side: (B, S, r ·)."""
    return A.reshape(*A.shape[:2], -1)


def one_by_one(A: Array) -> Array:
    """(B, S, r, ·) with every branch as a batch entry of its own: (B r, S, ·)."""
    return A.swapaxes(1, 2).reshape(-1, A.shape[1], A.shape[-1])
