"""The picture of the residuals shows what the model leaves of values, or of Jacobians, in % of their spread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unbraid as ub
from pictures import large, trig
from unbraid import plots
from unbraid.errors import DataError


def points(panel: Any) -> list[Any]:
    return [np.asarray(one.get_xydata()) for one in panel.get_lines() if one.get_linestyle() == "None"]


def legend(panel: Any) -> list[str]:
    return [text.get_text() for text in panel.get_legend().get_texts()]


def test_residuals_are_drawn_against_predictions_in_standard_deviations() -> None:
    fit, _ = trig()
    problem = fit.problem
    assert problem is not None
    assert problem.F is not None
    spread, predicted = problem.F.std(axis=0), fit.model(problem.X)
    for i, drawn in enumerate(points(plots.residuals(fit))):
        np.testing.assert_allclose(drawn[:, 1], 100.0 * (problem.F - predicted)[:, i] / spread[i])
        np.testing.assert_allclose(drawn[:, 0], (predicted[:, i] - problem.F[:, i].mean()) / spread[i])


def test_the_legend_has_the_output_errors_of_the_fit() -> None:
    fit, _ = trig()
    assert fit.output_errors is not None
    assert legend(plots.residuals(fit)) == [f"f{'₁₂'[i]}: {error:.2g} %" for i, error in enumerate(fit.output_errors)]


def test_with_weights_as_well() -> None:
    problem, _ = ub.datasets.trig(S=100, rng=1)
    weighted = ub.Problem(problem.X, problem.F, problem.J, weights=np.linspace(0.0, 2.0, 100))
    fit = ub.decouple(weighted, 2, starts=2, rng=0)
    assert fit.output_errors is not None
    assert legend(plots.residuals(fit)) == [f"f{'₁₂'[i]}: {error:.2g} %" for i, error in enumerate(fit.output_errors)]


def test_jacobians_alone_are_drawn_as_slopes() -> None:
    """In % of the root mean square of each output's, with inputs in standard deviations."""
    problem, _ = ub.datasets.trig(S=100, rng=1)
    fit = ub.decouple(ub.Problem(problem.X, J=problem.J), 2, starts=2, rng=0)
    panel = plots.residuals(fit)
    assert panel.get_ylabel() == "residual of slopes, % of root mean square"
    assert problem.J is not None
    J, predicted = (slopes * problem.X.std(axis=0) for slopes in (problem.J, fit.model.jacobian(problem.X)))
    for i, drawn in enumerate(points(panel)):
        size = np.sqrt(np.mean(J[:, i] ** 2))
        np.testing.assert_allclose(drawn[:, 1], 100.0 * (J - predicted)[:, i].ravel() / size)


def test_many_outputs_are_summed_up_by_quantiles() -> None:
    fit = large()
    panel = plots.residuals(fit)
    assert fit.problem is not None
    assert fit.problem.F is not None
    assert [label.get_text() for label in panel.get_xticklabels()][:2] == ["a rather… name 0", "a rather… name 1"]
    relative = 100.0 * (fit.problem.F - fit.model(fit.problem.X)) / fit.problem.F.std(axis=0)
    half: Any
    [half] = [one for one in panel.collections if one.get_label() == "middle half"]
    ends = np.array([segment[:, 1] for segment in half.get_segments()])
    np.testing.assert_allclose(ends.T, np.quantile(relative, (0.25, 0.75), axis=0))


def test_of_many_samples_some_are_drawn() -> None:
    problem, truth = ub.datasets.trig(S=5000, rng=0)
    drawn = points(plots.residuals(truth, problem))
    assert sum(len(one) for one in drawn) <= 1200
    assert all(len(one) > 500 for one in drawn)


def test_gaps_are_left_out_and_an_output_without_values_is_named() -> None:
    problem, truth = ub.datasets.trig(S=30, rng=0)
    assert problem.F is not None
    values = np.where([False, True], np.nan, problem.F)
    values[:10, 0] = np.nan
    panel = plots.residuals(truth, ub.Problem(problem.X, values, problem.J, missing="mask"))
    first, second = points(panel)
    assert (len(first), len(second)) == (20, 0)
    assert legend(panel)[1] == "f₂: not known"


def test_without_samples_the_error_says_what_to_pass() -> None:
    fit, _ = trig()
    for one in (fit.without_problem(), fit.model):
        with pytest.raises(DataError, match=r"residuals needs the samples.*pass problem="):
            plots.residuals(one)


def test_samples_of_no_weight_are_not_drawn() -> None:
    fit, _ = ignoring()
    assert fit.problem is not None
    assert (fit.problem.S, [len(one) for one in points(plots.residuals(fit))]) == (100, [80, 80])


def ignoring() -> tuple[ub.Fit, ub.Fit]:
    """A fit that is told to ignore its first 20 samples, which are wrong, and one without them."""
    problem, _ = ub.datasets.trig(S=100, rng=1)
    assert problem.F is not None
    F, weights = np.array(problem.F), np.ones(100)
    F[:20], weights[:20] = 50.0, 0.0
    given = ub.Problem(problem.X, F, problem.J, weights=weights)
    return ub.decouple(given, 2, starts=2, rng=0), ub.decouple(given.counting(), 2, starts=2, rng=0)


def test_samples_of_no_weight_change_no_diagnosis() -> None:
    found, expected = (ub.diagnose(fit) for fit in ignoring())
    assert repr(found) == repr(expected)


def test_a_fit_remembers_the_samples_as_they_were_given() -> None:
    problem, _ = ub.datasets.trig(S=60, rng=1)
    given = ub.Problem(problem.X, problem.F, problem.J, weights=np.arange(60.0))
    assert ub.decouple(given, 1, starts=1, rng=0).problem is given
    assert ub.decouple(given, "auto", starts=2, rng=0).problem is given
    assert ub.select(given, ranks=[1], starts=1, rng=0).fit(starts=1, rng=0).problem is given


def test_of_a_single_sample_is_said_that_outputs_do_not_vary() -> None:
    fit, _ = trig()
    assert fit.problem is not None
    one = fit.problem.take(np.array([3]))
    assert legend(plots.residuals(fit.model, one)) == ["f₁: does not vary", "f₂: does not vary"]
