r"""Sobol' indices of a model whose inputs are independent.

With two independent sets of points A and B, and A with its k-th input from B as AB_k, the share of input k by itself
and the one with all that it does together with others are [1]_ [2]_

    V_k = mean f(B) (f(AB_k) - f(A)),        T_k = mean (f(AB_k) - f(A))² / 2,

over the variance of f; each is averaged with the one where A and B have changed places. The model's form helps twice:
a move of x_k moves u = W0 x by a column of W0, so that only branches that look at x_k are evaluated again; and an input
that no branch mixes with others has V_k = T_k exactly.

References
----------
.. [1] A. Saltelli et al., "Variance based sensitivity analysis of model output", Comput. Phys. Commun. 181 (2010).
.. [2] M. J. W. Jansen, "Analysis of variance designs for model output", Comput. Phys. Commun. 117 (1999).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from unbraid.inference.importance.marginals import Marginals
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.results.evaluation import branch_values
from unbraid.results.model import DecoupledModel

WORK = 1 << 26
"""Evaluations of branches that are spent."""
FEWEST, MOST = 1 << 11, 1 << 15
"""Points, at least and at most."""


class Indices(NamedTuple):
    """Of every output and every input (n, m), over the variance (n,) of the outputs."""

    first_order: Array
    total: Array
    variance: Array


def sobol_indices(model: DecoupledModel, marginals: Marginals, seed: int, count: int | None = None) -> Indices:
    """The indices of a model; shares of an output that does not vary are zero."""
    A, B = marginals.pairs(number_of_points(model) if count is None else count, seed)
    uA, uB = model.W0 @ A.T, model.W0 @ B.T  # (r, N)
    RA, RB = branch_values(model.branches, uA), branch_values(model.branches, uB)
    center = 0.5 * (RA.mean(axis=1) + RB.mean(axis=1))[:, None]
    FA, FB = model.W1 @ (RA - center), model.W1 @ (RB - center)  # (n, N)
    variance = 0.5 * (np.mean(FA**2, axis=1) + np.mean(FB**2, axis=1))
    first, total = np.zeros((model.n, model.m)), np.zeros((model.n, model.m))
    for k, looks in looking_at(model):
        move = model.W0[looks, k, None] * (B[:, k] - A[:, k])
        own, W1 = [g for g, one in zip(model.branches, looks, strict=True) if one], model.W1[:, looks]
        DA = W1 @ (branch_values(own, uA[looks] + move) - RA[looks])  # f(AB_k) - f(A)
        DB = W1 @ (branch_values(own, uB[looks] - move) - RB[looks])
        total[:, k] = 0.25 * (np.mean(DA**2, axis=1) + np.mean(DB**2, axis=1))
        first[:, k] = 0.5 * (np.mean(FB * DA, axis=1) + np.mean(FA * DB, axis=1))
    return as_shares(first, total, variance, mixed_inputs(model))


def number_of_points(model: DecoupledModel) -> int:
    """A power of 2, as large as the work allows."""
    each = 2 * (model.m + 1) * max(model.rank, 1)
    return int(np.clip(2 ** int(np.log2(max(WORK // each, 1))), FEWEST, MOST))


def looking_at(model: DecoupledModel) -> Iterator[tuple[int, BoolArray]]:
    """Every input that some branch looks at, and which branches (r,) do and go into an output."""
    carry = np.any(model.W1 != 0.0, axis=0)
    for k in range(model.m):
        looks = carry & (model.W0[:, k] != 0.0)
        if looks.any():
            yield k, looks


def mixed_inputs(model: DecoupledModel) -> BoolArray:
    """Which (n, m) inputs are mixed with another one by a branch that goes into the output."""
    several = np.count_nonzero(model.W0, axis=1) > 1
    mixes = (model.W0 != 0.0) & several[:, None]  # (r, m)
    return np.asarray((model.W1 != 0.0).astype(int) @ mixes.astype(int) > 0)


def as_shares(first: Array, total: Array, variance: Array, mixed: BoolArray) -> Indices:
    """Shares of variances (n, m, ...) of outputs (n, ...), an index by itself never being larger than the total one."""
    size = np.where(variance > 0.0, variance, np.inf)[:, None]
    total = total / size
    first = np.clip(first / size, 0.0, total)
    return Indices(np.where(mixed.reshape(mixed.shape + (1,) * (total.ndim - 2)), first, total), total, variance)
