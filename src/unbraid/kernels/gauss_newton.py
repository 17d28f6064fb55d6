r"""The Gauss–Newton system of the decoupling problem, without its Jacobian.

Unknowns of branch j: w1_j (n), w0_j (m) and the coordinates a_j (K). With u = W0 x the residuals are

    J_s - Σ_j w1_j g'_j(u_js) w0_jᵀ        and        √λ (F_s - Σ_j w1_j g_j(u_js)).

Per branch and sample, derivatives with respect to w0_j (through u) and a_j are numbers times fixed
directions: slopes φ_j = [x g''_j, B'_j] times w1_j w0_jᵀ, and values ψ_j = [x g'_j, B_j] times w1_j. Everything
else is explicit in w1_j and w0_j. With M1 = W1ᵀ W1, M0 = W0 W0ᵀ every block of the normal matrix is then an
elementwise product of small Gram matrices,

    ⟨φ_j, φ_l⟩ M1_jl M0_jl + λ ⟨ψ_j, ψ_l⟩ M1_jl + terms in ⟨φ_j, g'_l⟩, ⟨g'_j, g'_l⟩, ⟨ψ_j, g_l⟩, ⟨g_j, g_l⟩,

so nothing of the size n·m·S·unknowns is ever built. Shapes: W0 (B, r, m), W1 (B, n, r), G and R (B, S, r), features
(B, S, r, m + K); B is the axis of starts. Unknowns are ordered (r, n + m + K): branch by branch w1, w0, a.

A basis that penalises its functions adds Σ_j ‖w1_j‖² a_jᵀ P_j a_j = Σ_j ‖P_j^½ a_j w1_jᵀ‖², which does not depend on
how w1_j and a_j share their scale. Its residual P_j^½ a_j w1_jᵀ is bilinear, and its Gauss–Newton matrix is made of

    (w1, w1): (aᵀ P a) I      (a, a): ‖w1‖² P      (w1, a): w1 (P a)ᵀ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from unbraid.kernels.arrays import Array


@dataclass(frozen=True)
class Moments:
    """Sums over samples that the normal matrix is made of; f = m + K features a branch.

    phi_phi (B, r f, r f) = ⟨φ, φ⟩, phi_g (B, r f, r) = ⟨φ, g'⟩, GG (B, r, r) = ⟨g', g'⟩, and
    psi_psi (B, r f, r f) = ⟨ψ, ψ⟩, psi_r (B, r f, r) = ⟨ψ, g⟩, RR (B, r, r) = ⟨g, g⟩, which λ multiplies.
    Absent data leave zeros.
    """

    phi_phi: Array
    phi_g: Array
    GG: Array
    psi_psi: Array
    psi_r: Array
    RR: Array
    coupling: float


def features(X: Array, by_direction: Array, K: int, write_design: Callable[[Array], None]) -> Array:
    """[x · by_direction, design] as (B, S, r, m + K), from X (S, m) and (B, S, r); the design writes itself."""
    m = X.shape[1]
    result = np.empty((*by_direction.shape, m + K))
    np.multiply(X[:, None, :], by_direction[..., None], out=result[..., :m])
    write_design(result)
    return result


Sums = tuple[Array, Array, Array]


def no_sums(batch: int, features: int, branches: int) -> Sums:
    """Zeros for ⟨φ, φ⟩, ⟨φ, g⟩ and ⟨g, g⟩."""
    return (
        np.zeros((batch, features, features)),
        np.zeros((batch, features, branches)),
        np.zeros((batch, branches, branches)),
    )


def add_sums(sums: Sums, phi: Array, g: Array) -> None:
    """Add a block of samples, phi (batch, block, features) and g (batch, block, branches), in place."""
    features, mixed, branches = sums
    for total, one in zip(features, phi, strict=True):  # in two dimensions BLAS knows that the product is symmetric
        total += one.T @ one
    mixed += phi.mT @ g
    branches += g.mT @ g


def normal_matrix(W0: Array, W1: Array, sums: Moments) -> Array:
    """The Gauss–Newton matrix (B, r, q, r, q) with q = n + m + K."""
    B, n, r = W1.shape
    m = W0.shape[-1]
    M1, M0 = W1.mT @ W1, W0 @ W0.mT
    f = sums.phi_phi.shape[-1] // r

    def by_column(weights: Array) -> Array:
        return np.repeat(weights, f, axis=-1)[:, :, None, :]

    shape = (B, r, f, r * f)
    own = sums.phi_phi.reshape(shape) * by_column(M1 * M0)
    own += sums.psi_psi.reshape(shape) * by_column(sums.coupling * M1)
    own = own.reshape(B, r, f, r, f)

    # w0 as it stands in J = W1 diag(g') W0: ⟨φ_j, g'_l⟩ M1_jl W0_jk, and its mirror image
    phi_G = sums.phi_g.reshape(B, r, f, r)
    explicit = (phi_G * M1[:, :, None, :])[..., None] * W0[:, :, None, None, :]
    own[..., :m] += explicit
    own[:, :, :m] += explicit.transpose(0, 3, 4, 1, 2)
    diagonals(own[:, :, :m, :, :m])[...] += (M1 * sums.GG)[:, None]

    # w1: ⟨g'_j, φ_l⟩ M0_jl W1_il + ⟨g_j, ψ_l⟩ W1_il, then w1 with the explicit w0, then w1 with w1
    psi_R = sums.coupling * sums.psi_r.reshape(B, r, f, r)
    mixed = phi_G.transpose(0, 3, 1, 2) * M0[..., None] + psi_R.transpose(0, 3, 1, 2)  # (B, j, l, f)
    cross = W1[:, None, :, :, None] * mixed[:, :, None]  # (B, j, i, l, f)
    cross[..., :m] += (W1[:, None, :, :] * sums.GG[:, :, None, :])[..., None] * W0[:, :, None, None, :]

    N = np.zeros((B, r, n + f, r, n + f))
    N[:, :, n:, :, n:] = own
    N[:, :, :n, :, n:] = cross
    N[:, :, n:, :, :n] = cross.transpose(0, 3, 4, 1, 2)
    diagonals(N[:, :, :n, :, :n])[...] = (M0 * sums.GG + sums.coupling * sums.RR)[:, None]
    return N


def diagonals(N: Array) -> Array:
    """The entries (B, k, r, r) of N (B, r, k, r, k) that belong to the same k twice, as a view."""
    return np.asarray(np.einsum("bjklk->bkjl", N))


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
    def at(cls, C: Array, a: Array, W1: Array) -> Self:
        """The penalty with root C at coordinates a (B, r, K) and outer weights W1 (B, n, r)."""
        Ca = C @ a[..., None]
        return cls(C, Ca[..., 0], (C.mT @ Ca)[..., 0], W1.mT)

    @property
    def _size(self) -> Array:
        """‖w1_j‖², (B, r, 1)."""
        return np.asarray(np.sum(self.w1**2, axis=-1, keepdims=True))

    @property
    def _roughness(self) -> Array:
        """a_jᵀ P_j a_j, (B, r, 1)."""
        return np.asarray(np.sum(self.Ca**2, axis=-1, keepdims=True))

    def value(self) -> Array:
        """What the penalty adds to the objective, (B,)."""
        return np.asarray(np.sum(self._size * self._roughness, axis=(-2, -1)))

    def descent(self) -> tuple[Array, Array]:
        """Minus half the penalty's gradient, with respect to W1ᵀ (B, r, n) and a (B, r, K)."""
        return -self._roughness * self.w1, -self._size * self.Pa

    def product(self, dw1: Array, da: Array) -> tuple[Array, Array]:
        """The penalty's Gauss–Newton matrix times changes of W1ᵀ (B, r, n) and a (B, r, K)."""
        along = np.sum(self.Pa * da, axis=-1, keepdims=True)
        turned = np.sum(self.w1 * dw1, axis=-1, keepdims=True)
        bent = (self.C.mT @ (self.C @ da[..., None]))[..., 0]
        return self._roughness * dw1 + along * self.w1, turned * self.Pa + self._size * bent

    def add_to(self, blocks: Array) -> None:
        """Add the penalty's Gauss–Newton matrix to the blocks (B, r, q, q) of each branch with itself, in place."""
        n, K = self.w1.shape[-1], self.C.shape[-1]
        outer, inner = slice(0, n), slice(blocks.shape[-1] - K, None)
        mixed = self.w1[..., :, None] * self.Pa[..., None, :]
        blocks[..., outer, outer] += self._roughness[..., None] * np.eye(n)
        blocks[..., inner, inner] += self._size[..., None] * (self.C.mT @ self.C)
        blocks[..., outer, inner] += mixed
        blocks[..., inner, outer] += mixed.mT
