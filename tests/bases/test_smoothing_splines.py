"""Penalised splines: the penalty and its strength."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from registry import seeds
from unbraid.bases.projection import Projection
from unbraid.bases.smoothing import PENALTIES, ROUGHNESS, PlacedSmoothing
from unbraid.kernels.arrays import Array

# The penalty.


def omega(placed: PlacedSmoothing) -> Array:
    """The matrix of the roughness."""
    root = placed.roots[ROUGHNESS]
    return np.asarray(root.mT @ root)


@pytest.mark.parametrize(
    "basis", [ub.SmoothingSpline(3, 3), ub.SmoothingSpline(9, 4), ub.SmoothingSpline(12)], ids=repr
)
@given(seed=seeds, scale=st.sampled_from([1e-3, 1.0, 50.0]))
def test_the_penalty_is_the_integral_of_the_squared_highest_derivative(
    basis: ub.SmoothingSpline, seed: int, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    placed = basis.place(scale * rng.uniform(-1.0, 1.0, 60))
    a = rng.standard_normal(basis.size)
    low, high = placed.domain()
    fine = np.linspace(low, high, 20 * 1000 + 1)
    middle = 0.5 * (fine[1:] + fine[:-1])
    highest = placed.design(middle, basis.degree) @ a
    mean = np.sum(highest**2) * (fine[1] - fine[0]) / (high - low)
    expected = mean * ((high - low) / (2.0 * np.pi)) ** (2 * basis.degree)
    np.testing.assert_allclose(a @ omega(placed) @ a, expected, rtol=5e-3)


@pytest.mark.parametrize("degree", [3, 4, 5])
def test_one_wave_over_the_range_has_roughness_one_half(degree: int) -> None:
    u = np.linspace(-3.0, 5.0, 400)
    placed = ub.SmoothingSpline(40, degree).place(u)
    a = np.linalg.lstsq(placed.design(u), np.sin(2.0 * np.pi * u / 8.0))[0]
    assert a @ omega(placed) @ a == pytest.approx(0.5, rel=0.02)


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
    values, vectors = np.linalg.eigh(omega(placed))
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
    strength = np.arange(2.0 * 3 * PENALTIES).reshape(2, 3, PENALTIES)
    settled = replace(placed, strength=strength)
    first = np.zeros((2, 3, PENALTIES))
    first[..., ROUGHNESS] = 4.0
    np.testing.assert_array_equal(np.asarray(placed.strength), first)
    np.testing.assert_array_equal(np.asarray(placed.keeping(settled).strength), strength)
    np.testing.assert_array_equal(np.asarray(settled.select([1]).strength), strength[[1]])
    np.testing.assert_array_equal(np.asarray(placed.joined([settled]).strength), [*first, *strength])
    merged = placed.merged(np.array([False, True]), settled)
    np.testing.assert_array_equal(np.asarray(merged.strength), [first[0], strength[1]])
    assert isinstance(settled.moved(np.full((2, 3), 2.0), np.zeros((2, 3))), PlacedSmoothing)


# All three penalties.


@pytest.mark.parametrize("degree", [3, 5])
@given(seed=seeds)
def test_penalties_see_what_they_say_and_nothing_less(degree: int, seed: int) -> None:
    """On knots of long tails: constants cost nothing, lines their slope alone, lower polynomials no roughness."""
    u = np.random.default_rng(seed).standard_cauchy(200)
    placed = ub.SmoothingSpline(20, degree).place(u)
    ends = placed.breakpoints
    u = (ends[:-1, None] + np.diff(ends)[:, None] * np.linspace(0.05, 0.95, degree + 1)).ravel()
    t = u / np.ptp(u)
    line, bend, rough = placed.roots
    for power, silent in ((0, (line, bend, rough)), (1, (bend, rough)), (degree - 1, (rough,))):
        a = np.linalg.lstsq(placed.design(u), t**power)[0]
        loud = max(float(np.abs(root @ a).max()) for root in (line, bend, rough)) + np.abs(a).max()
        assert all(np.abs(root @ a).max() < 1e-6 * loud for root in silent)
    slope = np.linalg.lstsq(placed.design(u), t)[0]
    assert np.abs(line @ slope).max() > 1e-3 * np.ptp(slope)


@pytest.mark.parametrize("degree", [3, 5])
@pytest.mark.parametrize("tails", [False, True])
def test_penalties_do_not_depend_on_the_units_of_inputs(degree: int, tails: bool) -> None:
    rng = np.random.default_rng(0)
    u = rng.standard_cauchy(100) if tails else rng.uniform(-1, 1, 100)
    one, other = (ub.SmoothingSpline(15, degree).place(v) for v in (u, 1e3 * u + 5.0))
    for first, second in zip(one.roots, other.roots, strict=True):
        np.testing.assert_allclose(first.mT @ first, second.mT @ second, atol=1e-7 * np.abs(first.mT @ first).max())


@pytest.mark.parametrize("tails", [False, True])
def test_in_rough_coordinates_roughness_is_one_or_nothing(tails: bool) -> None:
    rng = np.random.default_rng(0)
    u = rng.standard_cauchy((2, 100)) if tails else rng.uniform(-1, 1, (2, 100))
    placed = ub.SmoothingSpline(15).place(u)
    rough = placed.rough_coordinates
    root = rough.penalties.roots[ROUGHNESS]
    expected = np.diag((np.arange(16) >= 5).astype(float))
    np.testing.assert_allclose(root.mT @ root, np.broadcast_to(expected, (2, 16, 16)), atol=1e-6)
    np.testing.assert_allclose(rough.T @ rough.inverse, np.broadcast_to(np.eye(16), (2, 16, 16)), atol=1e-6)
    np.testing.assert_allclose(np.ptp(rough.T[..., 0], axis=-1), 0.0, atol=1e-12)  # the constant comes first


@given(samples=st.integers(2, 200))
def test_a_default_has_no_more_coefficients_than_samples(samples: int) -> None:
    assert ub.SmoothingSpline().for_samples(2 * samples, samples - 1).size <= samples
    assert ub.SmoothingSpline().searched().size <= ub.SmoothingSpline().size
