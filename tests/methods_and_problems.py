"""What the law suite of methods runs over: a new method joins by joining METHODS, a new kind of problem PROBLEMS."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

import unbraid as ub
from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.methods import Method
from unbraid.methods.base import Polish

METHODS: dict[str, Method] = {
    "default": ub.methods.default(),
    "default, sweeps only": ub.methods.default(polish=False),
    "dejonghe2025": ub.methods.dejonghe2025(),
    "dejonghe2025, anchored": ub.methods.dejonghe2025(anchored=True),
    "dejonghe2025, in given units": ub.methods.dejonghe2025(scaled=False),
    "dejonghe2025, growing coupling": ub.methods.dejonghe2025(ub.GrowingCoupling(0.01, 10.0, every=2, limit=1.0)),
    "zniyed2021": ub.methods.zniyed2021(),
    "zniyed2021, slopes only": ub.methods.zniyed2021(values=False),
    "decuyper2022": ub.methods.decuyper2022(),
    "decuyper2022, three formulas": ub.methods.decuyper2022(variant="three"),
    "dreesen2015": ub.methods.dreesen2015(),
    "hollander2017": ub.methods.hollander2017(),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


@dataclass(frozen=True)
class Given:
    """A problem with arrays that cannot be written to, a model near its truth, and what is asked of a fit."""

    X: Array
    F: Array | None
    J: Array | None
    near: ub.DecoupledModel
    weights: Array | None = None
    constraint: Constraint | None = None

    def __post_init__(self) -> None:
        for array in (self.X, self.F, self.J, self.weights):
            if array is not None:
                array.setflags(write=False)

    @property
    def problem(self) -> ub.Problem:
        return ub.Problem(self.X, self.F, self.J, weights=self.weights, missing="mask")

    def take(self, index: IndexArray) -> Given:
        """Some samples, in an order; all weigh the same."""
        F, J = (None if array is None else array[index] for array in (self.F, self.J))
        return replace(self, X=self.X[index], F=F, J=J, weights=None)

    def in_units(self, x: Array, f: Array) -> Given:
        """Inputs in units of 1/x, outputs in units of 1/f."""
        near = ub.DecoupledModel(self.near.W0 / x, self.near.W1 * f[:, None], self.near.branches)
        F = None if self.F is None else self.F * f
        return replace(self, X=self.X * x, F=F, J=None if self.J is None else self.J * f[:, None] / x, near=near)


def given(n: int, m: int, *, values: bool = True, jacobians: bool = True, S: int = 40) -> Given:
    """Samples of a random system of two branches."""
    problem, truth = ub.datasets.random_system(n=n, m=m, r=2, S=S, kind="sine", rng=0)
    W0 = truth.W0 + 0.1 * np.random.default_rng(0).standard_normal(truth.W0.shape)
    near = ub.DecoupledModel(W0, truth.W1, truth.branches)
    F, J = (np.array(array) if there else None for array, there in ((problem.F, values), (problem.J, jacobians)))
    return Given(np.array(problem.X), F, J, near)


def gappy() -> Given:
    """A value and a slope in ten are not known."""
    whole, rng = given(2, 3), np.random.default_rng(1)
    F, J = (np.where(rng.random(array.shape) < 0.1, np.nan, array) for array in (whole.F, whole.J) if array is not None)
    return replace(whole, F=F, J=J)


PROBLEMS: dict[str, Given] = {
    "values and Jacobians": given(2, 3),
    "Jacobians alone": given(2, 3, values=False),
    "values alone": given(2, 3, jacobians=False),
    "weights": replace(given(2, 3), weights=np.random.default_rng(2).integers(1, 4, 40).astype(float)),
    "gaps": gappy(),
    "one input": given(2, 1),
    "one output": given(1, 3),
    "more outputs than inputs": given(4, 2),
    "increasing": replace(given(2, 3), constraint=ub.Increasing()),
}
every_problem = pytest.mark.parametrize("name", PROBLEMS)


def budget(method: Method, sweeps: int, tolerance: float = 0.0, target: float | None = None) -> Method:
    """The method with so many sweeps, and as many steps of its polish if it has one."""
    stopping = replace(method.stopping, max_sweeps=sweeps, tolerance=tolerance, target=target)
    polish = None if method.polish is None else Polish(replace(stopping, patience=method.polish.stopping.patience))
    return replace(method, stopping=stopping, polish=polish)


def lacks(method: Method, one: Given) -> str | None:
    """What a method without polish cannot do with a problem, in the words of its refusal."""
    if method.polish is not None:
        return None
    if one.J is None:
        return "the sweeps of this method work on Jacobians"
    if not one.problem.complete:
        return f"has gaps, which the sweeps of {method.name} do not know"
    if one.weights is not None and not method.weighted:
        return f"has weights, which the sweeps of {method.name} do not know"
    return None


every_pair = pytest.mark.parametrize(
    ("method", "name"),
    [
        pytest.param(method, name, id=f"{called}-{name}")
        for called, method in METHODS.items()
        for name, one in PROBLEMS.items()
        if lacks(method, one) is None
    ],
)
"""A method and a problem that it does not refuse."""


def fit_from_near(method: Method, one: Given, basis: Basis | None = None, *, polish: bool | None = None) -> ub.Fit:
    """The fit that starts at the model near the truth: no random number has a say in it."""
    basis = basis or ub.BSpline(df=6)
    return ub.decouple(
        one.problem, 2, basis=basis, constraint=one.constraint, method=method, polish=polish, init=one.near, rng=0
    )


@cache
def fit_from_random(method: Method, name: str) -> ub.Fit:
    """A fit of few sweeps from two random starts."""
    one = PROBLEMS[name]
    return ub.decouple(
        one.problem, 2, basis=ub.BSpline(df=6), constraint=one.constraint, method=budget(method, 3), starts=2, rng=0
    )
