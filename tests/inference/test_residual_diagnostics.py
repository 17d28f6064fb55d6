"""Residuals looked at closely agree with an explicit hat matrix, with models without a sample, and with what is known
of noise."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import unbraid as ub
from unbraid.inference.linearised import kinds_of
from unbraid.inference.neighbourhood import Neighbourhood, neighbourhood_of
from unbraid.inference.residuals import ResidualDiagnostics, diagnose_residuals, lag_one, normalities, runs


@cache
def looked_at(kind: str) -> tuple[Neighbourhood, ResidualDiagnostics]:
    """A fit to 60 noisy samples of f_trig, of which one is far off, and what its residuals show."""
    rng = np.random.default_rng(3)
    problem, _ = ub.datasets.trig(S=60, rng=1)
    assert problem.F is not None
    assert problem.J is not None
    F = problem.F + 0.05 * rng.standard_normal(problem.F.shape)
    J = problem.J + 0.05 * rng.standard_normal(problem.J.shape)
    F[17, 0] += 2.0
    given = {
        "values": ub.Problem(problem.X, F),
        "both, weighted": ub.Problem(problem.X, F, J, weights=rng.uniform(0.5, 2.0, 60)),
        "gaps": ub.Problem(problem.X, np.where(rng.uniform(size=F.shape) < 0.1, np.nan, F), J, missing="mask"),
    }[kind]
    fit = ub.decouple(given, 3, starts=3, rng=0)
    around = neighbourhood_of(fit, given)
    return around, diagnose_residuals(around)


every_kind = pytest.mark.parametrize("kind", ["values", "both, weighted", "gaps"])


@every_kind
def test_leverages_and_residuals_are_those_of_the_hat_matrix(kind: str) -> None:
    around, found = looked_at(kind)
    A, residual = around.rows()
    S, q, U = A.shape
    known = ~np.isnan(around.residuals())
    flat = A.reshape(-1, U)
    hat = flat @ np.linalg.solve(flat.T @ flat + around.penalty, flat.T)
    h = np.diag(hat).reshape(S, q)
    np.testing.assert_allclose(found.leverages, (h * known).sum(axis=1) / known.sum(axis=1), rtol=1e-4)
    kinds = kinds_of(around)
    for k in range(kinds.max() + 1):
        own = kinds == k
        variance = np.sum(residual[:, own] ** 2) / (known[:, own].sum() - h[:, own].sum())
        expected = residual[:, own] / np.sqrt(variance * (1.0 - h[:, own]))
        np.testing.assert_allclose(found.residuals[:, own][known[:, own]], expected[known[:, own]], rtol=1e-4)
    assert np.isnan(found.residuals[~known]).all()


@every_kind
def test_cooks_distance_is_how_far_the_linear_model_moves_without_a_sample(kind: str) -> None:
    around, found = looked_at(kind)
    A, residual = around.rows()
    flat = A.reshape(-1, A.shape[-1])
    V = flat.T @ flat + around.penalty
    used = np.trace(np.linalg.solve(V, flat.T @ flat))
    pooled = np.sum(residual**2) / (np.count_nonzero(~np.isnan(around.residuals())) - used)
    for s in range(0, len(A), 7):
        theta = np.linalg.solve(V - A[s].T @ A[s], -A[s].T @ residual[s])
        assert found.cook[s] == pytest.approx(np.sum((flat @ theta) ** 2) / (used * pooled), rel=1e-3)


def test_a_sample_that_is_far_off_stands_out() -> None:
    found = looked_at("both, weighted")[1]
    assert np.nanargmax(np.abs(found.residuals[:, 0])) == 17
    assert found.normality_z[0] > 3.0


def test_a_line_through_samples_hangs_on_the_one_that_is_far_out() -> None:
    """A branch of degree one has the textbook's leverages, 1/S + (x - mean)² / Σ (x - mean)²."""
    rng = np.random.default_rng(0)
    x = np.append(rng.uniform(-1.0, 1.0, 40), 6.0)
    problem = ub.Problem(x, 2.0 * x + 0.1 * rng.standard_normal(41))
    fit = ub.decouple(problem, 1, basis=ub.Polynomial(1), starts=1, rng=0)
    found = diagnose_residuals(neighbourhood_of(fit, problem))
    np.testing.assert_allclose(found.leverages, 1 / 41 + (x - x.mean()) ** 2 / np.sum((x - x.mean()) ** 2), rtol=1e-6)
    assert np.argmax(found.leverages) == 40


def test_noise_is_noise_in_most_draws() -> None:
    """Z of all three kinds is below 3 for nearly all columns of noise, and above for a drift and for long tails."""
    rng = np.random.default_rng(0)
    e = rng.standard_normal((100, 200))
    for z in (lag_one(e)[1], runs(e), normalities(e)[1]):
        assert np.mean(z > 3.0) < 0.03
        assert abs(np.mean(z)) < 0.4
        assert 0.7 < np.std(z) < 1.3
    drift = np.cumsum(e, axis=0)
    assert np.mean(lag_one(drift)[1] > 3.0) > 0.95
    assert np.mean(runs(drift) > 3.0) > 0.9
    assert np.mean(normalities(np.exp(e))[1] > 3.0) > 0.95


def test_what_cannot_be_told_is_no_cause_for_alarm() -> None:
    """Nothing is left, or nothing is known, or there are three samples."""
    for e in (np.zeros((30, 1)), np.full((30, 1), np.nan), np.array([[0.1], [0.3], [-0.2]])):
        for z in (lag_one(e)[1], runs(e), normalities(e)[1]):
            assert np.all(np.abs(z) < 2.0)
