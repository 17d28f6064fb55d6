r"""Sobol' indices of a model whose inputs are independent.

f is the sum of its mean, of what each input does by itself, h_k(x_k) = E[f | x_k] - E[f] (`effects`), and of what is
left, q, which inputs do together. These parts are uncorrelated, so that

    V_k = Var h_k,        T_k = V_k + mean (q(AB_k) - q(A))² / 2,        Var f = Σ_k V_k + Var q

are what input k does by itself, what it does in all [1]_, and the variance that both are shares of; A and B are
independent sets of points, and AB_k is A with its k-th input from B. Only what inputs do together hangs on these
points, so that a model of branches that look at one input each has exact indices. A move of x_k moves u = W0 x by a
column of W0: branches that do not look at x_k are not evaluated again.

References
----------
.. [1] M. J. W. Jansen, "Analysis of variance designs for model output", Comput. Phys. Commun. 117 (1999).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from unbraid.inference.importance.effects import average, own_effects
from unbraid.inference.importance.marginals import Marginals
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.results.evaluation import branch_values
from unbraid.results.model import DecoupledModel

WORK = 1 << 24
"""Evaluations of branches and of effects that are spent."""
FEWEST, MOST = 1 << 11, 1 << 15
"""Points, at least and at most."""


class Indices(NamedTuple):
    """Of every output and every input (n, m), over the variance (n,) of the outputs."""

    first_order: Array
    total: Array
    variance: Array


def sobol_indices(model: DecoupledModel, marginals: Marginals, seed: int, count: int | None = None) -> Indices:
    """The indices of a model; shares of an output that does not vary are zero."""
    effects = own_effects(model, marginals)  # (n, m, Q)
    first = average(effects**2)
    A, B = marginals.pairs(number_of_points(model) if count is None else count, seed)
    u, R = zip(*((model.W0 @ X.T, branch_values(model.branches, model.W0 @ X.T)) for X in (A, B)), strict=True)
    together = [model.W1 @ one for one in R]  # (n, N), to become q
    joint = np.zeros_like(first)
    for k, looks in looking_at(model):
        own, W1 = [g for g, one in zip(model.branches, looks, strict=True) if one], model.W1[:, looks]
        alone = [marginals.along(effects[:, k], X[:, k], k) for X in (A, B)]
        for here, there in ((0, 1), (1, 0)):
            move = model.W0[looks, k, None] * ((B, A)[here][:, k] - (A, B)[here][:, k])
            change = W1 @ (branch_values(own, u[here][looks] + move) - R[here][looks]) - alone[there] + alone[here]
            joint[:, k] += 0.25 * np.mean(change**2, axis=1)
            together[here] -= alone[here]
    variance = first.sum(axis=1) + np.var(np.concatenate(together, axis=1), axis=1)
    return as_shares(first, first + np.where(mixed_inputs(model), joint, 0.0), variance)


def number_of_points(model: DecoupledModel) -> int:
    """A power of 2, as large as the work allows."""
    each = 2 * (model.m + 1) * (model.rank + model.n)
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


def as_shares(first: Array, total: Array, variance: Array) -> Indices:
    """Shares of variances (n, m, ...) of outputs (n, ...), an index by itself never being larger than the total one."""
    size = np.where(variance > 0.0, variance, np.inf)[:, None]
    total = total / size
    return Indices(np.clip(first / size, 0.0, total), total, variance)
