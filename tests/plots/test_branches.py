"""The picture of the branches: curve, slope, data, knots, truth and certificate are what they say they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import unbraid as ub
from pictures import as_svg, line, trig
from unbraid import plots
from unbraid.bases.splines import PlacedSpline
from unbraid.errors import DataError
from unbraid.results.branch import Branch, FittedBranch


@pytest.fixture(scope="module")
def increasing() -> tuple[ub.Fit, ub.DecoupledModel]:
    problem, truth = ub.datasets.monotone(S=100, rng=0)
    basis = ub.BSpline(df=10, degree=4)
    return ub.decouple(problem, 3, basis=basis, constraint=ub.Increasing(), starts=2, rng=0), truth


def cube(sign: float = 1.0) -> ub.DecoupledModel:
    """One input, one branch, sign · u³ on [-1, 1] as a spline."""
    placed = PlacedSpline(np.array([-1.0, 1.0]), 3)
    return ub.DecoupledModel(
        [[1.0]], [[1.0]], [FittedBranch(ub.BSpline(3), placed, sign * np.array([-1.0, 1.0, -1.0, 1.0]))]
    )


def strip_of(panel: Any) -> Any:
    [strip] = panel.child_axes
    return strip


def remarks(panel: Any) -> str:
    return str(panel.get_title(loc="right"))


def test_one_panel_a_branch_with_labelled_axes() -> None:
    panels = plots.branches(trig()[0])
    assert panels.shape == (3,)
    assert [panel.get_title(loc="left") for panel in panels] == ["branch 1", "branch 2", "branch 3"]
    assert [panel.get_xlabel() for panel in panels] == ["u₁ = (W₀x)₁", "u₂ = (W₀x)₂", "u₃ = (W₀x)₃"]
    assert [panel.get_ylabel() for panel in panels] == ["g₁(u₁)", "g₂(u₂)", "g₃(u₃)"]


def test_one_axes_each_is_drawn_on_and_returned() -> None:
    axes = Figure().subplots(1, 3)
    panels = plots.branches(trig()[0].model, axes=axes)
    assert all(panel is axis for panel, axis in zip(panels, axes, strict=True))


def test_many_branches_fill_a_grid() -> None:
    _, model = ub.datasets.random_system(n=2, m=3, r=6, rng=0)
    panels = plots.branches(model)
    assert len(panels) == 6
    assert len({round(panel.get_position().y0, 6) for panel in panels}) == 2


def test_found_and_true_curves_lie_on_each_other() -> None:
    for panel in plots.branches(*trig()):
        expected, drawn = (line(panel, name)[1] for name in ("true", "found"))
        assert np.abs(drawn - expected).max() < 0.03 * np.ptp(expected)


def test_the_strip_shows_the_slope_of_the_curve_above_it() -> None:
    """Also where a curve is laid on a true one, which scales and mirrors it."""
    for panel in plots.branches(*trig()):
        u, values = line(panel, "found")
        thin = [one for one in strip_of(panel).get_lines() if one.get_linewidth() < 2.0]
        [drawn] = [one for one in thin if len(one.get_xdata()) == len(u)]
        slope = np.asarray(drawn.get_ydata(), dtype=float)
        rise = np.concatenate([[0.0], np.cumsum(np.diff(u) * (slope[1:] + slope[:-1]) / 2.0)])
        np.testing.assert_allclose(values[0] + rise, values, atol=2e-3 * np.ptp(values))


def test_the_curve_is_the_branch_and_goes_on_beyond_the_training_range() -> None:
    model = trig()[0].model
    for panel, branch in zip(plots.branches(model), model.branches, strict=True):
        u, values = line(panel, "found")
        np.testing.assert_allclose(values, branch(u))
        np.testing.assert_allclose((u[0], u[-1]), branch.domain)
        beyond, continued = line(panel, "continuation")
        shown = np.isfinite(continued)
        np.testing.assert_allclose(continued[shown], branch(beyond[shown]))
        assert beyond[shown].min() < branch.domain[0] < branch.domain[1] < beyond[shown].max()


def test_knots_are_marked_on_the_curve() -> None:
    model = trig()[0].model
    for panel, branch in zip(plots.branches(model), model.branches, strict=True):
        u, values = line(panel, "knots")
        np.testing.assert_array_equal(u, branch.knots)
        np.testing.assert_allclose(values, branch(u))


def test_a_polynomial_has_no_knots_to_mark() -> None:
    _, model = ub.datasets.random_system(n=2, m=3, r=2, rng=0)
    panels = plots.branches(model)
    assert not [one for panel in panels for one in panel.get_lines() if one.get_label() == "knots"]


def test_the_silhouette_shows_where_the_data_lie() -> None:
    """No height where there is no sample, and the largest where there are most."""
    u = np.concatenate([np.linspace(-1.0, -0.5, 75), np.linspace(0.5, 1.0, 25)])
    [panel] = plots.branches(cube(), problem=ub.Problem(u, u**3))
    [shape] = [patch for patch in panel.patches if patch.get_label() == "data"]
    x, y = shape.get_xy().T
    bottom, top = y.min(), y.max()
    assert np.all(y[np.abs(x) < 0.3] == bottom)
    assert y[x < 0.0].max() == top
    assert bottom < y[x > 0.0].max() < bottom + 0.5 * (top - bottom)


def test_without_samples_the_curve_is_drawn_all_the_same() -> None:
    fit, truth = trig()
    for panel in plots.branches(fit.without_problem(), truth):
        assert "data" not in [patch.get_label() for patch in panel.patches]
        assert remarks(panel) == ""
        assert line(panel, "found")[0].size > 100


@pytest.mark.parametrize("with_values", [True, False])
def test_shares_are_those_that_diagnose_has(with_values: bool) -> None:
    problem, _ = ub.datasets.trig(S=100, rng=1)
    fit = ub.decouple(ub.Problem(problem.X, problem.F if with_values else None, problem.J), 2, starts=2, rng=0)
    for panel, share in zip(plots.branches(fit), ub.diagnose(fit).importance, strict=True):
        assert remarks(panel) == f"{100.0 * share:.0f} % of the variance"


def test_a_constraint_that_holds_is_certified(increasing: tuple[ub.Fit, ub.DecoupledModel]) -> None:
    assert all("increasing, certified ✓" in remarks(panel) for panel in plots.branches(increasing[0]))


def test_a_constraint_that_does_not_hold_is_said_not_to_be_certified() -> None:
    fit, _ = trig()
    asked = replace(fit, constraints=(ub.Increasing(), None, ub.Convex()))
    first, second, third = (remarks(panel) for panel in plots.branches(asked))
    assert "increasing: not certified ✗" in first
    assert "certified" not in second
    assert "convex: not certified ✗" in third


def test_of_a_model_is_said_what_its_coefficients_certify() -> None:
    [panel] = plots.branches(cube())
    assert remarks(panel) == ""  # u³ increases, but its coefficients do not
    fit, _ = trig()
    assert all("certified" not in remarks(panel) for panel in plots.branches(fit.model))
    placed = PlacedSpline(np.array([0.0, 1.0]), 2)
    square = ub.DecoupledModel([[1.0]], [[1.0]], [FittedBranch(ub.BSpline(2, 2), placed, np.array([0.0, 0.0, 1.0]))])
    assert remarks(plots.branches(square)[0]) == "increasing and convex, certified ✓"


def test_a_branch_is_drawn_as_it_is_whatever_the_truth_looks_like(increasing: tuple[ub.Fit, ub.DecoupledModel]) -> None:
    """Also where the true one looks the opposite way: it is that one that is turned around."""
    fit, truth = increasing
    mirrored = ub.DecoupledModel(-fit.model.W0, fit.model.W1, [Mirrored(branch) for branch in fit.model.branches])
    for known in (mirrored, truth):
        for panel, branch in zip(plots.branches(fit, known), fit.model.branches, strict=True):
            assert "increasing, certified ✓" in remarks(panel)
            u, values = line(panel, "found")
            np.testing.assert_array_equal(values, branch(u))
    for panel in plots.branches(fit, mirrored):
        np.testing.assert_allclose(line(panel, "true")[1], line(panel, "found")[1], atol=1e-9)


def test_panels_are_in_the_order_of_the_models_branches_whatever_that_of_the_truth_is() -> None:
    fit, truth = trig()
    turned = ub.DecoupledModel(truth.W0[::-1], truth.W1[:, ::-1], truth.branches[::-1], truth.bias)
    for known in (truth, turned):
        panels = plots.branches(fit, known)
        assert [panel.get_title(loc="left") for panel in panels] == ["branch 1", "branch 2", "branch 3"]
        for panel, branch in zip(panels, fit.model.branches, strict=True):
            u, values = line(panel, "found")
            np.testing.assert_array_equal(values, branch(u))


def test_a_slope_that_is_constant_but_for_rounding_has_plain_numbers_at_its_axis() -> None:
    """An offset, such as 1e-7+2, would stand over the silhouette of the data."""
    u = np.linspace(-1.0, 1.0, 50)
    for size in (1.0, 1e7, 1e-7):
        [panel] = plots.branches(ub.decouple(ub.Problem(u[:, None], size * (2.0 * u + 1e-7 * u**3)[:, None]), 1, rng=0))
        strip = strip_of(panel)
        strip.figure.canvas.draw()
        assert strip.yaxis.get_offset_text().get_text() == ""
        texts = [one.get_text() for one in strip.get_yticklabels()]
        assert len(set(texts)) == len(texts) > 1


class Mirrored(Branch):
    """g(-u)."""

    def __init__(self, branch: Any) -> None:
        self.branch = branch

    @property
    def domain(self) -> tuple[float, float]:
        low, high = self.branch.domain
        return -high, -low

    def __call__(self, u: Any) -> Any:
        return self.branch(-np.asarray(u))

    def derivative(self, u: Any, order: int = 1) -> Any:
        return (-1) ** order * self.branch.derivative(-np.asarray(u), order)

    def certified(self, constraint: Any) -> bool:
        return False


def test_a_steep_continuation_leaves_the_curve_its_room() -> None:
    """Of e^(12 u) on [0, 1], continued linearly, the curve still has half of the panel's height."""
    x = np.linspace(0.0, 1.0, 200)
    fit = ub.decouple(ub.Problem(x, np.exp(12.0 * x)), 1, starts=1, rng=0)
    [panel] = plots.branches(fit)
    values = line(panel, "found")[1]
    low, high = panel.get_ylim()
    assert np.ptp(values) > 0.3 * (high - low)


def test_ticks_of_the_curve_do_not_reach_into_the_strip() -> None:
    for panel in plots.branches(trig()[0]):
        values = line(panel, "found")[1]
        assert panel.get_yticks().min() > values.min() - np.ptp(values)


def test_own_figures_explain_everything_in_one_legend() -> None:
    fit, truth = trig()
    [legend] = plots.branches(fit, truth)[0].get_figure().legends
    words = [text.get_text() for text in legend.get_texts()]
    assert words == ["found", "true", "continuation", "slope", "knots", "data", "training range"]


def test_too_few_axes_are_refused() -> None:
    with pytest.raises(DataError, match="one axes for each of the 3 branches, got 2"):
        plots.branches(trig()[0], axes=Figure().subplots(1, 2))


def test_a_truth_that_is_no_model_is_refused() -> None:
    fit, _ = trig()
    with pytest.raises(DataError, match="truth must be a DecoupledModel, got a Fit"):
        plots.branches(fit, fit)  # type: ignore[arg-type]


def test_a_formula_without_a_range_is_refused() -> None:
    with pytest.raises(DataError, match="no finite range"):
        plots.branches(trig()[1])


def test_a_panel_is_few_elements_of_a_file() -> None:
    fit, truth = trig()
    assert as_svg(plots.branches(fit, truth)[0]).count("<path") < 250
