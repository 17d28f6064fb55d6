"""Splines piece by piece, and Legendre polynomials, against slow, obvious twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import interpolate

from registry import every_spline, knots, seeds
from unbraid.bases.splines import SplineBasis
from unbraid.kernels import splines
from unbraid.kernels.arrays import Array
from unbraid.kernels.legendre import legendre

# Splines piece by piece.


def breakpoints_of(basis: SplineBasis, seed: int) -> Array:
    gaps = np.random.default_rng(seed).uniform(0.1, 1.0, basis.df - basis.degree + 1)
    return np.concatenate([[0.0], np.cumsum(gaps)]) - 1.0


@every_spline
@given(seed=seeds)
def test_pieces_are_the_polynomials_of_the_basis_functions(basis: SplineBasis, seed: int) -> None:
    b = breakpoints_of(basis, seed)
    M, d = splines.pieces(b, basis.degree), basis.degree
    t = np.linspace(-1.0, 1.0, 7, endpoint=False)
    spline = interpolate.BSpline(splines.clamped_knots(b, d), np.eye(len(b) - 1 + d), d)
    for i in range(len(b) - 1):
        u = 0.5 * (b[i] + b[i + 1]) + 0.5 * (b[i + 1] - b[i]) * t
        expected = spline(u[1:])[:, i : i + d + 1]
        ours = np.stack([np.polynomial.Polynomial(M[k, :, i])(t[1:]) for k in range(d + 1)], axis=-1)
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-12)


@every_spline
def test_knots_are_clamped(basis: SplineBasis) -> None:
    placed = basis.place(np.linspace(0.0, 1.0, 40))
    np.testing.assert_array_equal(splines.clamped_knots(placed.breakpoints, basis.degree), knots(placed))


@given(seed=seeds, intervals=st.integers(1, 300))
def test_samples_are_located_in_the_interval_that_holds_them(seed: int, intervals: int) -> None:
    """Closed on the left, the last one on both sides; outside belongs to the nearest."""
    rng = np.random.default_rng(seed)
    b = np.sort(rng.standard_normal((2, intervals + 1)), axis=-1)
    u = np.concatenate([b, rng.uniform(-5.0, 5.0, (2, 50))], axis=-1)
    at = splines.locate(u, b)
    assert at.intervals == intervals
    for row in range(2):
        expected = np.clip(np.searchsorted(b[row], u[row], side="right") - 1, 0, intervals - 1)
        np.testing.assert_array_equal(at.interval[row], expected + row * intervals)
        low, high = b[row, expected], b[row, expected + 1]
        atol = 1e-14 * (1.0 + np.abs(u).max() / np.diff(b[row]).min())
        inside = (u[row] >= b[row, 0]) & (u[row] <= b[row, -1])
        t = (2.0 * u[row] - low - high) / (high - low)
        np.testing.assert_allclose(at.t[row][inside], t[inside], rtol=0, atol=atol)


@given(seed=seeds, count=st.integers(1, 11))
def test_moments_are_sums_of_powers_in_each_interval(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    b, u = np.sort(rng.standard_normal((3, 6)), axis=-1), rng.uniform(-1.0, 1.0, (3, 40))
    at = splines.locate(np.clip(u, b[:, :1], b[:, -1:]), b)
    sums = splines.moments(at, count)
    assert sums.shape == (count, 3, 5)
    for p, row, i in np.ndindex(count, 3, 5):
        here = at.interval[row] == row * 5 + i
        np.testing.assert_allclose(sums[p, row, i], np.sum(at.t[row, here] ** p), rtol=1e-11, atol=1e-11)


@every_spline
@given(seed=seeds, coupling=st.sampled_from([0.0, 0.1, 10.0]))
def test_gram_from_moments_is_that_of_the_designs(basis: SplineBasis, seed: int, coupling: float) -> None:
    rng = np.random.default_rng(seed)
    b, d = breakpoints_of(basis, seed), basis.degree
    u, G, R = rng.uniform(b[0], b[-1], 50), rng.standard_normal(50), rng.standard_normal(50)
    spline = interpolate.BSpline(splines.clamped_knots(b, d), np.eye(len(b) - 1 + d), d)
    values, slopes = spline(u), spline(u, 1)
    M, at = splines.pieces(b, d), splines.locate(u, b)
    sums = splines.moments(at, 2 * d + 1)
    gram = splines.assemble_matrix(splines.gram_shares(M, sums, b, coupling))
    expected = slopes.T @ slopes + coupling * values.T @ values
    np.testing.assert_allclose(gram, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    G.flags.writeable = R.flags.writeable = False
    right = splines.right_moments(at, d, G, R, coupling)
    ours = splines.assemble_vector(splines.basis_sums(M, right))
    theirs = slopes.T @ G + coupling * values.T @ R
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-11 * np.abs(slopes).sum(axis=0).max())
    counted = splines.assemble_vector(splines.basis_sums(M, sums))
    np.testing.assert_allclose(counted, values.sum(axis=0), rtol=0, atol=1e-12 * len(u))


@pytest.mark.parametrize("degree", [0, 1, 2, 5, 12])
@pytest.mark.parametrize("derivative", [0, 1, 2, 3])
def test_legendre_agrees_with_numpy(degree: int, derivative: int) -> None:
    t = np.linspace(-1.0, 1.0, 60).reshape(3, 20)
    series = [np.polynomial.Legendre.basis(k).deriv(derivative)(t) for k in range(degree + 1)]
    expected = np.stack(series, axis=-1)
    assert legendre(t, degree, derivative).shape == (3, 20, degree + 1)
    atol = 1e-12 * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(legendre(t, degree, derivative), expected, rtol=0, atol=atol)
