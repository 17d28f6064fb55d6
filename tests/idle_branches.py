"""A noisy fit of which two of five branches were left out, whatever a search on this machine would leave out."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

import unbraid as ub
from unbraid.results.branch import FittedBranch

IDLE = [1, 3]
KEPT = [0, 2, 4]


def noisy(rng: int = 1) -> ub.Problem:
    """f_trig with 5 % of noise."""
    problem, _ = ub.datasets.trig(S=100, rng=rng)
    noise = np.random.default_rng(0)
    assert problem.F is not None
    assert problem.J is not None
    F = problem.F + 0.05 * problem.F.std(axis=0) * noise.standard_normal(problem.F.shape)
    J = problem.J + 0.05 * np.sqrt(np.mean(problem.J**2)) * noise.standard_normal(problem.J.shape)
    return ub.Problem(problem.X, F, J)


@cache
def three_branches() -> ub.Fit:
    return ub.decouple(noisy(), 3, starts=4, rng=0)


def with_idle(model: ub.DecoupledModel) -> ub.DecoupledModel:
    """The same model among two branches that carry nothing, the first of them parallel to one that does."""
    W0, W1 = np.empty((5, model.m)), np.zeros((model.n, 5))
    W0[KEPT], W0[IDLE], W1[:, KEPT] = model.W0, model.W0[[0, 0]] * [[1.0], [3.0]], model.W1
    first = model.branches[0]
    assert isinstance(first, FittedBranch)
    zero = replace(first, coordinates=np.zeros_like(first.coordinates))
    a, b, c = model.branches
    return ub.DecoupledModel(W0, W1, [a, zero, b, zero, c], model.bias)


@cache
def five_branches() -> ub.Fit:
    """The fit of three as one of five, of which starts have found different ones."""
    fit = three_branches()
    assert fit.smoothing is not None
    freedom = np.zeros(5)
    freedom[KEPT] = fit.smoothing.freedom
    starts = (
        fit.starts[0],
        replace(fit.starts[0], match=0.8, angle=40.0),
        replace(fit.starts[0], match=0.7, angle=60.0),
    )
    return replace(
        fit,
        model=with_idle(fit.model),
        smoothing=replace(fit.smoothing, freedom=freedom),
        constraints=(None,) * 5,
        starts=starts,
    )
