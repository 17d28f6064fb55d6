r"""Points whose inputs are independent, each distributed as in the samples.

The distribution of an input is that of its samples: the s-th smallest of them, of weight w_s, is the quantile of

    p_s = (w_1 + … + w_{s-1} + w_s / 2) / (w_1 + … + w_S),

and between these quantiles are interpolated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from unbraid.kernels.arrays import Array

LEVELS = 1025
"""Quantiles of an input that are kept, at most."""
WIDEST = 21_201
"""Dimensions of Sobol' sequences, at most; more have random points."""


@dataclass(frozen=True, eq=False)
class Marginals:
    """The quantiles (Q, m) of every input, at probabilities that are spread evenly from 0 to 1."""

    quantiles: Array

    @classmethod
    def of(cls, X: Array, weights: Array | None) -> Self:
        """Those of samples X (S, m) of weights (S,)."""
        own = np.ones(len(X)) if weights is None else weights
        levels = np.linspace(0.0, 1.0, min(LEVELS, 2 * len(X) + 1))
        columns = []
        for x in X.T:
            order = np.argsort(x, kind="stable")
            share = own[order] / own.sum()
            columns.append(np.interp(levels, np.cumsum(share) - 0.5 * share, x[order]))
        return cls(np.stack(columns, axis=1))

    @property
    def m(self) -> int:
        """How many inputs there are."""
        return int(self.quantiles.shape[1])

    def at(self, probabilities: Array) -> Array:
        """The inputs (N, m) at probabilities (N, m)."""
        levels = np.linspace(0.0, 1.0, len(self.quantiles))
        return np.stack([np.interp(p, levels, q) for p, q in zip(probabilities.T, self.quantiles.T, strict=True)], -1)

    def pairs(self, count: int, seed: int) -> tuple[Array, Array]:
        """Two sets of points, (count, m) each, all inputs of both independent; `count` is a power of 2."""
        both = spread_points(count, 2 * self.m, seed)
        return self.at(both[:, : self.m]), self.at(both[:, self.m :])

    def along(self, curves: Array, x: Array, k: int) -> Array:
        """Curves (n, Q) at the quantiles of input k, at values x (N,) of it: (n, N)."""
        return np.stack([np.interp(x, self.quantiles[:, k], curve) for curve in curves])


def spread_points(count: int, dimensions: int, seed: int) -> Array:
    """Points (count, dimensions) spread over the unit cube more evenly than random ones, the same for a seed."""
    if dimensions > WIDEST:
        return np.random.default_rng(seed).random((count, dimensions))
    from scipy.stats import qmc

    return np.asarray(qmc.Sobol(dimensions, scramble=True, rng=seed).random(count), dtype=np.float64)
