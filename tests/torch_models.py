"""Models with branches of every kind, made without fitting, and points inside and well outside of their domains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from scipy.interpolate import Akima1DInterpolator, CubicSpline, PchipInterpolator

import unbraid as ub
from registry import BASES, random_feasible
from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint
from unbraid.kernels.arrays import Array
from unbraid.results.branch import Branch, FittedBranch
from unbraid.results.branches.forms import FORMS, Formula
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.branches.piecewise import as_branch


def fitted(basis: Basis, seed: int = 0, reach: float = 0.0, constraint: Constraint | None = None) -> FittedBranch:
    """A branch with random coordinates, within a constraint if there is one."""
    rng = np.random.default_rng(seed)
    placed = basis.place(rng.uniform(-2.0, 1.5, 60))
    a = rng.standard_normal(basis.size) if constraint is None else random_feasible(placed, constraint, rng)
    return FittedBranch(basis, placed, a, np.array([reach, 2.0 * reach]))


def in_closed_form(form: str) -> FormulaBranch:
    """A branch of a form, with parameters that no simplification can hide."""
    shape = FORMS[form]
    parameters = (
        [0.7, 1.0, 0.4, -0.2, 0.3, 0.05] if shape.h is None else [0.7, 1.3 if 1 in shape.free else 1.0, 0.4, -0.2, 0.5]
    )
    if shape.h is not None and 2 not in shape.free:
        parameters[2] = 0.0
    return FormulaBranch(Formula.of(form, parameters[: shape.count]), (-1.5, 2.0))


def from_scipy() -> list[Branch]:
    """Splines of SciPy, of one that jumps in its slope and goes on as a line among them."""
    u = np.linspace(-2.0, 2.0, 9)
    splines = [
        CubicSpline(u, np.tanh(u)),
        PchipInterpolator(u, np.abs(u)),
        Akima1DInterpolator(u, np.sin(u)),
        CubicSpline(u[::4], u[::4] ** 2, extrapolate=False),
    ]
    return [as_branch(one, j) for j, one in enumerate(splines)]


MORE: tuple[Basis, ...] = (ub.Polynomial(9), ub.SmoothingSpline(), ub.BSpline(12, of="slope"))
CONTINUED: tuple[Basis, ...] = (ub.BSpline(8), ub.Polynomial(4), ub.SmoothingSpline(14))
BRANCHES: dict[str, Branch] = {
    **{repr(basis): fitted(basis, j) for j, basis in enumerate((*BASES, *MORE))},
    **{f"{basis!r} continued": fitted(basis, j, 0.125) for j, basis in enumerate(CONTINUED)},
    **{
        f"{basis!r} {type(shape).__name__} {reach:g}": fitted(basis, j, reach, shape)
        for j, basis in enumerate((ub.BSpline(9), ub.NaturalCubic(7), ub.PiecewiseLinear(6)))
        for shape in (ub.Increasing(), ub.Convex())
        for reach in (0.0, 0.25)
    },
    **{f"spline {j + 1} of SciPy": one for j, one in enumerate(from_scipy())},
    **{form: in_closed_form(form) for form in FORMS},
}
"""Branches of every kind."""
every_branch = pytest.mark.parametrize("name", BRANCHES)
FITTED = [name for name, branch in BRANCHES.items() if isinstance(branch, FittedBranch)]


def model_of(branches: Sequence[Branch], m: int = 3, n: int = 2, seed: int = 0) -> ub.DecoupledModel:
    """A model of some branches, with random matrices."""
    rng = np.random.default_rng(seed)
    W0, W1 = rng.standard_normal((len(branches), m)), rng.standard_normal((n, len(branches)))
    return ub.DecoupledModel(W0, W1, branches, rng.standard_normal(n))


def model_with(name: str) -> ub.DecoupledModel:
    """A model with one branch of `BRANCHES`."""
    return model_of([BRANCHES[name]])


def double(model: ub.DecoupledModel, **more: Any) -> Any:
    """The module of a model in double precision."""
    return ub.networks.module(model, dtype=torch.float64, **more)


def mixed_model(m: int = 3) -> ub.DecoupledModel:
    """A model of branches of several kinds, piecewise polynomials and formulas by turns."""
    names = ("sine", repr(ub.BSpline(12)), "tanh", "spline 2 of SciPy", repr(ub.Polynomial(9)), "constant")
    return model_of([BRANCHES[name] for name in (*names, f"{ub.SmoothingSpline(14)!r} continued")], m)


def points(model: ub.DecoupledModel, far: float = 2.0, count: int = 200) -> Array:
    """Points X (S, m) along which each branch goes through its domain, and so many lengths of it beyond."""
    rng = np.random.default_rng(1)
    X = [rng.uniform(-1.5, 1.5, (50, model.m))]
    for w, branch in zip(model.W0, model.branches, strict=True):
        low, high = branch.domain
        u = np.linspace(low - far * (high - low), high + far * (high - low), count)
        across = rng.standard_normal((count, model.m))
        across -= np.outer(across @ w, w) / (w @ w)
        X.append(np.outer(u, w) / (w @ w) + (across if model.rank == 1 else 0.0))
    return np.concatenate(X)


def assert_near(found: Array, expected: Array, share: float) -> None:
    """The same, and NaN at the same places, up to a share of the largest one."""
    size = float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=share * size)
