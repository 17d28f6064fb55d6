"""Penalised splines: the penalty, its strength, and what a branch does beyond the range of its samples."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import unbraid as ub
from registry import CONSTRAINTS, seeds
from unbraid.bases.constraints import Constraint
from unbraid.bases.projection import Projection
from unbraid.bases.smoothing import PlacedSmoothing
from unbraid.kernels.arrays import Array
from unbraid.results.branch import FittedBranch, first_negative

# The penalty.


@pytest.mark.parametrize(
    "basis", [ub.SmoothingSpline(3, 3), ub.SmoothingSpline(9, 4), ub.SmoothingSpline(12)], ids=repr
)
@given(seed=seeds, scale=st.sampled_from([1e-3, 1.0, 50.0]))
def test_the_penalty_is_the_integral_of_the_squared_highest_derivative(
    basis: ub.SmoothingSpline, seed: int, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    placed = basis.place(scale * rng.standard_normal(60))
    a = rng.standard_normal(basis.size)
    low, high = placed.domain()
    fine = np.linspace(low, high, 20 * 1000 + 1)
    middle = 0.5 * (fine[1:] + fine[:-1])
    highest = placed.design(middle, basis.degree) @ a
    mean = np.sum(highest**2) * (fine[1] - fine[0]) / (high - low)
    expected = mean * ((high - low) / (2.0 * np.pi)) ** (2 * basis.degree)
    np.testing.assert_allclose(a @ placed.omega @ a, expected, rtol=5e-3)


@pytest.mark.parametrize("degree", [3, 4, 5])
def test_one_wave_over_the_range_has_roughness_one_half(degree: int) -> None:
    u = np.linspace(-3.0, 5.0, 400)
    placed = ub.SmoothingSpline(40, degree).place(u)
    a = np.linalg.lstsq(placed.design(u), np.sin(2.0 * np.pi * u / 8.0))[0]
    assert a @ placed.omega @ a == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize("degree", [3, 4, 5])
@given(seed=seeds)
def test_the_penalty_leaves_polynomials_of_one_degree_less_alone(degree: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    u = rng.standard_normal(80)
    placed = ub.SmoothingSpline(df=10, degree=degree, smoothing=1.0).place(u)
    polynomial = np.polynomial.Polynomial(rng.standard_normal(degree))
    G, R = polynomial.deriv()(u), polynomial(u)
    a = Projection.onto([None])(
        placed.select((None, None)), placed.at(u[None, None]), G[None, None], R[None, None], 0.5
    )
    np.testing.assert_allclose(placed.evaluate(a[0, 0], placed.at(u)), R, rtol=0, atol=1e-6 * np.abs(R).max())


@given(seed=seeds, smoothing=st.sampled_from([0.0, 1e-8, 1e-3]))
def test_a_projection_is_penalised_least_squares(seed: int, smoothing: float) -> None:
    rng = np.random.default_rng(seed)
    u, G, R = rng.uniform(-1, 1, (3, 70))
    placed = ub.SmoothingSpline(df=9, smoothing=smoothing).place(u)
    normal = placed.normal_equations(placed.at(u), G, R, 0.3)
    values, vectors = np.linalg.eigh(placed.omega)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    rows = [placed.design(u, 1), np.sqrt(0.3) * placed.design(u), np.sqrt(smoothing * 70) * root]
    A, y = np.concatenate(rows), np.concatenate([G, np.sqrt(0.3) * R, np.zeros(10)])
    penalty = placed.penalty()
    assert penalty is not None
    np.testing.assert_allclose(normal.gram + penalty, A.T @ A, rtol=0, atol=1e-9 * np.abs(A.T @ A).max())
    np.testing.assert_allclose(normal.right, A.T @ y, rtol=0, atol=1e-9 * np.abs(A.T @ y).max())


def test_settings_are_checked() -> None:
    with pytest.raises(ub.UnbraidError, match="df must be at least the degree"):
        ub.SmoothingSpline(df=4)
    with pytest.raises(ub.UnbraidError, match="degree"):
        ub.SmoothingSpline(degree=2)
    with pytest.raises(ub.UnbraidError, match="smoothing"):
        ub.SmoothingSpline(smoothing=-1.0)
    assert ub.SmoothingSpline().untuned().smoothing is not None
    assert ub.SmoothingSpline(smoothing=0.5).untuned().smoothing == 0.5


def test_a_placement_keeps_strengths_beside_its_knots() -> None:
    u = np.random.default_rng(0).standard_normal((2, 3, 40))
    placed = ub.SmoothingSpline(8, smoothing=0.1).place(u)
    strength = np.arange(6.0).reshape(2, 3)
    settled = replace(placed, strength=strength)
    np.testing.assert_array_equal(np.asarray(placed.keeping(settled).strength), strength)
    np.testing.assert_array_equal(np.asarray(settled.select([1]).strength), strength[[1]])
    np.testing.assert_array_equal(np.asarray(placed.joined([settled]).strength), [*np.full((2, 3), 4.0), *strength])
    merged = placed.merged(np.array([False, True]), settled)
    np.testing.assert_array_equal(np.asarray(merged.strength), [[4.0] * 3, strength[1]])
    assert isinstance(settled.moved(np.full((2, 3), 2.0), np.zeros((2, 3))), PlacedSmoothing)


# Beyond the range.


def random_branch(seed: int, constraint: Constraint | None = None, degree: int = 5) -> FittedBranch:
    rng = np.random.default_rng(seed)
    basis = ub.SmoothingSpline(9, degree, smoothing=0.0)
    placed = basis.place(rng.standard_normal(50))
    a = Projection.onto([constraint]).feasible(placed.select((None, None)), rng.standard_normal((1, 1, basis.size)))
    return FittedBranch(basis, placed, a[0, 0])


def beyond(branch: FittedBranch, share: float = 1.0) -> Array:
    """Points on both sides of the domain, up to a share of its length away, in order."""
    low, high = branch.domain
    far = np.linspace(0.0, share * (high - low), 201)
    return np.stack([low - far, high + far])


@pytest.mark.parametrize("degree", [3, 4, 5])
@given(seed=seeds)
def test_a_branch_without_shape_goes_on_as_a_polynomial_of_one_degree_less(degree: int, seed: int) -> None:
    branch = random_branch(seed, degree=degree)
    assume(not any(branch.certified(one) for one in CONSTRAINTS if one.order > 0))
    for u, end in zip(beyond(branch, 0.124), branch.domain, strict=True):
        taylor = [
            float(branch.placement.design(np.array([end]), k)[0] @ branch.coordinates) / math.factorial(k)
            for k in range(degree)
        ]
        expected = np.polynomial.polynomial.polyval(u - end, taylor)
        np.testing.assert_allclose(branch(u), expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("degree", [3, 5])
@pytest.mark.parametrize("constraint", [one for one in CONSTRAINTS if one.order > 0], ids=repr)
@given(seed=seeds)
def test_the_polynomial_goes_on_for_as_long_as_it_has_the_shape(constraint: Constraint, degree: int, seed: int) -> None:
    branch = random_branch(seed, constraint, degree)
    low, high = branch.domain
    for continuation, outwards in zip(branch.continuations, (-1.0, 1.0), strict=True):
        full = 0.125 * (high - low)
        assert 0.0 <= continuation.reach <= full
        shape = constraint.sign * np.polynomial.Polynomial(continuation.powers).deriv(constraint.order)
        kept = shape(outwards * np.linspace(0.0, continuation.reach, 400))
        assert kept.min() >= -1e-9 * np.abs(kept).max()


@pytest.mark.parametrize(
    ("powers", "first"), [([1.0, -2.0], 0.5), ([1.0, 0.0, 1.0], 1.0), ([-1.0], 0.0), ([0.0, -1.0], 0.0), ([2.0], 1.0)]
)
def test_the_first_place_where_a_polynomial_is_negative(powers: list[float], first: float) -> None:
    assert first_negative(np.array(powers), 1.0) == pytest.approx(first)


@given(seed=seeds)
def test_slopes_beyond_the_range_are_those_of_the_values(seed: int) -> None:
    branch = random_branch(seed)
    for u in beyond(branch):
        middle, h = 0.5 * (u[1:] + u[:-1]), u[1:] - u[:-1]
        differences = (branch(u[1:]) - branch(u[:-1])) / h
        bent = np.abs(branch.derivative(u, 2)).max() * np.abs(h).max()  # where it stops bending within a step
        scale = np.abs(differences).max()
        np.testing.assert_allclose(branch.derivative(middle), differences, rtol=0, atol=bent + 1e-9 * scale)


@pytest.mark.parametrize("constraint", [one for one in CONSTRAINTS if one.order > 0], ids=repr)
@given(seed=seeds)
def test_shapes_go_on_beyond_the_range(constraint: Constraint, seed: int) -> None:
    branch = random_branch(seed, constraint)
    low, high = beyond(branch)
    inside = np.linspace(*branch.domain, 100)
    u = np.concatenate([low[::-1], inside[1:-1], high])
    slopes = constraint.sign * branch.derivative(u)
    tolerance = 1e-10 * (np.abs(slopes).max() + 1e-300)
    if constraint.order == 1:
        assert slopes.min() >= -tolerance
    else:
        assert np.diff(slopes).min() >= -tolerance


def test_far_away_a_branch_is_a_straight_line() -> None:
    branch = random_branch(3)
    u = np.array([-1e6, -1e5, 1e5, 1e6])
    np.testing.assert_array_equal(branch.derivative(u, 2), 0.0)
    slopes = branch.derivative(u)
    assert slopes[0] == slopes[1]
    assert slopes[2] == slopes[3]
    assert np.isnan(branch(np.nan))
    assert np.isnan(branch.derivative(np.nan))
