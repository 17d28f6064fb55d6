r"""The quadratic model of the objective at a point, ½ δᵀ N δ - descentᵀ δ, in the coordinates steps are taken in.

N is the Gauss–Newton matrix. `DenseModel` holds it, which is fastest for the sizes that are usual; `ProductModel`
only multiplies with it, so that thousands of unknowns need neither an array of their square nor its factorisation.

Coordinates of branch j are (w1_j, z, ζ): w0_j = H_j z with a frame H_j whose first axis is w0_j itself and is held,
and a_j = T_j ζ with ζ the coordinates in which constraints read ζ ≥ 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from unbraid.kernels import conjugate_gradients, decompositions, quadratics
from unbraid.kernels.arrays import Array
from unbraid.kernels.gauge import row_lengths
from unbraid.runtime.deadline import is_late
from unbraid.solvers.batch import Batch
from unbraid.solvers.linearised import Linearised

STEP_TOLERANCE, BOUNDED_TOLERANCE, MOST_PRODUCTS = 1e-3, 1e-5, 400
"""How far the residual of a step is brought down by conjugate gradients, where no coordinate is bounded and where some
are, and with how many products at most. The decrease that a step gives away is of the order of the square, and the next
step makes up for it; what is at its bound is told by the sign of a residual."""

AT_BOUND = 1e-12
"""Coordinates below this share of the largest are at their bounds."""


@dataclass(frozen=True)
class Coordinates(Batch):
    """Frames H (B, r, m, m), symmetric, and T (B, r, K, K), or None where T is the identity; n outputs."""

    n: int
    H: Array
    T: Array | None

    def unknowns(self, z: Array) -> Array:
        """The changes of (w1, w0, a), (B, r, q), that coordinates z of that shape stand for."""
        n, m = self.n, self.H.shape[-1]
        result = z.copy()
        result[..., n] = 0.0
        result[..., n : n + m] = (self.H @ result[..., n : n + m, None])[..., 0]
        if self.T is not None:
            result[..., n + m :] = (self.T @ z[..., n + m :, None])[..., 0]
        return result

    def gradient(self, g: Array) -> Array:
        """The gradient (B, r, q) with respect to the coordinates, from that with respect to the unknowns."""
        n, m = self.n, self.H.shape[-1]
        result = g.copy()
        result[..., n : n + m] = (self.H @ g[..., n : n + m, None])[..., 0]
        result[..., n] = 0.0
        if self.T is not None:
            result[..., n + m :] = (self.T.mT @ g[..., n + m :, None])[..., 0]
        return result

    def matrix(self, N: Array) -> Array:
        """N (B, r, q, r, q) in the coordinates, in place; what is held gets a one on the diagonal."""
        n, m = self.n, self.H.shape[-1]
        change_coordinates(N, n, self.H)
        if self.T is not None:
            change_coordinates(N, n + m, self.T)
        N[:, :, n], N[..., n] = 0.0, 0.0
        every = np.arange(N.shape[1])
        N[:, every, n, every, n] = 1.0
        return N

    def branchwise(self) -> Self:
        """These coordinates with every branch as a batch entry of its own, (B·r, 1, …)."""
        T = None if self.T is None else self.T.reshape(-1, 1, *self.T.shape[2:])
        return type(self)(self.n, self.H.reshape(-1, 1, *self.H.shape[2:]), T)


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


def change_coordinates(N: Array, first: int, T: Array) -> None:
    """Replace the unknowns x[first : first + p] of every branch by z with x = T z, T (B, r, p, p), in place."""
    (B, r, q), p = N.shape[:3], T.shape[-1]
    part = slice(first, first + p)
    columns = N[..., part].transpose(0, 3, 1, 2, 4).reshape(B, r, r * q, p) @ T
    N[..., part] = columns.reshape(B, r, r, q, p).transpose(0, 2, 3, 1, 4)
    N[:, :, part] = (T.mT @ N[:, :, part].reshape(B, r, p, r * q)).reshape(B, r, p, r, q)


@dataclass(frozen=True)
class LocalModel(Batch, ABC):
    """What a step needs of the quadratic model; P = r q coordinates. `descent` (B, P) is minus the gradient."""

    descent: Array

    @property
    @abstractmethod
    def diagonal(self) -> Array:
        """The diagonal of N, (B, P)."""

    @abstractmethod
    def product(self, z: Array) -> Array:
        """N z, (B, P)."""

    @abstractmethod
    def minimiser(self, damping: Array, scale: Array, lower: Array | None) -> Array:
        """The z (B, P) of least ½ zᵀ N z + ½ damping ‖z / scale‖² - descentᵀ z, with z ≥ lower where given."""


@dataclass(frozen=True)
class DenseModel(LocalModel):
    """N as an array (B, P, P)."""

    normal: Array

    @property
    def diagonal(self) -> Array:
        return np.diagonal(self.normal, axis1=-2, axis2=-1)

    def product(self, z: Array) -> Array:
        return (self.normal @ z[..., None])[..., 0]

    def minimiser(self, damping: Array, scale: Array, lower: Array | None) -> Array:
        H = self.normal * scale[:, :, None]
        H *= scale[:, None, :]
        np.einsum("bpp->bp", H)[...] += damping[:, None]
        if lower is None:
            return quadratics.minimise_definite(H, self.descent * scale) * scale
        free = np.isneginf(lower[0])
        x = np.where(np.isneginf(lower), 0.0, -lower) / np.where(scale > 0.0, scale, np.inf)
        linear = (H @ x[..., None])[..., 0] + self.descent * scale
        inside = x > AT_BOUND * x.max(axis=-1, keepdims=True)  # now, and mostly after the step as well
        y = quadratics.minimise_nonnegative(H, linear, free, inside)
        return (y - x) * scale


@dataclass(frozen=True)
class ProductModel(LocalModel):
    """N by its products; conjugate gradients are preconditioned by the blocks of each branch with itself."""

    linearised: Linearised
    coordinates: Coordinates

    @cached_property
    def branch_matrices(self) -> Array:
        """The blocks of N of each branch with itself, in the coordinates: (B, r, q, q)."""
        blocks = self.coordinates.branchwise().matrix(self.linearised.branch_matrices())
        r, q = self.linearised.iterates.W0.shape[1], blocks.shape[-1]
        return blocks.reshape(-1, r, q, q)

    @property
    def diagonal(self) -> Array:
        B, r, q, _ = self.branch_matrices.shape
        return np.diagonal(self.branch_matrices, axis1=-2, axis2=-1).reshape(B, r * q)

    def product(self, z: Array) -> Array:
        shape = self.branch_matrices.shape[:3]
        unknowns = self.coordinates.unknowns(z.reshape(shape))
        image = self.coordinates.gradient(self.linearised.product(unknowns))
        held = self.coordinates.n
        image[..., held] = z.reshape(shape)[..., held]
        return image.reshape(z.shape)

    def minimiser(self, damping: Array, scale: Array, lower: Array | None) -> Array:
        B, r, q, _ = self.branch_matrices.shape
        s = scale.reshape(B, r, q)
        inverses = self.branch_matrices * s[..., :, None] * s[..., None, :]
        np.einsum("brqq->brq", inverses)[...] += damping[:, None, None]
        inverses = decompositions.pseudo_inverse(inverses)

        def damped(y: Array) -> Array:
            return scale * self.product(scale * y) + damping[:, None] * y

        def precondition(y: Array) -> Array:
            return (inverses @ y.reshape(B, r, q, 1)).reshape(y.shape)

        right = self.descent * scale
        if lower is None:
            everywhere = np.ones(right.shape, dtype=bool)
            y = conjugate_gradients.minimise_free(
                damped, right, precondition, everywhere, STEP_TOLERANCE, MOST_PRODUCTS, is_late
            )
        else:
            bounds = np.divide(lower, scale, where=scale > 0.0, out=np.zeros_like(lower))
            y = conjugate_gradients.minimise_bounded(
                damped, right, precondition, bounds, BOUNDED_TOLERANCE, MOST_PRODUCTS, is_late
            )
        return y * scale
