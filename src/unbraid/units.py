"""The units a fit is made in, so that results do not depend on the user's.

Inputs are centred and divided by their standard deviation, outputs divided by the root mean square
of their Jacobian in those inputs: z = (x - center) / x_scale, y = f / f_scale. The model is given back
in the user's units. A shift of x is no change of the model's form: it moves the branches' knots.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from unbraid.arrays import Array, blocks
from unbraid.bases import Basis, Placement
from unbraid.branch import FittedBranch
from unbraid.model import DecoupledModel
from unbraid.problem import Problem


@dataclass(frozen=True)
class Units:
    """center (m,), x_scale (m,), f_scale (n,)."""

    center: Array
    x_scale: Array
    f_scale: Array

    @classmethod
    def as_given(cls, problem: Problem) -> Self:
        """The user's own units."""
        return cls(np.zeros(problem.m), np.ones(problem.m), np.ones(problem.n))

    @classmethod
    def balanced(cls, problem: Problem) -> Self:
        """Units in which inputs have unit spread and outputs unit slope."""
        center = np.average(problem.X, axis=0, weights=problem.weights)
        spread = np.sqrt(np.average((problem.X - center) ** 2, axis=0, weights=problem.weights))
        x_scale = positive(spread, otherwise=1.0, noise=np.abs(center))
        if problem.J is not None:
            f_scale = np.sqrt(row_square_means(problem.J, x_scale, problem.weights))
        else:
            assert problem.F is not None
            f_scale = spreads(problem.F, problem.weights)
        return cls(center, x_scale, positive(f_scale, otherwise=1.0, noise=0.0))

    def model(self, W0: Array, W1: Array, basis: Basis, placement: Placement, a: Array) -> DecoupledModel:
        """Lift one iterate into the user's units, with unit rows of W0.

        From u = W0 z to u' = W0' x: u' = (u + V center) / β with V = W0 / x_scale and β the lengths of
        its rows. Placements move along; their coordinates a stay.
        """
        V = W0 / self.x_scale
        length = positive(np.linalg.norm(V, axis=-1), otherwise=1.0, noise=0.0)
        moved = placement.moved(1.0 / length, (V @ self.center) / length)
        branches = [FittedBranch(basis, moved.select(j), a[j]) for j in range(len(W0))]
        return DecoupledModel(V / length[:, None], W1 * self.f_scale[:, None], branches)


def positive(scale: Array, otherwise: float, noise: Array | float) -> Array:
    """The scale, with `otherwise` where it is zero or not above the rounding of `noise`."""
    return np.where(scale > 1e-13 * np.asarray(noise), np.where(scale > 0.0, scale, otherwise), otherwise)


def spreads(F: Array, weights: Array | None) -> Array:
    """The weighted standard deviations of the columns of F (S, n), of what is known of them: (n,)."""
    known = ~np.isnan(F)
    w = known if weights is None else known * weights[:, None]
    total = np.maximum(w.sum(axis=0), np.finfo(float).tiny)
    values = np.where(known, F, 0.0)
    mean = np.sum(w * values, axis=0) / total
    return np.asarray(np.sqrt(np.sum(w * (values - mean) ** 2, axis=0) / total))


def row_square_means(J: Array, x_scale: Array, weights: Array | None) -> Array:
    """The weighted mean over samples and inputs of (J[s, i, k] x_scale[k])², of what is known of it: (n,)."""
    total, count = np.zeros(J.shape[1]), np.zeros(J.shape[1])
    for part in blocks(len(J), J[0].size):
        rows = np.ones(len(J[part])) if weights is None else weights[part]
        known = ~np.isnan(J[part])
        total += np.einsum("s,sik,k->i", rows, np.where(known, J[part], 0.0) ** 2, x_scale**2)
        count += np.einsum("s,sik->i", rows, known)
    return np.asarray(total / np.maximum(count, np.finfo(float).tiny))
