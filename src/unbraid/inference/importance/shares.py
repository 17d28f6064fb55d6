r"""Shares that the samples themselves show: of slopes along inputs, and of branches.

    slopes    mean (∂f_i/∂x_k)² Var(x_k), over its sum over k,
    branches  Cov(f_i, W1_ij g_j) / Var(f_i), whose sum over j is 1.

A branch that others cancel in part has a share below zero, and then another has more than all.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from unbraid.data.problem import Problem
from unbraid.data.units import spreads
from unbraid.kernels.arrays import Array
from unbraid.results.evaluation import branch_slopes, branch_values
from unbraid.results.model import DecoupledModel

ALIKE = 0.5
"""The correlation from which on two branches, or two inputs, are told to go together."""


class Together(NamedTuple):
    """Two branches or two inputs, from 0, and their correlation over the samples."""

    one: int
    other: int
    correlation: float


def slope_shares(model: DecoupledModel, samples: Problem) -> Array:
    """The share (n, m) of each input in the mean squares of the slopes, inputs in units of their spread."""
    W0 = model.W0 * spreads(samples.X, samples.weights)
    G = branch_slopes(model.branches, model.W0 @ samples.X.T)  # (r, S)
    weights = np.ones(samples.S) if samples.weights is None else samples.weights
    products = (G * weights) @ G.T / weights.sum()
    squares = np.einsum("ij,il,jl,jk,lk->ik", model.W1, model.W1, products, W0, W0, optimize=True)
    return normalised(np.maximum(squares, 0.0))


def normalised(squares: Array) -> Array:
    """Shares (n, m, ...) of their sums over inputs, zero where there is nothing to share."""
    total = squares.sum(axis=1, keepdims=True)
    return np.asarray(squares / np.where(total > 0.0, total, np.inf))


def branch_covariances(model: DecoupledModel, samples: Problem) -> Array:
    """Covariances (n, r, r) of what branches add to each output, over its variance: zero where it does not vary."""
    R = branch_values(model.branches, model.W0 @ samples.X.T)  # (r, S)
    weights = np.ones(samples.S) if samples.weights is None else samples.weights
    weights = weights / weights.sum()
    R = R - (R @ weights)[:, None]
    size = np.abs(R).max(axis=1)  # squares of very large and very small numbers would not be numbers
    R, W1 = R / np.where(size > 0.0, size, 1.0)[:, None], model.W1 * size
    largest = np.abs(W1).max(axis=1, keepdims=True)
    W1 = W1 / np.where(largest > 0.0, largest, 1.0)
    parts = W1[:, :, None] * ((R * weights) @ R.T) * W1[:, None, :]
    variance = parts.sum(axis=(1, 2), keepdims=True)
    return np.asarray(parts / np.where(variance > 0.0, variance, np.inf))


def branch_parts(model: DecoupledModel, X: Array) -> Array:
    """What each branch adds to each output at points X (S, m): (S, n, r)."""
    R = branch_values(model.branches, model.W0 @ X.T).T  # (S, r)
    return np.asarray(model.W1 * R[:, None, :])


def going_together(columns: Array, weights: Array | None) -> tuple[Together, ...]:
    """Pairs of columns (S, k) whose correlation is at least `ALIKE`, strongest first."""
    own = np.ones(len(columns)) if weights is None else weights
    centred = columns - own @ columns / own.sum()
    products = (centred * own[:, None]).T @ centred
    size = np.sqrt(np.diagonal(products))
    correlations = products / np.where(size > 0.0, size, np.inf)[:, None] / np.where(size > 0.0, size, np.inf)
    pairs = [Together(i, j, float(correlations[i, j])) for i, j in combinations(range(len(size)), 2)]
    return tuple(sorted((one for one in pairs if abs(one.correlation) >= ALIKE), key=lambda one: -abs(one.correlation)))
