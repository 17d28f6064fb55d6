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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from unbraid.arrays import Array, BoolArray, IndexArray, blocks
from unbraid.bases import Basis
from unbraid.constraints import Constraint
from unbraid.coupling import Coupling
from unbraid.decouple import decouple, unknowns
from unbraid.fit import Fit
from unbraid.methods import Method
from unbraid.model import DecoupledModel
from unbraid.problem import Problem
from unbraid.status import Status
from unbraid.tasks import Workers
from unbraid.units import Units, positive

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

    @cached_property
    def errors(self) -> Array:
        """The held-out error of each fold."""
        return fold_means(self.squares, self.inside, self.fold)

    @property
    def error(self) -> float:
        """The mean over the folds."""
        return float(self.errors.mean())

    @property
    def standard_error(self) -> float:
        """Of the mean over the folds."""
        return standard_error(self.errors)


def fold_means(squares: Array, counts: BoolArray, fold: IndexArray) -> Array:
    """The mean of each fold over the samples that count, or over all of them where none does."""
    means = []
    for k in range(fold.max() + 1):
        here = fold == k
        some = here & counts
        means.append(squares[some if some.any() else here].mean())
    return np.array(means)


def standard_error(numbers: Array) -> float:
    """Of the mean of numbers."""
    return float(np.std(numbers, ddof=1) / np.sqrt(len(numbers)))


@dataclass(frozen=True)
class Validation:
    """What all candidates share: samples, constraint, method, and who is held out when."""

    problem: Problem
    constraint: Constraint | Sequence[Constraint | None] | None
    method: Method
    starts: int
    fold: IndexArray
    seed: int

    @property
    def folds(self) -> int:
        """How many."""
        return int(self.fold.max()) + 1

    @property
    def least_training(self) -> int:
        """How many samples there are at least when a fold is held out."""
        return self.problem.S - int(np.bincount(self.fold).max())

    def rows(
        self,
        several: Sequence[Settings],
        workers: Workers,
        tick: Callable[[], object],
        init: DecoupledModel | None = None,
    ) -> list[Row]:
        """Candidates with their errors; `tick` is called after every fit. `init` takes the place of random starts."""
        fits = workers.map(self.fit, [(one, init) for one in several], tick)
        pairs = [(one, fit.model) for one, fit in zip(several, fits, strict=True)]
        parts = workers.map(self.held_out, [(*pair, k) for pair in pairs for k in range(self.folds)], tick)
        shares = [parts[i * self.folds : (i + 1) * self.folds] for i in range(len(several))]
        return [self.row(*one) for one in zip(several, fits, shares, strict=True)]

    def row(self, settings: Settings, fit: Fit, parts: Sequence[HeldOut]) -> Row:
        """A candidate from its fit to all samples and its folds."""
        squares, inside = np.empty(self.problem.S), np.empty(self.problem.S, dtype=bool)
        for k, part in enumerate(parts):
            squares[self.fold == k], inside[self.fold == k] = part.squares, part.inside
        seconds = fit.seconds + sum(part.seconds for part in parts)
        count = unknowns(self.problem, settings.rank, settings.basis)
        return Row(settings, count, seconds, fit, self.fold, squares, inside)

    def fit(self, settings: Settings, init: DecoupledModel | None = None) -> Fit:
        """A quick fit to all samples, from random starts or from a model."""
        rng = np.random.default_rng([self.seed, settings.rank])
        return self._decoupled(self.problem, settings, init, FIT_STEPS, rng)

    def held_out(self, settings: Settings, init: DecoupledModel, k: int) -> HeldOut:
        """Fit the samples that are not of fold k, from a model, and predict those that are."""
        began = time.perf_counter()
        test = self.fold == k
        fit = self._decoupled(self.problem.take(~test), settings, init, FOLD_STEPS, None)
        held = self.problem.take(test)
        return HeldOut(self.scale.squares(held, fit.model), inside(fit.model, held.X), time.perf_counter() - began)

    @cached_property
    def scale(self) -> Scale:
        """What errors are measured in."""
        return Scale.of(self.problem)

    def _decoupled(
        self,
        problem: Problem,
        settings: Settings,
        init: DecoupledModel | None,
        steps: int,
        rng: np.random.Generator | None,
    ) -> Fit:
        fit = decouple(
            problem,
            settings.rank,
            basis=settings.basis,
            constraint=self.constraint,
            method=quick(replace(self.method, coupling=settings.coupling), steps),
            starts=self.starts,
            init=init,
            rng=rng,
        )
        if fit.status is Status.INTERRUPTED:  # Ctrl-C ended this fit: it is meant for all of them
            raise KeyboardInterrupt
        return fit.without_problem()  # it may come from another process


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
        """From all samples."""
        units = Units.balanced(problem)
        slopes = units.f_scale[:, None] / units.x_scale
        F = np.zeros((1, problem.n)) if problem.F is None else problem.F
        return cls(slopes, positive(np.std(F, axis=0), otherwise=1.0, noise=np.abs(F.mean(axis=0))))

    def squares(self, problem: Problem, model: DecoupledModel) -> Array:
        """The squared error of every sample, (S,): its mean is 0 where all is explained, about 1 where nothing is."""
        total = np.zeros(problem.S)
        if problem.J is not None:
            for some in blocks(problem.S, problem.n * problem.m):
                off = (problem.J[some] - model.jacobian(problem.X[some])) / self.slopes
                total[some] += np.mean(off * off, axis=(1, 2))
        if problem.F is not None:
            off = (problem.F - model(problem.X)) / self.spread
            total += np.mean(off * off, axis=1)
        return total / sum(given is not None for given in (problem.F, problem.J))


def inside(model: DecoupledModel, X: Array) -> BoolArray:
    """Whether each point lies in the range that every branch has seen in training: (S,)."""
    u = X @ model.W0.T
    low, high = np.array([branch.domain for branch in model.branches]).T
    return np.asarray(np.all((u >= low) & (u <= high), axis=1))
