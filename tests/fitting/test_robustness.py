"""Data that leave much open: every fit ends in finite numbers and a status that tells the truth.

Warnings are errors in this suite, so none of these may raise one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import unbraid as ub
from unbraid.kernels.arrays import Array

Hard = Callable[[], tuple[ub.Problem, int, ub.BSpline]]


def sampled(model: ub.DecoupledModel, X: Array) -> ub.Problem:
    return ub.Problem(X, model(X), model.jacobian(X))


def zero() -> tuple[ub.Problem, int, ub.BSpline]:
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (60, 2))
    return ub.Problem(X, np.zeros((60, 2)), np.zeros((60, 2, 2))), 3, ub.BSpline(df=8)


def constant_input() -> tuple[ub.Problem, int, ub.BSpline]:
    _, truth = ub.datasets.trig(rng=0)
    X = np.random.default_rng(0).uniform(-1.5, 1.5, (80, 2))
    X[:, 1] = 3.0
    return sampled(truth, X), 3, ub.BSpline(df=12)


def constant_output() -> tuple[ub.Problem, int, ub.BSpline]:
    problem, _ = ub.datasets.trig(rng=0)
    assert problem.F is not None
    assert problem.J is not None
    F, J = problem.F.copy(), problem.J.copy()
    F[:, 0], J[:, 0] = 5.0, 0.0
    return ub.Problem(problem.X, F, J), 3, ub.BSpline(df=12)


def one_sample_many_times() -> tuple[ub.Problem, int, ub.BSpline]:
    _, truth = ub.datasets.trig(rng=0)
    return sampled(truth, np.tile([[0.3, -0.8]], (50, 1))), 3, ub.BSpline(df=12)


def few_samples_many_times() -> tuple[ub.Problem, int, ub.BSpline]:
    _, truth = ub.datasets.trig(rng=0)
    few = np.random.default_rng(0).uniform(-1.5, 1.5, (7, 2))
    return sampled(truth, np.repeat(few, 5, axis=0)), 3, ub.BSpline(df=9)


def rank_too_large() -> tuple[ub.Problem, int, ub.BSpline]:
    problem, _ = ub.datasets.random_system(2, 2, 2, 80, "sine", rng=0)
    return problem, 4, ub.BSpline(df=6)


def one_direction_four_branches() -> tuple[ub.Problem, int, ub.BSpline]:
    X = np.random.default_rng(0).uniform(-1, 1, (80, 3))
    return ub.Problem(X, 2.0 * X[:, :1], np.tile([[[2.0, 0.0, 0.0]]], (80, 1, 1))), 4, ub.BSpline(df=6)


def parallel_directions() -> tuple[ub.Problem, int, ub.BSpline]:
    _, truth = ub.datasets.random_system(2, 3, 3, 100, "sine", rng=0)
    W0 = truth.W0.copy()
    W0[1] = -W0[0]
    model = ub.DecoupledModel(W0, truth.W1, truth.branches)
    return sampled(model, np.random.default_rng(0).uniform(-1.5, 1.5, (100, 3))), 3, ub.BSpline(df=6)


def df_as_large_as_the_data() -> tuple[ub.Problem, int, ub.BSpline]:
    problem, _ = ub.datasets.trig(S=13, rng=0)
    return problem, 3, ub.BSpline(df=12)


def repeated_values_of_one_input() -> tuple[ub.Problem, int, ub.BSpline]:
    _, truth = ub.datasets.trig(rng=0)
    X = np.round(np.random.default_rng(0).uniform(-1.5, 1.5, (40, 2)))  # nine distinct samples
    return sampled(truth, X), 3, ub.BSpline(df=10)


HARD: list[Hard] = [
    zero,
    constant_input,
    constant_output,
    one_sample_many_times,
    few_samples_many_times,
    rank_too_large,
    one_direction_four_branches,
    parallel_directions,
    df_as_large_as_the_data,
    repeated_values_of_one_input,
]


@pytest.mark.parametrize("constraint", [None, ub.Increasing()], ids=repr)
@pytest.mark.parametrize("given", ["FJ", "J", "F"])
@pytest.mark.parametrize("hard", HARD, ids=lambda hard: hard.__name__)
def test_hard_data_end_in_a_finite_model_and_a_true_status(
    hard: Hard, given: str, constraint: ub.Increasing | None
) -> None:
    whole, rank, basis = hard()
    problem = ub.Problem(whole.X, whole.F if "F" in given else None, whole.J if "J" in given else None)
    fit = ub.decouple(problem, rank, basis=basis, constraint=constraint, starts=2, rng=0)
    assert np.isfinite(fit.model(problem.X)).all()
    assert np.isfinite(fit.model.jacobian(problem.X)).all()
    assert np.isfinite(fit.objective)
    assert constraint is None or all(branch.certified(constraint) for branch in fit.model.branches)
    if fit.status.converged:  # then going on from there gains next to nothing
        again = ub.decouple(problem, rank, basis=basis, constraint=constraint, init=fit.model)
        assert again.objective > 0.5 * fit.objective - 1e-9


def test_branches_beyond_what_the_function_has_do_no_harm() -> None:
    problem, rank, basis = one_direction_four_branches()
    fit = ub.decouple(problem, rank, basis=basis, starts=4, rng=0)
    assert fit.output_errors is not None
    assert fit.output_errors.max() < 0.1
