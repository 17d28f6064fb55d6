"""The picture of a selection shows its rows and its recommendation."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from matplotlib.figure import Figure

import unbraid as ub
from unbraid import plots
from unbraid.errors import DataError
from unbraid.selection.validation import Row, Settings
from unbraid.solvers.coupling import FixedCoupling


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


def test_only_selections_are_drawn_as_selections() -> None:
    with pytest.raises(DataError, match=r"what ub\.select returns, got a DecoupledModel"):
        plots.selection(cast(Any, ub.datasets.trig(S=5, rng=0)[1]))
