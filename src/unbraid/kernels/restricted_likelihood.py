r"""Strengths of quadratic penalties by restricted likelihood: the extended Fellner–Schall method.

Around a point, a fit minimises in changes δ of all its unknowns

    misfit - 2 gᵀ δ + δᵀ N δ + Σ_j Σ_p s_jp ‖R_jp (a_j + δ_j)‖²,

a_j (K,) being the coefficients of branch j, δ_j their changes, and R_jp (k_p, K) the root of its p-th penalty. Read as
a Bayesian model, with noise of variance σ² and a prior of precision Σ_p s_jp R_jpᵀ R_jp / σ² for a_j, the strengths
that make the data most likely, all unknowns integrated out, are a fixed point of [1]_

    s_jp ← s_jp σ² (tr(S_j⁺ O_jp) - tr(V⁻¹ O_jp)) / ‖R_jp a_j‖²,        O_jp = R_jpᵀ R_jp,
    σ²   = misfit / (equations - tr(V⁻¹ N)),

with S_j = Σ_p s_jp O_jp and V = N + S. tr(V⁻¹ N) is the freedom that the fit has used, of all unknowns: directions
count as coefficients do. A penalty that data do not contradict grows until what it penalises is gone; one that they
contradict shrinks in proportion to the noise, so that exact data are fitted exactly.

Minus twice the logarithm of the likelihood itself is, up to a constant,

    (E - M) log((misfit + penalties) / (E - M)) + log|V| - Σ_j log|S_j|₊,

E being how many equations there are and M how many unknowns no penalty sees. Strengths stop growing where the penalty
is `STRONGEST` times what data say about all that it penalises, tr(R⁺ᵀ N R⁺).

References
----------
.. [1] S. N. Wood, M. Fasiolo, "A generalized Fellner-Schall method for smoothing parameter optimization with
   application to Tweedie location, scale and shape models", Biometrics 73 (2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from unbraid.kernels.arrays import Array, BoolArray, IndexArray
from unbraid.kernels.decompositions import inverse, last_of_inverse, svd
from unbraid.kernels.quadratics import unit_diagonal

LARGEST_CHANGE = 1e4
"""The factor by which an update changes a strength at most."""
STRONGEST = 1e3
"""Strengths stop where the penalty of whatever is penalised is so many times what data say about it."""
RELATIVE_RANK = 1e-14
"""Singular values below this share of the largest count as zero."""
PLAINLY_SEEN = 1e-11
"""A diagonal of a triangular factor above this share of the largest entry has no zeros in it."""
RIDGE = 1e-12
"""Share of a unit diagonal that settles what neither data nor penalties determine."""
LEAST_LEFT = 0.05
"""Share of the equations that count as left over at least, however many unknowns there are."""


@dataclass(frozen=True)
class Penalties:
    """The penalties of branches, by their roots R_jp (r, k_p, K), and the pseudo-inverses (r, K, k_p) of these."""

    roots: tuple[Array, ...]
    inverses: tuple[Array, ...]

    @classmethod
    def of(cls, roots: Sequence[Array]) -> Self:
        """From their roots."""
        inverses = []
        for R in roots:
            U, sizes, rows = svd(R)
            kept = sizes > RELATIVE_RANK * sizes[..., :1]
            inverses.append((rows.mT * reciprocal(sizes, kept)[..., None, :]) @ U.mT)
        return cls(tuple(roots), tuple(inverses))

    def take(self, index: IndexArray | slice) -> Self:
        """Those of some branches."""
        return type(self)(tuple(R[index] for R in self.roots), tuple(R[index] for R in self.inverses))

    def on(self, which: slice) -> Self:
        """On some of the coordinates, the others being zero; no penalty sees those."""
        roots, inverses = [R[..., which] for R in self.roots], [R[..., which, :] for R in self.inverses]
        return type(self)(tuple(roots), tuple(inverses))

    def stacked(self, strengths: Array) -> Array:
        """The roots (r, Σ k_p, K) of all penalties of a branch together, with strengths (r, p)."""
        return stacked_roots(self.roots, strengths)


def stacked_roots(roots: Sequence[Array], strengths: Array) -> Array:
    """The root (..., Σ k_p, K) of penalties with roots (..., k_p, K) and strengths (..., p) together."""
    sizes = np.sqrt(strengths)[..., None, None]
    return np.concatenate([sizes[..., p, :, :] * R for p, R in enumerate(roots)], axis=-2)


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
    a
        (r, K), the coefficients at the point: the last r K of the unknowns, branch by branch.
    penalties
        On the branches.
    """

    N: Array
    misfit: float
    equations: float
    a: Array
    penalties: Penalties

    def energies(self) -> Array:
        """‖R_jp a_j‖² (r, p)."""
        return np.stack([np.sum((R @ self.a[..., None]) ** 2, axis=(-2, -1)) for R in self.penalties.roots], axis=-1)

    @property
    def others(self) -> int:
        """How many unknowns are no coefficients, and come before these."""
        return len(self.N) - self.a.size

    def own(self, matrix: Array) -> Array:
        """The blocks (r, K, K) of a matrix (U, U) that belong to the coefficients of each branch, as a view."""
        (r, K), last = self.a.shape, matrix[self.others :, self.others :]
        return np.asarray(np.einsum("jkjl->jkl", last.reshape(r, K, r, K)))


@dataclass(frozen=True)
class Posterior:
    """What is known of the unknowns with given strengths.

    Attributes
    ----------
    inverses
        (r, K, K), the blocks of V⁻¹ that belong to the coefficients of each branch, all other unknowns being as
        uncertain as they are; times the variance, their covariances.
    freedom
        (U,), the degrees of freedom that each unknown uses, the diagonal of V⁻¹ N.
    variance
        σ².
    prior_spread
        tr(S_j⁺ O_jp) (r, p).
    deviance
        Minus twice the logarithm of the restricted likelihood, up to a constant.
    """

    inverses: Array
    freedom: Array
    variance: float
    prior_spread: Array
    deviance: float


def condition(fit: Expansion, strengths: Array) -> Posterior:
    """The posterior of a fit with penalties of given strengths (r, p).

    With ones on the diagonal, one factorisation of V gives what is asked for. A ridge settles what is not determined;
    the diagonal of V⁻¹ N is 1 less that of V⁻¹ S and of what the ridge takes, of which the coefficients' is exact, and
    the others' that of their pivots.
    """
    C = fit.penalties.stacked(strengths)
    S = C.mT @ C
    (r, K), others, unit = fit.a.shape, fit.others, fit.N.copy()
    fit.own(unit)[...] += S
    scale = unit_diagonal(unit)
    unit *= scale[:, None]
    unit *= scale
    np.einsum("pp->p", unit)[...] += RIDGE
    last, pivots = last_of_inverse(unit, others)
    inverses, sized = np.einsum("jkjl->jkl", last.reshape(r, K, r, K)), scale[others:].reshape(r, K)
    ridge = RIDGE * np.einsum("rkk->rk", inverses)
    inverses = inverses * sized[:, :, None] * sized[:, None, :]
    freedom = 1.0 - RIDGE / np.maximum(pivots, RIDGE)
    freedom[others:] = (1.0 - ridge - np.sum(inverses * S, axis=-1)).ravel()
    half, sizes = inverse_root(C)
    spread = np.stack([np.sum((R @ half) ** 2, axis=(-2, -1)) for R in fit.penalties.roots], axis=-1)
    left = max(fit.equations - (len(unit) - sizes.size), LEAST_LEFT * fit.equations)
    square = max(fit.misfit + float(np.sum(strengths * fit.energies())), np.finfo(float).tiny)
    deviance = left * float(np.log(square / left)) - 2.0 * float(np.log(sizes).sum())
    deviance += float(np.log(pivots).sum() - 2.0 * np.log(scale).sum())
    over = max(fit.equations - float(freedom.sum()), LEAST_LEFT * fit.equations)
    return Posterior(inverses, freedom, fit.misfit / over, spread, deviance)


def inverse_root(C: Array) -> tuple[Array, Array]:
    """H (r, K, k) with (Cᵀ C)⁺ = H Hᵀ for each root C (r, p, K), and numbers whose squares' product is |Cᵀ C|₊.

    Where penalties see all there is, which is usual, by C = Q R, which is much faster; else by singular values.
    """
    if C.shape[-2] >= C.shape[-1] and np.isfinite(C).all():
        R = np.asarray(np.linalg.qr(C, mode="r"), dtype=np.float64)
        sizes = np.abs(np.einsum("rkk->rk", R))
        if (sizes > PLAINLY_SEEN * np.abs(C).max(axis=(-2, -1), keepdims=True)[..., 0]).all():
            return inverse(R), sizes.ravel()
    _, sizes, rows = svd(C)
    seen = sizes > RELATIVE_RANK * sizes[..., :1]
    return rows.mT * reciprocal(sizes, seen)[..., None, :], sizes[seen]


def reciprocal(sizes: Array, kept: BoolArray) -> Array:
    """1 / size where it is kept, else 0."""
    return np.divide(1.0, sizes, where=kept, out=np.zeros_like(sizes))


def update(fit: Expansion, strengths: Array, known: Posterior) -> Array:
    """One update of strengths (r, p), from the posterior with them."""
    covariance, told = known.inverses, fit.own(fit.N)
    roots, inverses = fit.penalties.roots, fit.penalties.inverses
    posterior = np.stack([np.sum((R @ covariance) * R, axis=(-2, -1)) for R in roots], axis=-1)
    wanted = known.variance * np.maximum(known.prior_spread - posterior, 1e-8 * known.prior_spread)
    energies = np.maximum(fit.energies(), wanted / LARGEST_CHANGE)
    factor = np.maximum(np.divide(wanted, energies, where=energies > 0.0, out=np.ones_like(wanted)), 1 / LARGEST_CHANGE)
    most = STRONGEST * np.stack([np.sum((told @ R) * R, axis=(-2, -1)) for R in inverses], axis=-1)
    return np.asarray(np.minimum(strengths * factor, np.where(most > 0.0, most, 1.0)))
