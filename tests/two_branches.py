"""Small noisy problems of two branches, and quick fits of them in every basis, for tests of what a fit is worth."""

from __future__ import annotations

from typing import Any

import numpy as np

import unbraid as ub
from unbraid.inference.neighbourhood import Neighbourhood, neighbourhood_of
from unbraid.results.fit import Fit

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "B-spline": {"basis": ub.BSpline(8)},
    "of the slope": {"basis": ub.BSpline(8, of="slope")},
    "natural": {"basis": ub.NaturalCubic(6)},
    "polynomial": {"basis": ub.Polynomial(4)},
    "smoothing": {"basis": ub.SmoothingSpline(16, degree=4)},
    "increasing": {"basis": ub.BSpline(8), "constraint": ub.Increasing()},
    "convex": {"basis": ub.BSpline(8), "constraint": [ub.Convex(), None]},
}


def samples(kind: str, weights: bool = False, gaps: bool = False) -> ub.Problem:
    """Noisy samples of two branches, of which one increases and one is convex."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.0, 1.0, (60, 3)) * [1.0, 10.0, 0.1] + [0.0, 50.0, 3.0]
    W0 = np.array([[1.0, 0.1, 2.0], [-0.5, 0.05, 9.0]])
    u = (X - [0.0, 50.0, 3.0]) @ W0.T
    W1 = np.array([[1.0, 0.5], [-2.0, 1.5]])
    values, slopes = (
        np.stack([np.tanh(u[:, 0]), u[:, 1] ** 2], 1),
        np.stack([1 - np.tanh(u[:, 0]) ** 2, 2 * u[:, 1]], 1),
    )
    F = values @ W1.T + 0.02 * rng.standard_normal((60, 2)) + [3.0, -20.0]
    J = (W1 * slopes[:, None, :]) @ W0
    J = J + 0.02 * np.abs(J).mean(axis=(0, 1)) * rng.standard_normal(J.shape)
    if gaps:
        F[5, 1], J[7, 0, 2], J[8] = np.nan, np.nan, np.nan
    some = {"both": (F, J), "values": (F, None), "slopes": (None, J)}[kind]
    own = rng.uniform(0.5, 2.0, 60) if weights else None
    return ub.Problem(X, *some, weights=own, missing="mask" if gaps else "error")


def fitted(problem: ub.Problem, **settings: Any) -> tuple[Fit, Neighbourhood]:
    """A quick fit, and its neighbourhood."""
    fit = ub.decouple(problem, 2, rng=0, starts=4, **settings)
    return fit, neighbourhood_of(fit, problem)
