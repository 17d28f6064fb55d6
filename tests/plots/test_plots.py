"""What holds for every picture: axes in, axes out, errors with advice, files of modest size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import unbraid as ub
from pictures import as_svg, large, trig
from unbraid import plots
from unbraid.errors import DataError, MissingDependencyError, UnbraidError
from unbraid.plots import panels

PICTURES: dict[str, Callable[..., Axes]] = {
    "branches": lambda fit, ax=None: plots.branches(fit, axes=ax)[0],
    "weights": plots.weights,
    "convergence": plots.convergence,
    "starts": plots.starts,
    "residuals": lambda fit, ax=None: plots.residuals(fit, ax=ax),
}
every_picture = pytest.mark.parametrize("draw", PICTURES.values(), ids=PICTURES)


@pytest.fixture(scope="module")
def straight() -> ub.Fit:
    """One input, one output, one branch."""
    x = np.linspace(-1.0, 1.0, 40)
    return ub.decouple(ub.Problem(x, 2.0 * x + 1.0), 1, basis=ub.BSpline(4), starts=1, rng=0)


@every_picture
def test_given_axes_are_drawn_on_and_returned(draw: Callable[..., Axes], straight: ub.Fit) -> None:
    axis = Figure().subplots()
    assert draw(straight, ax=axis) is axis
    assert axis.has_data()


@every_picture
@pytest.mark.parametrize("fit", [trig, large], ids=["r = 3", "r = 20"])
def test_every_picture_can_be_drawn_at_any_rank(draw: Callable[..., Axes], fit: Callable[[], Any]) -> None:
    """Whatever matplotlib has to warn of is an error here."""
    found = fit()
    panel = draw(found if isinstance(found, ub.Fit) else found[0])
    panel.get_figure(root=True).canvas.draw()  # type: ignore[union-attr]


@every_picture
def test_one_branch_can_be_drawn(draw: Callable[..., Axes], straight: ub.Fit) -> None:
    draw(straight).get_figure(root=True).canvas.draw()  # type: ignore[union-attr]


def test_all_pictures_of_a_large_fit_fit_into_a_page_of_under_a_megabyte() -> None:
    fit = large()
    assert sum(len(as_svg(draw(fit)).encode()) for draw in PICTURES.values()) < 700_000


@every_picture
def test_without_matplotlib_the_error_says_what_to_install(
    draw: Callable[..., Axes], monkeypatch: pytest.MonkeyPatch, straight: ub.Fit
) -> None:
    monkeypatch.setattr(panels, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r'pip install -e "\.\[report\]"'):
        draw(straight)


@every_picture
def test_what_is_no_fit_is_refused(draw: Callable[..., Axes]) -> None:
    with pytest.raises(DataError, match=r"draws a Fit.*, got a list"):
        draw([1, 2])


@every_picture
def test_what_is_no_axes_is_refused(draw: Callable[..., Axes], straight: ub.Fit) -> None:
    with pytest.raises(DataError, match="got a str"):
        draw(straight, ax="axes")


@pytest.mark.parametrize("draw", [plots.convergence, plots.starts], ids=["convergence", "starts"])
def test_a_model_does_not_know_how_it_was_found(draw: Callable[..., Axes]) -> None:
    with pytest.raises(DataError, match="a DecoupledModel does not know: pass the Fit"):
        draw(trig()[0].model)


@pytest.mark.parametrize(
    "draw", [plots.branches, plots.weights, plots.residuals], ids=["branches", "weights", "residuals"]
)
def test_samples_of_something_else_are_refused(draw: Callable[..., Any]) -> None:
    fit, _ = trig()
    other, _ = ub.datasets.monotone(S=20, rng=0)
    with pytest.raises(UnbraidError, match="must be the one that was fitted"):
        draw(fit, problem=other)
    with pytest.raises(UnbraidError, match=r"must be the ub\.Problem that was fitted, got a ndarray"):
        draw(fit, problem=other.X)


def test_what_was_given_is_not_changed() -> None:
    fit, truth = trig()
    before = [fit.model.W0.copy(), fit.trace.objective.copy(), fit.problem and fit.problem.X.copy()]
    for draw in PICTURES.values():
        draw(replace(fit))
    plots.branches(fit, truth)
    for old, new in zip(before, [fit.model.W0, fit.trace.objective, fit.problem and fit.problem.X], strict=True):
        np.testing.assert_array_equal(old, new)
