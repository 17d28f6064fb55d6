"""Which inputs and branches matter: the entry for the user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from unbraid.bases.constraints import Constraint
from unbraid.data.magnitudes import Magnitudes
from unbraid.data.problem import Problem
from unbraid.errors import DataError, SettingError, check_whole, shown
from unbraid.inference.importance.intervals import Shares, share_intervals
from unbraid.inference.importance.marginals import Marginals
from unbraid.inference.importance.needs import judge_branches, judge_inputs
from unbraid.inference.importance.result import Importance, Need
from unbraid.inference.importance.shares import Together, branch_covariances, branch_parts, going_together, slope_shares
from unbraid.inference.importance.sobol import sobol_indices
from unbraid.inference.importance.without import (
    affordable,
    error_without_branch,
    error_without_input,
    fewer_samples,
    held_out_error,
)
from unbraid.inference.importance.words import need_lines
from unbraid.inference.linearised import LinearisedUncertainty, linearised_uncertainty
from unbraid.inference.neighbourhood import Neighbourhood, neighbourhood_of
from unbraid.inference.tangent import count_unknowns
from unbraid.kernels.arrays import Array
from unbraid.results.carrying import carrying
from unbraid.results.fit import Fit, given_problem
from unbraid.results.model import DecoupledModel
from unbraid.results.worth.fresh import beyond_training
from unbraid.results.worth.held_out import FEW_LEFT
from unbraid.results.worth.uncertainty import LEVEL
from unbraid.solvers.gauss_newton import DENSE_LIMIT

DRAWS = 200
"""Models that are drawn from the uncertainty of a fit, for intervals."""
POINTS = 1 << 10
"""Points that tell how many are outside the range seen."""
MOMENT = 2e8
"""Multiplications up to which needs are told without being asked for."""
SMALL_PART = 0.2
"""Parts of branches below this share of an output's standard deviation are not told of together with others."""
FEWEST = 3
"""Samples from which on something can be told of how far a fit is known."""


def importance(
    fit_or_model: Fit | DecoupledModel,
    problem: Problem | None = None,
    *,
    level: float = LEVEL,
    needs: bool = True,
    rng: int = 0,
) -> Importance:
    """How much each input and each branch matters: its share in the variance of every output.

    Parameters
    ----------
    fit_or_model
        What was found. Of a fit, intervals and whether something is needed are told as well.
    problem
        The samples, which say how inputs are distributed; those that the fit remembers if None.
    level
        The share of cases that intervals are meant to cover.
    needs
        Whether to ask, of every input and every branch, if the model could do without it.
    rng
        The seed of the points that shares are computed at, a whole number; the same seed gives the same numbers.

    Notes
    -----
    Inputs count as independent in `first_order` and `total`, each with the distribution that it has in the samples;
    where they are not, a note says so. Intervals are to first order: models are drawn from the linearised uncertainty
    of the fit (`Fit.uncertainty`). Tests are approximate F tests, and held-out errors without an input or a branch are
    those of a model that took over what it could in a few steps; neither is corrected for asking many times.

    Examples
    --------
    >>> import numpy as np, unbraid as ub
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 3))
    >>> y = np.sin(2 * X[:, 0] + X[:, 1]) + 0.05 * np.random.default_rng(1).standard_normal(300)
    >>> found = ub.importance(ub.decouple(ub.Problem(X, y[:, None]), rank=1, rng=0))
    >>> found.total.round(1)
    array([[0.9, 0.2, 0. ]])
    >>> [need.verdict for need in found.input_needs]
    ['needed', 'needed', 'not needed']
    """
    model, given = model_and_samples(fit_or_model, problem)
    if not 0.0 < level < 1.0:
        raise SettingError(f"level must be between 0 and 1, 0.95 say, got {level!r}.")
    check_whole("rng", rng, 0)
    sizes = Magnitudes.of(given)  # squares of very large and very small numbers would not be numbers
    model, given = model.rescaled(-sizes.x, -sizes.f), sizes.problem(given)
    fit = fit_or_model.rescaled(-sizes.x, -sizes.f) if isinstance(fit_or_model, Fit) else None
    samples = given.counting().thinned()
    shares, outside = shares_of(model, samples, rng)
    inputs = given.input_names or tuple(f"x{k + 1}" for k in range(model.m))
    sure = None if fit is None else uncertainty_for(fit, given)
    ends = None if sure is None else share_intervals(sure, marginals_of(samples), shares, level, DRAWS, rng)
    judged = None
    if sure is not None and needs and fit is not None:
        judged = judge(sure, fit.constraints, shares, inputs)
    parts = branch_parts(model, samples.X)
    alike = (one for i in range(model.n) for one in going_together(that_matter(parts[:, i]), samples.weights))
    return Importance(
        *shares,
        low=None if ends is None else ends[0],
        high=None if ends is None else ends[1],
        level=level,
        input_needs=None if judged is None else judged[0],
        branch_needs=None if judged is None else judged[1],
        outside=outside,
        inputs_together=going_together(samples.X, samples.weights),
        branches_together=strongest(alike),
        doubt=None if sure is None else sure.doubt,
        input_names=inputs,
        output_names=given.output_names or tuple(f"f{i + 1}" for i in range(model.n)),
    )


def model_and_samples(given: object, problem: Problem | None) -> tuple[DecoupledModel, Problem]:
    """The model of what was given, and the samples, refused with a sentence where there are none."""
    if isinstance(given, Fit):
        return given.model, given_problem(given, problem)
    if not isinstance(given, DecoupledModel):
        raise SettingError(f"importance is of a Fit or a DecoupledModel, got a {type(given).__name__}.")
    if not isinstance(problem, Problem):
        raise DataError(
            "A model does not know how its inputs are distributed: pass the samples as problem=ub.Problem(X, F), got "
            f"{shown(problem)}."
        )
    if (problem.n, problem.m) != (given.n, given.m):
        raise DataError(f"problem must fit the model: {given!r} does not belong to {problem!r}.")
    return given, problem


def marginals_of(samples: Problem) -> Marginals:
    """How each input is distributed."""
    return Marginals.of(samples.X, samples.weights)


def shares_of(model: DecoupledModel, samples: Problem, seed: int) -> tuple[Shares, float]:
    """The shares of inputs and branches, and how many points with independent inputs are outside the range seen."""
    marginals = marginals_of(samples)
    indices = sobol_indices(model, marginals, seed)
    branches = branch_covariances(model, samples).sum(axis=2)
    outside = float(np.mean(beyond_training(model, marginals.pairs(POINTS, seed)[0])))
    return Shares(indices.first_order, indices.total, slope_shares(model, samples), branches), outside


@np.errstate(all="ignore")  # of what is not finite nothing is told
def uncertainty_for(fit: Fit, problem: Problem, most: float = np.inf) -> LinearisedUncertainty | None:
    """How far a fit is known; None where that cannot be told, or takes more than so many multiplications."""
    if count_unknowns(fit.model, True) > DENSE_LIMIT:
        return None
    around = neighbourhood_of(fit, problem)
    if around.problem.S < FEWEST or not 0 < around.tangent.size <= DENSE_LIMIT or work_around(around) > most:
        return None
    sure = linearised_uncertainty(around) if np.isfinite(around.data_matrix).all() else None
    return None if sure is None or not np.isfinite(sure.covariance).all() else sure


def work_of(fit: Fit, problem: Problem) -> float:
    """How many multiplications it takes to say how far a fit is known."""
    return work_around(neighbourhood_of(fit, problem))


def work_around(around: Neighbourhood) -> float:
    """The same of its neighbourhood."""
    return float(around.problem.S) * around.numbers * around.tangent.size**2


def judge(
    sure: LinearisedUncertainty, constraints: tuple[Constraint | None, ...], shares: Shares, names: Sequence[str]
) -> tuple[tuple[Need, ...], tuple[Need, ...]]:
    """Whether each input, and each branch, is needed."""
    model, around = sure.model, fewer_samples(sure.around)
    error, alive = held_out_error(around), set(map(int, carrying(model)))
    unknown = None if affordable(sure.around) else np.full(model.n, np.nan)
    inputs, branches = [], []
    for k, (name, test) in enumerate(zip(names, judge_inputs(sure), strict=True)):
        looks = any(model.W0[j, k] != 0.0 for j in alive)
        without = error
        if looks:
            without = error_without_input(around, constraints, k) if unknown is None else unknown
        inputs.append(Need(name, test if looks else None, error, without, float(shares.total[:, k].max())))
    for j, one in enumerate(judge_branches(sure)):
        without = error
        if one is not None:
            without = error_without_branch(around, constraints, j) if unknown is None else unknown
        branches.append(Need(f"branch {j + 1}", one, error, without, float(np.abs(shares.branches[:, j]).max())))
    return tuple(inputs), tuple(branches)


@np.errstate(all="ignore")  # of what is not finite nothing is told
def needs_of(fit: Fit, problem: Problem) -> tuple[str, ...]:
    """Which inputs and branches a fit needs, in sentences; none where that is not known or takes long to find."""
    sizes = Magnitudes.of(problem)
    if fit.minimised is None or not sizes.ordinary or not problem.in_memory:
        return ()
    sure = uncertainty_for(fit, problem, MOMENT)
    if sure is None or sure.left < FEW_LEFT:
        return ()
    samples = problem.counting().thinned()
    names = problem.input_names or tuple(f"x{k + 1}" for k in range(fit.model.m))
    judged = judge(sure, fit.constraints, shares_of(fit.model, samples, 0)[0], names)
    return tuple(line for needs in judged for line in need_lines(needs))


def that_matter(parts: Array) -> Array:
    """Parts (S, r) of branches in an output, zero where they are small beside it: what these do together is nothing."""
    return np.where(parts.std(axis=0) >= SMALL_PART * parts.sum(axis=1).std(), parts, 0.0)


def strongest(pairs: Iterable[Together]) -> tuple[Together, ...]:
    """Of pairs of branches, by all outputs, the strongest correlation each; strongest first."""
    found: dict[tuple[int, int], Together] = {}
    for one in pairs:
        known = found.get((one.one, one.other))
        if known is None or abs(one.correlation) > abs(known.correlation):
            found[one.one, one.other] = one
    return tuple(sorted(found.values(), key=lambda one: -abs(one.correlation)))
