"""Samples as nobody wishes them, one for every seed: extreme, degenerate, few; and settings to fit them with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import unbraid as ub
from unbraid.kernels.arrays import Array
from unbraid.methods import Method
from unbraid.methods.base import Polish

Rng = np.random.Generator
Points = Callable[[Rng, int, int], Array]
Values = Callable[[Rng, Array, int], tuple[Array, Array]]

FIRST_WIDE = 30_000
"""Seeds from here on draw from more; those below draw what they drew when they found something."""


def last_digits(rng: Rng, shape: tuple[int, ...]) -> Array:
    """Differences as rounding makes them."""
    return np.asarray(rng.integers(-2, 3, shape) * 2.0**-52, dtype=np.float64)


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
MORE_POINTS: dict[str, Points] = {
    "one point but for last digits": lambda rng, S, m: 1.0 + last_digits(rng, (S, m)),
    "two lines": lambda rng, S, m: (
        rng.uniform(-1, 1, (S, 1)) * rng.standard_normal((2, m))[np.arange(S) % 2] + rng.standard_normal((1, m))
    ),
    "of all sizes": lambda rng, S, m: rng.choice([-1.0, 1.0], (S, m)) * 10.0 ** rng.uniform(-90, 90, (S, m)),
    "the same input twice": lambda rng, S, m: np.tile(rng.uniform(-1, 1, (S, 1)), (1, m)),
    "axes only": lambda rng, S, m: np.eye(m)[np.arange(S) % m] * rng.uniform(-1, 1, (S, 1)),
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


def same_outputs(F: Array, J: Array, n: int) -> tuple[Array, Array]:
    """One output, n times."""
    return np.repeat(F, n, axis=1), np.repeat(J, n, axis=1)


def negated(F: Array, J: Array) -> tuple[Array, Array]:
    """Values with Jacobians of the wrong sign."""
    return F, -J


VALUES: dict[str, Values] = {
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
MORE_VALUES: dict[str, Values] = {
    "steps": lambda rng, X, n: (np.sign(smooth(rng, X, n)[0]), np.zeros((len(X), n, X.shape[1]))),
    "constant but for last digits": lambda rng, X, n: (
        1.0 + last_digits(rng, (len(X), n)),
        last_digits(rng, (len(X), n, X.shape[1])),
    ),
    "of all sizes": lambda rng, X, n: (
        10.0 ** rng.uniform(-50, 50, (len(X), n)),
        10.0 ** rng.uniform(-50, 50, (len(X), n, X.shape[1])),
    ),
    "the same output twice": lambda rng, X, n: same_outputs(*smooth(rng, X, 1), n),
    "of the wrong sign": lambda rng, X, n: negated(*smooth(rng, X, n)),
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


@dataclass(frozen=True)
class Range:
    """What samples are drawn from: how many samples, inputs and outputs, which points and which values."""

    samples: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    points: dict[str, Points]
    values: dict[str, Values]


NARROW = Range((1, 2, 5, 8, 13, 20, 30, 30, 30), (1, 2, 3, 6), (1, 2, 3), POINTS, VALUES)
WIDE = Range(
    (1, 2, 5, 8, 13, 20, 20, 30, 30, 60),
    (1, 2, 3, 3, 6, 12, 30),
    (1, 2, 3, 3, 8),
    {**POINTS, **MORE_POINTS},
    {**VALUES, **MORE_VALUES},
)


def hard_case(seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a seed gives to `Problem`, and to `decouple`."""
    rng = np.random.default_rng(seed)
    given = hard_arrays(rng, NARROW if seed < FIRST_WIDE else WIDE)
    asked = hard_settings(rng, given)
    if seed >= FIRST_WIDE:
        spoil(rng, given)
        widen(rng, asked, given["X"].shape[1])
    return given, asked


def hard_arrays(rng: Rng, drawn: Range) -> dict[str, Any]:
    """X, F, J, and perhaps weights and gaps, as they are given to `Problem`."""
    S, m, n = (int(rng.choice(sizes)) for sizes in (drawn.samples, drawn.inputs, drawn.outputs))
    X = drawn.points[rng.choice(list(drawn.points))](rng, S, m)
    F, J = drawn.values[rng.choice(list(drawn.values))](rng, X, n)
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


def spoil(rng: Rng, given: dict[str, Any]) -> None:
    """Now and then columns of sizes of their own, numbers below the least that has all its digits, and gaps in J."""
    with np.errstate(all="ignore"):
        if rng.random() < 0.15:
            given["X"] = given["X"] * rng.choice(SCALES, given["X"].shape[1])
        if rng.random() < 0.15 and given["F"] is not None:
            given["F"] = given["F"] * rng.choice(SCALES, given["F"].shape[1])
        for name in ("X", "F", "J"):
            if rng.random() < 0.05 and given[name] is not None:
                some = rng.random(given[name].shape) < rng.choice([0.1, 1.0])
                given[name] = np.where(some, rng.integers(-9, 10, some.shape) * 5e-324, given[name])
    if rng.random() < 0.05 and given["J"] is not None and given.get("weights") is None:
        given["J"] = np.where(rng.random(given["J"].shape) < 0.3, np.nan, given["J"])
        given["missing"] = "mask"


def widen(rng: Rng, asked: dict[str, Any], m: int) -> None:
    """Now and then ranks far above what samples support, few steps at a time, and a constraint of its own a branch."""
    if rng.random() < 0.1:
        asked.update(rank=30 if m <= 6 else 10, starts=1, method=short(asked["method"], 3))
    if asked.get("constraint") is not None and rng.random() < 0.2:
        asked["constraint"] = [CONSTRAINTS[i] for i in rng.integers(len(CONSTRAINTS), size=asked["rank"])]
