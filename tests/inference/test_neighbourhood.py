"""A fitted model to first order: derivatives, the normal matrix, and what they say of the fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unbraid as ub
from two_branches import SETTINGS, fitted, samples
from unbraid.inference import tangent
from unbraid.inference.neighbourhood import Neighbourhood


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_rows_are_the_derivatives_of_the_moved_model(settings: dict[str, Any]) -> None:
    fit, around = fitted(samples("both"), **settings)
    moving, rng = around.tangent, np.random.default_rng(0)
    low, high = around.problem.X.min(axis=0), around.problem.X.max(axis=0)
    X = rng.uniform(1.2 * low - 0.2 * high, 1.2 * high - 0.2 * low, (40, 3))  # also outside
    size = 1.0 / np.sqrt(np.maximum(np.diagonal(around.data_matrix), 1e-12))
    for k in range(0, moving.size, 3):
        step = np.zeros(moving.size)
        step[k] = 1e-5 * size[k]
        ahead, back = moving.moved(step), moving.moved(-step)
        for rows, exact in (
            (moving.values(X)[..., k], (ahead(X) - back(X)) / (2e-5 * size[k])),
            (moving.slopes(X)[..., k], (ahead.jacobian(X) - back.jacobian(X)) / (2e-5 * size[k])),
        ):
            scale = np.abs(rows).max() + 1e-3 * np.abs(fit.model(X)).max() / size[k]
            off = np.abs(rows - exact).reshape(len(X), -1).max(axis=1) / scale
            assert np.quantile(off, 0.9) < 1e-3  # but for points that a jump of a derivative comes past


@pytest.mark.parametrize("kind", ["both", "values", "slopes"])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_the_matrix_from_sums_is_that_of_the_rows(kind: str, weights: bool, settings: dict[str, Any]) -> None:
    _, around = fitted(samples(kind, weights), **settings)
    A = around.rows().A.reshape(-1, around.tangent.size)
    size = np.sqrt(np.maximum(np.sum(A**2, axis=0), 1e-300))
    off = (around.data_matrix - A.T @ A) / size[:, None] / size
    assert np.abs(off).max() < 1e-8


def test_means_over_samples_are_those_of_all_values(monkeypatch: pytest.MonkeyPatch) -> None:
    _, around = fitted(samples("both"))
    X, weights = around.problem.X, np.random.default_rng(0).dirichlet(np.ones(around.problem.S))
    slow = np.einsum("s,snu->nu", weights, around.tangent.values(X))
    for length in (7, 4096):
        monkeypatch.setattr(tangent, "MEAN_BLOCK", length)
        np.testing.assert_allclose(around.tangent.mean_values(X, weights), slow, atol=1e-9 * np.abs(slow).max())


def test_gaps_are_no_rows() -> None:
    _, around = fitted(samples("both", gaps=True))
    A, residual = around.rows()
    assert not A[5, 1].any()
    assert not A[8, 2:].any()
    assert residual[5, 1] == 0.0
    assert np.isfinite(around.data_matrix).all()


def gain_of_a_step(problem: ub.Problem, **settings: Any) -> float:
    """What a step of the linearised model would gain after a fit, as a share of the misfit."""
    fit, around = fitted(problem, **settings)
    A, residual = around.rows()
    descent = A.reshape(-1, around.tangent.size).T @ residual.ravel()
    W1 = fit.model.W1 / around.objective.units.f_scale[:, None]
    for k, one in enumerate(around.tangent.moves):
        branch: Any = fit.model.branches[one.branch]
        C = branch.placement.penalty_root()
        if C is not None:
            size = float(np.sum(W1[:, one.branch] ** 2))
            descent[around.tangent.parts(k)[2]] -= size * (one.curves.T @ (C.T @ (C @ branch.coordinates)))
    return float(descent @ around.solved(descent) / np.sum(residual**2))


@pytest.mark.parametrize("name", ["B-spline", "smoothing"])
def test_a_fit_is_at_the_minimum(name: str) -> None:
    """So that no step of the linearised model would gain much."""
    assert gain_of_a_step(samples("both"), **SETTINGS[name]) < 1e-4


def test_a_default_fit_is_usually_at_the_minimum() -> None:
    """Its directions stay in the last steps, in which knots are placed on them."""
    problem, gains = samples("both"), []
    assert problem.F is not None
    for seed in range(12):
        noise = 0.01 * np.random.default_rng(seed).standard_normal(problem.F.shape)
        gains.append(gain_of_a_step(ub.Problem(problem.X, problem.F + noise, problem.J)))
    assert np.median(gains) < 1e-4


def test_constraints_at_their_bounds_do_not_move() -> None:
    problem = samples("both")
    fit, _ = fitted(problem, **SETTINGS["increasing"])
    assert fit.minimised is not None
    around = Neighbourhood.of(fit.model, problem, fit.minimised, fit.constraints)
    free = [one.curves.shape[1] for one in around.tangent.moves]
    branch: Any = fit.model.branches[0]
    assert min(free) < len(branch.coordinates) - 1  # the parabola is pressed against its bound
    step = 1e-3 * np.random.default_rng(0).standard_normal(around.tangent.size)
    moved = around.tangent.moved(step / np.sqrt(np.maximum(np.diagonal(around.data_matrix), 1e-9)))
    assert moved.rank == 2


def test_freedom_is_that_of_the_fit() -> None:
    fit, around = fitted(samples("both"))
    assert fit.smoothing is not None
    assert around.freedom.sum() - fit.model.n == pytest.approx(float(fit.smoothing.freedom.sum()), rel=0.02)
    _, plain = fitted(samples("both"), basis=ub.Polynomial(3))
    assert plain.freedom.sum() == pytest.approx(plain.tangent.size, abs=1e-3)
