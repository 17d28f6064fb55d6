r"""Models at the samples, to first order: residuals, the gradient, and products with the Gauss–Newton matrix.

The letters are those of `kernels.gauss_newton`. A change (δw1, δw0, δa) of a branch changes its slopes and values by

    δG_j = g''_j (x · δw0_j) + B'_j δa_j,        δR_j = g'_j (x · δw0_j) + B_j δa_j,

and everything else is small matrices: with M1 = W1ᵀ W1, M0 = W0 W0ᵀ, A1 = W1ᵀ δW1, A0 = W0 δW0ᵀ, what the change of Ĵ
means for the slopes is δG (M1 ∘ M0) + G (A1 ∘ M0 + M1 ∘ A0)ᵀ, (S, r), without Ĵ itself ever being built.

A basis that penalises its functions adds Σ_j ‖w1_j‖² a_jᵀ P_j a_j = Σ_j ‖P_j^½ a_j w1_jᵀ‖², which does not depend on
how w1_j and a_j share their scale. Its residual P_j^½ a_j w1_jᵀ is bilinear, and the Gauss–Newton matrix is made of

    (w1, w1): (aᵀ P a) I      (a, a): ‖w1‖² P      (w1, a): w1 (P a)ᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unbraid.data.sample_set import SampleSet
from unbraid.kernels import factors
from unbraid.kernels import gauss_newton as kernel
from unbraid.kernels.arrays import Array
from unbraid.solvers import first_order
from unbraid.solvers.batch import Batch
from unbraid.solvers.first_order import Center
from unbraid.solvers.iterates import Iterates


@dataclass(frozen=True)
class Penalty:
    """The penalty at given models: C (B, r, k, K) with P = Cᵀ C, C a (B, r, k), P a (B, r, K), W1ᵀ (B, r, n).

    A stiff P loses to rounding what C keeps: that smooth functions cost nothing.
    """

    C: Array
    Ca: Array
    Pa: Array
    w1: Array

    @classmethod
    def of(cls, iterates: Iterates) -> Penalty | None:
        """None where the basis has no penalty."""
        C = iterates.placement.penalty_root()
        if C is None:
            return None
        Ca = C @ iterates.a[..., None]
        return cls(C, Ca[..., 0], (C.mT @ Ca)[..., 0], iterates.W1.mT)

    @property
    def _size(self) -> Array:
        """‖w1_j‖², (B, r, 1)."""
        return np.asarray(np.sum(self.w1**2, axis=-1, keepdims=True))

    @property
    def _roughness(self) -> Array:
        """a_jᵀ P_j a_j, (B, r, 1)."""
        return np.asarray(np.sum(self.Ca**2, axis=-1, keepdims=True))

    def value(self) -> Array:
        """What it adds to the objective, (B,)."""
        return np.asarray(np.sum(self._size * self._roughness, axis=(-2, -1)))

    def descent(self) -> tuple[Array, Array]:
        """Minus half its gradient, with respect to W1ᵀ (B, r, n) and a (B, r, K)."""
        return -self._roughness * self.w1, -self._size * self.Pa

    def product(self, dw1: Array, da: Array) -> tuple[Array, Array]:
        """Its Gauss–Newton matrix times changes of W1ᵀ and a."""
        along = np.sum(self.Pa * da, axis=-1, keepdims=True)
        turned = np.sum(self.w1 * dw1, axis=-1, keepdims=True)
        bent = (self.C.mT @ (self.C @ da[..., None]))[..., 0]
        return self._roughness * dw1 + along * self.w1, turned * self.Pa + self._size * bent

    def add_to(self, blocks: Array) -> None:
        """Add its Gauss–Newton matrix to the blocks (B, r, q, q) of each branch with itself."""
        n, K = self.w1.shape[-1], self.C.shape[-1]
        outer, inner = slice(0, n), slice(blocks.shape[-1] - K, None)
        mixed = self.w1[..., :, None] * self.Pa[..., None, :]
        blocks[..., outer, outer] += self._roughness[..., None] * np.eye(n)
        blocks[..., inner, inner] += self._size[..., None] * (self.C.mT @ self.C)
        blocks[..., outer, inner] += mixed
        blocks[..., inner, outer] += mixed.mT


@dataclass(frozen=True)
class Linearised(Batch):
    """A batch of models on given samples, at one λ; `offset`: an output offset takes the mean of the values.

    Where u has left the knots, the last pieces of branches go on.
    """

    samples: SampleSet
    coupling: float
    offset: bool
    iterates: Iterates

    @property
    def _rank(self) -> int:
        return int(self.iterates.W0.shape[-2])

    @cached_property
    def _center(self) -> Center:
        """What an output offset takes of values and residuals: their means."""
        if not self.offset or not self.samples.has_values:
            return Center(np.zeros(()), np.zeros(()))
        sums = self.samples.sum(first_order.value_totals, self.iterates, width=self._rank)
        return Center(sums.values / self.samples.size, sums.residual / self.samples.known_weight)

    def misfits(self) -> tuple[Array, Array]:
        """‖J - Ĵ‖² and ‖F - F̂‖², (B,) each, from residuals, so exact to their own last digits."""
        return self.samples.sum(first_order.misfits, self.iterates, self._center, width=self._rank)

    @cached_property
    def penalty(self) -> Penalty | None:
        """The penalty that the basis adds to the objective."""
        return Penalty.of(self.iterates)

    def penalty_value(self) -> Array:
        """What it amounts to, (B,)."""
        return np.zeros(len(self.iterates.W0)) if self.penalty is None else self.penalty.value()

    def descent(self) -> Array:
        """Minus half the gradient of the objective, (B, r, q)."""
        W0, W1, n = self.iterates.W0, self.iterates.W1, self.iterates.W1.shape[-2]
        sums = self.samples.sum(first_order.descent, self.iterates, self.coupling, self._center, width=self._rank)
        result = np.concatenate([np.zeros((*W0.shape[:2], n + W0.shape[-1])), sums.a], axis=-1)
        result[..., n : n + W0.shape[-1]] += sums.w0
        if sums.T is not None:
            result[..., :n] += factors.contract_inputs(sums.T, W0).mT
            result[..., n : n + W0.shape[-1]] += factors.contract_outputs(sums.T, W1).mT
        if sums.FR is not None:
            result[..., :n] += sums.FR.mT
        return result if self.penalty is None else self._with_penalty(result, self.penalty.descent())

    def product(self, change: Array) -> Array:
        """The Gauss–Newton matrix times changes (B, r, q) of the unknowns."""
        W0, W1 = self.iterates.W0, self.iterates.W1
        n, m = W1.shape[-2], W0.shape[-1]
        dW1, dW0 = change[..., :n].mT, change[..., n : n + m]
        dmean = self._mean_change(change)
        sums = self.samples.sum(
            first_order.product, self.iterates, self.coupling, self._center, change, dmean, width=self._rank
        )
        M1, M0, A1, A0 = W1.mT @ W1, W0 @ W0.mT, W1.mT @ dW1, W0 @ dW0.mT
        result = np.concatenate([np.zeros((*W0.shape[:2], n + m)), sums.a], axis=-1)
        result[..., n : n + m] += sums.w0
        if sums.GG is not None and sums.GG_change is not None:
            result[..., :n] += (dW1 @ (sums.GG * M0) + W1 @ (sums.GG_change * M0 + sums.GG * A0.mT)).mT
            result[..., n : n + m] += (A1 * sums.GG + M1 * sums.GG_change.mT) @ W0 + (M1 * sums.GG) @ dW0
        if sums.RR is not None and sums.RR_change is not None:
            result[..., :n] += self.coupling * (dW1 @ sums.RR + W1 @ sums.RR_change).mT
        if self.penalty is None:
            return result
        return self._with_penalty(result, self.penalty.product(dW1.mT, change[..., n + m :]))

    def _mean_change(self, change: Array) -> Array:
        """The mean of δR over samples, (B, 1, r), where an output offset takes it: linear in the change."""
        if not self.offset or not self.samples.has_values:
            return np.zeros(())
        n = self.iterates.W1.shape[-2]
        return np.asarray(np.sum(self._mean_features * change[..., n:], axis=-1)[:, None, :])

    @cached_property
    def _mean_features(self) -> Array:
        """The mean of ψ over samples, (B, r, m + K)."""
        return self.samples.sum(first_order.feature_totals, self.iterates, width=self._rank) / self.samples.size

    def _with_penalty(self, result: Array, more: tuple[Array, Array]) -> Array:
        """A gradient or product (B, r, q) with what the penalty adds to it in w1 and a."""
        result[..., : more[0].shape[-1]] += more[0]
        result[..., -more[1].shape[-1] :] += more[1]
        return result

    def normal_matrix(self) -> Array:
        """The Gauss–Newton matrix (B, r, q, r, q).

        Entries that are not known count in it as if they were fitted exactly, which keeps its structure: it is that of
        a function which lies above the objective and touches it here, so steps still lead down, in smaller strides.
        """
        N = kernel.normal_matrix(self.iterates.W0, self.iterates.W1, self._moments(one_by_one=False))
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
        N = kernel.normal_matrix(W0.reshape(-1, 1, m), W1.mT.reshape(-1, n, 1), self._moments(one_by_one=True))
        if self.penalty is not None:
            self.penalty.add_to(N.reshape(*W0.shape[:2], *N.shape[-3::2]))
        return N

    def _moments(self, one_by_one: bool) -> kernel.Moments:
        """The sums over samples that either is made of; values are centred where an offset takes their mean."""
        sums = self.samples.sum(first_order.moments, self.iterates, self._center, one_by_one, width=self._rank)
        values = sums.values
        if self.offset:
            values = (values[0] - (sums.features @ sums.features.mT) / self.samples.size, *values[1:])
        return kernel.Moments(*sums.slopes, *(self.coupling * one for one in values))
