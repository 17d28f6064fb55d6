r"""Residuals looked at closely: whether they are noise, and which samples the model hangs on.

With A_s the rows of sample s, ρ_s what is left of it and V as in `inference.neighbourhood`, H_s = A_s V⁻¹ A_sᵀ is how
much of itself a sample determines. Its diagonal h makes residuals comparable, ρ / (σ_k √(1 - h)) with σ_k² the variance
of their kind, and the model without the sample moves by θ_s = -V⁻¹ A_sᵀ (1 - H_s)⁻¹ ρ_s, so that with p degrees of
freedom in use Cook's distance [1]_ is

    D_s = ‖A θ_s‖² / (p σ²) = θ_sᵀ (V - P) θ_s / (p σ²).

Whether residuals follow a normal distribution is told by the squared correlation of the ordered ones with normal
quantiles, W' of Shapiro and Francia, whose logarithm of 1 - W' is about normal where they do [2]_.

References
----------
.. [1] R. D. Cook, "Detection of influential observation in linear regression", Technometrics 19 (1977).
.. [2] P. Royston, "A pocket-calculator algorithm for the Shapiro–Francia test for non-normality", Stat. Med. 12 (1993).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unbraid.inference.linearised import kinds_of, noise_of
from unbraid.inference.neighbourhood import Neighbourhood
from unbraid.inference.patterns import Pattern, find_pattern, standardised
from unbraid.kernels.arrays import Array, IndexArray, spread_out

WORK = 1e9
"""Multiplications that are spent on leverages; where all samples take more, some are looked at, spread evenly."""
FEWEST, MOST_ORDERED = 8, 5000
"""Numbers from which on a distribution can be told, and how many the approximation of W' holds for."""


@dataclass(frozen=True, eq=False)
class ResidualDiagnostics:
    """What the residuals of a fit show; numbers of a sample are first its n values, then its n·m slopes.

    Attributes
    ----------
    samples
        (S,), which of the neighbourhood's samples were looked at, in order.
    residuals
        (S, q), what is left of them over its standard deviation, that of the noise less what the sample itself has
        drawn the model towards it; NaN where nothing is known.
    leverages
        (S,), between 0 and 1: how much of its numbers each sample determines by itself, on average over them.
    cook
        (S,), Cook's distances: by how much the model moves without the sample, at all samples, in units of the noise.
    lag_one, lag_one_z
        (q,), the correlation of residuals with those of the next sample, in the order given, and the same in standard
        deviations of what noise shows.
    runs_z
        (q,), how many fewer runs of one sign there are than noise has, in standard deviations.
    normality, normality_z
        (q,), W' of Shapiro and Francia, one for a normal distribution, and how far it is from that, in standard
        deviations.
    pattern
        What order of the samples shows that residuals are no noise, if any does.
    """

    samples: IndexArray
    residuals: Array
    leverages: Array
    cook: Array
    lag_one: Array
    lag_one_z: Array
    runs_z: Array
    normality: Array
    normality_z: Array
    pattern: Pattern


def diagnose_residuals(around: Neighbourhood) -> ResidualDiagnostics:
    """Look closely at what a fit leaves of its samples."""
    some = samples_to_diagnose(around)
    e, leverages, cook = influences(around, some)
    every = around.residuals()
    W, normality_z = normalities(e)
    return ResidualDiagnostics(
        some, e, leverages, cook, *lag_one(every), runs(every), W, normality_z, find_pattern(around)
    )


def samples_to_diagnose(around: Neighbourhood) -> IndexArray:
    """All samples, or as many, spread evenly, as the work allows."""
    S, U, q = around.problem.S, max(around.tangent.size, 1), around.numbers
    most = int(max(FEWEST, WORK / (q * U**2 + 10.0 * q**3)))
    return np.arange(S) if most >= S else np.sort(spread_out(S, most))


def influences(around: Neighbourhood, some: IndexArray) -> tuple[Array, Array, Array]:
    """Standardised residuals (S, q), leverages (S,) and Cook's distances (S,) of some samples."""
    q = around.numbers
    found = noise_of(around, some)
    sizes = np.sqrt(found.variances)[kinds_of(around)]
    e, leverages, cook = np.zeros((len(some), q)), np.zeros(len(some)), np.zeros(len(some))
    done = 0
    for block in around.in_blocks(some):
        A, residual, shares, vectors, grown = around.omit(block)
        known = ~np.isnan(around.residuals(block))
        h = np.sum(vectors**2 * shares[:, None], axis=-1)
        parts = (vectors.mT @ grown[..., None])[..., 0]  # along the eigenvectors of H
        theta = around.solved((A.mT @ grown[..., None])[..., 0].T)  # (U, S)
        moved = np.sum(parts**2 * shares, axis=1) - np.einsum("us,us->s", theta, around.penalty @ theta)
        here = slice(done, done := done + len(block))
        with np.errstate(all="ignore"):
            e[here] = np.where(known, residual / (sizes * np.sqrt(1.0 - h)), np.nan)
            leverages[here] = np.sum(h * known, axis=1) / np.maximum(known.sum(axis=1), 1)
            cook[here] = np.maximum(moved, 0.0) / (max(float(around.freedom.sum()), 1.0) * found.pooled)
    return e, leverages, cook


def lag_one(residual: Array) -> tuple[Array, Array]:
    """The correlation (q,) of residuals (S, q) with those of the next sample, and its z."""
    e = standardised(residual)
    both = np.maximum(np.sum((e[1:] != 0.0) & (e[:-1] != 0.0), axis=0), 1)
    correlation = np.sum(e[1:] * e[:-1], axis=0) / both
    return correlation, correlation * np.sqrt(both)


def runs(residual: Array) -> Array:
    """How many fewer runs of one sign residuals (S, q) have, in their order, than noise has: z (q,)."""
    z = np.zeros(residual.shape[1])
    for k, column in enumerate(standardised(residual).T):
        above = column[column != 0.0] > 0.0
        S, more = len(above), np.count_nonzero(above)
        mean = 2.0 * more * (S - more) / max(S, 1) + 1.0
        variance = (mean - 1.0) * (mean - 2.0) / max(S - 1, 1)
        if variance > 0.0:
            z[k] = (mean - 1.0 - np.count_nonzero(above[1:] != above[:-1])) / np.sqrt(variance)
    return z


def normalities(e: Array) -> tuple[Array, Array]:
    """W' (q,) of residuals (S, q), and its z."""
    W, z = np.ones(e.shape[1]), np.zeros(e.shape[1])
    for k, column in enumerate(e.T):
        known = np.sort(column[np.isfinite(column)])
        if len(known) > MOST_ORDERED:
            known = known[np.linspace(0, len(known) - 1, MOST_ORDERED).round().astype(int)]
        if len(known) < FEWEST or not np.ptp(known) > 0.0:
            continue
        W[k] = np.corrcoef(known, normal_quantiles(len(known)))[0, 1] ** 2
        log = np.log(len(known))
        mean, spread = -1.2725 + 1.0521 * (np.log(log) - log), 1.0308 - 0.26758 * (np.log(log) + 2.0 / log)
        z[k] = (np.log(max(1.0 - W[k], np.finfo(float).tiny)) - mean) / spread
    return W, z


def normal_quantiles(count: int) -> Array:
    """Where so many ordered numbers of a normal distribution are expected, by Blom: (count,)."""
    from scipy.special import ndtri

    return np.asarray(ndtri((np.arange(1, count + 1) - 0.375) / (count + 0.25)))
