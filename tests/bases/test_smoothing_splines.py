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
from unbraid.bases.smoothing import PlacedSmoothing

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
