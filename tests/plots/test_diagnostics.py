"""The pictures of residuals and of bands show what was computed, and nothing where it would mean nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, cast

import numpy as np
import pytest
from matplotlib.figure import Figure

import unbraid as ub
from pictures import line, trig
from unbraid import plots
from unbraid.errors import DataError, SettingError
from unbraid.inference.linearised import LinearisedUncertainty
from unbraid.judging.glance import glance_at
from unbraid.plots.branch_panel import BAND
from unbraid.plots.branches import NO_NOISE
from unbraid.results.carrying import some_branches


@cache
def noisy() -> ub.Fit:
    """A fit to values with noise."""
    problem, _ = ub.datasets.trig(S=120, rng=0)
    assert problem.F is not None
    F = problem.F + 0.15 * np.random.default_rng(0).standard_normal(problem.F.shape)
    return ub.decouple(ub.Problem(problem.X, F), 3, starts=4, rng=0)


def bands(panel: Any) -> list[Any]:
    return [one for one in panel.collections if one.get_label() == BAND]


def test_bands_are_those_of_the_uncertainty() -> None:
    fit = noisy()
    sure = fit.uncertainty()
    assert sure.reliable
    for j, panel in enumerate(plots.branches(fit)):
        [band] = bands(panel)
        u = np.linspace(*fit.model.branches[j].domain, 61)
        vertices = band.get_paths()[0].vertices
        for expected in (sure.branch(j, u).low, sure.branch(j, u).high):
            middle = vertices[np.isclose(vertices[:, 0], u[30], rtol=1e-9, atol=1e-12)]
            assert np.isclose(middle[:, 1], expected[30]).any()
        assert len(panel.child_axes[0].collections) == 1
    [legend] = plots.branches(fit)[0].get_figure().legends
    assert BAND in [text.get_text() for text in legend.get_texts()]


def test_no_bands_are_drawn_where_none_are_asked_for_or_known() -> None:
    fit = noisy()
    for panels in (
        plots.branches(fit, uncertainty=None),
        plots.branches(fit.model, problem=fit.problem),
        plots.branches(fit.without_problem()),
        plots.branches(fit, problem=cast(ub.Problem, fit.problem).take(slice(50))),
    ):
        assert not any(bands(panel) for panel in panels)
    assert all(bands(panel) for panel in plots.branches(fit.model, uncertainty=fit.uncertainty()))


def test_where_what_is_left_is_no_noise_a_remark_says_so_instead() -> None:
    fit = trig()[0]
    assert not fit.uncertainty().reliable
    panels = plots.branches(fit)
    assert not any(bands(panel) for panel in panels)
    assert panels[0].get_figure().get_supxlabel() == NO_NOISE


def test_wide_bands_leave_the_slope_alone() -> None:
    """They end where the part of the panel that is the curve's ends."""
    fit = noisy()
    sure = cast(LinearisedUncertainty, fit.uncertainty())
    wide = replace(sure, covariance=1e6 * sure.covariance)
    for panel in plots.branches(fit, uncertainty=wide):
        low, high = panel.get_ylim()
        [band] = bands(panel)
        assert band.get_paths()[0].vertices[:, 1].min() > low + 0.3 * (high - low)


def test_what_is_no_uncertainty_is_refused() -> None:
    with pytest.raises(SettingError, match="uncertainty must be what"):
        plots.branches(noisy(), uncertainty=cast(Any, "always"))
    with pytest.raises(DataError, match="that of the model that is drawn"):
        plots.branches(some_branches(noisy().model, np.array([0])), uncertainty=noisy().uncertainty())


def test_diagnostics_draw_the_residuals_that_were_computed() -> None:
    fit = noisy()
    problem = cast(ub.Problem, fit.problem)
    found = glance_at(fit, problem)
    assert found is not None
    panels = plots.diagnostics(fit)
    e = found.residuals.residuals[:, :2]
    np.testing.assert_allclose(line(panels[2], "f₁")[1], e[:, 0])
    np.testing.assert_allclose(line(panels[5], "f₂"), [problem.X[:, 1], e[:, 1]])
    np.testing.assert_allclose(line(panels[1], "f₂")[1], np.sort(e[:, 1]))
    [text, *_] = panels[3].texts
    assert text.get_text() == str(np.argmax(found.residuals.cook))


def test_samples_keep_their_numbers_where_others_do_not_count() -> None:
    fit = noisy()
    problem = cast(ub.Problem, fit.problem)
    weights = np.ones(120)
    weights[:20] = 0.0
    again = ub.Problem(problem.X, problem.F, weights=weights)
    found = glance_at(replace(fit, problem=again), again)
    assert found is not None
    np.testing.assert_array_equal(found.samples, np.arange(20, 120))


def test_jacobians_alone_have_diagnostics_of_slopes() -> None:
    problem, _ = ub.datasets.trig(S=60, rng=1)
    fit = ub.decouple(ub.Problem(problem.X, J=problem.J), 2, starts=2, rng=0)
    panels = plots.diagnostics(fit)
    assert panels[0].get_legend_handles_labels()[1] == ["∂f₁/∂x₁", "∂f₁/∂x₂", "∂f₂/∂x₁", "∂f₂/∂x₂"]
    panels[0].get_figure().canvas.draw()


def test_what_cannot_be_diagnosed_is_refused_with_advice() -> None:
    fit = noisy()
    with pytest.raises(DataError, match="diagnostics needs the samples"):
        plots.diagnostics(fit.without_problem())
    with pytest.raises(DataError, match="a DecoupledModel does not know"):
        plots.diagnostics(cast(Any, fit.model))
    with pytest.raises(DataError, match="each of the 6 panels, got 2"):
        plots.diagnostics(fit, Figure().subplots(1, 2))
    with pytest.raises(DataError, match="too many unknowns, or too few samples"):
        plots.diagnostics(replace(fit, minimised=None))
