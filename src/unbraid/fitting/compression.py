r"""Jacobians reduced to their leading directions, and models of the reduced samples lifted back.

Where there are many more inputs or outputs than branches, J_s ≈ U Uᵀ J_s V Vᵀ with orthonormal U (n, p) and V (m, q):
every J_s of a model is W1 diag(g'(u)) W0, so its columns lie in the span of W1 and its rows in that of W0, each of
dimension r at most. The model of the samples (Vᵀ x, Uᵀ f, Uᵀ J V), with factors W0' and W1', is lifted by W0 = W0' Vᵀ
and W1 = U W1': u = W0 x = W0' Vᵀ x stays, so knots and coefficients do.

One pass over the samples finds the subspaces, another forms Uᵀ J V. The left one is spanned by the leading eigenvectors
of Σ_s J_s J_sᵀ, the right one by those of Σ_s J_sᵀ J_s, or, where that matrix A would be large, of its Nyström
approximation A Ω (Ωᵀ A Ω)⁺ (A Ω)ᵀ ≼ A from its products with a random Ω of a few columns [1]_. Ω is the same for all
samples, so blocks may come in any order and any size. What projections keep and what they lose is orthogonal, so

    ‖J - U Uᵀ J V Vᵀ‖² = ‖J‖² - ‖Uᵀ J V‖² ≤ (‖J‖² - ‖Uᵀ J‖²) + (‖J‖² - ‖J V‖²),

and a model's misfit on all of J is its misfit on Uᵀ J V plus that.

References
----------
.. [1] J. Tropp, A. Yurtsever, M. Udell, V. Cevher, "Fixed-rank approximation of a positive-semidefinite matrix from
   streaming data", NeurIPS 2017, Algorithm 3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from unbraid.data.in_memory import Samples
from unbraid.data.problem import Problem
from unbraid.data.sample_set import SampleSet
from unbraid.kernels.arrays import Array, blocks
from unbraid.kernels.decompositions import eigen, svd
from unbraid.solvers.iterates import Iterates

ROOM = 2
"""Directions kept per branch: noise turns the leading subspaces, and a model's directions are not quite inside."""
WORTH = 4
"""How many times fewer entries J has to have for the compression to pay."""
COMPRESSED_ENTRIES = 1 << 27
"""Entries of compressed Jacobians up to which they are kept in memory: 1 GB of float64."""
GRAM_LIMIT = 500
"""Up to so many inputs (or outputs) their Gram matrix is formed; beyond, products with a random matrix."""
OVERSAMPLING = 10
"""Columns of the random matrix beyond the directions kept."""
WIDTH = 1 << 14
"""A width that gives the shortest blocks: each sample has n·m entries."""
ROUNDING = 1e-14
"""Shares of ‖J‖² below this are not told from none."""


@dataclass(frozen=True)
class Compression:
    """Leading directions of the Jacobians of some samples.

    Attributes
    ----------
    U
        (n, p), orthonormal; None: all outputs stay as they are.
    V
        (m, q), orthonormal; None: all inputs stay as they are.
    lost
        What ‖J - U Uᵀ J V Vᵀ‖² / ‖J‖² is at most; `measure_loss` says what it is.
    """

    U: Array | None
    V: Array | None
    lost: float

    @classmethod
    def of(cls, samples: SampleSet, rank: int, always: bool = False) -> Self | None:
        """The compression for models of `rank` branches, in one pass; None where it does not pay or cannot be made.

        It takes Jacobians without gaps. `always`: wherever a side gets shorter.
        """
        sizes = sizes_kept(samples.n, samples.m, samples.size, rank, always)
        if sizes is None or not samples.has_jacobians or not samples.complete or not samples.jacobian_norm > 0.0:
            return None
        (n, p), (m, q) = sizes
        tests = test_matrix(n, p), test_matrix(m, q)
        products = samples.sum(products_with, *tests, p < n, q < m, width=WIDTH)
        norm = float(samples.jacobian_norm)
        U, left = (None, 0.0) if products.left is None else leading(tests[0], products.left, p, norm)
        V, right = (None, 0.0) if products.right is None else leading(tests[1], products.right, q, norm)
        return cls(U, V, min((left + right) / norm + ROUNDING, 1.0))

    def apply(self, samples: SampleSet) -> Samples:
        """The samples (Vᵀ x, Uᵀ f, Uᵀ J V), in memory, in one pass."""
        pieces = samples.sum(projected, self.U, self.V, width=WIDTH)
        X, F, J, rows = (None if part[0] is None else np.concatenate(part) for part in zip(*pieces, strict=True))
        assert X is not None
        assert J is not None
        return Samples(X, F, J, np.ones(J.shape[1]), rows)

    def measure_loss(self, samples: SampleSet, compressed: Samples) -> float:
        """‖J - U Uᵀ J V Vᵀ‖² / ‖J‖², what was lost of the samples when they were compressed, but for `ROUNDING`."""
        return max(1.0 - float(compressed.jacobian_norm) / float(samples.jacobian_norm), 0.0)

    def lift(self, iterates: Iterates) -> Iterates:
        """Models of the compressed samples as models of the samples themselves."""
        W0 = iterates.W0 if self.V is None else iterates.W0 @ self.V.T
        W1 = iterates.W1 if self.U is None else self.U @ iterates.W1
        return replace(iterates, W0=W0, W1=W1)


def spans_inputs(problem: Problem) -> bool:
    """Whether a fit has its inputs in a basis of what samples span: values alone, no more samples than inputs."""
    return problem.J is None and problem.m >= problem.S


def spanning(X: Array) -> Array:
    """An orthonormal basis (m, q) of the directions in which samples differ that are few; X (S, m) is centred.

    Values alone say nothing about other directions, so a fit in this basis loses nothing: W0 is the shortest.
    """
    _, sizes, rows = svd(X)
    kept = max(1, int(np.sum(sizes > np.finfo(float).eps * max(X.shape) * sizes[0])))
    return rows[:kept].T


class Products(NamedTuple):
    """Σ_s J_s J_sᵀ (n, ·) and Σ_s J_sᵀ J_s (m, ·), each times its test matrix where there is one; None: not wanted."""

    left: Array | None
    right: Array | None


def sizes_kept(
    n: int, m: int, S: int, rank: int, always: bool = False
) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """(n, p) and (m, q), or None where there is nothing to compress.

    A side that would not shrink by half stays, unless compression is wanted `always`.
    """
    shrink = 1 if always else 2
    p, q = (ROOM * rank if shrink * ROOM * rank <= size else size for size in (n, m))
    worth = n * m > p * q if always else n * m >= WORTH * p * q and S * p * q <= COMPRESSED_ENTRIES
    return ((n, p), (m, q)) if worth else None


def test_matrix(size: int, kept: int) -> Array | None:
    """Ω (size, kept and some), orthonormal and always the same; None: the Gram matrix itself is small enough."""
    columns = kept + OVERSAMPLING
    if size <= GRAM_LIMIT or columns >= size:
        return None
    normal = np.random.default_rng(0).standard_normal((size, columns))
    return np.asarray(np.linalg.qr(normal)[0])


def products_with(block: Samples, on_left: Array | None, on_right: Array | None, left: bool, right: bool) -> Products:
    """What a block adds to the products, of the sides that are wanted."""
    S, n, m = block.size, block.n, block.m
    outputs = np.zeros((n, n if on_left is None else on_left.shape[1])) if left else None
    inputs = np.zeros((m, m if on_right is None else on_right.shape[1])) if right else None
    for part in blocks(S, n * m):
        J = block.jacobian(part).reshape(-1, n, m)
        if block.rows is not None:
            J *= np.sqrt(block.rows[part])[:, None, None]
        if outputs is not None:
            outputs += np.sum(J @ (J.mT if on_left is None else J.mT @ on_left), axis=0)
        if inputs is not None:
            rows = J.reshape(-1, m)
            inputs += rows.T @ (rows if on_right is None else rows @ on_right)
    return Products(outputs, inputs)


def leading(test: Array | None, products: Array, kept: int, norm: float) -> tuple[Array, float]:
    """The leading eigenvectors (·, kept) of A, and what they leave of its trace at most.

    A is positive semidefinite and of trace `norm`, given by its products with a test matrix, or itself (None).
    """
    if test is None:
        values, vectors = eigen(products)
        return vectors[:, ::-1][:, :kept], float(np.maximum(values[:-kept], 0.0).sum())
    shift = np.sqrt(len(test)) * np.finfo(float).eps * np.linalg.norm(products)  # keeps the inverse from exploding
    shifted = products + shift * test
    inner = test.T @ shifted
    values, vectors = eigen((inner + inner.T) / 2.0)
    root = shifted @ (vectors / np.sqrt(np.maximum(values, shift)))
    directions, sizes, _ = svd(root)
    energies = np.maximum(sizes[:kept] ** 2 - shift, 0.0)
    return np.asarray(directions[:, :kept]), max(norm - float(energies.sum()), 0.0)


Piece = tuple[Array, Array | None, Array, Array | None]


def projected(block: Samples, U: Array | None, V: Array | None) -> list[Piece]:
    """The compressed X, F, J and the weights of a block, as a list of one: lists add up to all of them."""
    S, n, m = block.size, block.n, block.m
    parts = []
    for part in blocks(S, n * m):
        J = block.jacobian(part).reshape(-1, n, m)
        J = J if V is None else (J.reshape(-1, m) @ V).reshape(len(J), n, -1)
        J = J if U is None else U.T @ J
        parts.append(J.reshape(len(J), -1))
    X = block.X if V is None else block.X @ V
    F = block.F if U is None or block.F is None else block.F @ U
    return [(X, F, np.concatenate(parts), block.rows)]
