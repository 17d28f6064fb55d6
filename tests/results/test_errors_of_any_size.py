"""Errors in % do not depend on units, and those of outputs that are constant but for rounding are not of rounding."""

from __future__ import annotations

import numpy as np
import pytest

import unbraid as ub
from unbraid.dynamics.fit import error_of
from unbraid.dynamics.models.base import SimulationStatus

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, (60, 2))
NOISE = RNG.standard_normal(60)
CURVE = np.sin(2.0 * X[:, 0] + X[:, 1]) + 0.1 * NOISE


@pytest.mark.parametrize("power", [-930, 930])
def test_errors_do_not_depend_on_the_size_of_outputs(power: int) -> None:
    """The second output is constant, with noise on it."""
    F = np.stack([CURVE, 3.0 + 1e-3 * NOISE], axis=1)
    problems = [ub.Problem(X, np.ldexp(F, [0, k])) for k in (0, power)]
    fits = [ub.decouple(problem, 1, starts=1, rng=0) for problem in problems]
    fresh = [fit.error_on(problem).output_errors for fit, problem in zip(fits, problems, strict=True)]
    np.testing.assert_allclose(np.array(fresh[0]), np.array(fresh[1]), rtol=1e-3)
    np.testing.assert_allclose(np.array(fresh[1]), np.array(fits[1].output_errors), rtol=1e-6)
    without = [[one.without for one in ub.importance(fit).input_needs or ()] for fit in fits]
    np.testing.assert_allclose(np.array(without[0]), np.array(without[1]), rtol=1e-2)
    ub.plots.residuals(fits[1])


def test_measures_do_not_depend_on_the_size_of_numbers() -> None:
    truth, estimate = CURVE[:, None], 1.1 * CURVE[:, None]
    for power in (-1000, 1000):
        sized, off = np.ldexp(truth, power), np.ldexp(estimate, power)
        assert ub.metrics.output_errors(sized, off) == ub.metrics.output_errors(truth, estimate)
        assert ub.metrics.jacobian_error(sized[:, None], off[:, None]) == pytest.approx(0.01)
    assert ub.metrics.output_errors([[1.0], [2.0]], [[1e200], [2.0]]) == np.inf


@pytest.mark.parametrize("size", [0.1, 1e8 / 3.0, 1e280])
def test_rounding_of_a_constant_output_is_no_error(size: float) -> None:
    constant = size * (1.0 + 2.3e-16 * (np.arange(180) % 7 == 0))
    looked = ub.Problem(X.repeat(3, axis=0), constant[:, None]).look()
    assert looked.of("constant")
    assert not looked.of("repeated points")
    fit = ub.decouple(ub.Problem(X, np.stack([CURVE, constant[:60]], axis=1)), 1, starts=1, rng=0)
    assert fit.held_out is not None
    assert fit.held_out.output_errors is not None
    assert fit.held_out.output_errors[1] == 0.0
    for need in (*(ub.importance(fit).input_needs or ()), *(ub.importance(fit).branch_needs or ())):
        assert need.without[1] == need.with_it[1] == 0.0


def test_a_constant_record_has_no_error_where_it_is_met_and_else_an_infinite_one() -> None:
    y = np.full((20, 2), 5e3)
    simulated = y + np.array([1e-12, 1.0])
    found = error_of(y, simulated, np.zeros(20, dtype=bool), SimulationStatus.FINISHED)
    np.testing.assert_array_equal(found.percent, [0.0, np.inf])
