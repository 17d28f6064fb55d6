"""Laws of the branches of every basis: the paper's coefficients, beyond the domain, and what is not a number."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import interpolate

import unbraid as ub
from registry import (
    BASES,
    SPLINES,
    distinct_inputs,
    every_basis,
    every_polynomial,
    knots,
    oracle,
    random_a,
    seeds,
)
from unbraid.bases import Basis, Polynomial
from unbraid.bases.splines import SplineBasis
from unbraid.kernels.arrays import Array
from unbraid.results.branch import FittedBranch

# The paper's coefficients.


def value_functions(basis: Basis) -> bool:
    return not (isinstance(basis, ub.BSpline) and basis.of == "slope")


@pytest.mark.parametrize("basis", [basis for basis in SPLINES if value_functions(basis)], ids=repr)
@given(u=distinct_inputs(), seed=seeds)
def test_value_coefficients_rebuild_the_function(basis: SplineBasis, u: Array, seed: int) -> None:
    """g = c_0 + Σ c_j N_j, with the first function dropped."""
    placed, a = basis.place(u), random_a(basis, seed)
    c = basis.paper_coefficients(placed, a)
    expected = c[0] + oracle(placed)(u)[:, 1:] @ c[1:]
    np.testing.assert_allclose(placed.evaluate(a, placed.at(u)), expected, rtol=0, atol=1e-12 * np.abs(c).sum())


@pytest.mark.parametrize("basis", [basis for basis in SPLINES if not value_functions(basis)], ids=repr)
@given(u=distinct_inputs(), seed=seeds)
def test_slope_coefficients_rebuild_the_function(basis: SplineBasis, u: Array, seed: int) -> None:
    """g = c_0 + ∫ Σ c_j N_j, the N_j being of degree d - 1 on the same knots."""
    placed, a = basis.place(u), random_a(basis, seed)
    c = basis.paper_coefficients(placed, a)
    slope = interpolate.BSpline(knots(placed)[1:-1], c[1:], basis.degree - 1)
    integral = slope.antiderivative()
    expected = c[0] + integral(u) - integral(placed.breakpoints[0])
    atol = 1e-11 * np.abs(a).max()
    np.testing.assert_allclose(placed.evaluate(a, placed.at(u)), expected, rtol=0, atol=atol)
    np.testing.assert_allclose(placed.evaluate(a, placed.at(u), 1), slope(u), rtol=0, atol=1e-12 * np.abs(c[1:]).max())


@every_polynomial
@given(u=distinct_inputs(), seed=seeds)
def test_polynomial_coefficients_are_a_legendre_series(basis: Polynomial, u: Array, seed: int) -> None:
    placed, a = basis.place(u), random_a(basis, seed)
    series = np.polynomial.Legendre(basis.paper_coefficients(placed, a), domain=placed.domain())
    np.testing.assert_allclose(placed.evaluate(a, placed.at(u)), series(u), rtol=0, atol=1e-12 * np.abs(a).sum())


@every_basis
@given(seed=seeds)
def test_coefficients_are_a_copy(basis: Basis, seed: int) -> None:
    placed, a = basis.place(np.random.default_rng(seed).standard_normal(40)), random_a(basis, seed)
    assert not np.shares_memory(basis.paper_coefficients(placed, a), a)


# Branches: beyond the domain, and what is not a number.


def random_branch(basis: Basis, seed: int) -> FittedBranch:
    u = np.random.default_rng(seed).standard_normal(50)
    return FittedBranch(basis, basis.place(u), random_a(basis, seed))


@every_basis
@given(seed=seeds, beyond=st.floats(1e-3, 1e3))
def test_a_branch_without_reach_continues_linearly_outside_its_domain(basis: Basis, seed: int, beyond: float) -> None:
    branch = random_branch(basis, seed)
    edges = np.array(branch.domain)
    value, slope = branch(edges), branch.derivative(edges)
    outside = edges + np.array([-beyond, beyond])
    np.testing.assert_allclose(branch(outside), value + slope * (outside - edges), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(branch.derivative(outside), slope, rtol=1e-13, atol=1e-13 * np.abs(slope).max())
    np.testing.assert_array_equal(branch.derivative(outside, 2), 0.0)


@every_basis
@given(seed=seeds)
def test_nan_in_gives_nan_out_and_leaves_its_neighbours_alone(basis: Basis, seed: int) -> None:
    branch = random_branch(basis, seed)
    low, high = branch.domain
    for derived in (branch, branch.derivative, lambda u: branch.derivative(u, 2)):
        clean = np.array([low - 1.0, 0.5 * (low + high), high + 1.0])
        dirty = derived(np.array([clean[0], np.nan, clean[1], np.nan, clean[2]]))
        np.testing.assert_array_equal(np.isnan(dirty), [False, True, False, True, False])
        np.testing.assert_allclose(dirty[[0, 2, 4]], derived(clean), rtol=1e-12)


@every_basis
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 4), (2, 3, 5)])
def test_a_branch_keeps_the_shape_of_its_inputs(basis: Basis, shape: tuple[int, ...]) -> None:
    branch, u = random_branch(basis, 0), np.random.default_rng(1).standard_normal(shape)
    for result in (branch(u), branch.derivative(u), branch.derivative(u, 2)):
        assert result.shape == shape
    flat = branch(u.ravel()).reshape(shape)
    np.testing.assert_array_equal(branch(u), flat)
    assert branch(u.tolist()).shape == shape


@every_basis
def test_a_branch_does_not_write_to_its_inputs(basis: Basis) -> None:
    branch, u = random_branch(basis, 0), np.linspace(-9.0, 9.0, 30)
    u.flags.writeable = False
    branch(u), branch.derivative(u), branch.derivative(u, 2)


@pytest.mark.parametrize("order", [0, 3, "first"])
def test_only_first_and_second_derivatives_are_offered(order: object) -> None:
    with pytest.raises(ub.UnbraidError, match="order must be 1 or 2"):
        random_branch(BASES[0], 0).derivative([0.0], order)  # type: ignore[arg-type]


@pytest.mark.parametrize("basis", BASES, ids=repr)
@given(seed=seeds)
def test_the_adjoint_is_the_transposed_design(basis: Basis, seed: int) -> None:
    rng = np.random.default_rng(seed)
    placed = basis.place(rng.standard_normal((2, 40)))
    u, G, R = rng.standard_normal((3, 2, 30))  # u may leave the domain
    expected = [(placed.design(u, k).mT @ y[..., None])[..., 0] for k, y in ((1, G), (0, R))]
    for values, total in ((None, expected[0]), (R, expected[0] + expected[1])):
        found = placed.adjoint(placed.at(u), G, values)
        np.testing.assert_allclose(found, total, rtol=0, atol=1e-11 * np.abs(total).max())


@given(seed=seeds)
def test_placing_does_not_write_to_its_inputs(seed: int) -> None:
    u = np.random.default_rng(seed).standard_normal((2, 30))
    u[0] = np.round(u[0])
    u.flags.writeable = False
    for basis in BASES:
        basis.place(u)


# Specifications.


@pytest.mark.parametrize(
    ("spec", "settings", "says"),
    [
        (ub.BSpline, {"df": 2, "degree": 3}, "df must be at least the degree"),
        (ub.BSpline, {"df": 0}, "df must be a whole number of at least 1, got 0"),
        (ub.BSpline, {"degree": 0}, "degree must be a whole number of at least 1, got 0"),
        (ub.BSpline, {"df": 12.5}, "df must be a whole number"),
        (ub.BSpline, {"df": True}, "df must be a whole number"),
        (ub.BSpline, {"of": "curvature"}, "of must be 'value' or 'slope'"),
        (ub.PiecewiseLinear, {"df": 0}, "df must be a whole number"),
        (ub.NaturalCubic, {"df": 0}, "df must be a whole number of at least 1, got 0"),
        (ub.NaturalCubic, {"df": 2.5}, "df must be a whole number"),
        (ub.Polynomial, {"degree": 0}, "degree must be a whole number"),
        (ub.Polynomial, {"degree": "3"}, "degree must be a whole number"),
    ],
)
def test_impossible_specifications_are_refused(spec: Callable[..., Basis], settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ub.UnbraidError, match=says):
        spec(**settings)


@every_basis
def test_specifications_are_frozen_and_equal_by_value(basis: Basis) -> None:
    field = "degree" if isinstance(basis, Polynomial) else "df"
    with pytest.raises(AttributeError):
        setattr(basis, field, 99)
    twin = eval(repr(basis), vars(ub))
    assert twin == basis
    assert hash(twin) == hash(basis)
