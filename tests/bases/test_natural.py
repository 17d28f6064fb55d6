"""What makes a cubic spline natural: the oracle is SciPy's. The laws of every basis are in test_bases.py."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import interpolate

import unbraid as ub
from registry import NATURALS, distinct_inputs, dither, grid, inputs, pieces, seeds
from unbraid.bases.natural import PlacedNatural, fold, unfold
from unbraid.kernels.arrays import Array
from unbraid.results.branch import FittedBranch

every_natural = pytest.mark.parametrize("basis", NATURALS, ids=repr)


def random_branch(basis: ub.NaturalCubic, u: Array, seed: int) -> FittedBranch:
    return FittedBranch(basis, basis.place(u), np.random.default_rng(seed).standard_normal(basis.size))


def curvature_scale(placed: PlacedNatural) -> float:
    """The largest second derivative of a B-spline on these knots: what rounding errors of g'' are relative to."""
    return float(np.abs(placed.spline.design(pieces(placed), 2)).max())


def through(placed: PlacedNatural, y: Array) -> Array:
    """Coordinates of the function with values y at the breakpoints."""
    return np.asarray(np.linalg.solve(placed.design(pieces(placed)), y), dtype=np.float64)


def natural_through(b: Array, y: Array) -> Any:
    """SciPy's natural spline through values at all breakpoints."""
    return interpolate.CubicSpline(b, y, bc_type="natural")


@every_natural
@given(u=distinct_inputs(), seed=seeds)
def test_interpolation_at_the_knots_is_scipys_natural_spline(basis: ub.NaturalCubic, u: Array, seed: int) -> None:
    """df + 1 values at df + 1 knots settle both: the two spaces are the same."""
    placed = basis.place(u, evenness=0.5)
    b = pieces(placed)
    y = np.random.default_rng(seed).standard_normal(basis.size)
    z = through(placed, y)
    expected, points = natural_through(b, y), np.concatenate([u, grid(placed)])
    for derivative in (0, 1, 2):
        truth = expected(points, derivative)
        unit = np.diff(b).min() ** -derivative
        found = placed.evaluate(z, placed.at(points), derivative)
        np.testing.assert_allclose(found, truth, rtol=0, atol=1e-10 * max(np.abs(z).max() * unit, 1.0))


@given(seed=seeds)
def test_interpolation_agrees_with_scipys_b_splines(seed: int) -> None:
    """make_interp_spline has B-spline coefficients: those of the cubic, the two that z leaves out among them."""
    rng = np.random.default_rng(seed)
    placed = ub.NaturalCubic(df=8).place(rng.uniform(-1.0, 1.0, 60), evenness=0.5)
    b, y = pieces(placed), rng.standard_normal(9)
    a = interpolate.make_interp_spline(b, y, k=3, bc_type="natural").c
    z = through(placed, y)
    np.testing.assert_allclose(unfold(z, placed.shares), a, rtol=0, atol=1e-10 * np.abs(a).max())


@every_natural
@given(u=inputs())
def test_natural_functions_are_nonnegative_and_sum_to_one(basis: ub.NaturalCubic, u: Array) -> None:
    placed = basis.place(u)
    design = placed.design(u)
    assert design.min() >= -1e-13 - dither(placed, u)
    np.testing.assert_allclose(design.sum(axis=-1), 1.0, rtol=0, atol=1e-12 + dither(placed, u))


@every_natural
@given(u=distinct_inputs(), seed=seeds)
def test_the_second_derivative_is_zero_at_both_ends(basis: ub.NaturalCubic, u: Array, seed: int) -> None:
    branch = random_branch(basis, u, seed)
    placed = basis.place(u)
    ends = branch.derivative(branch.domain, 2)
    assert np.abs(ends).max() <= 1e-13 * curvature_scale(placed) * np.abs(branch.coordinates).max()


@every_natural
@given(u=distinct_inputs(), seed=seeds)
def test_the_linear_continuation_is_smooth_to_second_order(basis: ub.NaturalCubic, u: Array, seed: int) -> None:
    """Inside, the branch leaves its own continuation as the third power of the distance to the end."""
    branch = random_branch(basis, u, seed)
    b = pieces(basis.place(u))
    for end, width in ((b[0], b[1] - b[0]), (b[-1], b[-2] - b[-1])):
        line = branch(end) + branch.derivative(end) * (width * np.array([1.0, 0.5, 0.25]))
        apart = branch(end + width * np.array([1.0, 0.5, 0.25])) - line
        scale = 1e-12 * (np.abs(branch.coordinates).max() + np.abs(line).max())
        np.testing.assert_allclose(apart, apart[0] * np.array([1.0, 1 / 8, 1 / 64]), rtol=0, atol=scale)


@given(u=distinct_inputs(), seed=seeds)
def test_one_degree_of_freedom_is_a_straight_line(u: Array, seed: int) -> None:
    branch = random_branch(ub.NaturalCubic(1), u, seed)
    low, high = branch.domain
    points = np.linspace(low - 1.0, high + 1.0, 50)
    slope = (branch.coordinates[1] - branch.coordinates[0]) / (high - low)
    expected = branch.coordinates[0] + slope * (points - low)
    np.testing.assert_allclose(branch(points), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_allclose(branch.derivative(points), slope, rtol=1e-10, atol=1e-13)


@every_natural
@given(u=distinct_inputs(), slope=st.floats(-5.0, 5.0))
def test_straight_lines_are_natural_splines(basis: ub.NaturalCubic, u: Array, slope: float) -> None:
    placed = basis.place(u)
    z = through(placed, slope * pieces(placed) + 0.3)
    points = grid(placed)
    np.testing.assert_allclose(placed.evaluate(z, placed.at(points)), slope * points + 0.3, rtol=0, atol=1e-10)


@every_natural
@given(u=distinct_inputs(), seed=seeds)
def test_coefficients_rebuild_the_function(basis: ub.NaturalCubic, u: Array, seed: int) -> None:
    """g = c_0 + Σ c_j N_j, c_0 the value at the left end and the first natural function dropped."""
    branch = random_branch(basis, u, seed)
    c, placed = branch.coefficients, basis.place(u)
    assert branch(branch.domain[0]) == pytest.approx(c[0], abs=1e-13)
    np.testing.assert_allclose(branch(u), c[0] + placed.design(u)[:, 1:] @ c[1:], rtol=0, atol=1e-12 * np.abs(c).sum())


@every_natural
@given(u=inputs(), seed=seeds)
def test_coefficients_of_the_cubic_increase_to_the_last_bit(basis: ub.NaturalCubic, u: Array, seed: int) -> None:
    rng = np.random.default_rng(seed)
    z = np.cumsum(rng.exponential(size=basis.size) * (rng.random(basis.size) < 0.5)) - rng.exponential()
    assert np.diff(unfold(z, basis.place(u).shares)).min() >= 0.0


@every_natural
@given(seed=seeds)
def test_folding_is_the_transpose_of_unfolding(basis: ub.NaturalCubic, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares = basis.place(rng.standard_normal((2, 3, 40))).shares
    z, y = rng.standard_normal((2, 3, basis.size)), rng.standard_normal((2, 3, basis.size + 2))
    here, there = np.sum(unfold(z, shares) * y, axis=-1), np.sum(z * fold(y, shares), axis=-1)
    np.testing.assert_allclose(here, there, rtol=0, atol=1e-13 * basis.size * np.abs(z).max() * np.abs(y).max())


def test_the_default_solver_fits_natural_splines() -> None:
    problem, truth = ub.datasets.trig(rng=0)
    fit = ub.decouple(problem, 3, basis=ub.NaturalCubic(df=12), rng=0)
    given = ub.decouple(problem, 3, basis=ub.NaturalCubic(df=12), init=truth)
    assert fit.status.converged
    assert fit.objective <= 1.02 * given.objective
    assert fit.jacobian_error is not None
    assert fit.jacobian_error < 1e-2  # the true branches bend at their ends
    assert ub.metrics.direction_angles(truth.W0, fit.model.W0).max() < 2.0
    for branch in fit.model.branches:
        assert np.abs(branch.derivative(branch.domain, 2)).max() < 1e-9


@pytest.mark.parametrize("constraint", [ub.Increasing(), ub.Convex(), [ub.Concave(), None, ub.Decreasing()]], ids=repr)
def test_constrained_fits_of_natural_splines_are_certified(constraint: Any) -> None:
    problem, _ = ub.datasets.monotone(rng=0)
    fit = ub.decouple(problem, 3, basis=ub.NaturalCubic(df=10), constraint=constraint, starts=4, rng=0)
    each = constraint if isinstance(constraint, list) else [constraint] * 3
    assert all(one is None or branch.certified(one) for one, branch in zip(each, fit.model.branches, strict=True))
    assert fit.jacobian_error is not None
    assert fit.jacobian_error < 0.1  # little more than without a constraint: the true branches bend at their ends


def test_the_papers_method_fits_natural_splines() -> None:
    problem, _ = ub.datasets.trig(rng=0)
    fit = ub.decouple(problem, 3, basis=ub.NaturalCubic(df=12), method=ub.methods.dejonghe2025(), starts=5, rng=0)
    assert fit.jacobian_error is not None
    assert fit.jacobian_error < 2e-2


def test_systems_of_straight_lines_are_recovered_exactly() -> None:
    rng = np.random.default_rng(0)
    X, A = rng.standard_normal((40, 3)), rng.standard_normal((2, 3))
    problem = ub.Problem(X, X @ A.T, np.broadcast_to(A, (40, 2, 3)))
    fit = ub.decouple(problem, 2, basis=ub.NaturalCubic(df=1), rng=0)
    assert fit.objective < 1e-20
