"""Defaults where samples are few, or branches too many: what goes through all numbers is not believed for that."""

from __future__ import annotations

import numpy as np
import pytest

import unbraid as ub
from draws import few_or_many
from unbraid.data.units import Units
from unbraid.kernels.arrays import Array
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Iterates

SLOPES = np.array([1.0, 2.0, -1.0, 0.5])


def linear_table(S: int, seed: int) -> tuple[Array, Array]:
    """A table of four inputs, and an output that is linear but for 10 % noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(S, 4))
    return X, X @ SLOPES + 0.25 * rng.normal(size=S)


def error_on_lines(predict: object) -> float:
    """The error in % on fresh points without noise."""
    X = np.random.default_rng(999).normal(size=(500, 4))
    truth = X @ SLOPES
    assert callable(predict)
    return 100.0 * float(np.sqrt(np.mean((np.ravel(predict(X)) - truth) ** 2)) / truth.std())


@few_or_many(3, 10)
def test_small_noisy_tables_are_no_worse_than_lines(draws: int) -> None:
    """A curve through all of 20 to 30 rows, along any direction, is no exact fit; nor do curves collapse."""
    ratios, ranks = [], []
    for seed in range(draws):
        for S in (20, 30):
            X, y = linear_table(S, seed)
            line = np.linalg.lstsq(np.hstack([X, np.ones((S, 1))]), y)[0]
            least = error_on_lines(lambda Z, line=line: Z @ line[:-1] + line[-1])
            fits = [ub.decouple(ub.Problem(X, y), rank, starts=4, rng=0) for rank in (1, "auto")]
            ratios += [error_on_lines(fit.model) / least for fit in fits]
            ranks.append(fits[1].model.rank)
    assert np.median(ratios) < 1.3
    assert np.mean(np.array(ratios) < 3.0) >= 0.8
    assert np.mean(np.array(ranks) == 1) >= 0.8


@few_or_many(2, 6)
def test_noise_alone_supports_next_to_nothing(draws: int) -> None:
    spreads = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        X, y, fresh = rng.normal(size=(120, 5)), rng.normal(size=120), rng.normal(size=(300, 5))
        spreads.append(np.std(ub.decouple(ub.Problem(X, y), 2, starts=4, rng=0).model(fresh)))
    assert np.median(spreads) < 0.6


@few_or_many(3, 10)
def test_few_values_with_jacobians_are_enough_for_curves(draws: int) -> None:
    """Fourteen samples of f_trig: with fewer knots than samples the default is below any df of a B-spline."""
    fresh, _ = ub.datasets.trig(S=500, rng=100)
    assert fresh.F is not None
    errors = []
    for seed in range(draws):
        problem, _ = ub.datasets.trig(S=14, rng=seed)
        fits = [ub.decouple(problem, 3, basis=basis, starts=8, rng=0) for basis in (None, ub.BSpline(8))]
        errors.append([ub.metrics.output_errors(fresh.F, fit.model(fresh.X)).max() for fit in fits])
    default, splines = np.median(errors, axis=0)
    assert default < splines


@few_or_many(2, 5)
def test_exact_data_need_no_superfluous_branch(draws: int) -> None:
    """More branches would follow what splines of two leave, 1e-5 of the values: that is not support."""

    def f(X: Array) -> Array:
        a, b = X[:, 0] + X[:, 1], X[:, 1] - X[:, 2]
        return np.stack([np.exp(0.5 * a) + np.sin(2.0 * b), 2.0 * np.sin(2.0 * b)], axis=1)

    fresh, kept, ratios = np.random.default_rng(98).uniform(-1.5, 1.5, (500, 3)), [], []
    for seed in range(draws):
        X = np.random.default_rng(seed).uniform(-1.5, 1.5, (150, 3))
        problem = ub.Problem.from_function(f, X)
        fits = [ub.decouple(problem, rank, starts=8, rng=0) for rank in (2, 3)]
        errors = [ub.metrics.output_errors(f(fresh), fit.model(fresh)).max() for fit in fits]
        ratios.append(errors[1] / max(errors[0], 1e-3))
        assert fits[1].smoothing is not None
        kept.append(fits[1].smoothing.supported)
    assert np.median(kept) == 2
    assert np.median(ratios) < 1.5


def wide_table(S: int = 20, m: int = 60) -> ub.Problem:
    """A table of fewer rows than inputs, in units that differ."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(S, m)) * np.logspace(-1.0, 1.0, m) + 3.0
    return ub.Problem(X, np.column_stack([np.tanh(X[:, 0]), X[:, 1] ** 2]))


@pytest.mark.parametrize("init", [False, True])
@pytest.mark.parametrize("gaps", [False, True])
def test_fewer_samples_than_inputs_are_fitted_in_a_basis_of_what_they_span(
    init: bool, gaps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Solvers see no other inputs, however many there are, and nothing is lost by that."""
    problem, seen = wide_table(), []
    if gaps:
        assert problem.F is not None
        F = np.where(np.arange(problem.S)[:, None] + np.arange(2) == 4, np.nan, problem.F)
        problem = ub.Problem(problem.X, F, missing="mask")
    before = GaussNewton.start

    def start(self: GaussNewton, iterates: Iterates) -> object:
        seen.append(self.samples.m)
        return before(self, iterates)

    monkeypatch.setattr(GaussNewton, "start", start)
    given = ub.datasets.random_system(2, problem.m, 2, 30, "sine", rng=0)[1] if init else None
    fit = ub.decouple(problem, 2, starts=2, init=given, rng=0, jobs=1)
    assert seen
    assert max(seen) < problem.S
    assert fit.output_errors is not None
    assert init or gaps or fit.output_errors.max() < 1e-3
    units = Units.balanced(problem)
    Z, directions = (problem.X - units.center) / units.x_scale, fit.model.W0 * units.x_scale
    np.testing.assert_allclose(
        directions @ np.linalg.pinv(Z, rcond=1e-10) @ Z, directions, atol=1e-9 * np.abs(directions).max()
    )


@pytest.mark.parametrize("X", [np.ones((3, 5)), np.zeros((2, 40))])
def test_samples_that_do_not_differ_at_all_are_fitted(X: Array) -> None:
    fit = ub.decouple(ub.Problem(X, np.ones(len(X))), 1, rng=0)
    np.testing.assert_allclose(fit.model(X), 1.0, rtol=1e-12)


WIDE = np.random.default_rng(1).normal(size=(10, 15))


@pytest.mark.parametrize(
    "X",
    [
        1e250 * WIDE,
        WIDE * np.logspace(-160.0, 160.0, 15),
        np.repeat(WIDE[:2], 5, axis=0),
        WIDE[:1] + 1e-9 * WIDE,
        WIDE * (np.arange(15) == 3),
        (10.0 * WIDE).astype(int),
    ],
    ids=["large", "of all sizes", "two rows", "near each other", "one column", "whole numbers"],
)
@pytest.mark.parametrize("weights", [None, np.repeat([1.0, 0.0], 5)])
def test_few_hard_samples_end_in_finite_numbers(X: Array, weights: Array | None) -> None:
    fit = ub.decouple(ub.Problem(X, WIDE[:, :2], weights=weights), 2, starts=2, rng=0, jobs=1)
    assert np.isfinite(fit.model(X)).all()
