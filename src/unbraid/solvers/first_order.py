r"""What a block of samples adds to sums of residuals, gradients and Gauss–Newton products (`linearised`).

Every function takes a block of samples and models, and gives sums over the block's samples. Letters are those of
`kernels.gauss_newton`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbraid.data.in_memory import AtSamples, Samples
from unbraid.kernels import factors
from unbraid.kernels import gauss_newton as kernel
from unbraid.kernels.arrays import Array, blocks
from unbraid.solvers.iterates import Iterates


class Center(NamedTuple):
    """What is taken off: the mean of R (B, 1, r) and that of F - F̂ (B, 1, n); zeros without an output offset."""

    values: Array
    residual: Array


class Totals(NamedTuple):
    """Sums of R (B, 1, r) and of F - F̂, over what is known (B, 1, n); both weighted."""

    values: Array
    residual: Array


def here(block: Samples, it: Iterates) -> AtSamples:
    """Branches at the samples of a block."""
    return block.at(it.W0, it.placement, it.a)


def curvature(block: Samples, it: Iterates) -> Array:
    """Their second derivatives, (B, S, r)."""
    return block.curvature(it.W0, it.placement, it.a)


def residuals(block: Samples, it: Iterates, center: Center) -> Array:
    """F - F̂, (B, S, n), with the output offset."""
    return block.values - here(block, it).values @ it.W1.mT - center.residual


def value_totals(block: Samples, it: Iterates) -> Totals:
    """What an output offset is made of."""
    R = here(block, it).values
    residual = block.values - R @ it.W1.mT
    return Totals(
        block.weighted(R).sum(axis=-2, keepdims=True), block.weighted_values(residual).sum(axis=-2, keepdims=True)
    )


def misfits(block: Samples, it: Iterates, center: Center) -> tuple[Array, Array]:
    """‖J - Ĵ‖² and ‖F - F̂‖², (B,) each."""
    jacobian, values = np.zeros(len(it.W0)), np.zeros(len(it.W0))
    if block.J is not None:
        slopes, directions = here(block, it).slopes, factors.khatri_rao(it.W1, it.W0).mT
        for part in blocks(block.size, directions.shape[-1]):
            residual = block.jacobian(part) - slopes[:, part] @ directions
            jacobian += np.sum(residual * block.weighted_jacobian(residual, part), axis=(-2, -1))
    if block.F is not None:
        residual = residuals(block, it, center)
        values += np.sum(residual * block.weighted_values(residual), axis=(-2, -1))
    return jacobian, values


class Descent(NamedTuple):
    """Minus half the gradient: its parts through u (B, r, m) and in a (B, r, K), and what W1 and W0 as they stand make
    theirs of, Rᵀ J (B, n·m, r) and λ Rᵀ F (B, n, r) of residuals.
    """

    w0: Array
    a: Array
    T: Array | None
    FR: Array | None


def descent(block: Samples, it: Iterates, coupling: float, center: Center) -> Descent:
    """Of a block."""
    at = here(block, it)
    to_slopes = to_values = T = FR = None
    if block.J is not None:
        directions = factors.khatri_rao(it.W1, it.W0)
        to_slopes, T = np.empty_like(at.slopes), np.zeros((len(it.W0), *directions.shape[-2:]))
        for part in blocks(block.size, len(directions[0])):
            G = at.slopes[:, part]
            residual = block.weighted_jacobian(block.jacobian(part) - G @ directions.mT, part)
            to_slopes[:, part] = residual @ directions
            T += residual.mT @ G
    if block.F is not None:
        residual = coupling * block.weighted_values(residuals(block, it, center))
        to_values = residual @ it.W1
        FR = residual.mT @ (at.values - center.values)
    return Descent(*pulled_back(block, it, to_slopes, to_values), T, FR)


def pulled_back(block: Samples, it: Iterates, to_slopes: Array | None, to_values: Array | None) -> tuple[Array, Array]:
    """Σ_s φ to_slopes + ψ to_values for every branch, (B, S, r) each: its parts in w0 and in a."""
    at = here(block, it)
    along = np.zeros_like(at.slopes)
    if to_slopes is not None:
        along += to_slopes * curvature(block, it)
    if to_values is not None:
        along += to_values * at.slopes
    slopes = np.zeros_like(at.slopes) if to_slopes is None else to_slopes
    values = None if to_values is None else to_values.mT
    return along.mT @ block.X, it.placement.adjoint(at.prepared, slopes.mT, values)


class Product(NamedTuple):
    """The Gauss–Newton matrix times a change, likewise; GG = Gᵀ G and RR = Rᵀ R (B, r, r), and δGᵀ G and δRᵀ R."""

    w0: Array
    a: Array
    GG: Array | None
    GG_change: Array | None
    RR: Array | None
    RR_change: Array | None


def product(block: Samples, it: Iterates, coupling: float, center: Center, change: Array, dmean: Array) -> Product:
    """Of a block and changes (B, r, q) of the unknowns; `dmean` (B, 1, r) is the mean of δR that an offset takes."""
    W0, W1, at = it.W0, it.W1, here(block, it)
    n, m = W1.shape[-2], W0.shape[-1]
    dW1, dW0, da = change[..., :n].mT, change[..., n : n + m], change[..., n + m :]
    du = block.X @ dW0.mT
    dvalues, dslopes = it.placement.value_and_slope(da, at.prepared)
    M1, M0, A1, A0 = W1.mT @ W1, W0 @ W0.mT, W1.mT @ dW1, W0 @ dW0.mT
    to_slopes = to_values = GG = dGG = RR = dRR = None
    if block.J is not None:
        G, dG = at.slopes, du * curvature(block, it) + dslopes.mT
        wG = block.weighted(G)
        to_slopes = block.weighted(dG @ (M1 * M0) + G @ (A1 * M0 + M1 * A0).mT)
        GG, dGG = G.mT @ wG, dG.mT @ wG
    if block.F is not None:
        R, dR = at.values - center.values, du * at.slopes + dvalues.mT - dmean
        to_values = coupling * block.weighted(dR @ M1 + R @ A1.mT)
        wR = block.weighted(R)
        RR, dRR = R.mT @ wR, dR.mT @ wR
    return Product(*pulled_back(block, it, to_slopes, to_values), GG, dGG, RR, dRR)


def feature_totals(block: Samples, it: Iterates) -> Array:
    """The sum of ψ, (B, r, m + K), weighted."""
    at = here(block, it)
    one = np.broadcast_to(block.weighted(np.ones((block.size, 1))), at.values.shape)
    along = (one * at.slopes).mT @ block.X
    return np.concatenate([along, it.placement.adjoint(at.prepared, np.zeros_like(at.u), one.mT)], axis=-1)


class MomentSums(NamedTuple):
    """⟨φ, φ⟩, ⟨φ, g'⟩, ⟨g', g'⟩ of slopes, ⟨ψ, ψ⟩, ⟨ψ, g⟩, ⟨g, g⟩ of centred values, and the sum of ψ (…, f, 1)."""

    slopes: kernel.Sums
    values: kernel.Sums
    features: Array


def moments(block: Samples, it: Iterates, center: Center, one_by_one: bool) -> MomentSums:
    """Of a block; with all branches together, or one by one."""
    arranged = by_branch if one_by_one else together
    at, placement, X = here(block, it), it.placement, block.X
    r, f = at.u.shape[1], X.shape[-1] + it.a.shape[-1]
    roots = None if block.rows is None else np.sqrt(block.rows)[:, None]
    G, R = (arranged(block.rooted(one)[..., None]) for one in (at.slopes, at.values - center.values))
    lead, branches, p = len(G), G.shape[-1], f * G.shape[-1]
    slopes, values = kernel.no_sums(lead, p, branches), kernel.no_sums(lead, p, branches)
    features = np.zeros((lead, p, 1))
    bend = None if block.J is None else curvature(block, it)
    for part in blocks(block.size, 4 * r * f):
        u = at.u[..., part]
        if bend is not None:
            phi = arranged(kernel.features(X[part], bend[:, part], placement.design(u, 1)))
            kernel.add_sums(slopes, weighted(phi, roots, part), G[:, part])
        if block.F is not None:
            psi = arranged(kernel.features(X[part], at.slopes[:, part], placement.design(u)))
            psi = weighted(psi, roots, part)
            kernel.add_sums(values, psi, R[:, part])
            features += weighted(psi, roots, part).sum(axis=-2)[..., None]
    return MomentSums(slopes, values, features)


def weighted(by_sample: Array, roots: Array | None, part: slice) -> Array:
    """Numbers (..., S, ·) of a part of the samples times the roots (S, 1) of the samples' weights, or as they are."""
    return by_sample if roots is None else by_sample * roots[part]


def together(A: Array) -> Array:
    """(B, S, r, ·) with the branches side by side: (B, S, r ·)."""
    return A.reshape(*A.shape[:2], -1)


def by_branch(A: Array) -> Array:
    """(B, S, r, ·) with every branch as a batch entry of its own: (B r, S, ·)."""
    return A.swapaxes(1, 2).reshape(-1, A.shape[1], A.shape[-1])
