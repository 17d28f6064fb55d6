"""The picture of a compressed network: what is lost against the numbers that are left."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from unbraid.errors import DataError
from unbraid.plots.palette import LINES, MARKERS
from unbraid.plots.panels import axis_for, check_matplotlib, remove_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST = 1e-3
"""What is lost, in %, below which points are drawn at this."""


def sizes(result: Any, ax: Axes | None = None) -> Axes:
    """Draw what ranks lose on held-out inputs against the numbers that they take, one line a part.

    Parameters
    ----------
    result
        What `ub.networks.compress` returns, best with ``rank="auto"``, which tries several.
    ax
        Matplotlib axes; new ones if None.
    """
    check_matplotlib()
    path = getattr(result, "path", None)
    if not isinstance(path, tuple) or not path or not all(hasattr(one, "agreement") for one in path):
        raise DataError(f"sizes draws what ub.networks.compress returns, got a {type(result).__name__}.")
    panel = axis_for(ax)
    looks = zip(itertools.cycle(LINES), itertools.cycle(MARKERS), strict=False)
    parts = {one.part: [other for other in path if other.part == one.part] for one in path}
    for (name, steps), (colour, marker) in zip(parts.items(), looks, strict=False):
        x = [one.numbers for one in steps]
        y = [max(100.0 * one.agreement.loss, LEAST) for one in steps]
        panel.plot(x, y, color=colour, marker=marker, label=f"part {name!r}")
        for one, across, up in zip(steps, x, y, strict=True):
            panel.annotate(f"r = {one.rank}", (across, up), textcoords="offset points", xytext=(5, 5), fontsize=8)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("numbers of the part")
    classes = all(one.agreement.classes is not None for one in path)
    panel.set_ylabel("% of decisions that differ" if classes else "% of variance lost")
    if len(parts) > 1:
        panel.legend(frameon=False)
    remove_frame(panel)
    return panel
