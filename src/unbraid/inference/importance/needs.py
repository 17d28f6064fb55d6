r"""Is an input or a branch needed? An approximate F test, of Wald's form, from the covariance C of the unknowns θ.

**Input k** does nothing where all slopes ∂f_i/∂x_k = Σ_j M_j W0_jk, M_j = W1_ij g_j'(u_j), are zero. They lie in the
span of M over all samples and outputs; with Q an orthonormal basis of it of q columns,

    z = Qᵀ ∂f/∂x_k,        C_z = Qᵀ D C Dᵀ Q,        F = zᵀ C_z⁻¹ z / q,        D = ∂(∂f/∂x_k)/∂θ.

Slopes of f are what is tested, not entries of W0, as these may trade with one another where branches are straight.

**Branch j** does nothing where its coefficients, β in the coordinates in which they move, are zero, all other unknowns
being free to take over: F = βᵀ C_β⁻¹ β / q, with q the degrees of freedom that the branch uses, directions included.

F is compared with Fisher's distribution of q and as many degrees as numbers are left over. What is approximate: the
model is taken to first order, smoothing and knots as given, and C from residuals that count as noise. A direction of a
branch was searched for, and a branch that the data do not support was left out already, so that p of a branch that does
nothing tends to be too small: the held-out error without it is the better judge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbraid.inference.gauge import branch_of
from unbraid.inference.linearised import LinearisedUncertainty
from unbraid.inference.tangent import Tangent
from unbraid.kernels.arrays import Array, even_blocks

SAMPLES = 2000
"""Samples over which slopes are tested, at most."""
DETERMINED = 1e-4
"""Share of the largest variance below which a combination of branches is not told apart from others."""
ROUNDING = 1e-12
"""Share of the largest variance that is taken for rounding."""
ENTRIES = 1 << 22
"""Entries of the rows that are made at once: 32 MB."""


class FTest(NamedTuple):
    """F with its degrees of freedom, and the probability of as large a one by chance."""

    F: float
    freedom: float
    left: float
    p: float


def f_test(z: Array, covariance: Array, freedom: float, left: float) -> FTest:
    """The test of z (q,) of a covariance (q, q) being zero."""
    from scipy.special import fdtrc

    if not np.any(z):
        return FTest(0.0, freedom, left, 1.0)
    scale = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    scale = np.where(scale > 0.0, scale, 1.0)
    values, vectors = np.linalg.eigh(covariance / scale[:, None] / scale)
    kept = values > ROUNDING * max(float(values.max()), 0.0)
    along = vectors.T @ (z / scale)
    if not kept.any():
        return FTest(float("inf"), freedom, left, 0.0)
    F = float(np.sum(along[kept] ** 2 / values[kept])) / freedom
    return FTest(F, freedom, left, float(fdtrc(freedom, max(left, 1.0), F)))


def judge_inputs(sure: LinearisedUncertainty) -> list[FTest]:
    """Of every input, whether it is needed."""
    tangent, left = sure.around.tangent, max(sure.left, 1.0)
    problem = sure.around.problem
    some = problem.thinned(min(problem.S, SAMPLES))
    basis, slopes, rows = slope_coordinates(tangent, some.X, sure.around.objective.units.f_scale)
    found = []
    for k in range(tangent.model.m):
        R = basis.T @ rows[k]
        found.append(f_test(basis.T @ slopes[k], R @ sure.covariance @ R.T, basis.shape[1], left))
    return found


def slope_coordinates(tangent: Tangent, X: Array, f_scale: Array) -> tuple[Array, Array, Array]:
    """The basis E Λ^(-1/2) (a, q) of the span of M, Mᵀ ∂f/∂x_k (m, a), and what θ does to these (m, a, U)."""
    model, alive = tangent.model, [one.branch for one in tangent.moves]
    W1 = model.W1[:, alive] / f_scale[:, None]
    products, rows = np.zeros((len(alive), len(alive))), np.zeros((model.m, len(alive), tangent.size))
    entries = max(1, model.n * model.m * tangent.size)
    for part in even_blocks(len(X), max(1, ENTRIES // entries)):
        at = tangent.at(X[part])
        M = W1 * np.stack([one.slopes for one in at], axis=-1)[:, None, :]  # (S, n, a)
        products += np.einsum("sia,sib->ab", M, M)
        D = tangent.slopes(X[part], at) / f_scale[:, None, None]
        rows += np.tensordot(M, D, axes=([0, 1], [0, 1])).transpose(1, 0, 2)
    values, vectors = np.linalg.eigh(products)
    kept = values > DETERMINED * max(float(values.max(initial=0.0)), np.finfo(float).tiny)
    slopes = (products @ model.W0[alive]).T
    return vectors[:, kept] / np.sqrt(values[kept]), slopes, rows


def judge_branches(sure: LinearisedUncertainty) -> list[FTest | None]:
    """Of every branch, whether it is needed; None of one that carries nothing."""
    tangent, left = sure.around.tangent, max(sure.left, 1.0)
    found: list[FTest | None] = [None] * tangent.model.rank
    for k, one in enumerate(tangent.moves):
        curves, own = tangent.parts(k)[2], tangent.places[k]
        branch = branch_of(tangent, k)
        freedom = float(np.clip(sure.around.freedom[own].sum(), 1e-3, max(one.size, 1)))
        spanned, K = one.curves, len(branch.coordinates)
        if tangent.offset:
            spanned = np.column_stack([spanned, branch.placement.plus(np.zeros(K), np.array(1.0))])
        beta = np.asarray(np.linalg.lstsq(spanned, branch.coordinates, rcond=None)[0], dtype=np.float64)
        found[one.branch] = f_test(beta[: one.curves.shape[1]], sure.covariance[curves, curves], freedom, left)
    return found
