r"""Strengths of quadratic penalties by restricted likelihood: the extended Fellner–Schall method.

Around a point, a fit minimises in changes δ of all its unknowns

    misfit - 2 descentᵀ δ + δᵀ N δ + Σ_j Σ_p s_jp ‖R_jp (a_j + δ_j)‖²,

a_j (K,) being the coefficients of branch j, δ_j their changes, and R_jp (k_p, K) the root of its p-th penalty. Read as a
Bayesian model, with noise of variance σ² and a prior of precision Σ_p s_jp R_jpᵀ R_jp / σ² for a_j, the strengths that
make the data most likely, all unknowns integrated out, are a fixed point of [1]_

    s_jp ← s_jp σ² (tr(S_j⁺ O_jp) - tr(V⁻¹ O_jp)) / ‖R_jp a_j‖²,        O_jp = R_jpᵀ R_jp,
    σ²   = misfit / (equations - tr(V⁻¹ N)),

with S_j = Σ_p s_jp O_jp and V = N + S. tr(V⁻¹ N) is the freedom that the fit has used, of all unknowns: directions
count as coefficients do. A penalty that data do not contradict grows until what it penalises is gone; one that they
contradict shrinks in proportion to the noise, so that exact data are fitted exactly.

Minus twice the logarithm of the likelihood itself is, up to a constant,

    (E - M) log((misfit + penalties) / (E - M)) + log|V| - Σ_j log|S_j|₊,

E being how many equations there are and M how many unknowns no penalty sees.

References
----------
.. [1] S. N. Wood, M. Fasiolo, "A generalized Fellner-Schall method for smoothing parameter optimization with
   application to Tweedie location, scale and shape models", Biometrics 73 (2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.kernels.arrays import Array, IndexArray
from unbraid.kernels.decompositions import some_inverse
from unbraid.kernels.quadratics import unit_diagonal

LARGEST_CHANGE = 1e4
"""The factor by which an update changes a strength at most."""
STRONGEST = 1e3
"""Strengths stop where the penalty of whatever is penalised is so many times what data say about it."""
RELATIVE_RANK = 1e-14
"""Singular values below this share of the largest count as zero."""
RIDGE = 1e-12
"""Share of a unit diagonal that settles what neither data nor penalties determine."""
LEAST_LEFT = 0.05
"""Share of the equations that count as left over at least, however many unknowns there are."""


@dataclass(frozen=True)
class Expansion:
    """A fit around a point, to second order; U unknowns.

    Attributes
    ----------
    N
        (U, U).
    misfit
        The sum of squares at the point.
    equations
        How many squares it has.
    places
        (r, K), where the coefficients of each branch are among the unknowns.
    a
        (r, K), the coefficients at the point.
    roots
        R_jp (r, k_p, K) of each penalty p.
    """

    N: Array
    misfit: float
    equations: float
    places: IndexArray
    a: Array
    roots: tuple[Array, ...]

    def energies(self) -> Array:
        """‖R_jp a_j‖² (r, p)."""
        return np.stack([np.sum((R @ self.a[..., None]) ** 2, axis=(-2, -1)) for R in self.roots], axis=-1)


@dataclass(frozen=True)
class Posterior:
    """What is known of the unknowns with given strengths.

    Attributes
    ----------
    inverse
        (U, U), V⁻¹; times the variance it is the covariance of the unknowns.
    freedom
        (U,), the degrees of freedom that each unknown uses: the diagonal of V⁻¹ N.
    variance
        σ².
    log_determinant
        log|V|.
    """

    inverse: Array
    freedom: Array
    variance: float
    log_determinant: float


def condition(fit: Expansion, strengths: Array) -> Posterior:
    """The posterior of a fit with penalties of given strengths (r, p)."""
    V = fit.N.copy()
    for j, places in enumerate(fit.places):
        C = stack([R[j] for R in fit.roots], strengths[j])
        V[np.ix_(places, places)] += C.T @ C
    scale = unit_diagonal(V[None])[0]
    unit = V * scale[:, None] * scale + RIDGE * np.eye(len(V))
    inverse = some_inverse(unit[None])[0] * scale[:, None] * scale
    inverse = 0.5 * (inverse + inverse.T)
    freedom = np.einsum("pq,qp->p", inverse, fit.N)
    left = max(fit.equations - float(freedom.sum()), LEAST_LEFT * fit.equations)
    determinant = float(np.linalg.slogdet(unit)[1] - 2.0 * np.log(scale).sum())
    return Posterior(inverse, freedom, fit.misfit / left, determinant)


def update(fit: Expansion, strengths: Array, known: Posterior) -> Array:
    """One update of strengths (r, p), from the posterior with them."""
    energies, most = fit.energies(), strongest(fit)
    result = strengths.copy()
    for j, places in enumerate(fit.places):
        roots = [R[j] for R in fit.roots]
        covariance, (half, _) = known.inverse[np.ix_(places, places)], prior_half(roots, strengths[j])
        for p, R in enumerate(roots):
            prior = float(np.sum((R @ half) ** 2))
            unsettled = prior - float(np.sum((R @ covariance) * R))
            wanted = known.variance * max(unsettled, 1e-8 * prior)
            factor = wanted / energies[j, p] if energies[j, p] * LARGEST_CHANGE > wanted else LARGEST_CHANGE
            changed = strengths[j, p] * np.clip(factor, 1.0 / LARGEST_CHANGE, LARGEST_CHANGE)
            result[j, p] = min(changed, most[j, p])
    return result


def deviance(fit: Expansion, strengths: Array, known: Posterior) -> float:
    """Minus twice the logarithm of the restricted likelihood of strengths (r, p), up to a constant."""
    determinant, penalised = 0.0, 0
    for j in range(len(fit.places)):
        half, logarithm = prior_half([R[j] for R in fit.roots], strengths[j])
        determinant += logarithm
        penalised += half.shape[-1]
    left = max(fit.equations - (len(fit.N) - penalised), LEAST_LEFT * fit.equations)
    square = fit.misfit + float(np.sum(strengths * fit.energies()))
    return left * float(np.log(max(square, np.finfo(float).tiny) / left)) + known.log_determinant - determinant


def prior_half(roots: Sequence[Array], strengths: Array) -> tuple[Array, float]:
    """H (K, k) with S⁺ = H Hᵀ, S (K, K) being the penalty of one branch with strengths (p,), and log|S|₊."""
    _, sizes, rows = np.linalg.svd(stack(roots, strengths), full_matrices=False)
    kept = sizes > RELATIVE_RANK * sizes[0]
    return rows[kept].T / sizes[kept], 2.0 * float(np.log(sizes[kept]).sum())


def strongest(fit: Expansion) -> Array:
    """The largest strengths (r, p) that are of any use: beyond these, only what R_p leaves alone is left."""
    told = np.stack([fit.N[np.ix_(places, places)] for places in fit.places])
    each = []
    for R in fit.roots:
        free = np.linalg.pinv(R, rcond=RELATIVE_RANK)
        each.append(np.einsum("jkp,jkl,jlp->j", free, told, free, optimize=True))
    most = STRONGEST * np.stack(each, axis=-1)
    return np.where(most > 0.0, most, 1.0)


def stack(roots: Sequence[Array], strengths: Array) -> Array:
    """The root (Σ k_p, K) of all penalties of a branch together, with strengths (p,)."""
    return np.concatenate([np.sqrt(one) * R for one, R in zip(strengths, roots, strict=True)])
