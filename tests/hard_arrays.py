"""Samples as nobody wishes them, one for every seed: extreme, degenerate, few; and settings to fit them with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import unbraid as ub
from unbraid.kernels.arrays import Array
from unbraid.methods import Method
from unbraid.methods.base import Polish

Rng = np.random.Generator
Points = Callable[[Rng, int, int], Array]

POINTS: dict[str, Points] = {
    "usual": lambda rng, S, m: rng.uniform(-1.5, 1.5, (S, m)),
    "one point": lambda rng, S, m: np.tile(rng.standard_normal((1, m)), (S, 1)),
    "two points": lambda rng, S, m: rng.standard_normal((2, m))[rng.integers(0, 2, S)],
    "on a line": lambda rng, S, m: rng.uniform(-1, 1, (S, 1)) * rng.standard_normal((1, m)) + 1.0,
    "far from zero": lambda rng, S, m: 1e8 + rng.uniform(-1, 1, (S, m)),
    "a grid": lambda rng, S, m: np.round(rng.uniform(-1.5, 1.5, (S, m))),
    "one far out": lambda rng, S, m: np.r_[np.full((1, m), 1e6), rng.uniform(-1, 1, (S - 1, m))],
    "zero": lambda rng, S, m: np.zeros((S, m)),
    "a constant input": lambda rng, S, m: rng.uniform(-1, 1, (S, m)) * (np.arange(m) > 0) + 3.0,
}
SCALES = [1e-8, 1e8, 1e-30, 1e30, 1e-70, 1e70, 1e-150, 1e150, 1e-200, 1e200, 1e-300, 1e300, 5e-324, 1.7e308]
SCALES += [1.0] * len(SCALES)
WEIGHTS: dict[str, Callable[[Rng, int], Array]] = {
    "none": lambda rng, S: np.ones(S),
    "tiny": lambda rng, S: np.full(S, 1e-300),
    "huge": lambda rng, S: np.full(S, 1e300),
    "spread": lambda rng, S: 10.0 ** rng.uniform(-300, 300, S),
    "one": lambda rng, S: (np.arange(S) == 0).astype(float),
    "some": lambda rng, S: np.maximum(rng.integers(0, 3, S), np.arange(S) == 0).astype(float),
}


def smooth(rng: Rng, X: Array, n: int) -> tuple[Array, Array]:
    """Sines of two directions, with their Jacobians."""
    with np.errstate(all="ignore"):
        W0, W1 = rng.standard_normal((2, X.shape[1])), rng.standard_normal((n, 2))
        u = X @ W0.T
        return np.sin(u) @ W1.T, np.einsum("ij,sj,jk->sik", W1, np.cos(u), W0)


VALUES: dict[str, Callable[[Rng, Array, int], tuple[Array, Array]]] = {
    "smooth": smooth,
    "zero": lambda rng, X, n: (np.zeros((len(X), n)), np.zeros((len(X), n, X.shape[1]))),
    "constant": lambda rng, X, n: (np.full((len(X), n), 3.7), np.zeros((len(X), n, X.shape[1]))),
    "linear": lambda rng, X, n: (X @ np.ones((X.shape[1], n)), np.ones((len(X), n, X.shape[1]))),
    "noise": lambda rng, X, n: (rng.standard_normal((len(X), n)), rng.standard_normal((len(X), n, X.shape[1]))),
    "one spike": lambda rng, X, n: (np.eye(len(X), n), rng.standard_normal((len(X), n, X.shape[1])) * 1e-3),
    "one dead output": lambda rng, X, n: (
        smooth(rng, X, n)[0] * (np.arange(n) > 0),
        smooth(rng, X, n)[1] * (np.arange(n) > 0)[:, None],
    ),
}


def short(method: Method, sweeps: int) -> Method:
    """The method with few sweeps and steps: what goes wrong does so at once."""
    method = replace(method, stopping=replace(method.stopping, max_sweeps=sweeps))
    return method if method.polish is None else replace(method, polish=Polish.with_budget(sweeps, None))


METHODS: dict[str, Callable[[], Method]] = {
    "default": ub.methods.default,
    "sweeps": lambda: ub.methods.default(polish=False),
    "dejonghe2025": ub.methods.dejonghe2025,
    "given units": lambda: ub.methods.dejonghe2025(scaled=False),
    "zniyed2021": ub.methods.zniyed2021,
    "decuyper2022": ub.methods.decuyper2022,
    "dreesen2015": ub.methods.dreesen2015,
    "hollander2017": ub.methods.hollander2017,
}
WEIGHTED = ("default", "sweeps", "dejonghe2025", "given units")
"""Those that know of weights and gaps."""
BASES: dict[str, Callable[[int], ub.bases.Basis]] = {
    "spline": lambda df: ub.BSpline(df=df),
    "slope": lambda df: ub.BSpline(df=df, degree=2, of="slope"),
    "natural": lambda df: ub.NaturalCubic(df=df),
    "smoothing": lambda df: ub.SmoothingSpline(df=max(df, 5)),
    "polynomial": lambda df: ub.Polynomial(df),
    "polygon": lambda df: ub.BSpline(df=df, degree=1),
}
CONSTRAINTS = [None, None, None, ub.Increasing(), ub.Decreasing(), ub.Convex(), ub.Concave(), ub.NonNegative()]


def hard_arrays(rng: Rng) -> dict[str, Any]:
    """X, F, J, and perhaps weights and gaps, as they are given to `Problem`."""
    S, m, n = (
        int(rng.choice([1, 2, 5, 8, 13, 20, 30, 30, 30])),
        int(rng.choice([1, 2, 3, 6])),
        int(rng.choice([1, 2, 3])),
    )
    X = POINTS[rng.choice(list(POINTS))](rng, S, m)
    F, J = VALUES[rng.choice(list(VALUES))](rng, X, n)
    x, f, j = rng.choice(SCALES, 3)
    with np.errstate(all="ignore"):
        X, F, J = X * x, F * f, J * (f / x if rng.random() < 0.7 else j)
    given: dict[str, Any] = {"X": X, "F": F, "J": J}
    if left_out := rng.choice(["", "", "F", "J"]):
        given[left_out] = None
    if (kind := rng.choice(list(WEIGHTS))) != "none":
        given["weights"] = WEIGHTS[kind](rng, S)
    if rng.random() < 0.1 and given["F"] is not None:
        given["F"] = np.where(rng.random(F.shape) < 0.3, np.nan, F)
        given["missing"] = "mask"
    return given


def hard_settings(rng: Rng, given: dict[str, Any]) -> dict[str, Any]:
    """How `decouple` is asked, mostly for what can be had."""
    names = list(METHODS) if given.get("weights") is None and "missing" not in given else list(WEIGHTED)
    if given["J"] is None:
        names = ["default"]
    df = int(rng.choice([3, 3, 5, 9]))
    asked: dict[str, Any] = {
        "rank": int(rng.choice([1, 2, 3, 8])),
        "starts": int(rng.choice([1, 2])),
        "rng": 0,
        "method": short(METHODS[rng.choice(names)](), int(rng.choice([3, 20]))),
        "basis": BASES[kind := rng.choice(list(BASES))](df),
    }
    if kind != "polynomial":
        asked["constraint"] = CONSTRAINTS[rng.integers(len(CONSTRAINTS))]
    if rng.random() < 0.2:
        asked["polish"] = True
    if rng.random() < 0.05:
        asked["compress"] = True
    return asked
