"""Uncertainty by a bootstrap: fits to data that are drawn anew around a fit, each begun at it.

What the fit leaves of each sample, made larger by what the fit has followed of it, is given to other samples at random,
all numbers of a sample together; gaps stay gaps. No theory of first order is needed: constraints, penalties and
choices of smoothing are made again in every fit. The ranks and the order of branches are those of the fit.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from unbraid.data.problem import Problem
from unbraid.errors import SettingError, check_whole
from unbraid.fitting.fit_rank import fit_rank
from unbraid.fitting.opening import RunSettings
from unbraid.fitting.request import Request
from unbraid.fitting.session import Session, session_elsewhere
from unbraid.inference.linearised import LinearisedUncertainty
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.results.fit import Fit
from unbraid.results.model import DecoupledModel
from unbraid.results.worth.uncertainty import Drawing, Uncertainty
from unbraid.runtime.interrupts import attempt
from unbraid.runtime.process import single_blas_thread
from unbraid.runtime.progress import Progress
from unbraid.runtime.workers import Shared, do_here

FEWEST = 10
"""Fits from which on a standard deviation is one."""


@dataclass(frozen=True, repr=False, eq=False)
class BootstrapUncertainty(Uncertainty):
    """Uncertainty of a fit from other fits to data drawn around it, `models`."""

    models: tuple[DecoupledModel, ...]
    scale: Array

    @property
    def method(self) -> str:
        """Bootstrap, of how many fits."""
        return f"bootstrap of {len(self.models)} fits"

    def _value_std(self, X: Array) -> Array:
        return spread([model(X) for model in self.models])

    def _slope_std(self, X: Array) -> Array:
        return spread([model.jacobian(X) for model in self.models])

    def _curve_std(self, j: int, u: Array, derivative: int) -> Array:
        if not self.model.W1[:, j].any():
            return np.full(len(u), np.nan)
        curves = []
        for model, sign in zip(self.models, self._signs[:, j], strict=True):
            branch = model.branches[j]
            curves.append(sign * branch.derivative(sign * u) if derivative else branch(sign * u))
        return spread(curves)

    @cached_property
    def _signs(self) -> Array:
        """1 or -1 (fits, r): which way the directions of the fits point beside the model's."""
        dots = np.array([np.sum(model.W0 * self.model.W0, axis=1) for model in self.models])
        return np.where(dots < 0.0, -1.0, 1.0)

    @cached_property
    def W0(self) -> Array:
        """Standard errors of the entries of W0, (r, m)."""
        return spread([model.W0 * sign[:, None] for model, sign in zip(self.models, self._signs, strict=True)])

    @cached_property
    def W1(self) -> Array:
        """Standard errors of the entries of W1, (n, r)."""
        return spread([model.W1 for model in self.models])

    @cached_property
    def bias(self) -> Array:
        """Standard errors of the bias, (n,)."""
        return spread([model.bias for model in self.models])

    @cached_property
    def angles(self) -> Array:
        """Standard errors of the directions, (r,), in degrees, inputs in units of their spread."""

        def directions(model: DecoupledModel) -> Array:
            V = model.W0 * self.scale
            return np.asarray(V / np.maximum(np.linalg.norm(V, axis=1, keepdims=True), np.finfo(float).tiny))

        own = directions(self.model)
        cosines = np.array([np.abs(np.sum(directions(model) * own, axis=1)) for model in self.models])
        turned = np.arccos(np.clip(cosines, 0.0, 1.0))
        result = np.rad2deg(np.sqrt(np.mean(turned**2, axis=0)))
        return np.where(self.model.W1.any(axis=0), result, np.nan)


def spread(draws: Sequence[Array]) -> Array:
    """The standard deviation of draws."""
    return np.asarray(np.std(np.stack(draws), axis=0, ddof=1))


class DrawnFrom(NamedTuple):
    """What fits to data drawn anew are made from: the model at the samples, residuals (S, q), and the request."""

    problem: Problem
    F: Array | None
    J: Array | None
    residual: Array
    request: Request


def bootstrap_uncertainty(fit: Fit, linear: LinearisedUncertainty, drawing: Drawing) -> BootstrapUncertainty:
    """The uncertainty of a fit by a bootstrap; Ctrl-C leaves that of the fits there are, of `FEWEST` at least."""
    check_whole("draws", drawing.draws, FEWEST)
    around = around_fit(fit, linear)
    running = RunSettings(drawing.rng, drawing.jobs, None, drawing.callback)
    with running.open(around.problem, around.request, {}) as session:
        seeds = [int(seed) for seed in session.rng.integers(2**62, size=drawing.draws)]
        models = draw_models(around, seeds, session)
    return BootstrapUncertainty(
        fit.model,
        linear.noise,
        linear.slope_noise,
        linear.freedom,
        linear.left,
        linear.doubt,
        tuple(models),
        linear.x_scale,
    )


def around_fit(fit: Fit, linear: LinearisedUncertainty) -> DrawnFrom:
    """What data are drawn from: residuals are made larger by what the fit has followed of them."""
    problem = linear.around.problem
    if linear.around.standing_for > 1.0 or not problem.in_memory:
        raise SettingError(
            f"A bootstrap takes at most {problem.S:,} samples, in memory: use method='linearised' for more of them."
        )
    asked = fit.asked or Request(rank=fit.model.rank, basis=fit.basis, constraint=list(fit.constraints))
    request = replace(asked, rank=fit.model.rank, init=fit.model, loss="squared", compress=None)
    residual = linear.around.residuals()
    weights = np.ones(problem.S) if problem.weights is None else problem.weights / problem.weights.mean()
    share = linear.left / max(linear.left + linear.freedom, 1.0)
    residual = (residual - np.nanmean(residual, axis=0)) * np.sqrt(weights)[:, None] / np.sqrt(max(share, 0.05))
    sizes = np.sqrt(np.nanmean(residual**2, axis=0))
    gaps = np.random.default_rng(0).standard_normal(residual.shape) * sizes
    F = None if problem.F is None else fit.model(problem.X)
    J = None if problem.J is None else fit.model.jacobian(problem.X)
    return DrawnFrom(problem, F, J, np.where(np.isnan(residual), gaps, residual), request)


def draw_models(around: DrawnFrom, seeds: Sequence[int], session: Session) -> list[DecoupledModel]:
    """The models of fits to data drawn with seeds, by helpers where there are any."""
    pieces = [(seed,) for seed in seeds]
    results: dict[int, DecoupledModel] = {}

    def told(found: dict[int, DecoupledModel]) -> Progress:
        return Progress("bootstrap", len(found), len(seeds))

    def one_by_one() -> dict[int, DecoupledModel]:
        for k, piece in enumerate(pieces):
            results[k] = do_here(fit_drawn, piece, Shared(around))
            session.tell(partial(told, results))
        return results

    if session.workers is None:
        found = attempt(one_by_one, lambda: results if len(results) >= FEWEST else None)
    else:
        found = session.map_until_interrupted(fit_drawn, pieces, Shared(around), told)
        if len(found) < FEWEST:
            raise KeyboardInterrupt
    return [found[k] for k in sorted(found)]


def fit_drawn(around: DrawnFrom, seed: int) -> DecoupledModel:
    """The model of a fit to data that are drawn with a seed, wherever there is a worker."""
    with single_blas_thread():
        rng = np.random.default_rng(seed)
        problem = around.problem
        drawn = drawn_problem(around, rng.integers(0, problem.S, problem.S))
        session = replace(session_elsewhere(time.time()), rng=rng, callback=None)
        return fit_rank(drawn, around.request, session, fewer=False, expected=False).model


def drawn_problem(around: DrawnFrom, which: IndexArray) -> Problem:
    """The samples with the residuals of others, `which` (S,), on the values and slopes of the model."""
    problem, n = around.problem, around.problem.n
    weights = np.ones(problem.S) if problem.weights is None else problem.weights / problem.weights.mean()
    noise = around.residual[which] / np.sqrt(np.maximum(weights, np.finfo(float).tiny))[:, None]
    F = J = None
    if problem.F is not None and around.F is not None:
        F = np.where(np.isnan(problem.F), np.nan, around.F + noise[:, :n])
    if problem.J is not None and around.J is not None:
        J = np.where(np.isnan(problem.J), np.nan, around.J + noise[:, -n * problem.m :].reshape(problem.J.shape))
    return Problem(problem.X, F, J, problem.weights, missing="error" if problem.complete else "mask")
