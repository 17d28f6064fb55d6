"""What a penalty on the branches adds to the quadratic model of the objective.

A basis that penalises its functions adds Σ_j ‖w1_j‖² a_jᵀ P_j a_j = Σ_j ‖P_j^½ a_j w1_jᵀ‖², which does not depend on
how w1_j and a_j share their scale. Its residual P_j^½ a_j w1_jᵀ is bilinear, and the Gauss–Newton matrix is made of

    (w1, w1): (aᵀ P a) I      (a, a): ‖w1‖² P      (w1, a): w1 (P a)ᵀ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unbraid.kernels.arrays import Array
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
