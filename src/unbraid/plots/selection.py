"""The picture of a selection: held-out errors against the rank."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from unbraid.errors import DataError
from unbraid.plots.palette import GREY, LINES, MARKERS, ORANGE
from unbraid.plots.panels import axis_for, check_matplotlib, remove_frame
from unbraid.selection.answer import Selection
from unbraid.selection.rule import EXACT
from unbraid.selection.validation import Row
from unbraid.selection.words import name_differences

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def selection(selection: Selection, ax: Axes | None = None) -> Axes:
    """Draw held-out errors against the rank, one line per basis and λ, with the recommended candidate in a ring.

    Parameters
    ----------
    selection
        What `select` returns.
    ax
        Matplotlib axes; new ones if None.

    Returns
    -------
    Axes
        Bars are one standard error. Errors below 1e-8, which count as exact, are drawn there. Where only one rank was
        tried, errors are drawn against the number of unknowns.
    """
    check_matplotlib()
    if not isinstance(selection, Selection):
        raise DataError(f"selection draws what ub.select returns, got a {type(selection).__name__}.")
    panel = axis_for(ax)
    rows = selection.rows
    by_rank = len({row.settings.rank for row in rows}) > 1

    def across(row: Row) -> int:
        return row.settings.rank if by_rank else row.unknowns

    lines: dict[str, list[Row]] = {}
    for row in rows:
        name = ", ".join(f"{name} = {value}" for name, value in name_differences(row.settings, rows).items())
        lines.setdefault(name if by_rank else "", []).append(row)
    looks = zip(itertools.cycle(LINES), itertools.cycle(MARKERS), strict=False)
    for (name, line), (colour, marker) in zip(lines.items(), looks, strict=False):
        x, error, bar = np.array([(across(row), max(row.error, EXACT), row.standard_error) for row in line]).T
        down = np.minimum(bar, 0.9 * error)  # a bar that reaches below zero has no end on a logarithmic axis
        look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4.5, "linewidth": 1.4, "capsize": 3.0}
        panel.errorbar(x, error, yerr=(down, bar), label=name or "held-out error, ± one standard error", **look)
    chosen = selection.chosen
    ring: dict[str, Any] = {
        "color": ORANGE,
        "marker": "o",
        "markersize": 15.0,
        "markeredgewidth": 2.2,
        "fillstyle": "none",
    }
    panel.plot(across(chosen), max(chosen.error, EXACT), linestyle="none", label="recommended", **ring)
    if min(row.error for row in rows) <= EXACT:
        panel.axhline(EXACT, color=GREY, linestyle=":", linewidth=1.0, label="exact")
    panel.set_yscale("log")
    if by_rank:
        panel.set_xticks(sorted({row.settings.rank for row in rows}))
    panel.set_xlabel("rank" if by_rank else "unknowns")
    panel.set_ylabel("held-out error, relative, squared")
    remove_frame(panel)
    panel.legend(loc="upper right", framealpha=0.8, edgecolor="none", fontsize="small")
    return panel
