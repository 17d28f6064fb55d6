"""Robust fits: samples that do not belong to the others get less weight, or none, by iterative reweighting.

The first fit leaves out samples whose values or rows of Jacobians are far from their medians, beyond c. Where some of
these might belong, because no gap separates them from the others, a second one has them with weights (c / d)², d being
how far they are, which bounds what a wild sample adds to sums of squares. It counts unless it leaves much more of most
samples than the first: then it bends to wild ones. After each, what the model leaves decides on weights:

    d = max over outputs, of values and of rows of the Jacobian, of |residual| / scale,

scale being the median absolute residual, as a standard deviation; or what the quantile 0.9 says of it where that is
more, as around kinks that a model rounds off, but at most five times the median's. The weights are Hampel's: 1 up to
d = 4, 4 / d as with Huber's loss up to 8, and from there falling to 0 at 20, because even the bounded influence of
Huber's loss is too much of a sample that is 10⁶ standard deviations off. Fits that follow begin at the last model,
until weights settle. Where that takes all weight from samples that the first search had counted, it may have been led
astray by them, so a search with the new weights follows, and the better of the two goes on.

Weights found multiply those that samples have. Where samples lie in files or Dask arrays, they are looked at in blocks,
and only one number a sample is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from unbraid.data.checks import ARRAYS, counted
from unbraid.data.dask_arrays import Chunks, align
from unbraid.data.problem import Problem, block_of
from unbraid.fitting.fit_rank import fit_rank, fit_unless_interrupted
from unbraid.fitting.request import Request
from unbraid.fitting.session import CUTS, Session
from unbraid.kernels.arrays import Array
from unbraid.results.carrying import left_out
from unbraid.results.contradictions import with_contradiction_first
from unbraid.results.fit import Fit, errors_on
from unbraid.results.model import DecoupledModel
from unbraid.results.notes import notes_on_copies, notes_on_starts
from unbraid.results.outcome import Status
from unbraid.results.wild import (
    GAP,
    MOST_SAMPLES,
    UPPER,
    WILD,
    Middle,
    constant_limits,
    descending,
    list_samples,
    lower_ends,
    quantiles,
    sizes_of,
    tails_of,
)

FULL, LESS, NOTHING = 4.0, 8.0, 20.0
"""Distances up to which a sample has its full weight, the weight of Huber's loss, and any weight."""
SCREEN_SHARE, SCREEN_NOTHING = 0.6, 1e3
"""c as a share of the limit beyond which values may be wild; and how many limits leave no weight, gap or not."""
ROUNDS = 10
"""So often weights are set anew, at most."""
SETTLED = 0.1
"""Weights that change by no more than this have settled."""
UPPER_SIZE, LONGEST = 1.645, 5.0
"""The quantile 0.9 of sizes of normal values, and how many times the median's scale the one from it may be."""
SHARPER = 0.8
"""A model that leaves less than this share of what another one leaves is not bent to samples as that one is."""
EXACT = 1e-5
"""The least scale, as a share of the spread of the values: what is left of exact samples is no noise."""
LEAST_KEPT = 0.5
"""The share of the samples that keep some weight, whatever their distances are."""
SLIGHT = 1e-3
"""The weight of samples that would have none, where too few were left."""


def fit_with_loss(problem: Problem, request: Request, session: Session) -> Fit:
    """The fit that was asked for, by least squares or robust."""
    return fit_robust(problem, request, session) if request.loss == "huber" else fit_rank(problem, request, session)


def fit_robust(problem: Problem, request: Request, session: Session) -> Fit:
    """Find a model while samples that do not belong to the others lose their weight; the request has been checked."""
    plain, samples = replace(request, loss="squared"), problem.on(session.client)
    every = keep_enough(screen(samples), request.basis_used.size)
    sure = keep_enough(np.floor(every), request.basis_used.size)
    first = fit_rank(weighted(samples, sure), plain, session)
    found = follow(samples, first, sure, plain, session)
    if found.fit.status not in CUTS and np.any(sure < every):
        first = fit_again(found.fit, weighted(samples, every), plain, session)
        other = follow(samples, first, every, plain, session)
        doubted = bends(samples, other.fit.model, found.fit.model)
        if other.fit.status in CUTS:
            found = replace(found, fit=replace(found.fit, status=other.fit.status))
        elif not doubted:
            found = other
    return conclude(found, Verdict(problem, request, found.weights), session)


@dataclass(frozen=True)
class Settled:
    """A fit whose weights (S,) have settled, and the search that it began with."""

    fit: Fit
    first: Fit
    weights: Array


def follow(problem: Problem, first: Fit, weights: Array, request: Request, session: Session) -> Settled:
    """What becomes of the first search with some weights; with a second one where those were not right."""
    fit, found = settle(problem, first, weights, request, session)
    if np.any((weights > 0.0) & (found == 0.0)) and request.init is None and fit.status not in CUTS:
        other = fit_again(fit, weighted(problem, found), request, session)
        if is_better(other, fit):
            first = other
            fit, found = settle(problem, first, found, request, session)
        elif other.status in CUTS:
            fit = replace(fit, status=other.status)
    return Settled(fit, first, found)


def is_better(one: Fit, other: Fit) -> bool:
    """Whether a fit is better than another one: by their scores where both have one, as each has a λ of its own."""
    if one.smoothing is not None and other.smoothing is not None:
        return one.smoothing.score < other.smoothing.score
    return one.objective < other.objective


def bends(problem: Problem, model: DecoupledModel, other: DecoupledModel) -> bool:
    """Whether a model leaves much more of most samples than another one, because it bends to a few."""
    some = problem.thinned(MOST_SAMPLES)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        middle = Middle.of(some)
        least = EXACT * quantiles(sizes_of(some, middle, None), 0.75)[0] + middle.rounding
        left = [np.maximum(quantiles(sizes_of(some, middle, one), 0.5)[0], least) for one in (model, other)]
        return bool(np.mean(np.log(left[1] / left[0])) < np.log(SHARPER))


def settle(problem: Problem, fit: Fit, weights: Array, request: Request, session: Session) -> tuple[Fit, Array]:
    """Fits that begin at the last model, and weights (S,) by what it leaves, until those settle."""
    for _ in range(ROUNDS):
        if fit.status in CUTS:
            break
        settled, weights = weights, keep_enough(hampel(residual_distances(problem, fit.model)), request.basis_used.size)
        if np.abs(weights - settled).max() <= SETTLED:
            return fit, settled
        again = replace(request, init=fit.model, compress=None, starts=1)
        fit = fit_again(fit, weighted(problem, weights), again, session)
    return fit, weights


def fit_again(fit: Fit, problem: Problem, request: Request, session: Session) -> Fit:
    """A further fit, or the one there is where Ctrl-C comes before there is another."""
    return fit_unless_interrupted(partial(fit_rank, problem, request, session), fit)


def screen(problem: Problem) -> Array:
    """Weights (S,) before there is a model, by how far values and rows of Jacobians are from their medians."""
    some = problem.thinned(MOST_SAMPLES)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        middle = Middle.of(some)
        sizes = sizes_of(some, middle, None)
        tails = tails_of(sizes, middle.rounding, problem.S, GAP)
        tails = tails._replace(limits=np.maximum(tails.limits, constant_limits(sizes, middle.rounding)))
        levels = np.minimum(lower_ends(descending(sizes), tails), SCREEN_NOTHING * tails.limits)
        d = distances(problem, middle, None, SCREEN_SHARE * tails.limits)
        return np.where(distances(problem, middle, None, levels) < 1.0, 1.0 / np.maximum(d, 1.0) ** 2, 0.0)


def screened(problem: Problem) -> Problem:
    """The problem with the weights that samples have before there is a model; in memory, of those that have any."""
    return weighted(problem, screen(problem))


def residual_distances(problem: Problem, model: DecoupledModel) -> Array:
    """How far samples are from a model, in units of what it leaves of most: (S,)."""
    some = problem.thinned(MOST_SAMPLES)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        middle = Middle.of(some)
        spread = quantiles(sizes_of(some, middle, None), 0.75)[0]
        half, upper = quantiles(sizes_of(some, middle, model), 0.5, UPPER)
        scales = np.clip(upper / UPPER_SIZE, half / typical_size(problem), LONGEST * half / typical_size(problem))
        return distances(problem, middle, model, np.maximum(scales, EXACT * spread + middle.rounding))


def typical_size(problem: Problem) -> Array:
    """Median sizes of values and of rows of Jacobians whose entries are standard normal, as roots of mean squares."""
    rows = np.sqrt((1.0 - 2.0 / (9.0 * problem.m)) ** 3)  # of χ² (Wilson and Hilferty)
    parts = [np.full(problem.n, 0.6745)] if problem.F is not None else []
    return np.concatenate([*parts, *([np.full(problem.n, rows)] if problem.J is not None else [])])


def hampel(d: Array) -> Array:
    """Hampel's weights of distances (S,): 1, that of Huber's loss, falling to 0; no number is no trust."""
    falling = np.clip((NOTHING - d) / (NOTHING - LESS), 0.0, 1.0)
    return np.where(np.isnan(d), 0.0, np.where(d <= FULL, 1.0, FULL / np.maximum(d, FULL) * falling))


@dataclass(frozen=True)
class Joined:
    """Numbers of samples in blocks, in their order; those of the next samples can be added."""

    parts: tuple[Array, ...]

    def __add__(self, other: Joined) -> Joined:
        return Joined((*self.parts, *other.parts))


def distances(problem: Problem, middle: Middle, model: DecoupledModel | None, scales: Array) -> Array:
    """The largest sizes of each sample over all outputs, of values and Jacobians, in units of scales: (S,)."""
    return np.concatenate(problem.sum(block_distances, middle, model, scales).parts)


def block_distances(block: Problem, middle: Middle, model: DecoupledModel | None, scales: Array) -> Joined:
    """The distances of the samples of a block; 0 where nothing is known."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return Joined((np.fmax.reduce(sizes_of(block, middle, model) / scales, axis=1, initial=0.0),))


def keep_enough(weights: Array, least: int) -> Array:
    """The weights, with a slight one in the place of none where too few samples would be left."""
    too_few = np.count_nonzero(weights) < max(least, LEAST_KEPT * len(weights))
    return np.maximum(weights, SLIGHT) if too_few else weights


def weighted(problem: Problem, weights: Array) -> Problem:
    """The problem with its weights times (S,) others; in memory, of the samples that have any."""
    return problem if np.all(weights == 1.0) else reweighted(problem, weights).counting()


def reweighted(problem: Problem, weights: Array) -> Problem:
    """The problem with its weights times (S,) others, all samples in their places."""
    if np.all(weights == 1.0):
        return problem
    new = problem.with_parts(weights=weights if problem.weights is None else problem.weights * weights)
    if problem.home is None:
        return new
    arrays = align({name: array for name in ARRAYS if (array := getattr(new, name)) is not None})
    names = problem.input_names, problem.output_names
    return new.with_parts(**arrays, home=Chunks(arrays, partial(block_of, names, problem.whole)))


@dataclass(frozen=True)
class Verdict:
    """What was given and asked for, and the weights (S,) that samples ended with, beside their own."""

    problem: Problem
    request: Request
    weights: Array

    def notes(self, model: DecoupledModel) -> Sequence[str]:
        """A note on the samples that got less weight, if any did, those farthest from a model first."""
        if not (less := np.flatnonzero(self.weights < 1.0)).size:
            return []
        worst = less[np.argsort(-residual_distances(self.problem, model)[less], kind="stable")]
        nothing, count = int(np.count_nonzero(self.weights == 0.0)), less.size
        got = "no weight" if nothing == count else "less weight" + (f", {nothing} of them none" if nothing else "")
        errors = " Errors leave out samples without weight." if nothing else ""
        return [
            f'{count} of {counted(self.problem.S, "sample")} ({list_samples(worst)}) got {got} by loss="huber", '
            f"because values or Jacobians are far from what the others make likely.{errors}"
        ]


def conclude(found: Settled, verdict: Verdict, session: Session) -> Fit:
    """The last fit as the one that was asked for: of the given problem, with the starts of the first one.

    Errors are those of the samples that have any weight, with the weights that the problem has.
    """
    problem, request, fit, first = verdict.problem, verdict.request, found.fit, found.first
    has_any = (verdict.weights > 0.0).astype(np.float64)
    kept = weighted(problem, has_any)
    with np.errstate(over="ignore", invalid="ignore"):
        jacobian_error, output_errors = errors_on(kept, fit.model)
    told = fit is first or left_out(fit.model, fit.smoothing)
    on_starts = [] if told else notes_on_starts(first.starts, first.status)
    notes = [note for note in (*fit.notes, *on_starts) if not note.startswith(WILD)]
    return replace(
        fit,
        status=Status.INTERRUPTED if session.listener.take() else fit.status,
        jacobian_error=jacobian_error,
        output_errors=output_errors,
        starts=first.starts,
        notes=with_contradiction_first(
            (*verdict.notes(fit.model), *dict.fromkeys((*notes, *notes_on_copies(problem))))
        ),
        problem=reweighted(problem, has_any),  # diagnostics and reports leave out what the fit left out
        asked=request,
        seconds=session.seconds(),
    )
