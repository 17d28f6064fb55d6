"""Cases of `regret.py`: data as people have them, in families that were fixed before anything was tuned on them.

A case is drawn from its seed: samples to fit, the rank, and fresh points of the same distribution with the true values.
Tables have no true values; they are split in five, and each part is predicted from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

import unbraid as ub
from unbraid.kernels.arrays import Array

FRESH = 2000
"""Fresh points of a case."""
Rng = np.random.Generator
Function = Callable[[Array], Array]
"""Values (S, n) of points (S, m)."""


@dataclass(frozen=True)
class Fold:
    """Samples to fit, and points with values to be predicted."""

    problem: ub.Problem
    points: Array
    values: Array


@dataclass(frozen=True)
class Case:
    """A rank, and one fold, or five of a table."""

    rank: int
    folds: tuple[Fold, ...]


# %% Decoupled systems with branches of many kinds


@dataclass(frozen=True)
class Shape:
    """A univariate function and its derivative."""

    value: Function
    slope: Function


def softplus(u: Array) -> Array:
    """log(1 + exp u)."""
    return np.logaddexp(0.0, u)


def logistic(u: Array) -> Array:
    """The slope of softplus."""
    return 0.5 * (1.0 + np.tanh(0.5 * u))


SMOOTH = (
    Shape(np.sin, np.cos),
    Shape(np.tanh, lambda u: 1.0 / np.cosh(np.clip(u, -300, 300)) ** 2),
    Shape(lambda u: np.exp(-(u**2)), lambda u: -2.0 * u * np.exp(-(u**2))),
    Shape(softplus, logistic),
    Shape(lambda u: u**3 / 6.0 - 0.5 * u, lambda u: 0.5 * u**2 - 0.5),
    Shape(lambda u: u / (1.0 + u**2), lambda u: (1.0 - u**2) / (1.0 + u**2) ** 2),
)
CUBIC = (Shape(lambda u: u**3 / 6.0 - 0.5 * u, lambda u: 0.5 * u**2 - 0.5), Shape(np.square, lambda u: 2.0 * u))
STEPS = (Shape(lambda u: np.tanh(8.0 * u), lambda u: 8.0 / np.cosh(np.clip(8.0 * u, -300, 300)) ** 2),)
KINKS = (Shape(np.abs, np.sign), Shape(lambda u: np.maximum(u, 0.0), lambda u: (u > 0.0).astype(float)))
SATURATION = (Shape(lambda u: np.clip(u, -0.7, 0.7), lambda u: (np.abs(u) < 0.7).astype(float)),)
FLAT = (Shape(lambda u: u / (1.0 + np.abs(u)), lambda u: 1.0 / (1.0 + np.abs(u)) ** 2), SMOOTH[1])
"""Branches that stay within bounds, for inputs with long tails."""


@dataclass(frozen=True)
class System:
    """f(x) = W1 g(W0 x)."""

    W0: Array
    W1: Array
    shapes: tuple[Shape, ...]

    @classmethod
    def drawn(cls, rng: Rng, n: int, m: int, r: int, shapes: tuple[Shape, ...]) -> System:
        """Rows of W0 of length 1.5, shifted inputs of branches left to the shapes, normal W1."""
        W0 = rng.standard_normal((r, m))
        W0 *= 1.5 / np.linalg.norm(W0, axis=1, keepdims=True)
        chosen = [shapes[k % len(shapes)] for k in rng.permutation(max(r, len(shapes)))[:r]]
        return cls(W0, rng.standard_normal((n, r)), tuple(chosen))

    def values(self, X: Array) -> Array:
        """F (S, n) at X (S, m)."""
        u = X @ self.W0.T
        return np.stack([shape.value(u[:, j]) for j, shape in enumerate(self.shapes)], axis=1) @ self.W1.T

    def jacobians(self, X: Array) -> Array:
        """J (S, n, m) at X (S, m)."""
        u = X @ self.W0.T
        G = np.stack([shape.slope(u[:, j]) for j, shape in enumerate(self.shapes)], axis=1)
        return np.asarray(np.einsum("ij,sj,jk->sik", self.W1, G, self.W0))


def box(rng: Rng, S: int, m: int) -> Array:
    """Uniform points, as in most experiments."""
    return rng.uniform(-1.5, 1.5, (S, m))


def lognormal(rng: Rng, S: int, m: int) -> Array:
    """Positive, skewed points."""
    return rng.lognormal(0.0, 1.0, (S, m))


def cauchy(rng: Rng, S: int, m: int) -> Array:
    """Points of which some are very far out."""
    return rng.standard_cauchy((S, m))


def clustered(rng: Rng, S: int, m: int) -> Array:
    """Points around five places, the same for all seeds."""
    centres = np.random.default_rng(7).uniform(-1.5, 1.5, (5, m))
    return centres[rng.integers(5, size=S)] + 0.1 * rng.standard_normal((S, m))


def three_levels(rng: Rng, S: int, m: int) -> Array:
    """Points of a plan of experiments."""
    return rng.integers(-1, 2, (S, m)).astype(float)


Inputs = Callable[[Rng, int, int], Array]


def noisy(rng: Rng, array: Array, share: float) -> Array:
    """With normal noise of a share of each output's spread; of J, of its root mean square."""
    size = np.std(array, axis=0) if array.ndim == 2 else np.sqrt(np.mean(array**2, axis=(0, 2), keepdims=True)[0])
    return np.asarray(array + share * size * rng.standard_normal(array.shape))


def of_system(
    seed: int,
    sizes: tuple[int, int, int, int] = (3, 3, 4, 150),
    shapes: tuple[Shape, ...] = SMOOTH,
    noise: tuple[float, float | None] = (0.01, 0.01),
    fewer: int = 0,
    inputs: Inputs = box,
) -> Case:
    """A random system of sizes (n, m, r, S), with noise on F and on J (None: values alone), and `fewer` branches."""
    rng = np.random.default_rng(seed)
    n, m, r, S = sizes
    system = System.drawn(rng, n, m, r, shapes)
    X, fresh = inputs(rng, S, m), inputs(rng, FRESH, m)
    F = noisy(rng, system.values(X), noise[0])
    J = None if noise[1] is None else noisy(rng, system.jacobians(X), noise[1])
    return Case(r - fewer, (Fold(ub.Problem(X, F, J), fresh, system.values(fresh)),))


# %% Engineering functions


def borehole(x: Array) -> Array:
    """The flow of water through a borehole."""
    rw, radius, Tu, Hu, Tl, Hl, L, Kw = x.T
    ratio = np.log(radius / rw)
    return np.asarray(2 * np.pi * Tu * (Hu - Hl) / (ratio * (1.0 + 2 * L * Tu / (ratio * rw**2 * Kw) + Tu / Tl)))


def wing_weight(x: Array) -> Array:
    """The weight of an aircraft wing."""
    Sw, Wfw, A, sweep, q, taper, tc, Nz, Wdg, Wp = x.T
    cosine = np.cos(np.deg2rad(sweep))
    wing = 0.036 * Sw**0.758 * Wfw**0.0035 * (A / cosine**2) ** 0.6 * q**0.006 * taper**0.04
    return np.asarray(wing * (100 * tc / cosine) ** -0.3 * (Nz * Wdg) ** 0.49 + Sw * Wp)


def piston(x: Array) -> Array:
    """The cycle time of a piston."""
    M, area, V0, k, P0, Ta, T0 = x.T
    A = P0 * area + 19.62 * M - k * V0 / area
    V = area / (2 * k) * (np.sqrt(A**2 + 4 * k * P0 * V0 / T0 * Ta) - A)
    return np.asarray(2 * np.pi * np.sqrt(M / (k + area**2 * P0 * V0 / T0 * Ta / V**2)))


def otl_circuit(x: Array) -> Array:
    """The midpoint voltage of a push-pull circuit."""
    Rb1, Rb2, Rf, Rc1, Rc2, beta = x.T
    Vb1 = 12 * Rb2 / (Rb1 + Rb2)
    gain = beta * (Rc2 + 9)
    return np.asarray(
        (Vb1 + 0.74) * gain / (gain + Rf) + 11.35 * Rf / (gain + Rf) + 0.74 * Rf * gain / ((gain + Rf) * Rc1)
    )


def robot_arm(x: Array) -> Array:
    """How far the end of an arm of four links is from its shoulder."""
    angles, lengths = np.cumsum(x[:, :4], axis=1), x[:, 4:]
    return np.asarray(np.hypot(np.sum(lengths * np.cos(angles), axis=1), np.sum(lengths * np.sin(angles), axis=1)))


ENGINEERING: dict[str, tuple[Callable[[Array], Array], list[tuple[float, float]]]] = {
    "borehole": (
        borehole,
        [
            (0.05, 0.15),
            (100, 50000),
            (63070, 115600),
            (990, 1110),
            (63.1, 116),
            (700, 820),
            (1120, 1680),
            (9855, 12045),
        ],
    ),
    "wing weight": (
        wing_weight,
        [
            *[(150, 200), (220, 300), (6, 10), (-10, 10), (16, 45), (0.5, 1), (0.08, 0.18), (2.5, 6), (1700, 2500)],
            (0.025, 0.08),
        ],
    ),
    "piston": (
        piston,
        [(30, 60), (0.005, 0.02), (0.002, 0.01), (1000, 5000), (90000, 110000), (290, 296), (340, 360)],
    ),
    "OTL circuit": (otl_circuit, [(50, 150), (25, 70), (0.5, 3), (1.2, 2.5), (0.25, 1.2), (50, 300)]),
    "robot arm": (robot_arm, [(0.0, 2.0 * np.pi)] * 4 + [(0.0, 1.0)] * 4),
}
"""The usual formulas and boxes."""


def of_engineering(seed: int, name: str, rank: int, S: int = 300) -> Case:
    """An engineering function with exact Jacobians, by differences, at a rank that is too small for it."""
    function, limits = ENGINEERING[name]
    low, high = np.array(limits, dtype=float).T
    rng = np.random.default_rng(seed)
    X, fresh = (rng.uniform(low, high, (count, len(low))) for count in (S, FRESH))
    problem = ub.Problem.from_function(lambda x: function(x)[:, None], X)
    return Case(rank, (Fold(problem, fresh, function(fresh)[:, None]),))


# %% Tables


def table(name: str, seed: int) -> tuple[Array, Array]:
    """Points and values of scikit-learn's data sets; Friedman's are drawn, 300 rows with their usual noise."""
    from sklearn import datasets

    if name == "diabetes":
        given = datasets.load_diabetes()
        return np.asarray(given.data), np.asarray(given.target)[:, None]
    make, noise = {
        "Friedman 1": (datasets.make_friedman1, 1.0),
        "Friedman 2": (datasets.make_friedman2, 125.0),
        "Friedman 3": (datasets.make_friedman3, 0.1),
    }[name]
    X, y = make(n_samples=300, noise=noise, random_state=seed)
    return X, y[:, None]


def of_table(seed: int, name: str, rank: int) -> Case:
    """A table in five folds."""
    X, F = table(name, seed)
    part = np.random.default_rng(seed).permutation(len(X)) % 5
    folds = [Fold(ub.Problem(X[part != k], F[part != k]), X[part == k], F[part == k]) for k in range(5)]
    return Case(rank, tuple(folds))


# %% The list


def unknowns(n: int, m: int, r: int) -> int:
    """Unknowns of a model with 12 degrees of freedom a branch."""
    return r * (n + m + 11)


Draw = Callable[[int], Case]


def families() -> dict[str, dict[str, Draw]]:
    """All cases by family and name; each is a function of a seed."""
    values = (2, 5, 3, 250)
    return {
        "exact": {
            "cubics": partial(of_system, shapes=CUBIC, noise=(0.0, 0.0)),
            "smooth": partial(of_system, noise=(0.0, 0.0)),
        },
        "noise on both": {f"{100 * s:g} %": partial(of_system, noise=(s, s)) for s in (0.001, 0.01, 0.05, 0.2)},
        "noise on one": {
            "5 % on F": partial(of_system, noise=(0.05, 0.0)),
            "5 % on J": partial(of_system, noise=(0.0, 0.05)),
        },
        "rank too small": {
            **{f"{k} fewer": partial(of_system, sizes=(3, 4, 5, 200), noise=(0.0, 0.0), fewer=k) for k in (1, 3)},
            **{f"{name}, r = {r}": partial(of_engineering, name=name, rank=r) for name in ENGINEERING for r in (2, 4)},
        },
        "values alone": {
            f"{100 * s:g} %": partial(of_system, sizes=values, noise=(s, None)) for s in (0.001, 0.01, 0.05, 0.2)
        },
        "tables": {
            f"{name}, r = {r}": partial(of_table, name=name, rank=r)
            for name in ("diabetes", "Friedman 1", "Friedman 2", "Friedman 3")
            for r in (1, 2, 4)
        },
        "samples": {
            "few": partial(of_system, sizes=(1, 3, 3, 2 * unknowns(1, 3, 3) // 4), noise=(0.02, 0.02)),
            "few values": partial(of_system, sizes=(1, 3, 3, 2 * unknowns(1, 3, 3)), noise=(0.02, None)),
            "many": partial(of_system, sizes=(2, 3, 3, 5000), noise=(0.05, 0.05)),
        },
        "branches": {
            "steps": partial(of_system, shapes=(*STEPS, *SMOOTH[:2])),
            "kinks": partial(of_system, shapes=(*KINKS, *SMOOTH[:1])),
            "saturation": partial(of_system, shapes=(*SATURATION, *SMOOTH[:2])),
        },
        "inputs": {
            "lognormal": partial(of_system, sizes=(2, 2, 2, 200), shapes=FLAT, inputs=lognormal),
            "Cauchy": partial(of_system, sizes=(2, 2, 2, 200), shapes=FLAT, inputs=cauchy),
            "clustered": partial(of_system, inputs=clustered),
            "three levels": partial(of_system, sizes=(2, 4, 2, 81), inputs=three_levels),
        },
    }


def listed(reported: bool) -> Iterator[tuple[str, str, int]]:
    """(family, name, seed) of the cases to tune on, or of those to report: drawn ones twice, others once."""
    for family, cases in families().items():
        for name in cases:
            drawn = "r = " not in name
            for seed in range(2) if drawn else range(1):
                yield family, name, 2 * seed + reported
