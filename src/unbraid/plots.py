"""Pictures: axes in, axes out. Needs matplotlib, which the extra `report` brings."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unbraid.alignment import AlignedBranch, align
from unbraid.arrays import Array
from unbraid.branch import Branch
from unbraid.errors import DataError, MissingDependencyError
from unbraid.fit import Fit
from unbraid.model import DecoupledModel
from unbraid.selection import Row, Selection
from unbraid.selection.rule import EXACT
from unbraid.selection.words import differences

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#999999"
GREEN, RED, PURPLE, SKY, BLACK = "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000"
"""Of Okabe and Ito's palette, which colour-blind readers can tell apart."""
LINES = (BLUE, RED, GREEN, PURPLE, SKY, BLACK)
MARKERS = "osD^vP"
"""For lines that colour alone should not tell apart."""
MARGIN = 0.12
"""How far beyond the training range a curve is drawn, as a share of that range."""
PANEL = (3.4, 3.0)
"""Width and height of one panel, in inches."""
COLUMNS = 4


def check_matplotlib() -> None:
    """Raise a sentence with advice where matplotlib is missing; cheap, so ask before long work."""
    if find_spec("matplotlib") is None:
        raise MissingDependencyError('Pictures need matplotlib, which is not installed: pip install "unbraid[report]".')


def branches(
    fit_or_model: Fit | DecoupledModel,
    truth: DecoupledModel | None = None,
    axes: Axes | Sequence[Axes] | npt.NDArray[Any] | None = None,
) -> npt.NDArray[Any]:
    """Draw the branches, one panel each.

    Parameters
    ----------
    fit_or_model
        What was found.
    truth
        A known model to compare with. Panel j then shows its branch j, with the found branch of the
        matching direction laid on it: sign and length of the direction, scale and constant of the values
        are the true branch's.
    axes
        One matplotlib axes per branch; new ones if None.

    Returns
    -------
    ndarray of Axes
        The r axes drawn on. The shaded band is the range seen in training; outside it a branch
        is continued and drawn dotted.
    """
    check_matplotlib()
    model = fit_or_model.model if isinstance(fit_or_model, Fit) else fit_or_model
    if not isinstance(model, DecoupledModel):
        raise DataError(f"branches draws a Fit or a DecoupledModel, got a {type(model).__name__}.")
    panels = new_axes(model.rank) if axes is None else np.atleast_1d(np.array(axes, dtype=object)).ravel()
    if len(panels) != model.rank:
        raise DataError(f"axes must hold one axes for each of the {model.rank} branches, got {len(panels)}.")
    found: Sequence[Branch | AlignedBranch] = model.branches if truth is None else align(model, truth)
    for j, (panel, branch) in enumerate(zip(panels, found, strict=True)):
        draw(panel, branch, None if truth is None else truth.branches[j])
        panel.set_xlabel(rf"$u_{{{j + 1}}} = (W_0 x)_{{{j + 1}}}$")
        panel.set_ylabel(rf"$g_{{{j + 1}}}(u_{{{j + 1}}})$")
        panel.set_title(f"branch {j + 1}", fontsize="medium")
    if axes is None and len(panels) > 1:
        legend_above(panels)
    else:
        panels[0].legend(loc="best", framealpha=0.8, edgecolor="none", fontsize="small")
    return panels


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
    panel = new_axes(1)[0] if ax is None else ax
    rows = selection.rows
    by_rank = len({row.settings.rank for row in rows}) > 1

    def across(row: Row) -> int:
        return row.settings.rank if by_rank else row.unknowns

    lines: dict[str, list[Row]] = {}
    for row in rows:
        name = ", ".join(f"{name} = {value}" for name, value in differences(row.settings, rows).items())
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
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(loc="upper right", framealpha=0.8, edgecolor="none", fontsize="small")
    return panel


def draw(panel: Axes, branch: Branch | AlignedBranch, truth: Callable[[Array], Array] | None) -> None:
    """Draw one branch, the range it was learned on, and the true branch under it."""
    low, high = branch.domain
    if not np.isfinite([low, high]).all():
        raise DataError(f"{branch!r} has no finite range to draw on: pass its model as truth beside a fitted one.")
    beyond = MARGIN * (high - low)
    before, inside, after = (
        np.linspace(*ends, points)
        for ends, points in (((low - beyond, low), 32), ((low, high), 512), ((high, high + beyond), 32))
    )
    panel.axvspan(low, high, color=GREY, alpha=0.13, linewidth=0, label="training range")
    if truth is not None:
        panel.plot(inside, truth(inside), color=ORANGE, linewidth=5.0, alpha=0.8, solid_capstyle="butt", label="true")
    panel.plot(inside, branch(inside), color=BLUE, linewidth=1.6, label="found")
    for outside, label in ((before, "continuation"), (after, None)):
        panel.plot(outside, branch(outside), color=BLUE, linewidth=1.4, linestyle=":", label=label)
    panel.set_xlim(low - beyond, high + beyond)
    panel.spines[["top", "right"]].set_visible(False)


def new_axes(count: int) -> npt.NDArray[Any]:
    """A figure with that many panels, at most `COLUMNS` in a row."""
    from matplotlib import pyplot

    rows = -(-count // COLUMNS)
    columns = -(-count // rows)
    size = (PANEL[0] * columns, PANEL[1] * rows + 0.3)
    _, grid = pyplot.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for unused in grid.ravel()[count:]:
        unused.remove()
    panels: npt.NDArray[Any] = grid.ravel()[:count]
    return panels


def legend_above(panels: npt.NDArray[Any]) -> None:
    """One legend for all panels, above them, where it hides nothing."""
    if panels[0].get_legend() is not None:
        panels[0].get_legend().remove()
    handles, labels = panels[0].get_legend_handles_labels()
    panels[0].figure.legend(
        handles, labels, loc="outside upper center", ncols=min(len(labels), len(panels) + 1), frameon=False
    )
