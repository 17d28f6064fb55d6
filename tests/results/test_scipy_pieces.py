"""`branch.to_scipy()`: the same function in SciPy's hands. A law of every basis: a new one joins by joining BASES."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import unbraid as ub
from registry import BASES, every_basis, seeds
from unbraid.bases import Basis
from unbraid.kernels.arrays import Array
from unbraid.results.branch import FittedBranch, FunctionBranch


def random_branch(basis: Basis, seed: int, reach: float) -> FittedBranch:
    rng = np.random.default_rng(seed)
    scale, offset = 10.0 ** rng.integers(-3, 4), rng.choice([0.0, 3.0, -40.0])
    placed = basis.place(scale * (rng.standard_normal(50) + offset))
    return FittedBranch(basis, placed, rng.standard_normal(basis.size), np.full(2, reach))


def inside_and_outside(branch: FittedBranch) -> tuple[Array, Array]:
    low, high = branch.domain
    length = high - low
    below, above = np.linspace(low - 3.0 * length, low, 150), np.linspace(high, high + 3.0 * length, 150)
    return np.linspace(low, high, 301), np.concatenate([below[:-1], above[1:]])


def assert_same(found: Array, expected: Array, size: float = 0.0) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * max(float(np.abs(expected).max()), size))


@every_basis
@pytest.mark.parametrize("reach", [0.0, 0.125])
@given(seed=seeds)
def test_scipy_has_the_same_values_and_slopes_inside_and_outside(basis: Basis, reach: float, seed: int) -> None:
    branch = random_branch(basis, seed, reach)
    there = branch.to_scipy()
    slope = there.derivative()
    steepest = float(np.abs(branch.derivative(inside_and_outside(branch)[0])).max())
    for u in inside_and_outside(branch):
        rounding = steepest * float(np.abs(u).max())  # of a last digit of u
        assert_same(there(u), branch(u), rounding)
        length = branch.domain[1] - branch.domain[0]
        assert_same(slope(u), branch.derivative(u), rounding * 4.0 * basis.size**2 / length)


@pytest.mark.parametrize("degree", [12, 20])
def test_polynomials_of_a_high_degree_are_as_accurate(degree: int) -> None:
    branch = random_branch(ub.Polynomial(degree), 0, 0.0)
    there, (inside, outside) = branch.to_scipy(), inside_and_outside(branch)
    assert_same(there(inside), branch(inside))
    assert_same(there(outside), branch(outside))


def test_scipy_knows_the_roots_and_integrals_of_a_fitted_branch() -> None:
    problem, _ = ub.datasets.trig(S=80, rng=0)
    for branch in ub.decouple(problem, 3, starts=2, rng=0).model.branches:
        there, (low, high) = branch.to_scipy(), branch.domain
        roots = there.roots(extrapolate=False)
        assert np.abs(branch(roots[np.isfinite(roots)])).max(initial=0.0) < 1e-9
        u = np.linspace(low, high, 20_001)
        assert float(there.integrate(low, high)) == pytest.approx(np.trapezoid(branch(u), u), rel=1e-5, abs=1e-6)


def test_a_branch_that_is_a_formula_has_none() -> None:
    with pytest.raises(ub.UnbraidError, match=r"FunctionBranch\(sin u\) is not made of polynomials"):
        FunctionBranch(np.sin, np.cos, "sin u").to_scipy()


def test_every_kind_of_basis_is_there() -> None:
    assert {type(one) for one in BASES} == set(ub.bases.BASES.values())
