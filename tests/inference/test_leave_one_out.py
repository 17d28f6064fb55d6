"""Errors on new points, from the fit itself: against real refits, inside and outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unbraid as ub
from draws import few_or_many
from two_branches import fitted, samples
from unbraid.inference.leave_one_out import ends_of_ranges, expected_errors, leave_out
from unbraid.inference.neighbourhood import neighbourhood_of
from unbraid.inference.outside import expected_outside, wrong_beyond


@pytest.mark.parametrize("kind", ["both", "values"])
def test_samples_left_out_to_first_order_are_those_of_refits(kind: str) -> None:
    problem, basis = samples(kind), ub.Polynomial(3)
    fit, around = fitted(problem, basis=basis)
    inside = np.flatnonzero(
        ~ends_of_ranges(fit.model, problem.X).any(axis=(1, 2))
    )  # others end beyond the refit's range
    some = inside[::6]
    left = leave_out(around, some, np.zeros(problem.S, dtype=bool)).residual
    real = []
    for s in some:
        others = problem.take(np.delete(np.arange(problem.S), s))
        model = ub.decouple(others, 2, basis=basis, init=fit.model, rng=0).model
        parts = [np.asarray(problem.F)[s] - model(problem.X[s])]
        if problem.J is not None:
            parts.append((problem.J[s] - model.jacobian(problem.X[s])).ravel())
        real.append(np.concatenate(parts))
    scale = around.row_scales
    assert np.linalg.norm((left - np.array(real)) * scale) < 0.1 * np.linalg.norm(real * scale)
    assert np.linalg.norm(left * scale) > np.linalg.norm(around.residuals(some) * scale)


@few_or_many(3, 10)
def test_the_expected_error_is_about_that_on_fresh_points(draws: int) -> None:
    off = [expected_over_fresh(seed) for seed in range(draws)]
    assert np.median(np.abs(off)) < np.log(1.3)
    assert np.max(np.abs(off)) < np.log(2.5)


def expected_over_fresh(seed: int) -> float:
    """The logarithm of the expected error over that on fresh points, of the output that is farthest off."""
    exact, _ = ub.datasets.random_system(2, 3, 3, 1120, "sine", rng=seed)
    assert exact.F is not None
    noisy = exact.F + 0.05 * exact.F.std(axis=0) * np.random.default_rng(seed).standard_normal(exact.F.shape)
    problem = ub.Problem(exact.X, noisy)
    fit = ub.decouple(problem.take(slice(0, 120)), 3, rng=seed)
    fresh = fit.error_on(problem.take(slice(120, None)))
    held = fit.held_out
    assert held is not None
    assert held.output_errors is not None
    assert fresh.output_errors is not None
    assert fit.output_errors is not None
    assert (held.output_errors > fit.output_errors).all()
    assert 0.0 < held.outside < 0.2
    return float(np.abs(np.log(held.output_errors / fresh.output_errors)).max())


@few_or_many(1, 5)
@pytest.mark.parametrize(("S", "rank", "always"), [(16, 4, False), (24, 2, False), (45, 4, False), (100, 2, True)])
def test_an_error_is_promised_only_where_the_search_left_numbers_over(
    S: int, rank: int, always: bool, draws: int
) -> None:
    """Friedman 1 with noise: of so few samples a search finds directions and curves that go through all of them."""
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(S + 1000, 10))
        F = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2 + 10.0 * X[:, 3] + 5.0 * X[:, 4]
        problem = ub.Problem(X, F[:, None] + rng.standard_normal((S + 1000, 1)))
        fit = ub.decouple(problem.take(slice(0, S)), rank, starts=8, rng=seed)
        expected = None if fit.held_out is None else fit.held_out.worst
        assert expected is not None or not always
        fresh = fit.error_on(problem.take(slice(S, None))).output_errors
        assert fresh is not None
        assert expected is None or 0.4 < expected / fresh[0] < 2.5
        assert (expected is None) == any("no error is given for these" in note for note in fit.notes)


def test_samples_at_ends_are_alone_there() -> None:
    X = np.array([[0.0], [0.0], [1.0], [2.0], [5.0]])
    model = ub.decouple(ub.Problem(X, X**2), 1, rng=0, starts=2).model
    ends = ends_of_ranges(model, X)
    assert not ends[:2].any()  # two share the lower end
    assert ends[4].any()
    assert ends.sum() == 1


def test_inputs_that_hang_together_are_not_recombined() -> None:
    rng = np.random.default_rng(0)
    t = rng.standard_normal((150, 1))
    X = t + 0.2 * rng.standard_normal((150, 3))
    F = np.stack([np.sin(4.0 * (X[:, 0] - X[:, 1])), np.tanh(X.sum(axis=1))], axis=1)
    F = F + 0.01 * rng.standard_normal(F.shape)
    problem = ub.Problem(X, F)
    fit = ub.decouple(problem, 2, rng=0, starts=4)
    around = neighbourhood_of(fit, problem)
    seen = float(ends_of_ranges(fit.model, X).any(axis=(1, 2)).mean())
    assert expected_outside(around, seen) is None
    assert fit.held_out is not None
    assert fit.held_out.outside == pytest.approx(seen)
    assert fit.held_out.output_errors is not None
    assert np.isfinite(fit.held_out.output_errors).all()


def test_a_branch_that_goes_on_as_it_did_is_not_wrong() -> None:
    """A parabola is wrong by its bend beyond a linear end, and a line by nothing."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (80, 1))
    for F, bend in ((2.0 * X, 0.0), (X**2, 1.0)):
        fit = ub.decouple(ub.Problem(X, F), 1, basis=ub.Polynomial(3), continuation="linear", rng=0, starts=2)
        branch: Any = fit.model.branches[0]
        size = float(abs(fit.model.W1[0, 0]))
        off = size * np.sqrt(wrong_beyond(branch, 1, np.array([0.05, 0.1, 0.2]))[0])
        assert off == pytest.approx(bend * np.array([0.05, 0.1, 0.2]) ** 2, abs=2e-3)


def test_very_few_samples_tell_nothing() -> None:
    problem = ub.Problem(np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]]))
    fit = ub.decouple(problem, 1, rng=0, starts=1)
    assert fit.held_out is None
    assert fit.minimised is not None
    assert expected_errors(fit.model, problem, fit.minimised, fit.constraints) is None


def test_the_print_tells_the_expected_error() -> None:
    fit, _ = fitted(samples("both"))
    assert "\n  new     Error(J) " in repr(fit)
    assert "of new points outside the range seen" in repr(fit)
