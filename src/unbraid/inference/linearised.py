r"""Uncertainty from the fit to first order.

The unknowns θ have the covariance

    V⁻¹ (Σ_k σ_k² A_kᵀ A_k + σ² P) V⁻¹,

the sum being over the kinds k of numbers (values of an output, slopes of an output), each with the variance σ_k² that
its own residuals show, and σ² that of all together. Where these are all the same it is σ² V⁻¹, and with penalties the
Bayesian covariance, whose bands cover the truth as often as they say on average over a branch [1]_ [2]_.

References
----------
.. [1] D. Nychka, "Bayesian confidence intervals for smoothing splines", J. Am. Stat. Assoc. 83 (1988).
.. [2] G. Marra, S. N. Wood, "Coverage properties of confidence intervals for generalized additive model components",
   Scand. J. Stat. 39 (2012).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from unbraid.errors import DataError
from unbraid.inference.gauge import Gauged
from unbraid.inference.neighbourhood import ROW_ENTRIES, Neighbourhood
from unbraid.inference.patterns import describe_pattern
from unbraid.inference.tangent import Tangent
from unbraid.kernels.arrays import Array, IndexArray, spread_out
from unbraid.results.worth.held_out import tells_noise
from unbraid.results.worth.uncertainty import Uncertainty

WORK = 2e11
"""Multiplications that are spent on the variances of kinds of numbers; where all samples take more, some do."""
LEAST_LEFT = 0.05
"""Share of the numbers of a kind that count as left over at least."""


@dataclass(frozen=True)
class Noise:
    """What residuals show: variances (kinds,) of weighted residuals, that of all together, and freedom (kinds,)."""

    variances: Array
    pooled: float
    freedom: Array
    numbers: Array


@dataclass(frozen=True, repr=False, eq=False)
class LinearisedUncertainty(Uncertainty):
    """Uncertainty of a fit to first order in its unknowns, the covariance (U, U) of which is known.

    `x_scale` (m,) are the spreads of the inputs, and `kept` has the samples, where these are still there.
    """

    gauged: Gauged
    covariance: Array
    x_scale: Array
    kept: Neighbourhood | None

    @property
    def around(self) -> Neighbourhood:
        """The fit and its samples; refused where these were dropped."""
        if self.kept is None:
            raise DataError("The samples were dropped: ask the fit that remembers them for its uncertainty.")
        return self.kept

    @property
    def tangent(self) -> Tangent:
        """The model and its unknowns."""
        return self.gauged.tangent

    def without_samples(self) -> LinearisedUncertainty:
        """The same without the samples, for where they are too large to keep."""
        return replace(self, kept=None)

    @property
    def method(self) -> str:
        """Linearised."""
        return "linearised"

    def _std(self, rows: Array) -> Array:
        """Standard deviations (...) of rows (..., U) of θ."""
        flat = rows.reshape(-1, rows.shape[-1])
        variance = np.einsum("ru,ru->r", flat @ self.covariance, flat)
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)).reshape(rows.shape[:-1]))

    def _value_std(self, X: Array) -> Array:
        if self.noise is None:
            return np.full((len(X), self.model.n), np.nan)
        return self._in_blocks(X, self.model.n, lambda some: self._std(self.tangent.values(some)))

    def _slope_std(self, X: Array) -> Array:
        n, m = self.model.n, self.model.m
        return self._in_blocks(X, n * m, lambda some: self._std(self.tangent.slopes(some))).reshape(-1, n, m)

    def _in_blocks(self, X: Array, entries: int, work: Callable[[Array], Array]) -> Array:
        """Work at points X, as many at a time as rows of so many entries leave room for."""
        size = max(1, ROW_ENTRIES // (entries * max(self.tangent.size, 1)))
        parts = [work(X[first : first + size]) for first in range(0, len(X), size)]
        return np.concatenate(parts) if parts else np.zeros((0, entries))

    def _curve_std(self, j: int, u: Array, derivative: int) -> Array:
        places = {one.branch: k for k, one in enumerate(self.tangent.moves)}
        if j not in places:
            return np.full(len(u), np.nan)
        return self._std(self.gauged.curve(places[j], u, derivative))

    @property
    def W0(self) -> Array:
        """Standard errors of the entries of W0, (r, m)."""
        return self._std(self.gauged.W0)

    @property
    def W1(self) -> Array:
        """Standard errors of the entries of W1, (n, r)."""
        return self._std(self.gauged.W1)

    @property
    def bias(self) -> Array:
        """Standard errors of the bias, (n,)."""
        return self._std(self.gauged.bias)

    @cached_property
    def angles(self) -> Array:
        """Standard errors of the directions, (r,), in degrees, inputs in units of their spread."""
        tangent, scale = self.tangent, self.x_scale
        result = np.full(self.model.rank, np.nan)
        for k, one in enumerate(tangent.moves):
            own = tangent.parts(k)[1]
            length = np.linalg.norm(self.model.W0[one.branch] * scale)
            turn = one.inner * scale[:, None] / length
            spread = np.trace(turn @ self.covariance[own, own] @ turn.T)
            result[one.branch] = np.rad2deg(np.sqrt(max(float(spread), 0.0)))
        return result

    def draws(self, count: int, rng: np.random.Generator) -> Array:
        """Draws (count, U) of θ."""
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return np.asarray(rng.standard_normal((count, len(root))) @ root.T)


@np.errstate(all="ignore")  # what is not finite is told as it is
def linearised_uncertainty(around: Neighbourhood, work: float = WORK) -> LinearisedUncertainty:
    """The uncertainty of a fit, to first order; where it would take more work, from some of the samples."""
    problem, units = around.problem, around.objective.units
    some = samples_to_look_at(around, work)
    found = noise_of(around, some)
    sizes = np.sqrt(found.variances)
    n = problem.n
    values = None if problem.F is None else sizes[:n] * units.f_scale / np.sqrt(around.objective.coupling)
    slopes = None
    if problem.J is not None:
        slopes = sizes[-n:, None] * (units.f_scale[:, None] / units.x_scale)
    return LinearisedUncertainty(
        around.tangent.model,
        values,
        slopes,
        float(around.freedom.sum()),
        float(found.numbers.sum() - around.freedom.sum()),
        describe_few(found, float(around.freedom.sum())) or describe_pattern(around),
        Gauged.of(around.tangent, problem.X, np.ones(problem.S) if problem.weights is None else problem.weights),
        covariance_of(around, some, found),
        units.x_scale,
        around,
    )


def describe_few(found: Noise, freedom: float) -> str | None:
    """Why intervals would mean little, where hardly a number is left over to tell noise from; else None."""
    total = float(found.numbers.sum())
    if tells_noise(total, freedom):
        return None
    return (
        f"The fit uses {freedom:.0f} degrees of freedom of {total:.0f} numbers, so that hardly any are left over to "
        "tell noise from: intervals are too narrow, by nobody knows how much. More samples or fewer branches help."
    )


def samples_to_look_at(around: Neighbourhood, work: float = WORK) -> IndexArray:
    """All samples, or as many, spread evenly, as the work allows."""
    S = around.problem.S
    most = int(max(8, work / (around.numbers * max(around.tangent.size, 1) ** 2)))
    return np.arange(S) if most >= S else np.sort(spread_out(S, most))


def kinds_of(around: Neighbourhood) -> IndexArray:
    """The kind (q,) of each number of a sample: values of the outputs, then slopes of the outputs."""
    n, m, kinds = around.problem.n, around.problem.m, []
    if around.problem.F is not None:
        kinds.append(np.arange(n))
    if around.problem.J is not None:
        kinds.append(np.repeat(np.arange(n), m) + (n if kinds else 0))
    return np.concatenate(kinds)


def noise_of(around: Neighbourhood, some: IndexArray) -> Noise:
    """The variances of weighted residuals, each kind's by the numbers of it that are left over."""
    kinds, U = kinds_of(around), around.tangent.size
    total, freedom, numbers = (np.zeros(kinds.max() + 1) for _ in range(3))
    for block in around.in_blocks(some):
        A, residual = around.rows(block)
        used = np.sum(around.whitened(A.reshape(-1, U)) ** 2, axis=0).reshape(residual.shape)
        known = np.any(A != 0.0, axis=-1) if around.tangent.size else residual != 0.0
        for into, what in ((total, residual**2), (freedom, used), (numbers, known)):
            np.add.at(into, kinds, what.sum(axis=0))
    each = around.standing_for * around.problem.S / len(some)
    left = np.maximum(numbers - freedom, LEAST_LEFT * np.maximum(numbers, 1.0))
    pooled = float(total.sum() / max(float(numbers.sum() - freedom.sum()), LEAST_LEFT * float(numbers.sum())))
    return Noise(total / left, pooled, freedom * each, numbers * each)


def covariance_of(around: Neighbourhood, some: IndexArray, found: Noise) -> Array:
    """V⁻¹ (Σ_k σ_k² A_kᵀ A_k + σ² P) V⁻¹, (U, U)."""
    kinds, U = kinds_of(around), around.tangent.size
    inverse = around.solved(np.eye(U))
    if np.ptp(found.variances) <= 1e-9 * found.pooled:
        return np.asarray(found.pooled * 0.5 * (inverse + inverse.T))
    middle, sizes = found.pooled * around.penalty, np.sqrt(found.variances)[kinds]
    for block in around.in_blocks(some):
        A = (around.rows(block).A * sizes[:, None]).reshape(-1, U)
        middle += around.standing_for * (around.problem.S / len(some)) * (A.T @ A)
    result = inverse @ middle @ inverse
    return np.asarray(0.5 * (result + result.T))
