r"""Generalised cross-validation of many quadratic penalties at once, in closed form along each of them.

A linear model with coefficients a = (a_1, …, a_r), each (K,), and normal equations N a = b minimises

    yᵀy - 2 bᵀa + aᵀ N a + Σ_j α_j a_jᵀ Ω a_j.

The score of strengths α is rss / (equations - γ tr H)², rss being the sum of squares that is left and
tr H = tr((N + Σ α_j Ω_j)⁻¹ N) the degrees of freedom that the penalties leave [1]_. With γ = 1 it now and then smooths
far too little; γ = 1.4 prevents most of that and costs next to nothing [2]_.

In coordinates in which Ω is the identity on its range (and its null space comes beside it, the constant first, which
an output offset may leave open), V = N + diag(α) changes
with α_j by δ E Eᵀ only, E choosing the penalised coordinates of branch j, and with Eᵀ V⁻¹ E = U diag(λ) Uᵀ

    (V + δ E Eᵀ)⁻¹ = V⁻¹ - Cᵀ diag(δ / (1 + δ λ)) C,      C = Uᵀ Eᵀ V⁻¹:

one inverse and one eigenvalue problem give the scores of all α_j.

References
----------
.. [1] P. Craven, G. Wahba, "Smoothing noisy data with spline functions", Numerische Mathematik 31 (1979).
.. [2] Y.-J. Kim, C. Gu, "Smoothing spline Gaussian regression: more scalable computation via efficient approximation",
   Journal of the Royal Statistical Society B 66 (2004).
"""

import math
from dataclasses import dataclass

import numpy as np

from unbraid.kernels.arrays import Array, IndexArray
from unbraid.kernels.decompositions import eigen, finite_or_zero
from unbraid.kernels.quadratics import balanced_inverse

WEAKEST, STRONGEST, PER_DECADE = 1e-6, 1.0, 4
"""Strengths that are tried go from no penalty, α tr Ω = this share of tr N_jj, to hardly more than the null space of Ω,
α λ = so many times tr N_jj for the least eigenvalue λ > 0 of Ω."""
GAMMA = 1.4
"""γ, what a degree of freedom counts."""
STRENGTH_ROUNDS = 3
"""How often every strength is chosen anew, the others given."""
NULL_RIDGE = 1e-10
"""Share of N's diagonal on the null space of Ω that settles what neither data nor penalties determine."""
RESOLUTION = 1e-13
"""Sums of squares below this share of yᵀy are rounding errors."""


def cross_validate(N: Array, b: Array, square: Array, root: Array, equations: float) -> Array:
    """The strengths α (..., r) of least score, found branch by branch.

    Parameters
    ----------
    N, b
        (..., r, K, r, K) and (..., r, K).
    square
        (...), yᵀy.
    root
        (k, K), of full rank k < K, with Ω = rootᵀ root. Its singular values keep digits that Ω's eigenvalues lose.
    equations
        How many numbers there are in y, less the degrees of freedom of what is not in a.
    """
    r, K = b.shape[-2:]
    T, penalised = diagonalise(root)
    grid = trial_strengths(root)
    unit = np.einsum("...jkjk->...j", N)
    unit = np.where(unit > 0.0, unit, 1.0)
    H = np.einsum("kz,...jklm,mw->...jzlw", T, N, T, optimize=True).reshape(*N.shape[:-4], r * K, r * K)
    right = (b @ T).reshape(*b.shape[:-2], r * K)
    system = PenalisedSystem(H, right, square, penalised, equations)
    alpha: Array = grid[4 * PER_DECADE] * unit
    for _ in range(1 if r == 1 else STRENGTH_ROUNDS):
        for j in range(r):
            tried = grid * unit[..., j, None]
            alpha[..., j] = tried[..., 0]  # only upwards from there: 1 + δ λ is never small
            scores = system.scores(alpha, j, tried)
            best = np.argmin(scores, axis=-1)[..., None]
            alpha[..., j] = np.take_along_axis(tried, best, -1)[..., 0]
    return alpha


def trial_strengths(root: Array) -> Array:
    """Strengths (A,) in units of tr N_jj, weakest first."""
    weakest = WEAKEST / float(np.sum(root**2))
    strongest = STRONGEST / float(np.linalg.svd(root, compute_uv=False)[-1]) ** 2
    decades = math.ceil(math.log10(strongest / weakest))
    return np.asarray(np.geomspace(weakest, strongest, 1 + PER_DECADE * decades), dtype=np.float64)


def diagonalise(root: Array) -> tuple[Array, IndexArray]:
    """T (K, K) and positions such that Tᵀ Ω T is one on the diagonal at these positions, and zero elsewhere."""
    k, K = root.shape
    _, values, rows = np.linalg.svd(finite_or_zero(root))
    null = rows[k:].T
    constant = np.ones((K, 1)) / np.sqrt(K)  # where the basis functions sum to one
    null = np.linalg.qr(np.hstack([constant, null]))[0][:, : K - k]
    return np.hstack([null, rows[:k].T / values]), np.arange(K - k, K)


def branchwise(positions: IndexArray, r: int, K: int) -> IndexArray:
    """Positions (p,) among the coefficients of one branch, for all r branches: (r p,)."""
    return (np.arange(r)[:, None] * K + positions).ravel()


@dataclass(frozen=True)
class PenalisedSystem:
    """Normal equations in coordinates in which Ω is the identity on its range, for all branches together.

    Attributes
    ----------
    H, right
        (..., r K, r K) and (..., r K), N and b in these coordinates.
    square
        (...), yᵀy.
    penalised
        (k,), the positions among the K coordinates of a branch that Ω penalises.
    equations
        How many numbers there are in y.
    """

    H: Array
    right: Array
    square: Array
    penalised: IndexArray
    equations: float

    def scores(self, alpha: Array, j: int, tried: Array) -> Array:
        """Scores (..., A) with each of the strengths tried (..., A) for branch j in place of α_j; alpha (..., r)."""
        H, right, penalised = self.H, self.right, self.penalised
        r = alpha.shape[-1]
        K = H.shape[-1] // r
        V = H.copy()
        every, free = branchwise(penalised, r, K), branchwise(np.setdiff1d(np.arange(K), penalised), r, K)
        V[..., every, every] += np.repeat(alpha, len(penalised), axis=-1)
        V[..., free, free] += NULL_RIDGE * V[..., free, free].mean(axis=-1, keepdims=True)
        inverse = balanced_inverse(V)
        x = (inverse @ right[..., None])[..., 0]
        E = j * K + penalised
        lam, U = eigen(inverse[..., E[:, None], E])
        C = U.mT @ inverse[..., E, :]
        CH = C @ H
        CHC, c = CH @ C.mT, (C @ right[..., None])[..., 0]
        change = tried - alpha[..., j, None]
        w = change[..., None] / (1.0 + change[..., None] * lam[..., None, :])  # (..., A, k)
        freedom = (
            np.einsum("...pq,...pq->...", inverse, H)[..., None]
            - (w @ np.einsum("...kk->...k", CHC)[..., None])[..., 0]
        )
        wc = w * c[..., None, :]
        explained = np.sum(right * x, axis=-1)[..., None] - np.sum(w * (c * c)[..., None, :], axis=-1)  # bᵀ x
        Hx = (H @ x[..., None])[..., 0]
        modelled = np.sum(x * Hx, axis=-1)[..., None] - 2.0 * (wc @ (C @ Hx[..., None]))[..., 0]  # xᵀ N x
        modelled += np.einsum("...ak,...kl,...al->...a", wc, CHC, wc, optimize=True)
        rss = np.maximum(self.square[..., None] - 2.0 * explained + modelled, RESOLUTION * self.square[..., None])
        left = np.maximum(self.equations - GAMMA * freedom, 1.0)
        return np.asarray(rss / (left * left), dtype=np.float64)
