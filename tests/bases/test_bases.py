"""Laws of every basis. A new one joins by joining BASES (or SPLINES) in registry.py."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

from registry import (
    KINDS,
    distinct_inputs,
    dither,
    every_basis,
    every_polynomial,
    every_spline,
    grid,
    inputs,
    oracle,
    pieces,
    random_a,
    seeds,
)
from unbraid.bases import Basis, Polynomial
from unbraid.bases.splines import SplineBasis
from unbraid.kernels import splines as kernel
from unbraid.kernels.arrays import Array

couplings = st.sampled_from([0.0, 1e-4, 0.1, 1.0, 1e3])


@every_basis
def test_a_basis_can_be_had_in_other_sizes(basis: Basis) -> None:
    assert basis.of_size(basis.size) == basis
    assert basis.of_size(basis.size + 3).size == basis.size + 3


# Values, slopes and second derivatives.


@every_spline
@given(u=inputs())
def test_spline_functions_sum_to_one(basis: SplineBasis, u: Array) -> None:
    placed = basis.place(u)
    np.testing.assert_allclose(placed.design(u).sum(axis=-1), 1.0, rtol=0, atol=1e-12 + dither(placed, u))


@every_spline
@given(u=inputs())
def test_spline_functions_are_nonnegative(basis: SplineBasis, u: Array) -> None:
    placed = basis.place(u)
    assert placed.design(u).min() >= -1e-13 - dither(placed, u)


@every_spline
@pytest.mark.parametrize("derivative", [0, 1, 2])
@given(u=inputs())
def test_splines_agree_with_scipy(basis: SplineBasis, derivative: int, u: Array) -> None:
    """To 1e-12 of the largest entry, or to what the last digit of u decides where u has a large offset."""
    placed = basis.place(u)
    points = np.concatenate([u, placed.breakpoints, grid(placed)])
    expected = oracle(placed)(points, derivative)
    atol = 1e-12 * np.abs(expected).max() + dither(placed, points, derivative)
    np.testing.assert_allclose(placed.design(points, derivative), expected, rtol=0, atol=atol)


@every_polynomial
@pytest.mark.parametrize("derivative", [0, 1, 2])
@given(u=inputs())
def test_polynomials_agree_with_numpy(basis: Polynomial, derivative: int, u: Array) -> None:
    placed = basis.place(u)
    low, high = placed.domain()
    points = np.concatenate([u, grid(placed)])
    series = [np.polynomial.Legendre.basis(k, domain=[low, high]).deriv(derivative)(points) for k in range(basis.size)]
    expected = np.stack(series, axis=-1)
    atol = 1e-12 * np.abs(expected).max() + dither(placed, points, derivative)
    np.testing.assert_allclose(placed.design(points, derivative), expected, rtol=0, atol=atol)


@every_basis
@pytest.mark.parametrize("derivative", [1, 2])
@given(u=distinct_inputs(), seed=seeds)
def test_each_derivative_is_the_central_difference_of_the_one_below(
    basis: Basis, derivative: int, u: Array, seed: int
) -> None:
    placed, a = basis.place(u), random_a(basis, seed)
    breakpoints = pieces(placed)
    middle, h = 0.5 * (breakpoints[1:] + breakpoints[:-1]), 1e-5 * np.diff(breakpoints)

    def below(points: Array) -> Array:
        return placed.evaluate(a, placed.at(points), derivative - 1)

    difference = (below(middle + h) - below(middle - h)) / (2.0 * h)
    exact = placed.evaluate(a, placed.at(middle), derivative)
    # relative to the size of the piece, whose own derivatives bound both truncation and rounding
    size = np.abs(placed.design(u, derivative)).max() * np.abs(a).max() + np.abs(below(u)).max() / np.diff(breakpoints)
    assert np.all(np.abs(difference - exact) <= 1e-6 * size)


@every_spline
@given(u=distinct_inputs(), seed=seeds)
def test_only_the_highest_derivative_jumps_at_interior_knots(basis: SplineBasis, u: Array, seed: int) -> None:
    """A spline of degree d has d - 1 continuous derivatives, and not d."""
    placed, a = basis.place(u), random_a(basis, seed)
    if len(placed.breakpoints) == 2:
        return
    P = kernel.combine(a, placed.value_pieces)
    for order in range(basis.degree + 1):
        alternating = (-1.0) ** np.arange(len(P))[:, None]
        from_left, from_right = P.sum(axis=0)[:-1], (P * alternating).sum(axis=0)[1:]
        jump, size = np.abs(from_left - from_right), np.abs(P).max()
        if order < basis.degree:
            assert jump.max() <= 1e-9 * size, f"derivative {order} jumps"
        else:
            assert jump.max() > 1e-6 * size, f"derivative {order} should jump"
        P = kernel.differentiate(P, placed.breakpoints)


@every_basis
@given(u=distinct_inputs(size=120))
def test_design_has_full_column_rank(basis: Basis, u: Array) -> None:
    placed = basis.place(u)
    assert np.linalg.matrix_rank(placed.design(u)) == basis.size
    assert np.linalg.matrix_rank(placed.design(u, 1)) == basis.size - 1


@every_basis
@pytest.mark.parametrize("derivative", [0, 1, 2])
@given(u=inputs(), seed=seeds)
def test_evaluation_is_design_times_coordinates(basis: Basis, derivative: int, u: Array, seed: int) -> None:
    placed, a = basis.place(u), random_a(basis, seed)
    design = placed.design(u, derivative)
    atol = 1e-12 * (np.abs(design) @ np.abs(a)).max() + dither(placed, u, derivative)
    np.testing.assert_allclose(placed.evaluate(a, placed.at(u), derivative), design @ a, rtol=0, atol=atol)


@every_basis
@given(u=inputs(), seed=seeds)
def test_value_and_slope_are_those_of_evaluate(basis: Basis, u: Array, seed: int) -> None:
    placed, a = basis.place(u), random_a(basis, seed)
    at = placed.at(u)
    value, slope = placed.value_and_slope(a, at)
    np.testing.assert_array_equal(value, placed.evaluate(a, at))
    expected = placed.evaluate(a, at, 1)  # by another order of the same operations
    np.testing.assert_allclose(slope, expected, rtol=0, atol=1e-12 * max(np.abs(expected).max(), np.abs(a).max()))


@every_basis
@given(seed=seeds, constant=st.sampled_from([-1e3, 0.0, 0.7, 1e-3]))
def test_constants_and_only_constants_are_told_to_be_constant(basis: Basis, seed: int, constant: float) -> None:
    u = np.random.default_rng(seed).standard_normal(40)
    placed = basis.place(u)
    flat = np.full(basis.size, constant)
    if isinstance(basis, Polynomial):
        flat[1:] = 0.0
    assert placed.is_constant(flat)
    np.testing.assert_allclose(placed.evaluate(flat, placed.at(u)), constant, rtol=1e-12)
    assert not placed.is_constant(random_a(basis, seed))


@every_basis
@given(seed=seeds)
def test_roughness_is_zero_for_straight_lines_only(basis: Basis, seed: int) -> None:
    placed = basis.place(np.random.default_rng(seed).standard_normal(40))
    rough = placed.roughness()
    assert rough.shape == (basis.size, basis.size)
    np.testing.assert_array_equal(rough, rough.T)
    assert np.linalg.matrix_rank(rough) == basis.size - 2
    assert np.linalg.eigvalsh(rough).min() >= -1e-9 * max(1.0, np.abs(rough).max())


# Normal equations.


@every_basis
@given(u=inputs(), seed=seeds, coupling=couplings, with_values=st.booleans())
def test_normal_equations_are_those_of_the_dense_designs(
    basis: Basis, u: Array, seed: int, coupling: float, with_values: bool
) -> None:
    placed, rng = basis.place(u), np.random.default_rng(seed)
    G, R = rng.standard_normal(len(u)), rng.standard_normal(len(u)) + 2.0 if with_values else None
    slopes, values = placed.design(u, 1), placed.design(u)
    gram, right = slopes.T @ slopes, slopes.T @ G
    most = np.abs(slopes).T @ np.abs(G)
    if R is not None:
        gram, right = gram + coupling * values.T @ values, right + coupling * values.T @ R
        most = most + coupling * np.abs(values).T @ np.abs(R)
    result = placed.normal_equations(placed.at(u), G, R, coupling)
    reach = 2 * basis.size if isinstance(basis, Polynomial) else 2 * getattr(basis, "degree", 3) + 1
    size = np.sqrt(ndimage.maximum_filter1d(np.diag(gram), reach))  # rounding is local, as the functions are
    assert np.all(np.abs(result.gram - gram) <= 1e-11 * np.outer(size, size))
    assert np.all(np.abs(result.right - right) <= 1e-11 * ndimage.maximum_filter1d(most, reach))
    np.testing.assert_allclose(result.total, values.sum(axis=0), rtol=0, atol=1e-12 * len(u))
    np.testing.assert_allclose(result.gram, result.gram.T, rtol=0, atol=1e-14 * np.abs(gram).max())


@every_basis
@given(seed=seeds, kind=st.sampled_from(sorted(KINDS)))
def test_leading_axes_give_the_bits_of_one_row_at_a_time(basis: Basis, seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    u = np.stack([KINDS[kind](rng, 50) for _ in range(6)]).reshape(2, 3, 50)
    a, G, R = random_a(basis, seed, 2, 3), rng.standard_normal(u.shape), rng.standard_normal(u.shape)
    together = basis.place(u)
    normal = together.normal_equations(together.at(u), G, R, 0.1)
    for row in np.ndindex(2, 3):
        alone = basis.place(u[row])
        for name, array in alone.arrays().items():
            np.testing.assert_array_equal(together.arrays()[name][row], array)
        np.testing.assert_array_equal(together.select(row).domain(), alone.domain())
        np.testing.assert_array_equal(together.design(u)[row], alone.design(u[row]))
        for derivative in (0, 1, 2):
            many = together.evaluate(a, together.at(u), derivative)[row]
            np.testing.assert_array_equal(many, alone.evaluate(a[row], alone.at(u[row]), derivative))
        one = alone.normal_equations(alone.at(u[row]), G[row], R[row], 0.1)
        for ours, theirs in zip(normal, one, strict=True):
            np.testing.assert_array_equal(ours[row], theirs)


@every_basis
def test_large_batches_give_the_bits_of_one_row_at_a_time(basis: Basis) -> None:
    """Temporaries come in blocks of bounded size: where the blocks end may not depend on the batch."""
    rng = np.random.default_rng(0)
    u, G, R = rng.standard_normal((3, 40, 1000))
    together = basis.place(u)
    normal = together.normal_equations(together.at(u), G, R, 0.1)
    for row in (0, 17, 39):
        alone = basis.place(u[row])
        one = alone.normal_equations(alone.at(u[row]), G[row], R[row], 0.1)
        for ours, theirs in zip(normal, one, strict=True):
            np.testing.assert_array_equal(ours[row], theirs)


# Placements: kept, merged and moved.


@every_basis
@given(u=inputs(), seed=seeds)
def test_a_placement_is_made_again_from_its_arrays(basis: Basis, u: Array, seed: int) -> None:
    placed, a = basis.place(u), random_a(basis, seed)
    again = basis.placement_from(placed.arrays())
    np.testing.assert_array_equal(again.evaluate(a, again.at(u)), placed.evaluate(a, placed.at(u)))


@every_basis
@given(seed=seeds)
def test_merging_takes_whole_starts_from_the_other(basis: Basis, seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = (basis.place(rng.standard_normal((3, 2, 40))) for _ in range(2))
    merged = first.merged(np.array([True, False, True]), second).arrays()
    for name, array in merged.items():
        np.testing.assert_array_equal(array[[0, 2]], second.arrays()[name][[0, 2]])
        np.testing.assert_array_equal(array[1], first.arrays()[name][1])


@every_basis
@given(u=distinct_inputs(), seed=seeds, power=st.integers(-4, 4), shift=st.floats(-1e3, 1e3))
def test_moving_the_inputs_leaves_the_function_the_same(
    basis: Basis, u: Array, seed: int, power: int, shift: float
) -> None:
    placed, a, scale = basis.place(u), random_a(basis, seed), 10.0**power
    moved = placed.moved(np.array(scale), np.array(shift))
    there = scale * u + shift
    expected = placed.evaluate(a, placed.at(u))
    atol = 1e-12 * np.abs(expected).max() + 10.0 * basis.size * dither(moved, there)
    np.testing.assert_allclose(moved.evaluate(a, moved.at(there)), expected, rtol=0, atol=atol)
    np.testing.assert_allclose(moved.domain(), scale * placed.domain() + shift, rtol=1e-15)
    np.testing.assert_allclose(moved.knots(), scale * placed.knots() + shift, rtol=1e-15)


@every_basis
@given(u=inputs())
def test_knots_come_in_order_from_one_end_of_the_domain_to_the_other(basis: Basis, u: Array) -> None:
    placed = basis.place(u)
    points = placed.knots()
    assert isinstance(basis, Polynomial) == (points.size == 0)
    if points.size:
        np.testing.assert_array_equal(points[[0, -1]], placed.domain())
        assert np.all(np.diff(points) > 0.0)
