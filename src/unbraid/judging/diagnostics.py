"""What a fit is worth: is the decoupling unique, do starts agree, which branches are alike, which matter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from unbraid.data.checks import counted
from unbraid.data.magnitudes import Magnitudes
from unbraid.data.problem import Problem
from unbraid.data.units import Units
from unbraid.errors import SettingError
from unbraid.inference.freedoms import find_freedoms
from unbraid.inference.importance.shares import branch_covariances
from unbraid.inference.neighbourhood import Neighbourhood, neighbourhood_of
from unbraid.inference.patterns import PLAIN, find_pattern
from unbraid.inference.tangent import count_unknowns
from unbraid.judging.findings import on_branches, on_shares, on_uniqueness, share_number, uniqueness_words, was
from unbraid.judging.importance import needs_of
from unbraid.judging.uniqueness import Flat, flat_directions, generically_unique
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.kernels.gauge import row_lengths
from unbraid.metrics import angles_between
from unbraid.results.advice import ending_as_low, match_of, on_misfit, on_starts
from unbraid.results.canonical import CanonicalModel, canonical_form
from unbraid.results.carrying import carrying, chooses_smoothing, left_out, some_branches, superfluous
from unbraid.results.evaluation import branch_slopes
from unbraid.results.fit import Fit, errors_on, given_problem
from unbraid.results.model import DecoupledModel
from unbraid.results.smoothing import Smoothing, freedom_number
from unbraid.results.worth.freedom import Freedom
from unbraid.results.worth.objective import Objective
from unbraid.solvers.gauss_newton import DENSE_LIMIT

MATTERS = 1.0
"""An error in % below which what is left is not asked about."""
PARALLEL = 5.0
"""Degrees below which two directions count as parallel."""
CANCELLING = 0.01
"""Two branches cancel where the square of their sum is below this share of their squares' sum."""
EXPLAINED = 5.0
"""An error in %, of the worst output or of the slopes, from which on a smaller rank is no advice."""
FOLLOWS = 100.0
"""An error in % from which on a model does not follow the samples at all."""


class ParallelPair(NamedTuple):
    """Two branches that look along about the same direction.

    `one` and `other` count from 0; `angle` is in degrees, in balanced units. They are `cancelling` where their sum is
    small against both, and `mergeable` where one branch would do for both: their mix of outputs is the same, or
    their curve is.
    """

    one: int
    other: int
    angle: float
    cancelling: bool
    mergeable: bool


@dataclass(frozen=True, repr=False, eq=False)
class Diagnostics:
    """What `diagnose` found.

    Attributes
    ----------
    rank
        r, branches that carry nothing among them; what is said of branches is said of the others.
    generic
        Whether generic Jacobians of this size determine a decoupling into so many branches as tensors already. None
        without Jacobians.
    flat
        The ways to change the model and nothing at the samples, to first order: how many there are, and how many of
        them only trade curves among branches. None where there are too many unknowns to tell.
    match
        The mean factor match score, in the canonical form, between the best start and the others that ended as low: 1
        where all found the same. None where there is no other.
    compared
        How many starts ended as low, the best one among them.
    parallel
        Pairs of branches along about the same direction.
    values, slopes
        The share of each branch in the variance of the outputs, the mean over these of what `importance` has as
        `branches`, and likewise its share in the size of the Jacobians, each output in units of its own size: (r,),
        with sum 1. Below 0 where other branches cancel it. `slopes` is None without J.
    alone
        The larger of what each branch has of both without the others, (r,). Where branches cancel each other in part,
        it is more than 1.
    explained
        Whether hardly an error is left, so that a smaller rank may do.
    thinned
        How many samples were looked at, of how many, where not all were; else None.
    superfluous
        The branches, from 0, that carry nothing: the data do not support them, and their directions mean nothing.
    smoothing, noise
        What the fit chose from the data, as `Fit.smoothing`, and what it takes for noise, in words. None where nothing
        was open.
    smooth
        Whether the basis chooses its smoothing itself, so that there is no df to be chosen.
    follows
        Whether the model follows the samples at all: if so, a branch that is larger than they are is cancelled in part.
    needs
        Which inputs and branches are needed, in sentences (`ub.importance`); empty where that would take long to find.
    misfit
        What to make of residuals that are plainly no noise; None where they may be noise, or hardly matter.
    starts_advice
        What to make of starts that did not find the same, as notes of the fit have it; None where they did.
    freedoms
        What can move while the misfit stays within the noise, or within rounding where there is none: each with the
        branches that move, how far, and why.
    straight
        The branches, from 0, that are straight lines, up to noise.
    canonical
        The model in its canonical form over the samples, with the straight branches in L. None where numbers are too
        large or too small to be squared.
    """

    rank: int
    generic: bool | None
    flat: Flat | None
    match: float | None
    compared: int
    parallel: tuple[ParallelPair, ...]
    values: Array
    slopes: Array | None
    alone: Array
    explained: bool = True
    thinned: tuple[int, int] | None = None
    superfluous: tuple[int, ...] = ()
    smoothing: Smoothing | None = None
    noise: str | None = None
    smooth: bool = False
    follows: bool = True
    starts_advice: str | None = None
    freedoms: tuple[Freedom, ...] = ()
    tested: bool = True
    needs: tuple[str, ...] = ()
    misfit: str | None = None
    straight: tuple[int, ...] = ()
    canonical: CanonicalModel | None = None

    @property
    def carrying(self) -> int:
        """How many branches carry something."""
        return self.rank - len(self.superfluous)

    @property
    def unique(self) -> bool | None:
        """Whether the model is locally unique, up to order, sign, scale and constants of branches; None: not tested.

        So it is where no other one nearby does as well within the noise: directions and curves are what they are.
        """
        if self.flat is not None and self.flat.directions:
            return False
        return not self.freedoms if self.flat is not None and self.tested else None

    @property
    def unique_canonical(self) -> bool | None:
        """Whether the canonical form is locally unique: all but directions of straight branches, and lines that move.

        None: not tested.
        """
        if self.unique is False and self.freedoms:
            return not any(one.in_canonical_form for one in self.freedoms)
        return self.unique

    @property
    def importance(self) -> Array:
        """How much each branch matters, (r,): its share in the variance of the outputs, `values`."""
        return self.values

    @property
    def advice(self) -> tuple[str, ...]:
        """What follows from the diagnostics, in sentences."""
        starts = () if self.starts_advice is None or self.superfluous else (self.starts_advice,)
        left = () if self.misfit is None else (self.misfit,)
        return (*left, *on_uniqueness(self), *starts, *on_branches(self), *on_shares(self))

    def __repr__(self) -> str:
        unique = uniqueness_words(self)
        bound = (
            "" if self.generic is None else f"; the bound for generic Jacobians is {'' if self.generic else 'not '}met"
        )
        same = "not known" if self.match is None else f"factor match score {self.match:.3f}"
        if self.match is not None and self.superfluous and self.smooth:
            same += f" (of all {self.rank} branches, before {len(self.superfluous)} of them {was(self)} left out)"
        carrying = f", of which {self.carrying} carr{'ies' if self.carrying == 1 else 'y'} something"
        lines = [
            f"Diagnostics of a fit of rank {self.rank}{carrying if self.superfluous else ''}",
            f"  unique      {unique}{bound}",
            f"  replicable  {same}, {counted(self.compared, 'start')} ended as low as the best",
        ]
        for name, shares in (("F", self.values), ("J", self.slopes)):
            if shares is not None:
                lines.append(f"  shares of {name} " + ", ".join(map(share_number, shares)) + " %")
        lines += [f"  needed      {line}" for line in self.needs]
        if self.smoothing is not None:
            coupling = "" if self.smoothing.coupling is None else f"λ {self.smoothing.coupling:.3g}; "
            lines.append("  freedom     " + ", ".join(map(freedom_number, self.smoothing.freedom)) + " degrees")
            lines.append(f"  chosen      {coupling}{self.noise}")
        if self.thinned is not None:
            lines.append(f"  samples     {self.thinned[0]:,} of {self.thinned[1]:,}, spread evenly")
        return "\n".join(lines + [f"  advice      {one}" for one in self.advice])


def diagnose(fit: Fit, problem: Problem | None = None) -> Diagnostics:
    """Look at a fit and the samples it was made from: unique, replicable, which branches are alike, which matter.

    The samples are those the fit remembers, `fit.problem`, unless others are given.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, truth = ub.datasets.trig(S=100, rng=0)
    >>> found = ub.diagnose(ub.decouple(problem, rank=3, rng=0))
    >>> found.unique, found.generic
    (True, False)
    >>> bool(found.match > 0.999), found.parallel
    (True, ())
    """
    if not isinstance(fit, Fit):
        raise SettingError(f"fit must be what ub.decouple returns, got a {type(fit).__name__}.")
    given = given_problem(fit, problem)
    sizes = Magnitudes.of(given)
    samples = sizes.problem(given.thinned())
    own, fit = given is fit.problem, fit if sizes.ordinary else fit.rescaled(-sizes.x, -sizes.f)
    model = fit.model
    errors = (fit.jacobian_error, fit.output_errors) if own else errors_on(sizes.problem(given), model)
    found = replace(
        examined(model, samples.counting(), fit, *errors),
        needs=needs_of(fit, given),
        misfit=misfit_of(fit, samples, worst_error(*errors)),
        smoothing=fit.smoothing,
        noise=None if fit.smoothing is None else fit.noise,
    )
    if not sizes.ordinary:
        found = replace(found, canonical=None)
    return found if samples.S == given.S else replace(found, thinned=(samples.S, given.S))


def misfit_of(fit: Fit, problem: Problem, worst: float) -> str | None:
    """What to make of residuals that are plainly no noise, in a sentence; None where they may be, or hardly matter."""
    if fit.minimised is None or worst < MATTERS or count_unknowns(fit.model, True) > DENSE_LIMIT:
        return None
    with np.errstate(all="ignore"):
        found = find_pattern(neighbourhood_of(fit, problem))
    if found.z < PLAIN:
        return None
    chosen = fit.asked is not None and fit.asked.rank == "auto"
    return on_misfit(found.along, found.z, larger=not (chosen or left_out(fit.model, fit.smoothing)))


def examined(
    model: DecoupledModel,
    problem: Problem,
    fit: Fit,
    jacobian_error: float | None,
    output_errors: Array | None,
) -> Diagnostics:
    """The same for a fitted model, samples and the errors on them, and for the fit it comes from, in any units."""
    at, low, kept = balanced(model, problem), ending_as_low(fit.starts), carrying(model)
    shares, worst = branch_shares(model, problem), worst_error(jacobian_error, output_errors)
    few = count_unknowns(model, True) <= DENSE_LIMIT
    known = find_freedoms(around_minimum(model, problem, fit)) if few else None
    return Diagnostics(
        rank=model.rank,
        generic=generically_unique(problem, len(kept)),
        flat=flat_directions(problem, some_branches(model, kept)),
        match=match_of(low),
        compared=len(low),
        parallel=tuple(parallel_pairs(at, kept)),
        values=shares.values,
        slopes=shares.slopes,
        alone=shares.alone,
        explained=worst < EXPLAINED,
        follows=worst < FOLLOWS,
        starts_advice=on_starts(fit.starts),
        superfluous=tuple(superfluous(model)),
        smooth=chooses_smoothing(model),
        freedoms=() if known is None else known.freedoms,
        tested=known is not None,
        straight=() if known is None else known.straight,
        canonical=canonical_form(model, problem.X, problem.weights, () if known is None else known.straight),
    )


@np.errstate(all="ignore")  # what is not finite is not told of
def around_minimum(model: DecoupledModel, problem: Problem, fit: Fit) -> Neighbourhood:
    """A fitted model and samples to second order."""
    minimised = Objective.default(problem) if fit.minimised is None else fit.minimised
    return Neighbourhood.of(model, problem, minimised, fit.constraints)


def worst_error(jacobian_error: float | None, output_errors: Array | None) -> float:
    """The largest error of an output that varies, or that of the slopes where there are no values, in %."""
    if output_errors is not None:
        return float(np.max(output_errors, where=np.isfinite(output_errors), initial=0.0))
    return 0.0 if jacobian_error is None else 100.0 * float(np.sqrt(jacobian_error))


class BranchShares(NamedTuple):
    """`values`, `slopes` and `alone` of `Diagnostics`."""

    values: Array
    slopes: Array | None
    alone: Array


def branch_shares(model: DecoupledModel, problem: Problem) -> BranchShares:
    """The shares of branches in values and in slopes, without the rest."""
    each = branch_covariances(model, problem)
    varies = each.any(axis=(1, 2))
    values = each[varies].mean(axis=0) if varies.any() else np.zeros((model.rank, model.rank))
    if problem.J is None:
        return BranchShares(values.sum(axis=1), None, np.diagonal(values))
    slopes = products(balanced(model, problem))
    slopes = slopes / (slopes.sum() if slopes.any() else 1.0)
    return BranchShares(values.sum(axis=1), slopes.sum(axis=1), np.maximum(np.diagonal(values), np.diagonal(slopes)))


class Balanced(NamedTuple):
    """A model at samples, in balanced units: its weights, and the slopes (S, r) of its branches times their roots."""

    W0: Array
    W1: Array
    slopes: Array


def balanced(model: DecoupledModel, problem: Problem) -> Balanced:
    """A model at the samples, in balanced units; outside the training range, branches go on as the model's do."""
    units = Units.balanced(problem)
    V = model.W0 * units.x_scale
    length = row_lengths(V)
    slopes = branch_slopes(model.branches, model.W0 @ problem.X.T).T * length
    rooted = slopes if problem.weights is None else slopes * np.sqrt(problem.weights)[:, None]
    W0, W1 = V / np.where(length > 0.0, length, 1.0)[:, None], model.W1 / units.f_scale[:, None]
    return Balanced(W0, W1, rooted)


def products(at: Balanced) -> Array:
    """Inner products (r, r) of what the branches add to the Jacobians, in balanced units."""
    W0, W1, G = at.W0, at.W1, at.slopes
    return np.asarray((G.T @ G) * (W1.T @ W1) * (W0 @ W0.T))


def parallel_pairs(at: Balanced, which: IndexArray) -> Iterator[ParallelPair]:
    """Pairs of the branches `which` whose directions are within `PARALLEL` degrees of each other."""
    W0, W1, G = at.W0, at.W1, at.slopes
    inner = products(at)
    inputs, outputs, curves = (angles_between(one, one) for one in (W0, W1.T, G.T))
    for i, j in combinations(map(int, which), 2):
        if inputs[i, j] < PARALLEL:
            both = inner[i, i] + inner[j, j]
            cancelling = bool(both + 2.0 * inner[i, j] < CANCELLING * both)
            alike = bool(min(outputs[i, j], curves[i, j]) < PARALLEL)
            yield ParallelPair(i, j, float(inputs[i, j]), cancelling, alike and not cancelling)
