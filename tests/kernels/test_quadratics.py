"""Quadratic problems, with and without bounds, against slow, obvious twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from registry import seeds
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.kernels.decompositions import last_of_inverse, pseudo_inverse, spectral_pseudo_inverse
from unbraid.kernels.quadratics import (
    minimise,
    minimise_definite,
    minimise_nonnegative,
    nonnegative_by_factor,
    unit_diagonal,
)

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
def test_any_guess_leads_to_the_same_minimiser(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    M, b, free = rng.standard_normal((20, size)), rng.standard_normal(size), rng.random(size) < 0.2
    guessed = minimise_nonnegative(M.T @ M, b, free, rng.random(size) < 0.5)
    np.testing.assert_allclose(guessed, minimise_nonnegative(M.T @ M, b, free), rtol=1e-6, atol=1e-9)


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


@given(seed=seeds, size=sizes, share=st.floats(0.0, 1.0))
def test_the_last_of_an_inverse_is_that_of_the_whole_one(seed: int, size: int, share: float) -> None:
    M = np.random.default_rng(seed).standard_normal((2 * size + 4, size))
    A, first = M.T @ M, int(share * (size - 1))
    last, pivots = last_of_inverse(A, first)
    np.testing.assert_allclose(last, np.linalg.inv(A)[first:, first:], rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(last, last.T)
    assert np.log(pivots).sum() == pytest.approx(np.linalg.slogdet(A)[1], abs=1e-8)


def test_the_last_of_the_inverse_of_a_singular_matrix_is_that_of_its_pseudo_inverse() -> None:
    A = np.outer([1.0, -2.0, 3.0], [1.0, -2.0, 3.0]) - 1e-12 * np.eye(3)
    last, pivots = last_of_inverse(A, 1)
    np.testing.assert_allclose(last, spectral_pseudo_inverse(A[None])[0, 1:, 1:])
    assert np.isfinite(np.log(pivots)).all()


@given(seed=seeds, size=sizes)
def test_definite_matrices_are_solved_as_others_are(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    M, b = rng.standard_normal((3, 2 * size + 4, size)), rng.standard_normal((3, size))
    A = M.mT @ M
    A[1] = -A[1]  # not definite: solved all the same
    np.testing.assert_allclose(minimise_definite(A, b), minimise(A, b), rtol=1e-6, atol=1e-9)
