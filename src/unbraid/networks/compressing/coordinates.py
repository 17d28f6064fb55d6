r"""Inputs and outputs in the units that count for a part of a network.

Activations hang together and some hardly vary, so a Jacobian's entries say little by themselves. With μ and Σ the mean
and covariance of the activations, and L the metric of the outputs,

    x = μ + B z,        J_z = L J B,        B Bᵀ ≈ Σ,

every direction z_k varies by one, and an entry of J_z is what an output changes by along it. Directions are those of
E[J_zᵀ J_z], so that the first matter most; the last ones, which together change outputs by less than `LEFT_OUT` of all,
are left out if there are many, and a fit has tens of inputs instead of hundreds.

What the outputs are decides on L. *values*: as they are. *logits*: what all of them share decides on no class, and is
left out, L = 1 - 11ᵀ/n. *softmax*: L = M^{1/2} with M = E[diag(p) - p pᵀ] for p = softmax(f), to second order the loss
of what a class is told by.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from unbraid.data.problem import Problem
from unbraid.errors import DataError
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.kernels.pieces import Pieces
from unbraid.results.branch import Branch, ParametricBranch
from unbraid.results.branches.piecewise import PiecewiseBranch
from unbraid.results.model import DecoupledModel

Outputs = Literal["values", "logits", "softmax"]
LEFT_OUT = 0.01
"""How much of what inputs do to outputs, as a share of the mean square, the directions do that are left out."""
FEWEST = 20
"""Directions that are kept whatever they do: leaving them out would gain little."""
MOST_POINTS = 2000
"""Points that tell along which directions inputs vary, where inputs are more."""
STILL = 1e-8
"""Directions whose variance is less than this share of the largest do not vary."""
CERTAIN = 1e-12
"""Where probabilities vary by less, all classes are certain, and differences of logits count as they are."""
FLOOR = 1e-3
"""How much, at least, differences of logits weigh in the softmax's metric, as a share of the mean."""


@dataclass(frozen=True)
class Coordinates:
    """z = inner (x - center), and outputs L f; `out` and `back` are L (p, n) and its inverse (n, p).

    `inner` is (q, m); `outer` (m, q) has the directions, x = center + outer z.
    """

    center: Array
    inner: Array
    outer: Array
    out: Array
    back: Array

    @classmethod
    def of(cls, pool: Array, F: Array, jacobians: Iterable[Array], outputs: Outputs) -> Self:
        """The coordinates for activations `pool` (·, m), outputs F (S, n) and Jacobians, in blocks (·, n, m)."""
        center = pool.mean(axis=0)
        size, V = principal_directions(pool - center)
        out, back = metric(F, outputs)
        H = np.zeros((len(size), len(size)))
        for J in jacobians:
            G = (out @ J @ V) * size
            H += np.einsum("sik,sil->kl", G, G, optimize=True)
        worth, U = np.linalg.eigh(H)
        worth, U = np.maximum(worth[::-1], 0.0), U[:, ::-1]
        left = 1.0 - np.cumsum(worth) / max(worth.sum(), np.finfo(float).tiny)
        U = U[:, : max(int(np.argmax(left < LEFT_OUT)) + 1, FEWEST)]
        return cls(center, ((V / size) @ U).T, (V * size) @ U, out, back)

    def inputs(self, X: Array) -> Array:
        """The inputs z (S, q) of activations (S, m)."""
        return (X - self.center) @ self.inner.T

    def problem(self, X: Array, F: Array, jacobians: Iterable[Array]) -> Problem:
        """Samples of a part in these coordinates; Jacobians come in blocks, and never lie in memory as they are."""
        J = np.concatenate([self.out @ block @ self.outer for block in jacobians])
        names = [f"direction {k + 1}" for k in range(len(self.inner))]
        return Problem(self.inputs(X), F @ self.out.T, J, input_names=names)

    def model(self, found: DecoupledModel) -> DecoupledModel:
        """A model in these coordinates as one of activations and outputs."""
        W0 = found.W0 @ self.inner
        branches = [moved(one, float(by)) for one, by in zip(found.branches, W0 @ self.center, strict=True)]
        return DecoupledModel(W0, self.back @ found.W1, branches, self.back @ found.bias)

    def reduced(self, model: DecoupledModel) -> DecoupledModel:
        """A model of activations and outputs as one in these coordinates: what it does along the directions kept."""
        branches = [moved(one, -float(by)) for one, by in zip(model.branches, model.W0 @ self.center, strict=True)]
        W0, bias = model.W0 @ self.outer, self.out @ model.bias
        names = [f"direction {k + 1}" for k in range(len(self.inner))]
        return DecoupledModel(W0, self.out @ model.W1, branches, bias, input_names=names)


def moved(branch: Branch, by: float) -> Branch:
    """A branch on a domain that lies so much higher; training can have made one of pieces alone."""
    if isinstance(branch, PiecewiseBranch):
        pieces, (low, high) = branch.function, branch.domain
        up = Pieces(pieces.breaks + by, pieces.middle + by, pieces.rate, pieces.powers)
        return PiecewiseBranch(up, (low + by, high + by))
    assert isinstance(branch, ParametricBranch)
    return branch.shifted(by, branch.coordinates)


def principal_directions(X: Array) -> tuple[Array, Array]:
    """Standard deviations (k,) and directions (m, k) along which centred points X (S, m) vary."""
    if X.shape[1] <= len(X):
        variance, V = np.linalg.eigh(X.T @ X / len(X))
    else:  # of fewer points than inputs
        X = X[:MOST_POINTS]
        variance, U = np.linalg.eigh(X @ X.T / len(X))
        V = X.T @ (U / np.sqrt(np.maximum(variance, np.finfo(float).tiny) * len(X)))
    varies = variance > STILL * max(variance[-1], np.finfo(float).tiny)
    if not varies.any():
        raise DataError("What the part is given is the same for all samples: nothing can be learned from it.")
    return np.sqrt(variance[varies]), V[:, varies]


def metric(F: Array, outputs: Outputs) -> tuple[Array, Array]:
    """L (p, n) and its inverse (n, p) for outputs F (S, n)."""
    n = F.shape[1]
    if outputs == "values" or n == 1:
        return np.eye(n), np.eye(n)
    centred = np.eye(n) - 1.0 / n
    if outputs == "logits":
        return centred, centred
    p = np.exp(F - F.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    M = np.diag(p.mean(axis=0)) - p.T @ p / len(p)
    if np.trace(M) < CERTAIN:
        return centred, centred
    M = M + FLOOR * np.trace(M) / n * centred
    weight, V = np.linalg.eigh(M)
    V, root = V[:, 1:], np.sqrt(weight[1:])  # the first is what all logits share
    return (V * root) @ V.T, (V / root) @ V.T


def spread_out_in(Z: Array, count: int, rng: np.random.Generator) -> IndexArray:
    """Which `count` of points Z (S, q) to take: far from those already taken, as the centres of k-means++ are drawn.

    The first of them, whatever their number, are such a choice as well.
    """
    chosen = np.empty(min(count, len(Z)), dtype=np.intp)
    distance = np.full(len(Z), 1.0)
    for k in range(len(chosen)):
        total = distance.sum()
        if not total > 0.0:  # the others are copies
            chosen[k:] = np.setdiff1d(np.arange(len(Z)), chosen[:k])[: len(chosen) - k]
            break
        chosen[k] = min(int(np.searchsorted(np.cumsum(distance), rng.uniform(0.0, total))), len(Z) - 1)
        nearer = np.sum((Z - Z[chosen[k]]) ** 2, axis=1)
        distance = nearer if k == 0 else np.minimum(distance, nearer)
        distance[chosen[k]] = 0.0
    return chosen
