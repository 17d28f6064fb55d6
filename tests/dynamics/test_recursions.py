"""Linear recursions, solved as banded systems, are those of a plain loop over time."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unbraid.dynamics.models.recursions import recursion_band, solve_recursion
from unbraid.kernels.arrays import Array


def solved_in_a_loop(M: Array, lags: list[int], b: Array) -> Array:
    """z_t = Σ_k M_k(t) z_{t - l_k} + b_t, as it is written."""
    P, T, q = b.shape
    z = np.zeros((P, T, q))
    for t in range(T):
        z[:, t] = b[:, t]
        for k, lag in enumerate(lags):
            if t >= lag:
                z[:, t] += z[:, t - lag] @ M[t, :, k * q : (k + 1) * q].T
    return z


@given(
    T=st.integers(1, 30),
    q=st.integers(1, 4),
    P=st.integers(1, 3),
    lags=st.sets(st.integers(1, 7), min_size=1, max_size=3).map(sorted),
    seed=st.integers(0, 99),
)
def test_solutions_are_those_of_a_loop(T: int, q: int, P: int, lags: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((T, q, q * len(lags))) / (q * len(lags))
    b = rng.standard_normal((P, T, q))
    expected = solved_in_a_loop(M, lags, b)
    found = solve_recursion(recursion_band(M, lags), b.copy())
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


def test_lags_longer_than_the_record_do_nothing() -> None:
    b = np.arange(6.0).reshape(1, 3, 2)
    band = recursion_band(np.ones((3, 2, 2)), [5])
    np.testing.assert_array_equal(solve_recursion(band, b.copy()), b)


def test_solutions_do_not_depend_on_how_right_hand_sides_are_batched() -> None:
    rng = np.random.default_rng(0)
    M, b = 0.3 * rng.standard_normal((50, 2, 4)), rng.standard_normal((4, 50, 2))
    band = recursion_band(M, [1, 3])
    together = solve_recursion(band, b.copy())
    np.testing.assert_allclose(together, np.concatenate([solve_recursion(band, one[None].copy()) for one in b]))
