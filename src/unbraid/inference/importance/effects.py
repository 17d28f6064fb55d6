r"""What each input does by itself: E[f | x_k = t] - E[f], from the model's form, without random points.

With inputs independent, u_j = w_jk t + ρ, and ρ = Σ_{l≠k} w_jl x_l has a density that is a convolution of the inputs'
own, so that

    E[g_j(u_j) | x_k = t] = ∫ g_j(w_jk t + ρ) p_jk(ρ) dρ.

Densities are put on a grid over all values that u_j can have, each point shared between its two neighbours, and
convolved by Fourier transforms.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from unbraid.inference.importance.marginals import Marginals
from unbraid.kernels.arrays import Array
from unbraid.results.branch import Branch
from unbraid.results.model import DecoupledModel

GRID = 4096
"""Points of the grid over the input of a branch."""


def own_effects(model: DecoupledModel, marginals: Marginals) -> Array:
    """The effect (n, m, Q) of each input by itself at its quantiles, less its mean."""
    result = np.zeros((model.n, model.m, len(marginals.quantiles)))
    for j in np.flatnonzero(np.any(model.W1 != 0.0, axis=0)):
        looks = np.flatnonzero(model.W0[j] != 0.0)
        curves = branch_effects(model.branches[j], model.W0[j, looks] * marginals.quantiles[:, looks])
        result[:, looks] += model.W1[:, j, None, None] * curves
    return np.asarray(result - average(result)[..., None])


def branch_effects(branch: Branch, terms: Array) -> Array:
    """E[g(u) | one of the terms] (d, Q) for a sum u of independent terms whose quantiles are (Q, d)."""
    low, high = terms.min(axis=0), terms.max(axis=0)
    step = float(np.sum(high - low)) / (GRID - 2)
    if not step > 0.0:
        return np.zeros(terms.shape[::-1])
    g = branch(float(low.sum()) + step * np.arange(GRID))
    places = (terms - low) / step  # (Q, d)
    spectra = np.fft.rfft([density(one) for one in places.T], axis=1)  # (d, GRID / 2 + 1)
    others = products_of_others(spectra)
    curves = np.fft.irfft(np.conj(others) * np.fft.rfft(g), GRID, axis=1)
    return np.stack([np.interp(one, np.arange(GRID), curve) for one, curve in zip(places.T, curves, strict=True)])


def density(places: Array) -> Array:
    """Probabilities (GRID,) of the points of a grid, for a distribution with quantiles at places (Q,) on it."""
    weights = np.ones(len(places))
    weights[[0, -1]] = 0.5
    lower = np.minimum(places.astype(int), GRID - 2)
    share = places - lower
    result = np.bincount(lower, weights * (1.0 - share), GRID) + np.bincount(lower + 1, weights * share, GRID)
    return np.asarray(result / weights.sum())


def products_of_others(spectra: npt.NDArray[np.complex128]) -> npt.NDArray[np.complex128]:
    """Of every row (d, ·) the product of all others."""
    before, after = np.ones_like(spectra), np.ones_like(spectra)
    before[1:] = np.cumprod(spectra[:-1], axis=0)
    after[:-1] = np.cumprod(spectra[:0:-1], axis=0)[::-1]
    return before * after


def average(curves: Array) -> Array:
    """Means (...) over probabilities of curves (..., Q) at quantiles that are spread evenly."""
    weights = np.ones(curves.shape[-1])
    weights[[0, -1]] = 0.5
    return np.asarray(curves @ weights / weights.sum())
