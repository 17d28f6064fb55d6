r"""How far new points lie outside the ranges of branches, and how wrong branches are there.

New points are made of the samples' own inputs, recombined at random, which is right where inputs know nothing of each
other, as in most designs. How wrong a branch is at a distance h beyond its end, nobody has seen. It is taken to be as
wrong as it would be if it ended further inside and went on from there in the same way, on the mean over such cuts,
those near the end first:

    d(h) = Σ_e w_e |ĝ_e(e + h) - g(e + h)| / Σ_e w_e,        w_e = exp(-(distance of e + h from the end) / ℓ),

ĝ_e being what g goes on as from e, and ℓ a tenth of the range. What branches add to the square of an output's error is
Σ_j W1_ij² d_j(h_j)².
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbraid.inference.gauge import branch_of
from unbraid.inference.neighbourhood import Neighbourhood
from unbraid.kernels.arrays import Array
from unbraid.kernels.ranges import beyond_ends
from unbraid.results.branch import FittedBranch

POINTS = 1 << 14
"""New points that are made."""
TOGETHER, UNSURE = 1.7, 3.0
"""Inputs hang together where recombined ones lie outside so many times as often as samples do that are left out, and by
so many standard deviations of how often these do."""
OUTER, CUTS, DISTANCES, NEAR = 0.5, 80, 40, 0.1
"""The outer part of a range in which it is cut, at how many places; at how many distances it is looked at from each;
and how near to the end cuts count most, all as shares of the range."""


class Outside(NamedTuple):
    """The share of new points outside, and what branches add there to mean squares of values (n,), slopes (n, m)."""

    share: float
    values: Array
    slopes: Array


@np.errstate(all="ignore")
def expected_outside(around: Neighbourhood, seen: float) -> Outside | None:
    """What is expected of new points outside; None where inputs hang together, so that they cannot be made.

    `seen` is the share of samples that lie outside of the range of all others.
    """
    tangent, X = around.tangent, around.problem.X
    rng, S = np.random.default_rng(0), len(X)
    points = np.stack([column[rng.integers(0, S, POINTS)] for column in X.T], axis=1)
    wrong = np.zeros((2, len(tangent.moves), POINTS))
    outside = np.zeros(POINTS, dtype=bool)
    for k, one in enumerate(tangent.moves):
        branch = branch_of(tangent, k)
        low, high = branch.domain
        u = points @ tangent.model.W0[one.branch]
        below, above = beyond_ends(u, low, high)
        for side, beyond, h in ((-1, below, low - u), (1, above, u - high)):
            if beyond.any():
                outside |= beyond
                wrong[:, k, beyond] += wrong_beyond(branch, side, h[beyond])
    share = float(outside.mean())
    if share > TOGETHER * seen and share - seen > UNSURE * np.sqrt(share / S):
        return None
    if not outside.any():
        return Outside(0.0, np.zeros(around.problem.n), np.zeros((around.problem.n, around.problem.m)))
    alive = [one.branch for one in tangent.moves]
    W1, W0 = tangent.model.W1[:, alive] ** 2, tangent.model.W0[alive] ** 2
    values, slopes = wrong[..., outside].mean(axis=-1)
    return Outside(share, W1 @ values, (W1 * slopes) @ W0)


def wrong_beyond(branch: FittedBranch, side: int, h: Array) -> Array:
    """Squares (2, ·) of what values and slopes of a branch are wrong by at distances h beyond its end on a side."""
    low, high = branch.domain
    length, own = high - low, branch.continuations[int(side > 0)]
    depth = np.linspace(0.0, OUTER * length, CUTS + 1)[1:]  # how far inside it is cut
    cuts = (high if side > 0 else low) - side * depth
    there = np.linspace(0.0, OUTER * length, DISTANCES + 1)[:-1]  # how far beyond the cut one looks
    at = branch.placement.at(cuts)
    taylor = np.stack(
        [branch.placement.evaluate(branch.coordinates, at, k) for k in range(len(own.powers))], axis=-1
    )  # (cuts, q + 1)
    u = np.clip(cuts[:, None] + side * there, low, high)
    within = depth[:, None] >= there
    weight = np.where(within, np.exp((there - depth[:, None]) / (NEAR * length)), 0.0)
    weight /= np.maximum(weight.sum(axis=0), np.finfo(float).tiny)
    off = (
        branch(u) - taylor @ own.shares(side * there).T,
        branch.derivative(u) - taylor @ own.shares(side * there, 1).T,
    )
    return np.stack([np.interp(h, there, np.sum(weight * np.abs(one), axis=0)) ** 2 for one in off])
