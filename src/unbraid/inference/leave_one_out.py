r"""Errors on new points, from the fit itself: samples are left out one at a time, and the model follows to first order.

With A_s the rows of sample s, ρ_s what is left of it and V as in `inference.neighbourhood`, the model without that
sample moves by θ_s, and what is left of the sample then is

    θ_s = -V⁻¹ A_sᵀ (1 - H_s)⁻¹ ρ_s,        (1 - H_s)⁻¹ ρ_s,        H_s = A_s V⁻¹ A_sᵀ,

all values and slopes of the sample going together. Smoothing stays as it is.

A sample at an end of a branch's range is outside of the range of all others, and the share of such samples is about
that of new points outside. What branches are wrong by there comes on top (`inference.outside`). Where inputs hang
together, it comes from these samples themselves: branches then end at the last sample but one, and go on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.bases.constraints import Constraint
from unbraid.data.problem import Problem
from unbraid.inference.neighbourhood import Neighbourhood
from unbraid.inference.outside import Outside, expected_outside
from unbraid.inference.tangent import count_unknowns
from unbraid.kernels.arrays import Array, BoolArray, IndexArray, spread_out
from unbraid.kernels.ranges import beyond_ends
from unbraid.metrics import percents_of_spread, ratio
from unbraid.results.branch import Continuation, FittedBranch
from unbraid.results.model import DecoupledModel
from unbraid.results.worth.held_out import HeldOut
from unbraid.results.worth.objective import Objective
from unbraid.runtime.process import single_blas_thread

WORK, FEWEST, MOST_WORK = 1e9, 8, 3e10
"""Multiplications that are spent, how many samples are left out whatever that costs, and beyond what cost none are."""
MOST_UNKNOWNS, MOST_INPUTS, MOST_NUMBERS = 1200, 200, 1000
"""Unknowns, inputs, and numbers of a sample, beyond which nothing is expected: their squares take too much memory."""
ENDS = 64
"""Samples at ends of ranges that are looked at, at most."""


@dataclass(frozen=True)
class LeftOut:
    """What is left of samples, (S, q) in the user's units, when each is left out; `outside`: of all others' range."""

    which: IndexArray
    residual: Array
    outside: BoolArray


def expected_errors(
    model: DecoupledModel, problem: Problem, minimised: Objective, constraints: Sequence[Constraint | None]
) -> HeldOut | None:
    """The errors that a fitted model is expected to have on new points; None where that cannot be told."""
    around = affordable_neighbourhood(model, problem, minimised, constraints)
    if around is None:
        return None
    with single_blas_thread(), np.errstate(all="ignore"):
        return leave_one_out(around)


def affordable_neighbourhood(
    model: DecoupledModel, problem: Problem, minimised: Objective, constraints: Sequence[Constraint | None]
) -> Neighbourhood | None:
    """A fitted model and its samples, to be looked at as a fit ends; None where that takes too long, or tells nothing.

    So it is with fewer than three samples, too many unknowns, or numbers that are not finite.
    """
    U, q = count_unknowns(model, minimised.offset), problem.n * (1 + problem.m)
    if U > MOST_UNKNOWNS or problem.m > MOST_INPUTS or q > MOST_NUMBERS or 2.0 * FEWEST * q * U**2 > MOST_WORK:
        return None
    with single_blas_thread(), np.errstate(all="ignore"):
        around = Neighbourhood.of(model, problem, minimised, constraints)
        if around.problem.S < 3 or not around.tangent.size:
            return None
        return around if np.isfinite(around.data_matrix).all() else None


def leave_one_out(around: Neighbourhood) -> HeldOut:
    """The errors that are expected on new points."""
    ends = ends_of_ranges(around.tangent.model, around.problem.X)
    outside: BoolArray = np.asarray(ends.any(axis=(1, 2)))
    seen = float(np.average(outside, weights=around.problem.weights)) / around.standing_for
    beyond = expected_outside(around, seen)
    left = leave_out(around, chosen_samples(around, outside), outside, ends if beyond is None else None)
    return summarised(around, left, seen, beyond)


def ends_of_ranges(model: DecoupledModel, X: Array) -> BoolArray:
    """Which samples are alone at the lower or upper end of the range of a branch that carries something: (S, r, 2)."""
    u = X @ model.W0.T
    counts = np.any(model.W1 != 0.0, axis=0)
    result = np.zeros((*u.shape, 2), dtype=bool)
    if len(X) < 3:
        return result
    order = np.partition(u, (0, 1, -2, -1), axis=0)
    result[..., 0], result[..., 1] = beyond_ends(u, order[1], order[-2])  # of all others' range, that is
    return np.asarray(result & counts[:, None])


def chosen_samples(around: Neighbourhood, outside: BoolArray) -> IndexArray:
    """The samples to leave out: all, or as many as the work allows, spread evenly, some at the ends among them."""
    size, q = around.tangent.size, around.numbers
    most = int(max(FEWEST, WORK / (2.0 * q * max(size, 1) ** 2)))
    at_ends, others = np.flatnonzero(outside), np.flatnonzero(~outside)
    of_ends = at_ends[spread_out(len(at_ends), min(len(at_ends), ENDS, max(2, most // 2)))] if len(at_ends) else at_ends
    left = max(most - len(of_ends), FEWEST)
    of_others = others if len(others) <= left else others[spread_out(len(others), left)]
    return np.sort(np.concatenate([of_ends, of_others]))


@np.errstate(all="ignore")
def leave_out(around: Neighbourhood, which: IndexArray, outside: BoolArray, ends: BoolArray | None = None) -> LeftOut:
    """What is left of some samples, each left out; branches end at the last sample but one where `ends` are given."""
    left, done = around.residuals(which), 0
    for some in around.in_blocks(which):
        here = np.arange(done, done := done + len(some))
        A, residual, _, _, grown = around.omit(some)
        left[here] *= np.where(residual == 0.0, 1.0, grown / np.where(residual == 0.0, 1.0, residual))
        at_ends = np.flatnonzero(outside[some])
        if at_ends.size and ends is not None:
            theta = -around.solved((A[at_ends].mT @ grown[at_ends, :, None])[..., 0].T).T
            left[here[at_ends]] = left_outside(around, some[at_ends], theta, ends[some[at_ends]])
    return LeftOut(which, left, outside[which])


def left_outside(around: Neighbourhood, which: IndexArray, theta: Array, ends: BoolArray) -> Array:
    """What is left of samples at ends (S, r, 2) of branches that go on from the last sample but one; θ (S, U)."""
    tangent, problem = around.tangent, around.problem
    X, model, at = problem.X[which], tangent.model, tangent.at(problem.X[which])
    for one, here in zip(tangent.moves, at, strict=True):
        u, own = problem.X @ model.W0[one.branch], ends[:, one.branch]
        branch = model.branches[one.branch]
        assert isinstance(branch, FittedBranch)
        for k, side in zip(*np.nonzero(own), strict=True):
            others = np.delete(u, which[k])
            there = continued(branch, float(others.max() if side else others.min()), int(side), float(u[which[k]]))
            for array, number in zip(here, there, strict=True):
                array[k] = np.asarray(number)
    values, slopes = (np.stack([one[i] for one in at], axis=-1) for i in (0, 1))  # (S, alive)
    alive, parts = [one.branch for one in tangent.moves], []
    if problem.F is not None:
        follows = np.einsum("snu,su->sn", tangent.values(X, at), theta)
        parts.append(problem.F[which] - values @ model.W1[:, alive].T - model.bias - follows)
    if problem.J is not None:
        J = (model.W1[:, alive] * slopes[:, None, :]) @ model.W0[alive]
        follows = np.einsum("snmu,su->snm", tangent.slopes(X, at), theta)
        parts.append((problem.J[which] - J - follows).reshape(len(X), -1))
    return np.concatenate(parts, axis=1)


def continued(branch: FittedBranch, end: float, side: int, u: float) -> tuple[float, float, float, Array, Array]:
    """A branch at u, going on from `end` as it does from the end of its domain on a side: as `BranchPoints` has it."""
    own, a = branch.continuations[side], branch.coordinates
    at = branch.placement.at(np.array([end]))
    taylor = np.stack([branch.placement.design_at(at, k)[0] for k in range(len(own.powers))])  # (q + 1, K)
    h = np.array([u - end])
    value, slope = (own.shares(h, derivative)[0] @ taylor for derivative in (0, 1))
    factorials = np.cumprod(np.maximum(np.arange(len(taylor)), 1.0))
    bend = Continuation(taylor @ a / factorials, own.reach).derivative(h, 2)[0]
    return float(value @ a), float(slope @ a), float(bend), value, slope


@np.errstate(all="ignore")
def summarised(around: Neighbourhood, left: LeftOut, seen: float, beyond: Outside | None) -> HeldOut:
    """Errors of samples that were left out; those at ends of ranges count by the share that is expected of them."""
    problem, n = around.problem, around.problem.n
    weights = np.ones(problem.S) if problem.weights is None else problem.weights
    own, kinds = weights[left.which], (~left.outside, left.outside)
    known = ~np.isnan(left.residual)
    squares = np.where(known, left.residual, 0.0) ** 2
    each = [(own[kind] @ squares[kind]) / (own[kind] @ known[kind]) for kind in kinds]  # (q,) mean squares
    share = seen if beyond is None else beyond.share
    if beyond is not None:
        more = [
            part.ravel()
            for part, given in ((beyond.values, problem.F), (beyond.slopes, problem.J))
            if given is not None
        ]
        each[1] = np.where(np.isnan(each[1]), each[0], each[1]) + np.concatenate(more)
    shares = (1.0 - share, share)
    counts = np.where(np.isnan(each), 0.0, np.array(shares)[:, None])  # (2, q)
    both = np.sum(counts * np.nan_to_num(each), axis=0) / counts.sum(axis=0)
    errors: list[Array | None] = [None, None, None]
    if problem.F is not None:
        given = ~np.isnan(problem.F)
        count = weights @ given
        center = weights @ np.where(given, problem.F, 0.0) / count
        spread = weights @ np.where(given, problem.F - center, 0.0) ** 2
        sums, size = [one[:n] * count for one in (both, *each)], center * np.sqrt(count)
        errors = [percents_of_spread(one, spread, size) for one in sums]
    slopes = None
    if problem.J is not None:
        given = ~np.isnan(problem.J)
        norm = np.einsum("s,sik->ik", weights, np.where(given, problem.J, 0.0) ** 2)
        total = both[-norm.size :].reshape(norm.shape) * np.einsum("s,sik->ik", weights, given)
        slopes = ratio(float(total.sum()), float(norm.sum()))
    return HeldOut(errors[0], slopes, share, errors[1], errors[2], len(left.which))
