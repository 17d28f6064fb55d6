r"""Derivatives of functions known by values at unequally spaced points: three-point Lagrange formulas."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbraid.kernels.arrays import Array, IndexArray

SHIFTS = {"left": -2, "central": -1, "right": 0}
"""Where the three points of a formula begin, counted from the point itself in sorted order."""


class Formula(NamedTuple):
    """g'(u_s) ≈ Σ_t weights[s, t] g(u_neighbours[s, t]), t = 0, 1, 2."""

    neighbours: IndexArray
    weights: Array

    def __call__(self, values: Array) -> Array:
        """The derivatives (S, …) from values (S, …)."""
        return np.asarray(np.einsum("st,st...->s...", self.weights, values[self.neighbours]), dtype=np.float64)

    def matrix(self) -> Array:
        """The matrix (S, S) that makes derivatives of values."""
        S = len(self.weights)
        D = np.zeros((S, S))
        np.add.at(D, (np.arange(S)[:, None], self.neighbours), self.weights)
        return D


def formula(u: Array, side: str) -> Formula:
    """The "left", "central" or "right" formula at points u (S,), S ≥ 3; at the ends the last three points serve.

    Points that coincide are pulled apart by a share of 1e-9 of their range, so that weights stay finite.
    """
    order = np.argsort(u, kind="stable")
    ordered = u[order]
    S, span = len(u), float(ordered[-1] - ordered[0]) or 1.0
    x = ordered + 1e-9 * span * np.arange(S)
    first = np.clip(np.arange(S) + SHIFTS[side], 0, S - 3)
    triples = first[:, None] + np.arange(3)
    nodes, at = x[triples], x[:, None]
    weights = np.empty((S, 3))
    for t in range(3):
        one, other = nodes[:, (t + 1) % 3], nodes[:, (t + 2) % 3]
        weights[:, t] = (2.0 * at[:, 0] - one - other) / ((nodes[:, t] - one) * (nodes[:, t] - other))
    neighbours, placed = np.empty((S, 3), dtype=np.intp), np.empty((S, 3))
    neighbours[order], placed[order] = order[triples], weights
    return Formula(neighbours, placed)
