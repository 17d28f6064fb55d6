"""Models of every kind of branch, made without a fit, and points inside and outside of their range."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import interpolate

import unbraid as ub
from registry import random_feasible
from unbraid.bases import Basis
from unbraid.kernels.arrays import Array
from unbraid.kernels.pieces import Pieces
from unbraid.results.branch import Branch, FittedBranch
from unbraid.results.branches.forms import FORMS, Formula
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.branches.piecewise import PiecewiseBranch

REACHES = (0.0, 0.125, 0.05)
"""How far the three branches of a model go on as polynomials."""
BASES: tuple[Basis, ...] = (
    ub.BSpline(12),
    ub.BSpline(9, of="slope"),
    ub.BSpline(15, degree=5),
    ub.PiecewiseLinear(8),
    ub.NaturalCubic(8),
    ub.SmoothingSpline(11, smoothing=0.0),
    ub.Polynomial(3),
    ub.Polynomial(9),
)
SINGULAR = ("square root", "reciprocal", "logarithm")
"""Forms that have no value, or a pole, where their argument is not positive."""

LEGENDRE = 3e-14
"""How far unbraid's own sums of Legendre polynomials are off; the short pieces that are exported are closer."""


def within(tolerance: float, name: str) -> float:
    """What a model's name says may differ."""
    return max(tolerance, LEGENDRE) if name.startswith("Polynomial") else tolerance


def fitted_branches(basis: Basis, constrained: bool, rng: np.random.Generator) -> list[Branch]:
    """Three branches with random coordinates, which increase if they are constrained."""
    branches: list[Branch] = []
    for reach in REACHES:
        placed = basis.place(2.0 * rng.standard_normal(60) + 0.5)
        own = random_feasible(placed, ub.Increasing(), rng) if constrained else rng.standard_normal(basis.size)
        branches.append(FittedBranch(basis, placed, own, np.full(2, reach)))
    return branches


def formula_branch(form: str) -> FormulaBranch:
    """A branch of a form, regular where `inside` and `outside` have points."""
    if FORMS[form].h is None:
        return FormulaBranch(Formula.of(form, (0.7, -1.3, 0.4, 0.2, -0.1, 0.05)[: FORMS[form].count]), (-1.0, 1.0))
    shape = FORMS[form].shape
    c = 0.0 if shape == "exponential" else 7.0 if shape in SINGULAR else 0.3
    return FormulaBranch(Formula.of(form, (1.3, 0.8, c, -0.4, 0.6)[: FORMS[form].count]), (-1.0, 1.0))


def scipy_splines(rng: np.random.Generator) -> list[list[object]]:
    """Splines of SciPy, three a model."""
    u = np.linspace(-2.0, 3.0, 9)
    g = rng.standard_normal(9)
    return [
        [interpolate.CubicSpline(u, g), interpolate.PchipInterpolator(u, g), interpolate.Akima1DInterpolator(u, g)],
        [
            interpolate.make_interp_spline(u, g, k=4),
            interpolate.CubicSpline(u, g, extrapolate=False),
            interpolate.UnivariateSpline(u, g, k=2, s=0.1),
        ],
    ]


def of_branches(branches: list[Branch], rng: np.random.Generator) -> ub.DecoupledModel:
    """A model of three branches, three inputs and two outputs, whose directions are at right angles to each other."""
    W0 = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    return ub.DecoupledModel(W0, rng.standard_normal((2, 3)), branches, rng.standard_normal(2))


def exported_models(seed: int = 0) -> dict[str, ub.DecoupledModel]:
    """Models of every basis, constrained and not, of every closed form, and of splines of SciPy, by name."""
    rng = np.random.default_rng(seed)
    models = {}
    for basis in BASES:
        models[f"{basis!r}"] = of_branches(fitted_branches(basis, False, rng), rng)
        if basis.refusal() is None:
            models[f"{basis!r}, increasing"] = of_branches(fitted_branches(basis, True, rng), rng)
    forms = list(FORMS)
    for first in range(0, len(forms), 3):
        own = (forms[first : first + 3] * 3)[:3]
        models[", ".join(own)] = of_branches([formula_branch(form) for form in own], rng)
    for k, splines in enumerate(scipy_splines(rng)):
        parts = of_branches([formula_branch("line")] * 3, rng)
        models[f"SciPy {k + 1}"] = ub.DecoupledModel.from_parts(parts.W0, parts.W1, parts.bias, splines)
    models["flat ends, zeros in W0"] = flat_ends(rng)
    return models


def flat_ends(rng: np.random.Generator) -> ub.DecoupledModel:
    """A model with zeros in W0, a branch that is constant at both ends, and others."""
    steps = Pieces(np.array([-1.0, 1.0]), np.zeros(3), np.ones(3), np.array([[-2.0, 0.0, 2.0], [0.0, 2.0, 0.0]]))
    branches: list[Branch] = [
        PiecewiseBranch(steps, (-1.0, 1.0)),
        fitted_branches(ub.BSpline(12), False, rng)[0],
        formula_branch("tanh"),
    ]
    W0 = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.0, 1.0]]
    return ub.DecoupledModel(W0, rng.standard_normal((2, 3)), branches, rng.standard_normal(2))


MODELS = exported_models()


def inside(model: ub.DecoupledModel, S: int, seed: int = 0) -> Array:
    """Points (S, 3) at which every branch is within its range."""
    return points_with(model, S, seed, lambda rng, size: rng.random(size))


def outside(model: ub.DecoupledModel, S: int, seed: int = 0) -> Array:
    """Points (S, 3) at which every branch is beyond its range, by up to three times its length."""
    return points_with(
        model, S, seed, lambda rng, size: np.where(rng.random(size) < 0.5, -3.0, 1.0) + 3.0 * rng.random(size)
    )


def points_with(
    model: ub.DecoupledModel, S: int, seed: int, shares: Callable[[np.random.Generator, int], Array]
) -> Array:
    """Points at which the inputs of branches are such shares of their ranges."""
    rng = np.random.default_rng(seed)
    lengths = [(low, high - low) for low, high in (branch.domain for branch in model.branches)]
    u = np.stack([low + length * shares(rng, S) for low, length in lengths], axis=1)
    return np.asarray(np.linalg.solve(model.W0, u.T).T)


def special() -> Array:
    """Points (S, 3) with NaN, infinities, and numbers at which formulas have no value."""
    odd = [np.nan, np.inf, -np.inf, 0.0, -20.0, 20.0, 1e300, -1e300]
    return np.array([[a, b, c] for a in odd for b in odd for c in (0.5, np.inf)])


def difference(found: Array, expected: Array) -> float:
    """The largest difference, of the largest number that is expected; NaN belongs where NaN is, infinity likewise."""
    known = np.isfinite(expected)
    np.testing.assert_array_equal(found[~known], expected[~known])
    size = float(np.abs(expected[known]).max(initial=0.0)) or 1.0
    return float(np.abs(found[known] - expected[known]).max(initial=0.0)) / size
