"""Every fast kernel against a slow, obvious twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import interpolate, linalg, optimize

import unbraid as ub
from registry import SPLINES, knots, seeds
from twin import cmtf_bsd
from unbraid.bases.constraints import Constraint
from unbraid.bases.projection import Projection
from unbraid.bases.splines import SplineBasis
from unbraid.data.in_memory import Samples
from unbraid.data.units import Units
from unbraid.kernels import factors, splines
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.kernels.legendre import legendre
from unbraid.kernels.quadratics import (
    minimise,
    minimise_nonnegative,
    nonnegative_by_factor,
    pseudo_inverse,
    spectral_pseudo_inverse,
    unit_diagonal,
)
from unbraid.solvers.alternating import AlternatingProjection, SweepState
from unbraid.solvers.coupling import FixedCoupling
from unbraid.solvers.translate import GivenModel

every_spline = pytest.mark.parametrize("basis", SPLINES, ids=repr)
sizes = st.integers(1, 12)


def columns(rng: np.random.Generator, rows: int, size: int, trouble: str) -> Array:
    """A tall matrix with the given kind of trouble."""
    M = rng.standard_normal((rows, size))
    if trouble == "badly scaled":
        M *= 10.0 ** rng.uniform(-6.0, 6.0, size)
    elif trouble == "nearly singular":
        half = size // 2  # pairs of columns that are nearly the same: a condition number of 1e10 in MᵀM
        M[:, half : 2 * half] = M[:, :half] + 1e-5 * M[:, half : 2 * half]
    elif trouble == "correlated":
        M = np.cumsum(M + 0.5, axis=1)
    elif trouble == "nonnegative":
        M = np.abs(M)
    return M


troubles = st.sampled_from(["none", "badly scaled", "nearly singular", "correlated", "nonnegative"])


def kkt_residual(A: Array, b: Array, x: Array, free: BoolArray) -> float:
    """How far x is from optimal, with unit diagonal and relative to b."""
    s = unit_diagonal(A)
    gradient, y = s * (A @ x - b), x / s
    size = np.abs(s * b).max() + np.abs(y).max() + 1e-300
    inside = free | (y > 0.0)
    worst = max(np.abs(gradient[inside]).max(initial=0.0), -gradient[~inside].min(initial=0.0))
    return float(max(worst, -y[~free].min(initial=0.0)) / size)


def assert_close(ours: Array, theirs: Array) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


# Quadratic problems.


@given(seed=seeds, size=sizes, trouble=troubles, freedom=st.sampled_from([0.0, 0.2, 1.0]))
def test_nonnegative_minimisers_satisfy_kkt(seed: int, size: int, trouble: str, freedom: float) -> None:
    rng = np.random.default_rng(seed)
    M, y = columns(rng, 30, size, trouble), rng.standard_normal(30)
    A, b, free = M.T @ M, M.T @ y, rng.random(size) < freedom
    x = minimise_nonnegative(A, b, free)
    assert x[~free].min(initial=0.0) >= 0.0
    assert kkt_residual(A, b, x, free) <= 1e-9


@given(seed=seeds, size=sizes, trouble=troubles, freedom=st.sampled_from([0.0, 0.2]))
def test_nonnegative_minimisers_are_those_of_scipy(seed: int, size: int, trouble: str, freedom: float) -> None:
    rng = np.random.default_rng(seed)
    M, y = columns(rng, 30, size, trouble), rng.standard_normal(30)
    free = rng.random(size) < freedom
    ours = minimise_nonnegative(M.T @ M, M.T @ y, free)
    doubled = np.column_stack([M, -M[:, free]])
    scale = np.linalg.norm(doubled, axis=0)
    x, residual = optimize.nnls(doubled / scale, y, maxiter=1000)
    assert np.linalg.norm(M @ ours - y) <= residual + 1e-9 * np.linalg.norm(y)
    np.testing.assert_allclose(M @ ours, doubled @ (x / scale), rtol=0, atol=1e-4)


@given(seed=seeds, size=sizes, trouble=troubles)
def test_many_nonnegative_problems_give_the_bits_of_one_at_a_time(seed: int, size: int, trouble: str) -> None:
    rng = np.random.default_rng(seed)
    M = np.stack([columns(rng, 20, size, trouble) for _ in range(6)]).reshape(2, 3, 20, size)
    A, b, free = M.mT @ M, rng.standard_normal((2, 3, size)), rng.random(size) < 0.2
    A[0, 0] = 0.0  # a singular one must not disturb the others
    together = minimise_nonnegative(A, b, free)
    for row in np.ndindex(2, 3):
        np.testing.assert_array_equal(together[row], minimise_nonnegative(A[row], b[row], free))


@given(seed=seeds, size=sizes)
def test_a_nonnegative_solution_is_the_plain_minimiser(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    M, truth = rng.standard_normal((30, size)), rng.exponential(size=size)
    A = M.T @ M
    ours = minimise_nonnegative(A, A @ truth, np.zeros(size, dtype=bool))
    np.testing.assert_allclose(ours, truth, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(minimise(A, A @ truth), truth, rtol=1e-8, atol=1e-10)


def test_pushing_everything_below_zero_gives_exact_zeros() -> None:
    A = np.eye(5) + 0.1
    np.testing.assert_array_equal(minimise_nonnegative(A, -np.ones(5), np.zeros(5, dtype=bool)), np.zeros(5))


def test_a_singular_problem_has_the_minimiser_of_least_norm() -> None:
    A, b = np.ones((3, 3)), np.ones(3)
    np.testing.assert_allclose(minimise(A, b), np.full(3, 1.0 / 3.0), rtol=1e-12)
    np.testing.assert_allclose(minimise(np.stack([A, np.eye(3)]), np.stack([b, b]))[1], b)


@given(seed=seeds, size=sizes, rank=st.integers(0, 12), scale=st.integers(-8, 8))
def test_pseudo_inverse_is_that_of_numpy(seed: int, size: int, rank: int, scale: int) -> None:
    """Of full rank, rank-deficient and zero."""
    M = np.random.default_rng(seed).standard_normal((min(rank, size), size))
    A = 10.0**scale * (M.T @ M)
    expected = np.linalg.pinv(A, rcond=1e-13 * size, hermitian=True)
    atol = 1e-8 * np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(pseudo_inverse(A), expected, rtol=0, atol=atol)
    np.testing.assert_allclose(spectral_pseudo_inverse(A), expected, rtol=0, atol=atol)


@given(seed=seeds)
def test_singular_members_of_a_batch_do_not_disturb_the_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((2, 3, 6, 4))
    A = M.mT @ M
    A[0, 1] = 0.0
    A[1, 0] = np.ones((4, 4))
    A[1, 2] = np.diag([1.0, 0.0, 2.0, 0.0])
    inverse = pseudo_inverse(A)
    for row in np.ndindex(2, 3):
        np.testing.assert_array_equal(inverse[row], pseudo_inverse(A[row]))
        np.testing.assert_allclose(inverse[row], np.linalg.pinv(A[row], hermitian=True), rtol=1e-7, atol=1e-9)
    A[0, 0, 0, 0] = np.nan
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(pseudo_inverse(A)[0, 0], 0.0)


@given(seed=seeds, size=st.integers(1, 6))
def test_the_last_resort_finds_the_same_minimiser(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((40, size))
    A, b, free = M.T @ M, rng.standard_normal(size), rng.random(size) < 0.3
    expected = minimise_nonnegative(A, b, free)
    np.testing.assert_allclose(nonnegative_by_factor(A, b, free), expected, rtol=1e-8, atol=1e-10)


# The linear steps of a sweep.


@st.composite
def factorisations(draw: st.DrawFn) -> tuple[dict[str, Array], Array]:
    """X-free data of a sweep: J (S, n·m) with weight, and the factors; and J·weight as (S, n, m)."""
    n, m, r, S = (draw(st.integers(1, k)) for k in (4, 4, 5, 9))
    rng = np.random.default_rng(draw(seeds))
    data = {
        "J": rng.standard_normal((S, n * m)),
        "weight": rng.uniform(0.5, 2.0, n * m),
        "F": rng.standard_normal((S, n)),
        "W0": rng.standard_normal((r, m)),
        "W1": rng.standard_normal((n, r)),
        "G": rng.standard_normal((S, r)),
        "R": rng.standard_normal((S, r)),
    }
    return data, (data["J"] * data["weight"]).reshape(S, n, m)


def model_jacobian(W1: Array, W0: Array, G: Array) -> Array:
    product: Array = np.einsum("ib,bk,sb->sik", W1, W0, G)
    return product


@given(factorisations())
def test_khatri_rao_rebuilds_the_jacobians(given: tuple[dict[str, Array], Array]) -> None:
    data, J = given
    KR = factors.khatri_rao(data["W1"], data["W0"])
    np.testing.assert_array_equal(KR, linalg.khatri_rao(data["W1"], data["W0"].T))
    expected = model_jacobian(data["W1"], data["W0"], data["G"]).reshape(len(J), -1)
    np.testing.assert_allclose(data["G"] @ KR.T, expected, rtol=1e-12, atol=1e-12)


@given(factorisations())
def test_products_and_contractions_are_the_sums_they_stand_for(given: tuple[dict[str, Array], Array]) -> None:
    data, J = given
    T = factors.jacobian_products(data["J"], data["weight"], data["G"])
    expected = np.einsum("sik,sb->ikb", J, data["G"])
    assert_close(T, expected.reshape(T.shape))
    inputs = factors.contract_inputs(T, data["W0"])
    assert_close(inputs, np.einsum("ikb,bk->ib", expected, data["W0"]))
    outputs = factors.contract_outputs(T, data["W1"])
    assert_close(outputs, np.einsum("ikb,ib->kb", expected, data["W1"]))


def well_conditioned(A: Array) -> bool:
    values = np.linalg.svd(A, compute_uv=False)
    kept = values[values > 1e-10 * values[0]]
    return bool(kept[-1] > 1e-3 * values[0])


@given(factorisations(), st.sampled_from([0.0, 0.01, 1.0, 100.0]))
def test_outer_step_is_least_squares_on_the_unfolding(given: tuple[dict[str, Array], Array], coupling: float) -> None:
    data, J = given
    W0, G, R, F, root = data["W0"], data["G"], data["R"], data["F"], np.sqrt(coupling)
    S, n, m = J.shape
    A = np.vstack([linalg.khatri_rao(G, W0.T), root * R])
    if not well_conditioned(A):
        return
    b = np.vstack([J.transpose(0, 2, 1).reshape(S * m, n), root * F])
    T = factors.jacobian_products(data["J"], data["weight"], G)
    gram = (G.T @ G) * (W0 @ W0.T)
    W1 = factors.outer_step(factors.contract_inputs(T, W0), gram, coupling * F.T @ R, coupling * R.T @ R)
    expected = np.linalg.lstsq(A, b, rcond=1e-8)[0].T
    np.testing.assert_allclose(W1, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


@given(factorisations())
def test_inner_step_is_least_squares_on_the_unfolding(given: tuple[dict[str, Array], Array]) -> None:
    data, J = given
    W1, G = data["W1"], data["G"]
    S, n, m = J.shape
    A = linalg.khatri_rao(G, W1)
    if not well_conditioned(A):
        return
    T = factors.jacobian_products(data["J"], data["weight"], G)
    expected = np.linalg.lstsq(A, J.reshape(S * n, m), rcond=1e-8)[0]
    W0 = factors.inner_step(T, W1, G.T @ G)
    np.testing.assert_allclose(W0, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


@given(factorisations())
def test_slopes_step_is_least_squares_on_the_unfolding(given: tuple[dict[str, Array], Array]) -> None:
    data, J = given
    A = linalg.khatri_rao(data["W1"], data["W0"].T)
    if not well_conditioned(A):
        return
    G = factors.least_norm_slopes(data["J"], data["weight"], data["W1"], data["W0"])
    expected = np.linalg.lstsq(A, J.reshape(len(J), -1).T, rcond=1e-8)[0].T
    np.testing.assert_allclose(G, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


@given(factorisations())
def test_values_step_is_least_squares(given: tuple[dict[str, Array], Array]) -> None:
    data, _ = given
    if not well_conditioned(data["W1"]):
        return
    R = factors.least_norm_values(data["F"], factors.pseudo_inverse_of(data["W1"]))
    expected = np.linalg.lstsq(data["W1"], data["F"].T, rcond=1e-8)[0].T
    np.testing.assert_allclose(R, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


@given(factorisations())
def test_nearest_values_are_the_minimiser_nearest_to_the_given(given: tuple[dict[str, Array], Array]) -> None:
    """Twin: least squares for the difference, whose solution of least norm is the shortest way."""
    data, _ = given
    F, W1, R = data["F"], data["W1"], data["R"]
    if not well_conditioned(W1):
        return
    nearest = factors.nearest_values(F, W1, factors.pseudo_inverse_of(W1), R)
    expected = R + np.linalg.lstsq(W1, (F - R @ W1.T).T, rcond=1e-8)[0].T
    np.testing.assert_allclose(nearest, expected, rtol=0, atol=1e-7 * np.abs(expected).max())
    least = factors.least_norm_values(F, factors.pseudo_inverse_of(W1))
    np.testing.assert_allclose(nearest @ W1.T, least @ W1.T, rtol=0, atol=1e-7 * np.abs(F).max())
    assert np.linalg.norm(nearest - R) <= np.linalg.norm(least - R) * (1.0 + 1e-9)


@given(factorisations())
def test_nearest_slopes_are_the_minimiser_nearest_to_the_given(given: tuple[dict[str, Array], Array]) -> None:
    data, J = given
    W1, W0, G = data["W1"], data["W0"], data["G"]
    A, flat = linalg.khatri_rao(W1, W0.T), J.reshape(len(J), -1)
    if not well_conditioned(A):
        return
    nearest = factors.nearest_slopes(data["J"], data["weight"], W1, W0, G)
    expected = np.linalg.lstsq(A, flat.T, rcond=1e-8)[0].T
    if A.shape[0] < A.shape[1]:
        expected = G + np.linalg.lstsq(A, (flat - G @ A.T).T, rcond=1e-8)[0].T
    np.testing.assert_allclose(nearest, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


@given(factorisations())
def test_misfits_are_the_sums_of_squared_residuals(given: tuple[dict[str, Array], Array]) -> None:
    data, J = given
    W1, W0, G, R, F = (data[name] for name in ("W1", "W0", "G", "R", "F"))
    T = factors.jacobian_products(data["J"], data["weight"], G)
    norm, gram = float(np.sum(J**2)), (G.T @ G) * (W0 @ W0.T)
    model = model_jacobian(W1, W0, G)
    misfit = factors.misfit(factors.contract_inputs(T, W0), gram, W1, norm)
    np.testing.assert_allclose(misfit, np.sum((J - model) ** 2), rtol=1e-10, atol=1e-12 * (norm + np.sum(model**2)))
    square, there = np.sum(F**2), R @ W1.T
    misfit = factors.misfit(F.T @ R, R.T @ R, W1, square)
    np.testing.assert_allclose(misfit, np.sum((F - there) ** 2), rtol=1e-10, atol=1e-12 * (square + np.sum(there**2)))


@given(factorisations())
def test_folding_units_in_is_scaling_the_jacobians(given: tuple[dict[str, Array], Array]) -> None:
    data, J = given
    scaled, ones = J.reshape(len(J), -1), np.ones(data["weight"].size)
    W1, W0, G = data["W1"], data["W0"], data["G"]
    for ours, theirs in (
        (factors.jacobian_products(data["J"], data["weight"], G), factors.jacobian_products(scaled, ones, G)),
        (
            factors.least_norm_slopes(data["J"], data["weight"], W1, W0),
            factors.least_norm_slopes(scaled, ones, W1, W0),
        ),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-11 * np.abs(theirs).max())


@given(seed=seeds)
def test_linear_steps_take_starts_as_a_leading_axis(seed: int) -> None:
    rng = np.random.default_rng(seed)
    S, n, m, r, B = 12, 2, 3, 4, 5
    J, weight, F = rng.standard_normal((S, n * m)), rng.uniform(0.5, 2.0, n * m), rng.standard_normal((S, n))
    W0, W1 = rng.standard_normal((B, r, m)), rng.standard_normal((B, n, r))
    G, R = rng.standard_normal((2, B, S, r))
    T, slopes = factors.jacobian_products(J, weight, G), factors.nearest_slopes(J, weight, W1, W0, G)
    inner, values = factors.inner_step(T, W1, G.mT @ G), factors.nearest_values(F, W1, factors.pseudo_inverse_of(W1), R)
    for b in range(B):
        one = factors.jacobian_products(J, weight, G[b])
        assert_close(T[b], one)
        assert_close(slopes[b], factors.nearest_slopes(J, weight, W1[b], W0[b], G[b]))
        assert_close(inner[b], factors.inner_step(one, W1[b], G[b].T @ G[b]))
        assert_close(values[b], factors.nearest_values(F, W1[b], factors.pseudo_inverse_of(W1[b]), R[b]))


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


# Whole sweeps against the plain twin.


def swept(solver: AlternatingProjection, state: SweepState, sweeps: int) -> SweepState:
    for _ in range(sweeps):
        state, events = solver.step(state)
        assert not events
    return state


@pytest.mark.parametrize("sweeps", [1, 10])
@pytest.mark.parametrize("constraint", [None, ub.Increasing()], ids=repr)
@pytest.mark.parametrize("seed", range(3))
def test_sweeps_are_those_of_the_plain_twin(sweeps: int, constraint: Constraint | None, seed: int) -> None:
    problem, truth = (ub.datasets.trig if constraint is None else ub.datasets.monotone)(rng=seed)
    assert problem.F is not None
    assert problem.J is not None
    df, degree, coupling = 12, 3, 0.01
    solver = AlternatingProjection(
        Samples.of(problem, Units.as_given(problem)),
        ub.BSpline(df=df, degree=degree),
        Projection.onto([constraint] * 3),
        FixedCoupling(coupling),
        anchored=False,
        normalised=True,
        offset=False,
    )
    rng = np.random.default_rng(seed)
    if constraint is None:
        start = solver.random_start(3, [rng])
    else:  # begin near the truth, where no branch falls: the twin has no stand-in for those
        W0 = truth.W0 + 0.1 * rng.standard_normal((3, 3))
        u = problem.X @ W0.T
        G = np.stack([branch.derivative(u[:, j]) for j, branch in enumerate(truth.branches)], axis=-1)
        R = np.stack([branch(u[:, j]) for j, branch in enumerate(truth.branches)], axis=-1)
        start = solver.start_from(GivenModel(W0, truth.W1, lambda X: (G, R)), rng)
    here = solver.samples.gathered().at(start.W0, start.placement, start.a)
    begin = start.W0[0], here.slopes[0], here.values[0]
    ours = swept(solver, start, sweeps)
    theirs = cmtf_bsd(
        problem.X, problem.F, problem.J, begin, df, degree, coupling, sweeps, increasing=constraint is not None
    )
    there = solver.samples.gathered().at(ours.W0, ours.placement, ours.a)
    found = ours.W1, ours.W0, there.slopes, there.values
    for name, mine, plain in zip(["W1", "W0", "G", "R"], found, theirs, strict=True):
        np.testing.assert_allclose(mine[0], plain, rtol=0, atol=1e-8 * np.abs(plain).max(), err_msg=name)
    measure = solver.measure(ours)
    J_hat = model_jacobian(theirs[0], theirs[1], theirs[2])
    np.testing.assert_allclose(
        measure.jacobian_error, ub.metrics.jacobian_error(problem.J, J_hat), rtol=1e-6, atol=1e-12
    )
