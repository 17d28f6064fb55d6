"""Strengths by restricted likelihood, against the likelihood written out and maximised by a general optimiser."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from scipy import optimize

from registry import seeds
from unbraid.bases.smoothing import even_coordinates
from unbraid.kernels.arrays import Array
from unbraid.kernels.restricted_likelihood import Expansion, Penalties, condition, update

PENALISED = even_coordinates(9, 3).spread_over((2,)).penalties
K = 12


PLACES = 2 + np.arange(2 * K).reshape(2, K)
"""Where the coefficients of each branch are among the unknowns."""


def regression(seed: int, rows: int = 150, noise: float = 0.3) -> tuple[Array, Array]:
    """Two unknowns, and behind them two branches of K coefficients each, one of which has no influence."""
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((rows, 2 * K + 2))
    truth = np.concatenate([rng.standard_normal(2), rng.standard_normal(K), np.zeros(K)])
    return D, D @ truth + noise * rng.standard_normal(rows)


def expansion(D: Array, y: Array, strengths: Array) -> Expansion:
    """The regression at its penalised minimum."""
    C = PENALISED.stacked(strengths)
    V = D.T @ D
    for j, own in enumerate(PLACES):
        V[np.ix_(own, own)] += C[j].T @ C[j]
    x = np.asarray(np.linalg.solve(V, D.T @ y), dtype=np.float64)
    misfit = float(np.sum((y - D @ x) ** 2))
    return Expansion(D.T @ D, misfit, float(len(y)), x[PLACES], PENALISED)


def after_updates(D: Array, y: Array, times: int) -> tuple[Expansion, Array]:
    """The regression before the last of so many updates from strengths of one, and the strengths after it."""
    strengths = np.ones((2, 3))
    for _ in range(times):
        fit = expansion(D, y, strengths)
        strengths = update(fit, strengths, condition(fit, strengths))
    return fit, strengths


def deviance_of(D: Array, y: Array, strengths: Array) -> float:
    """Minus twice the restricted log-likelihood of y = X b + Z c + noise, c standard normal, with σ² profiled out."""
    C = PENALISED.stacked(strengths)
    random, fixed = [], [D[:, :2]]
    for j in range(2):
        own = D[:, PLACES[j]]
        _, sizes, rows = np.linalg.svd(C[j])
        kept = sizes > 1e-12 * sizes[0]
        random.append(own @ rows[: len(sizes)][kept].T / sizes[kept])
        fixed.append(own @ np.concatenate([rows[: len(sizes)][~kept], rows[len(sizes) :]]).T)
    Z, X = np.hstack(random), np.hstack(fixed)
    sigma = np.eye(len(y)) + Z @ Z.T
    inner = X.T @ np.linalg.solve(sigma, X)
    residual = y - X @ np.linalg.solve(inner, X.T @ np.linalg.solve(sigma, y))
    left = len(y) - X.shape[1]
    square = float(residual @ np.linalg.solve(sigma, residual))
    return float(left * np.log(square / left) + np.linalg.slogdet(sigma)[1] + np.linalg.slogdet(inner)[1])


@given(seed=seeds)
def test_the_deviance_is_that_of_a_mixed_model_up_to_a_constant(seed: int) -> None:
    D, y = regression(seed)
    tried = np.exp(np.random.default_rng(seed).normal(0.0, 3.0, (3, 2, 3)))
    fits = [expansion(D, y, one) for one in tried]
    found = [condition(fit, one).deviance for fit, one in zip(fits, tried, strict=True)]
    wanted = [deviance_of(D, y, one) for one in tried]
    np.testing.assert_allclose(np.diff(found), np.diff(wanted), rtol=1e-6, atol=1e-5)


@given(seed=seeds)
def test_freedom_is_the_trace_of_what_makes_fits_of_data(seed: int) -> None:
    D, y = regression(seed)
    strengths = np.exp(np.random.default_rng(seed).normal(0.0, 2.0, (2, 3)))
    fit = expansion(D, y, strengths)
    known = condition(fit, strengths)
    C, V = PENALISED.stacked(strengths), D.T @ D
    for j, own in enumerate(PLACES):
        V[np.ix_(own, own)] += C[j].T @ C[j]
    hat = D @ np.linalg.solve(V, D.T)
    assert known.freedom.sum() == pytest.approx(np.trace(hat), rel=1e-6)
    assert known.variance == pytest.approx(fit.misfit / (len(y) - np.trace(hat)), rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_updates_lead_to_the_greatest_likelihood(seed: int) -> None:
    D, y = regression(seed)
    _, strengths = after_updates(D, y, 300)
    best = min(
        optimize.minimize(
            lambda x: deviance_of(D, y, np.exp(np.clip(x, -25, 25)).reshape(2, 3)), begin, method="Nelder-Mead"
        ).fun
        for begin in (np.zeros(6), np.log(np.clip(strengths, 1e-8, 1e8)).ravel())
    )
    assert deviance_of(D, y, np.clip(strengths, 1e-10, 1e10)) <= best + 0.05


@pytest.mark.parametrize("seed", range(5))
def test_what_data_do_not_support_uses_no_freedom(seed: int) -> None:
    D, y = regression(seed)
    fit, strengths = after_updates(D, y, 100)
    used = condition(fit, strengths).freedom[PLACES].sum(axis=-1)
    assert used[0] > 8.0
    assert used[1] < 4.0  # the constant, which no penalty sees, and what noise looks like


def test_exact_data_are_fitted_exactly() -> None:
    D, y = regression(0, noise=0.0)
    fit, _ = after_updates(D, y, 30)
    assert fit.misfit < 1e-12 * np.sum(y**2)


def test_strengths_stay_within_bounds_where_a_branch_has_no_influence() -> None:
    D, y = regression(1)
    D[:, PLACES[1]] = 0.0
    strengths = np.ones((2, 3))
    fit = Expansion(D.T @ D, 1.0, len(y), np.zeros((2, K)), PENALISED)
    for _ in range(50):
        strengths = update(fit, strengths, condition(fit, strengths))
    assert np.isfinite(strengths).all()
    assert (strengths > 0.0).all()


def test_penalties_of_some_branches_and_coordinates() -> None:
    some = PENALISED.take(np.array([1])).on(slice(1, None))
    assert [R.shape for R in some.roots] == [(1, 1, K - 1), (1, K - 2, K - 1), (1, 9, K - 1)]
    again = Penalties.of([R[1:, :, 1:] for R in PENALISED.roots])
    for one, other in zip(some.inverses, again.inverses, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8 * np.abs(other).max())
