"""Laws of every method on every kind of problem. A new one joins by joining METHODS in methods_and_problems.py."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

import unbraid as ub
from methods_and_problems import (
    METHODS,
    PROBLEMS,
    budget,
    every_method,
    every_pair,
    every_problem,
    fit_from_near,
    fit_from_random,
    lacks,
)
from unbraid.kernels.arrays import Array
from unbraid.methods import Method
from unbraid.results.outcome import Status

BOTH = PROBLEMS["values and Jacobians"]


def room(method: Method) -> float:
    """How far two fits may be apart that differ in rounding only, as a share of an output's spread.

    Finite differences between neighbouring samples make much of a last digit, and a search that has to end after so
    many evaluations makes more of it.
    """
    return 0.1 if method.sweeps == "filtered" else 1e-6


def assert_same_model(method: Method, one: Array, other: Array) -> None:
    spread = np.std(BOTH.near(BOTH.X), axis=0)
    np.testing.assert_allclose(one / spread, other / spread, rtol=0, atol=room(method))


def test_every_method_is_in_the_list() -> None:
    made = {name for name, function in vars(ub.methods).items() if inspect.isfunction(function) and name[0] != "_"}
    assert made == {method.name for method in METHODS.values()}


@every_method
@every_problem
def test_a_fit_is_finite_or_refused_with_advice_that_helps(method: Method, name: str) -> None:
    one = PROBLEMS[name]
    lacking = lacks(method, one)
    if lacking is None:
        fit = fit_from_random(method, name)
    else:
        with pytest.raises(ub.UnbraidError, match=rf"{lacking}.* polish=True"):
            fit_from_random(method, name)
        fit = fit_from_near(budget(method, 3), one, polish=True)
    beyond = np.random.default_rng(0).uniform(-4.0, 4.0, (50, fit.model.m))
    for points in (one.X, beyond):
        assert np.isfinite(fit.model(points)).all()
        assert np.isfinite(fit.model.jacobian(points)).all()
    assert np.isfinite(fit.objective)
    assert np.isfinite(fit.trace.objective).all()
    assert one.constraint is None or all(branch.certified(one.constraint) for branch in fit.model.branches)


@every_pair
def test_inputs_are_not_written_to(method: Method, name: str) -> None:
    """They cannot be: this would raise an error."""
    one = PROBLEMS[name]
    assert not any(array.flags.writeable for array in (one.X, one.F, one.J, one.weights) if array is not None)
    before = one.near.W0.copy(), one.near.W1.copy()
    fit_from_near(budget(method, 1), one)
    np.testing.assert_array_equal(one.near.W0, before[0])
    np.testing.assert_array_equal(one.near.W1, before[1])


@every_pair
def test_saved_and_loaded_it_is_the_same_bit_by_bit(method: Method, name: str, tmp_path: Path) -> None:
    fit = fit_from_random(method, name)
    fit.model.save(tmp_path / "model.npz")
    again = ub.DecoupledModel.load(tmp_path / "model.npz")
    points = np.random.default_rng(0).uniform(-4.0, 4.0, (50, fit.model.m))
    for ours, theirs in (
        (again.W0, fit.model.W0),
        (again.W1, fit.model.W1),
        (again.bias, fit.model.bias),
        (again(points), fit.model(points)),
        (again.jacobian(points), fit.model.jacobian(points)),
    ):
        np.testing.assert_array_equal(ours, theirs)


@every_method
def test_the_same_seed_gives_the_same_bits(method: Method) -> None:
    models = [ub.decouple(BOTH.problem, 2, method=budget(method, 2), starts=2, rng=5).model for _ in range(2)]
    np.testing.assert_array_equal(models[0].W0, models[1].W0)
    np.testing.assert_array_equal(models[0](BOTH.X), models[1](BOTH.X))


@every_method
def test_whole_weights_are_repeated_samples_or_refused(method: Method) -> None:
    """Of a polynomial, because repetition moves knots."""
    one = PROBLEMS["weights"]
    assert one.weights is not None
    repeated = one.take(np.repeat(np.arange(len(one.X)), one.weights.astype(int)))
    if lacks(method, one):
        with pytest.raises(ub.UnbraidError, match="add polish=True"):
            fit_from_near(method, one)
        return
    fits = [
        ub.decouple(given.problem, 2, basis=ub.Polynomial(3), method=budget(method, 3), starts=1, rng=0)
        for given in (one, repeated)
    ]
    assert_same_model(method, fits[0].model(one.X), fits[1].model(one.X))


@every_method
def test_the_order_of_samples_does_not_matter(method: Method) -> None:
    shuffled = BOTH.take(np.random.default_rng(3).permutation(len(BOTH.X)))
    fits = [fit_from_near(budget(method, 1), given) for given in (BOTH, shuffled)]
    assert_same_model(method, fits[0].model(BOTH.X), fits[1].model(BOTH.X))


@every_method
def test_units_do_not_matter_where_the_method_balances_them(method: Method) -> None:
    x, f = np.array([1e3, 1.0, 0.01]), np.array([0.1, 1e4])
    other = BOTH.in_units(x, f)
    fits = [fit_from_near(budget(method, 1), given) for given in (BOTH, other)]
    if method.scaled:
        assert_same_model(method, fits[0].model(BOTH.X), fits[1].model(other.X) / f)
    else:
        assert not np.allclose(fits[0].model(BOTH.X), fits[1].model(other.X) / f, rtol=0, atol=1e-6)


# How it ended.


def came_to_rest(course: Array, tolerance: float, patience: int) -> bool:
    """Whether the objective changed by at most that share of itself, so many sweeps in a row."""
    calm = np.abs(np.diff(course)) <= tolerance * course[:-1]
    return any(calm[k : k + patience].all() for k in range(len(calm) - patience + 1))


def after_search(fit: ub.Fit) -> Array:
    """The objectives of the sweeps that decide how a fit ended."""
    return fit.trace.objective[fit.trace.search or 0 :]


@every_method
@pytest.mark.parametrize("name", ["values and Jacobians", "Jacobians alone"])
def test_a_budget_of_one_runs_out(method: Method, name: str) -> None:
    """Or the steps in which knots settle after a polish, which are not counted, come to rest by themselves."""
    fit = fit_from_near(budget(method, 1, tolerance=1e-9), PROBLEMS[name])
    if method.polish is None or not fit.status.converged:
        assert fit.status is Status.OUT_OF_SWEEPS
    else:
        assert came_to_rest(after_search(fit)[1:], 1e-6, 2)


@every_method
@pytest.mark.parametrize("name", ["values and Jacobians", "Jacobians alone"])
def test_what_hardly_changes_has_converged(method: Method, name: str) -> None:
    fit = fit_from_near(budget(method, 30, tolerance=1.0), PROBLEMS[name])
    assert fit.status is (Status.UP_TO_CONSTANTS if PROBLEMS[name].F is None else Status.CONVERGED)


@every_method
def test_a_target_that_is_met_is_said_to_be(method: Method) -> None:
    fit = fit_from_near(budget(method, 30, target=1e3), BOTH)
    assert fit.status is Status.TARGET_REACHED
    assert fit.trace.objective[-1] <= 1e3


@every_method
def test_converged_is_said_only_where_the_rule_was_met(method: Method) -> None:
    method = budget(method, 12, tolerance=0.05)
    fit = ub.decouple(BOTH.problem, 2, basis=ub.BSpline(df=6), method=method, starts=2, rng=0)
    rule = method.stopping if method.polish is None else method.polish.stopping
    if fit.status is Status.CONVERGED:
        assert came_to_rest(after_search(fit), rule.tolerance, rule.patience - 1)  # the first has nothing before it
    else:
        assert fit.status is Status.OUT_OF_SWEEPS
        assert len(after_search(fit)) >= rule.max_sweeps
