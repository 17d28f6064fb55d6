"""The units a fit is made in, so that results do not depend on the user's.

Inputs are centred and divided by their standard deviation, outputs divided by the root mean square
of their Jacobian in those inputs: z = (x - center) / x_scale, y = f / f_scale. The model is given back
in the user's units. A shift of x is no change of the model's form: it moves the branches' knots.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from unbraid.data.problem import Problem
from unbraid.data.reductions import inputs, mean, outputs, variance, weighted_sums
from unbraid.kernels.arrays import Array


@dataclass(frozen=True)
class Units:
    """Units of a fit: z = (x - center) / x_scale and y = f / f_scale, with center and x_scale (m,), f_scale (n,)."""

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
        center = mean(problem, inputs)
        spread = np.sqrt(variance(problem, center, inputs))
        x_scale = positive(spread, otherwise=1.0, noise=np.abs(center))
        if problem.J is not None:
            total, count = problem.sum(row_squares, x_scale)
            f_scale = np.sqrt(total / np.maximum(count, np.finfo(float).tiny))
        else:
            f_scale = np.sqrt(variance(problem, mean(problem, outputs), outputs))
        return cls(center, x_scale, positive(f_scale, otherwise=1.0, noise=0.0))


def positive(scale: Array, otherwise: float, noise: Array | float) -> Array:
    """The scale, with `otherwise` where it is zero or not above the rounding of `noise`."""
    return np.where(scale > 1e-13 * np.asarray(noise), np.where(scale > 0.0, scale, otherwise), otherwise)


def spreads(F: Array, weights: Array | None) -> Array:
    """The weighted standard deviations of the columns of an array F (S, n), of what is known of them: (n,)."""
    count, total = weighted_sums(F, weights)
    count = np.maximum(count, np.finfo(float).tiny)
    return np.asarray(np.sqrt(weighted_sums((F - total / count) ** 2, weights)[1] / count))


def row_squares(block: Problem, x_scale: Array) -> tuple[Array, Array]:
    """Weighted sums over samples and inputs of (J[s, i, k] x_scale[k])² and of 1, of what is known: (n,) and (n,)."""
    assert block.J is not None
    rows = np.ones(block.S) if block.weights is None else block.weights
    if block.complete:
        return np.einsum("s,sik,k->i", rows, block.J**2, x_scale**2), np.full(block.n, block.m * rows.sum())
    known = ~np.isnan(block.J)
    squares = np.where(known, block.J, 0.0) ** 2
    return np.einsum("s,sik,k->i", rows, squares, x_scale**2), np.einsum("s,sik->i", rows, known)
