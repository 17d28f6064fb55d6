"""The picture of W0 and W1 shows their entries, in units that say what a branch takes and gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import unbraid as ub
from pictures import as_svg, large, trig
from unbraid import plots


def matrices(panel: Any) -> tuple[Any, Any]:
    """What is drawn on the left and on the right, (r, m) and (r, n)."""
    left, right = (np.asarray(image.get_array(), dtype=float) for image in panel.get_images())
    return left, right


def test_a_row_is_a_branch_its_inputs_left_and_its_outputs_right() -> None:
    model = trig()[0].model
    panel = plots.weights(model)
    left, right = matrices(panel)
    np.testing.assert_array_equal(left, model.W0)
    np.testing.assert_array_equal(right, model.W1.T)
    assert [label.get_text() for label in panel.get_xticklabels()] == ["x₁", "x₂", "f₁", "f₂"]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["1", "2", "3"]


def test_with_samples_entries_are_in_standard_deviations_whatever_the_units() -> None:
    problem, _ = ub.datasets.trig(S=100, rng=1)
    scale, size = np.array([1e3, 1e-2]), np.array([1e4, 1e-3])
    assert problem.F is not None
    assert problem.J is not None
    other = ub.Problem(problem.X * scale, problem.F * size, problem.J * size[:, None] / scale)
    fits = [ub.decouple(one, 3, starts=2, rng=0) for one in (problem, other)]
    first, second = (matrices(plots.weights(fit)) for fit in fits)
    orders = [np.argsort(np.abs(left[:, 0])) for left, _ in (first, second)]  # of branches: last digits decide on that
    for one, two in zip(first, second, strict=True):
        np.testing.assert_allclose(np.abs(one[orders[0]]), np.abs(two[orders[1]]), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(first[0], axis=1), 1.0)


def test_an_entry_of_w1_is_what_the_branch_contributes_in_standard_deviations_of_the_output() -> None:
    problem, _ = ub.datasets.trig(S=100, rng=1)
    fit, _ = trig()
    assert problem.F is not None
    u = problem.X @ fit.model.W0[1]
    contribution = fit.model.W1[0, 1] * fit.model.branches[1](u)
    expected = np.sign(fit.model.W1[0, 1]) * contribution.std() / problem.F[:, 0].std()
    assert matrices(plots.weights(fit))[1][1, 0] == pytest.approx(expected)


def test_on_request_entries_are_those_of_the_model() -> None:
    fit, _ = trig()
    left, right = matrices(plots.weights(fit, scaled=False))
    np.testing.assert_array_equal(left, fit.model.W0)
    np.testing.assert_array_equal(right, fit.model.W1.T)


def test_few_entries_are_written_out() -> None:
    model = ub.DecoupledModel([[0.6, -0.8]], [[1234.5]], trig()[0].model.branches[:1])
    texts = {text.get_text() for text in plots.weights(model).texts}
    assert {"0.60", "−0.80", "1e3"} <= texts


def test_many_negative_entries_carry_a_dash_so_that_colour_is_not_alone() -> None:
    fit = large()
    panel = plots.weights(fit)
    assert len(panel.texts) == 2  # the titles: no numbers
    dashes = [one for one in panel.get_lines() if np.isnan(np.asarray(one.get_xdata(), dtype=float)).any()]
    for matrix, drawn in zip(matrices(panel), dashes, strict=True):
        clearly = matrix < -0.1 * np.abs(matrix).max()
        x, y = np.asarray(drawn.get_xydata()).T[:, ::3]
        rows, columns = np.nonzero(clearly)
        np.testing.assert_array_equal(np.floor(y), rows)
        np.testing.assert_allclose(np.diff(x), np.diff(columns))


def test_numbers_give_way_where_there_is_no_room() -> None:
    model = trig()[0].model
    assert len(plots.weights(model, Figure((3.4, 3.0)).subplots()).texts) > 2
    assert len(plots.weights(model, Figure((0.8, 0.8)).subplots()).texts) == 2


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("speed_1", "speed_1"),
        ("<b>p$", "&lt;b&gt;p$"),
        ("$\\frac{$ & co", "$\\frac{$ &amp; co"),
        ("größe λ", "größe λ"),
        ("\x1b[31m", "?[31m"),
        ("temperature of the left wheel", "temperat…t wheel"),
    ],
    ids=range(6),
)
def test_odd_names_stand_in_the_picture_as_they_are(name: str, written: str) -> None:
    problem, truth = ub.datasets.trig(S=20, rng=0)
    named = ub.Problem(problem.X, problem.F, input_names=["x", name], output_names=[name, "y"])
    assert as_svg(plots.weights(truth, problem=named)).count(f">{written}<") == 2


def test_an_output_without_values_is_measured_by_the_model() -> None:
    problem, truth = ub.datasets.trig(S=50, rng=0)
    assert problem.F is not None
    gappy = ub.Problem(problem.X, np.where([True, False], np.nan, problem.F), problem.J, missing="mask")
    for one, other in zip(*(matrices(plots.weights(truth, problem=p)) for p in (problem, gappy)), strict=True):
        np.testing.assert_allclose(one, other)
