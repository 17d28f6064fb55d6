"""Pictures show what they say they show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

import unbraid as ub
from unbraid import plots
from unbraid.coupling import FixedCoupling
from unbraid.errors import DataError, MissingDependencyError
from unbraid.plots import panels as plot_panels
from unbraid.selection import Row, Settings


@pytest.fixture(autouse=True)
def no_display() -> Iterator[None]:
    mpl.use("Agg")
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def found() -> tuple[ub.Fit, ub.DecoupledModel]:
    problem, truth = ub.datasets.trig(S=100, rng=1)
    return ub.decouple(problem, 3, basis=ub.BSpline(20), starts=4, rng=0), truth


def test_one_panel_a_branch_with_labelled_axes(found: tuple[ub.Fit, ub.DecoupledModel]) -> None:
    panels = plots.branches(found[0])
    assert panels.shape == (3,)
    assert [panel.get_xlabel() for panel in panels] == ["u₁ = (W₀x)₁", "u₂ = (W₀x)₂", "u₃ = (W₀x)₃"]
    assert [panel.get_ylabel() for panel in panels] == ["g₁(u₁)", "g₂(u₂)", "g₃(u₃)"]


def test_given_axes_are_drawn_on_and_returned(found: tuple[ub.Fit, ub.DecoupledModel]) -> None:
    axes = Figure().subplots(1, 3)
    panels = plots.branches(found[0].model, axes=axes)
    assert all(panel is axis for panel, axis in zip(panels, axes, strict=True))


def test_one_axes_will_do_for_one_branch() -> None:
    _, model = ub.datasets.random_system(n=1, m=2, r=1, rng=0)
    axis = Figure().subplots()
    assert plots.branches(model, axes=axis)[0] is axis


def test_many_branches_fill_a_grid() -> None:
    _, model = ub.datasets.random_system(n=2, m=3, r=6, rng=0)
    assert len(plots.branches(model)) == 6


def test_found_and_true_curves_lie_on_each_other(found: tuple[ub.Fit, ub.DecoupledModel]) -> None:
    fit, truth = found
    for panel in plots.branches(fit, truth):
        lines = {line.get_label(): line for line in panel.get_lines()}
        expected, drawn = (np.asarray(lines[name].get_ydata(), dtype=float) for name in ("true", "found"))
        assert np.abs(drawn - expected).max() < 0.03 * np.ptp(expected)


def test_too_few_axes_are_refused(found: tuple[ub.Fit, ub.DecoupledModel]) -> None:
    with pytest.raises(DataError, match="one axes for each of the 3 branches, got 2"):
        plots.branches(found[0], axes=Figure().subplots(1, 2))


def test_a_formula_without_a_range_is_refused(found: tuple[ub.Fit, ub.DecoupledModel]) -> None:
    with pytest.raises(DataError, match="no finite range"):
        plots.branches(found[1])


def test_without_matplotlib_the_error_says_what_to_install(
    found: tuple[ub.Fit, ub.DecoupledModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plot_panels, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r'pip install "unbraid\[report\]"'):
        plots.branches(found[0])


def candidate(rank: int, df: int, error: float) -> Row:
    """A row of a selection with that error in both folds."""
    settings = Settings(rank, ub.BSpline(df), FixedCoupling(0.1))
    fold = np.array([0, 0, 1, 1])
    squares = np.array([0.9, 0.9, 1.1, 1.1]) * error
    return Row(settings, rank * df, 1.0, cast(Any, None), fold, squares, np.ones(4, dtype=bool))


def made_up(*rows: Row) -> ub.Selection:
    """The last row is recommended."""
    nothing = cast(Any, None)
    return ub.Selection(rows, rows[-1].settings, "", (), False, nothing, nothing, nothing)


def test_a_selection_is_one_line_for_each_df_with_the_recommended_one_in_a_ring() -> None:
    rows = [candidate(rank, df, 1.0 / (rank * df)) for df in (8, 12) for rank in (1, 2, 3)]
    axis = Figure().subplots()
    assert plots.selection(made_up(*rows), axis) is axis
    legend = axis.get_legend()
    assert legend is not None
    assert {text.get_text() for text in legend.get_texts()} == {"df = 8", "df = 12", "recommended"}
    [ring] = [line for line in axis.get_lines() if line.get_label() == "recommended"]
    np.testing.assert_allclose(np.ravel(ring.get_xydata()), [3.0, 1.0 / 36.0])
    assert axis.get_yscale() == "log"
    assert axis.get_xlabel() == "rank"


def test_exact_errors_are_drawn_where_exactness_begins() -> None:
    axis = plots.selection(made_up(candidate(1, 8, 0.1), candidate(2, 8, 1e-30)))
    low, _ = axis.get_ylim()
    assert 1e-10 < low < 1e-8
    assert "exact" in [line.get_label() for line in axis.get_lines()]


def test_a_selection_of_one_rank_is_drawn_against_unknowns() -> None:
    axis = plots.selection(made_up(candidate(2, 8, 0.1), candidate(2, 12, 0.01)))
    assert axis.get_xlabel() == "unknowns"


def test_only_selections_are_drawn_as_selections(found: tuple[ub.Fit, ub.DecoupledModel]) -> None:
    with pytest.raises(DataError, match=r"what ub\.select returns, got a Fit"):
        plots.selection(cast(Any, found[0]))
