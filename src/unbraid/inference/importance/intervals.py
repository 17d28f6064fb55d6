r"""How far shares are known: those of models drawn from a fit's uncertainty.

A draw of the unknowns θ changes f by ∂f/∂θ · θ, to first order; shares are then computed from the changed f as from f
itself, squares of changes included. Shares are squares, so that noise makes them larger: on average over draws by Δ,
and those of the fit are too large by as much already. Intervals are the quantiles of the draws less 2Δ.

References
----------
.. [1] A. Saltelli et al., "Variance based sensitivity analysis of model output", Comput. Phys. Commun. 181 (2010).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from unbraid.data.problem import Problem
from unbraid.data.units import spreads
from unbraid.inference.importance.marginals import Marginals
from unbraid.inference.importance.shares import branch_parts, normalised
from unbraid.inference.importance.sobol import Indices, as_shares
from unbraid.inference.linearised import LinearisedUncertainty
from unbraid.inference.tangent import Tangent
from unbraid.kernels.arrays import Array, even_blocks

FEWEST_POINTS, POINTS, SAMPLES = 1 << 6, 1 << 10, 1 << 9
"""Points, at least and at most, and samples that tell how far shares of draws differ from those of the fit."""
WORK = 1 << 34
"""Multiplications that are spent on the indices of draws."""
ENTRIES = 1 << 24
"""Entries of an array of all draws at some points: 128 MB."""
ROW_ENTRIES = 1 << 22
"""Entries of the rows that are made at once: 32 MB."""


class Shares(NamedTuple):
    """Shares of inputs (n, m), by themselves, in total and of the slopes, and of branches (n, r)."""

    first_order: Array
    total: Array
    slopes: Array
    branches: Array


def share_intervals(
    sure: LinearisedUncertainty, marginals: Marginals, found: Shares, level: float, draws: int, seed: int
) -> tuple[Shares, Shares]:
    """The lower and upper ends of intervals of the shares of a fit."""
    theta = sure.draws(draws, np.random.default_rng(seed)).T  # (U, D)
    theta = np.concatenate([np.zeros((len(theta), 1)), theta], axis=1)  # the first draw is the fit itself
    tangent, problem = sure.around.tangent, sure.around.problem
    entries = max(theta.shape[1] * tangent.model.n, 1)
    room = min(ENTRIES // (2 * entries), WORK // (entries * max(tangent.size, 1) * (tangent.model.m + 2)))
    points = int(np.clip(2 ** int(np.log2(max(room, 1))), FEWEST_POINTS, POINTS))
    indices = drawn_indices(tangent, marginals, theta, points, seed)
    some = problem.thinned(min(problem.S, SAMPLES))
    slopes, parts = drawn_slopes(tangent, some, theta), drawn_parts(tangent, some, theta)
    ends = [
        ends_of(share, drawn, level, lowest)
        for share, drawn, lowest in zip(found, (*indices[:2], slopes, parts), (0.0, 0.0, 0.0, -np.inf), strict=True)
    ]
    return Shares(*(low for low, _ in ends)), Shares(*(high for _, high in ends))


def ends_of(share: Array, drawn: Array, level: float, lowest: float) -> tuple[Array, Array]:
    """The ends of intervals of shares (n, k), from draws (n, k, 1 + D), the first of them that of the fit itself."""
    change = drawn[..., 1:] - drawn[..., :1]
    excess = np.mean(change, axis=-1)
    low, high = np.quantile(change, (0.5 - 0.5 * level, 0.5 + 0.5 * level), axis=-1)
    low, high = share + low - 2.0 * excess, share + high - 2.0 * excess
    low, high = np.maximum(low, lowest), np.maximum(high, lowest)
    if lowest == 0.0:
        low, high = np.minimum(low, 1.0), np.minimum(high, 1.0)
    return np.minimum(low, share), np.maximum(high, share)


def values_of_draws(tangent: Tangent, X: Array, theta: Array) -> Array:
    """The values (N, n, D) of drawn models at points X (N, m)."""
    result = np.empty((len(X), tangent.model.n, theta.shape[1]))
    for part in blocks_of(tangent, len(X), tangent.model.n):
        result[part] = tangent.model(X[part])[..., None] + tangent.values(X[part]) @ theta
    return result


def blocks_of(tangent: Tangent, count: int, numbers: int) -> Iterator[slice]:
    """Points in blocks whose rows, so many numbers a point, fit into the memory that is meant for them."""
    yield from even_blocks(count, max(1, ROW_ENTRIES // max(numbers * tangent.size, 1))) if count else ()


def drawn_indices(tangent: Tangent, marginals: Marginals, theta: Array, count: int, seed: int) -> Indices:
    """Sobol' indices (n, m, D) of drawn models, by points alone [1]_: V_k = mean f(B) (f(AB_k) - f(A))."""
    model = tangent.model
    A, B = marginals.pairs(count, seed)
    FA, FB = values_of_draws(tangent, A, theta), values_of_draws(tangent, B, theta)
    center = 0.5 * (FA.mean(axis=0) + FB.mean(axis=0))
    FA, FB = FA - center, FB - center
    variance = 0.5 * (np.mean(FA**2, axis=0) + np.mean(FB**2, axis=0))
    first, total = np.zeros((2, model.n, model.m, theta.shape[1]))
    for k in range(model.m):
        moved = A.copy()
        moved[:, k] = B[:, k]
        change = values_of_draws(tangent, moved, theta) - center - FA
        first[:, k] = np.mean(FB * change, axis=0)
        total[:, k] = 0.5 * np.mean(change**2, axis=0)
    return as_shares(first, total, variance)


def drawn_slopes(tangent: Tangent, samples: Problem, theta: Array) -> Array:
    """The shares (n, m, D) of slopes of drawn models."""
    model, weights = tangent.model, np.ones(samples.S) if samples.weights is None else samples.weights
    squares = np.zeros((model.n, model.m, theta.shape[1]))
    for part in blocks_of(tangent, samples.S, model.n * model.m):
        J = model.jacobian(samples.X[part])[..., None] + tangent.slopes(samples.X[part]) @ theta
        squares += np.einsum("s,sikd->ikd", weights[part], J**2)
    return normalised(squares * spreads(samples.X, samples.weights)[:, None] ** 2)


def drawn_parts(tangent: Tangent, samples: Problem, theta: Array) -> Array:
    """The shares (n, r, D) of branches of drawn models."""
    model, X = tangent.model, samples.X
    own = np.ones(samples.S) if samples.weights is None else samples.weights
    own, parts = own / own.sum(), branch_parts(model, X)
    parts = parts - np.tensordot(own, parts, axes=1)
    size = (model.n, model.rank, theta.shape[1])
    mean, product, square = np.zeros(size), np.zeros(size), np.zeros((model.n, 1, theta.shape[1]))
    for part in blocks_of(tangent, len(X), model.n * max(1, model.rank * theta.shape[1] // max(tangent.size, 1))):
        rows, drawn = tangent.values(X[part]), np.repeat(parts[part][..., None], theta.shape[1], axis=-1)
        for one, place in zip(tangent.moves, tangent.places, strict=True):
            drawn[:, :, one.branch] += rows[..., place] @ theta[place]
        whole = drawn.sum(axis=2, keepdims=True)
        mean += np.tensordot(own[part], drawn, axes=1)
        product += np.tensordot(own[part], drawn * whole, axes=1)
        square += np.tensordot(own[part], whole**2, axes=1)
    center = mean.sum(axis=1, keepdims=True)
    variance = square - center**2
    return np.asarray((product - mean * center) / np.where(variance > 0.0, variance, np.inf))
