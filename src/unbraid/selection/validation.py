"""How well settings predict samples that were held out: one candidate of a selection, fold by fold.

One fit to all samples, from many starts, finds the directions. The fits to the samples that are left when a fold is
held out begin there, so they need few steps and cannot end in another, worse minimum by bad luck. That lets the
starting point know the samples that are to be predicted, but not the fit.

What is measured is the squared error of a sample in balanced units, relative to what there is to explain: of
Jacobians, each output divided by the root mean square of its slopes; of values, by their standard deviation; the mean
of the two where both are given. A sample beyond the range that a branch has seen in training does not count:
there a branch is only continued, and a few such samples would drown all differences between candidates.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from unbraid.bases import Basis
from unbraid.data.problem import Problem
from unbraid.data.units import Units, positive, spreads
from unbraid.fitting.fit_rank import check_fit, fit_rank
from unbraid.fitting.request import Request, count_unknowns
from unbraid.fitting.session import Session
from unbraid.kernels.arrays import Array, BoolArray, IndexArray, blocks
from unbraid.methods import Method
from unbraid.results.fit import Fit
from unbraid.results.model import DecoupledModel
from unbraid.runtime.journal import NOTHING_KEPT
from unbraid.solvers.coupling import Coupling

FIT_STEPS, FOLD_STEPS, TOLERANCE, POLISHED = 60, 12, 1e-3, 4
"""Gauss–Newton steps of a fit to all samples and of one to a fold's rest, when they end, and how many starts get them:
less than `decouple` gives them, because here only differences between candidates count."""


@dataclass(frozen=True)
class Settings:
    """What a fit can be made with.

    Attributes
    ----------
    rank
        How many branches.
    basis
        What they are made of.
    coupling
        λ.
    """

    rank: int
    basis: Basis
    coupling: Coupling

    def request(self, asked: Request, method: Method) -> Request:
        """What was asked for, with these settings, and a method with this λ."""
        method = replace(method, coupling=self.coupling)
        return replace(asked, rank=self.rank, basis=self.basis, method=method, polish=None)


class HeldOut(NamedTuple):
    """The samples of one fold: squared errors, whether they lie inside the range of every branch, seconds."""

    squares: Array
    inside: BoolArray
    seconds: float


@dataclass(frozen=True, eq=False)
class Row:
    """One candidate and how well it predicts held-out samples.

    Attributes
    ----------
    settings
        The candidate.
    unknowns
        How many numbers its model has, beside the bias and what scaling leaves open.
    error
        Its held-out error: relative, squared, the mean over the folds.
    standard_error
        Of that mean.
    seconds
        Computing time of all its fits.
    fit
        A quick fit to all samples.
    """

    settings: Settings
    unknowns: int
    seconds: float
    fit: Fit = field(repr=False)
    fold: IndexArray = field(repr=False)
    squares: Array = field(repr=False)
    inside: BoolArray = field(repr=False)
    weights: Array | None = field(repr=False, default=None)

    @cached_property
    def errors(self) -> Array:
        """The held-out error of each fold."""
        return self.fold_means(self.inside)

    def fold_means(self, counts: BoolArray) -> Array:
        """The weighted mean of each fold over the samples that count, or over all of them where none does."""
        means = []
        for k in range(self.fold.max() + 1):
            here = self.fold == k
            some = here & counts
            some = some if some.any() else here
            means.append(np.average(self.squares[some], weights=None if self.weights is None else self.weights[some]))
        return np.array(means)

    @property
    def error(self) -> float:
        """The held-out error, the mean over the folds."""
        return float(self.errors.mean())

    @property
    def standard_error(self) -> float:
        """The standard error of the mean over the folds."""
        return standard_error(self.errors)


def standard_error(numbers: Array) -> float:
    """The standard error of the mean of numbers."""
    return float(np.std(numbers, ddof=1) / np.sqrt(len(numbers)))


@dataclass(frozen=True)
class Validation:
    """What all candidates share: samples, what is asked of every fit, and who is held out when."""

    problem: Problem
    asked: Request
    fold: IndexArray
    seed: int

    @property
    def folds(self) -> int:
        """How many folds there are."""
        return int(self.fold.max()) + 1

    @property
    def least_training(self) -> int:
        """How many samples there are at least when a fold is held out."""
        return self.problem.S - int(np.bincount(self.fold).max())

    def row(self, settings: Settings, fit: Fit, parts: Sequence[HeldOut]) -> Row:
        """A candidate from its fit to all samples and its folds."""
        squares, inside = np.empty(self.problem.S), np.empty(self.problem.S, dtype=bool)
        for k, part in enumerate(parts):
            squares[self.fold == k], inside[self.fold == k] = part.squares, part.inside
        seconds = fit.seconds + sum(part.seconds for part in parts)
        count = count_unknowns(self.problem, settings.rank, settings.basis)
        return Row(settings, count, seconds, fit, self.fold, squares, inside, self.problem.weights)

    def fit(self, settings: Settings, init: DecoupledModel | None = None) -> Fit:
        """A quick fit to all samples, from random starts or from a model."""
        rng = np.random.default_rng([self.seed, settings.rank])
        return fit_alone(self.problem, self._request(settings, init, FIT_STEPS), rng)

    def held_out(self, settings: Settings, init: DecoupledModel, k: int) -> HeldOut:
        """Fit the samples that are not of fold k, from a model, and predict those that are."""
        began = time.perf_counter()
        test = self.fold == k
        fit = fit_alone(self.problem.take(~test), self._request(settings, init, FOLD_STEPS))
        squares = self.scale.squares(self.problem, fit.model, np.flatnonzero(test))
        return HeldOut(squares, inside(fit.model, self.problem.X[test]), time.perf_counter() - began)

    @cached_property
    def scale(self) -> Scale:
        """The units that held-out errors are measured in."""
        return Scale.of(self.problem)

    def _request(self, settings: Settings, init: DecoupledModel | None, steps: int) -> Request:
        """What a quick fit of so many steps asks for."""
        return replace(settings.request(self.asked, quick(self.asked.method_used, steps)), init=init)


def fit_alone(problem: Problem, request: Request, rng: np.random.Generator | None = None) -> Fit:
    """A fit by itself, without its samples: it may come from another process."""
    check_fit(problem, request)
    with Session.open(NOTHING_KEPT, rng) as session:
        return fit_rank(problem, request, session, expected=False).without_problem()


def quick(method: Method, steps: int) -> Method:
    """The method with fewer Gauss–Newton steps, for fewer starts; one without them stays as it is."""
    if method.polish is None:
        return method
    polish = method.polish
    stopping = replace(
        polish.stopping,
        max_sweeps=min(polish.stopping.max_sweeps, steps),
        tolerance=max(polish.stopping.tolerance, TOLERANCE),
    )
    return replace(method, polish=replace(polish, stopping=stopping, candidates=min(polish.candidates, POLISHED)))


@dataclass(frozen=True)
class Scale:
    """What errors are divided by: slopes (n, m) to make Jacobians comparable, spread (n,) for values."""

    slopes: Array
    spread: Array

    @classmethod
    def of(cls, problem: Problem) -> Scale:
        """Balanced slopes and the spread of the values of all samples of a problem."""
        units = Units.balanced(problem)
        slopes = units.f_scale[:, None] / units.x_scale
        if problem.F is None:
            return cls(slopes, np.ones(problem.n))
        size = np.abs(np.where(np.isnan(problem.F), 0.0, problem.F)).max(axis=0)
        return cls(slopes, positive(spreads(problem.F, problem.weights), otherwise=1.0, noise=size))

    def squares(self, problem: Problem, model: DecoupledModel, which: IndexArray) -> Array:
        """The squared error of some of the samples: its mean is 0 where all is explained, about 1 where nothing is.

        It is the mean of the errors of the Jacobian and of the values, each over the entries that are known.
        """
        total, parts = np.zeros(len(which)), np.zeros(len(which))
        for part in blocks(len(which), problem.n * problem.m):
            some = which[part]
            X = problem.X[some]
            for given, predicted, unit in (
                (problem.J, model.jacobian, self.slopes),
                (problem.F, model, self.spread),
            ):
                if given is not None:
                    off = ((given[some] - predicted(X)) / unit).reshape(len(some), -1)
                    known = ~np.isnan(off)
                    count = known.sum(axis=1)
                    total[part] += np.sum(np.where(known, off, 0.0) ** 2, axis=1) / np.maximum(count, 1)
                    parts[part] += count > 0
        return total / np.maximum(parts, 1.0)


def inside(model: DecoupledModel, X: Array) -> BoolArray:
    """Whether each point lies in the range that every branch has seen in training: (S,)."""
    u = X @ model.W0.T
    low, high = np.array([branch.domain for branch in model.branches]).T
    return np.asarray(np.all((u >= low) & (u <= high), axis=1))
