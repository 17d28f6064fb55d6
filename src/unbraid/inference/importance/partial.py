r"""What an input does to the outputs, all branches together: the mean over the samples of f with x_k set to a value.

    e_i(t) = mean_s f_i(x_s with x_sk = t), less the mean of e_i(x_sk) over the samples.

Its standard deviation follows from what θ does to these means.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbraid.data.problem import Problem
from unbraid.inference.linearised import LinearisedUncertainty
from unbraid.inference.tangent import Tangent
from unbraid.kernels.arrays import Array, even_blocks
from unbraid.results.model import DecoupledModel

GRID, FEW_VALUES = 41, 10
"""Values of an input that are looked at, and how many different ones it may have for these to be looked at alone."""
FEWEST, SAMPLES, BAND_SAMPLES = 50, 500, 100
"""Samples that means are over, at least and at most; and for standard deviations, at most."""
WORK = 1 << 22
"""Evaluations of branches that all effects of a model take."""
ENTRIES = 1 << 22
"""Entries of the rows that are made at once: 32 MB."""


class Effect(NamedTuple):
    """The effect (n, G) of an input on every output at values (G,) of it, and its standard deviation or None."""

    grid: Array
    values: Array
    std: Array | None


def partial_effect(model: DecoupledModel, samples: Problem, k: int, sure: LinearisedUncertainty | None) -> Effect:
    """What input k does to the outputs."""
    most = int(np.clip(WORK // (model.m * GRID * max(model.rank, 1)), FEWEST, SAMPLES))
    some = samples.thinned(min(samples.S, most))
    weights = weights_of(some)
    grid = values_to_look_at(samples.X[:, k])
    center = interpolation(samples.X[:, k], weights_of(samples), grid)
    values = np.stack([weights @ model(with_input(some.X, k, t)) for t in grid], axis=1)
    std = None if sure is None else effect_std(sure, samples, k, grid, center)
    return Effect(grid, values - (values @ center)[:, None], std)


def weights_of(samples: Problem) -> Array:
    """The weights (S,) of samples, with sum one."""
    own = np.ones(samples.S) if samples.weights is None else samples.weights
    return np.asarray(own / own.sum())


def values_to_look_at(x: Array) -> Array:
    """The values (G,) of an input: all, where they are few, or some from the lowest to the highest."""
    found = np.unique(x)
    return found if len(found) <= FEW_VALUES else np.linspace(x.min(), x.max(), GRID)


def interpolation(x: Array, weights: Array, grid: Array) -> Array:
    """The weights (G,) with which values on a grid make up the mean over x (S,)."""
    if len(grid) == 1:
        return np.ones(1)
    lower = np.clip(np.searchsorted(grid, x, side="right") - 1, 0, len(grid) - 2)
    share = (x - grid[lower]) / (grid[lower + 1] - grid[lower])
    low, high = (np.bincount(lower + one, weights * part, len(grid)) for one, part in ((0, 1.0 - share), (1, share)))
    return np.asarray(low + high)


def with_input(X: Array, k: int, value: float) -> Array:
    """Points X (S, m) with one and the same value of input k."""
    result = X.copy()
    result[:, k] = value
    return result


def effect_std(sure: LinearisedUncertainty, samples: Problem, k: int, grid: Array, center: Array) -> Array:
    """The standard deviation (n, G) of the effect of input k."""
    tangent, some = sure.around.tangent, samples.thinned(min(samples.S, BAND_SAMPLES))
    rows = np.stack([mean_rows(tangent, with_input(some.X, k, t), weights_of(some)) for t in grid], axis=1)
    rows = rows - np.einsum("g,ngu->nu", center, rows)[:, None]
    variance = np.einsum("ngu,uv,ngv->ng", rows, sure.covariance, rows, optimize=True)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def mean_rows(tangent: Tangent, X: Array, weights: Array) -> Array:
    """The mean (n, U) over points X (S, m) of what θ does to the values."""
    total = np.zeros((tangent.model.n, tangent.size))
    for part in even_blocks(len(X), max(1, ENTRIES // max(tangent.size * tangent.model.n, 1))):
        total += np.tensordot(weights[part], tangent.values(X[part]), axes=1)
    return total
