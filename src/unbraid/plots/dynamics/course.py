"""The picture of how a dynamic model was found: its error step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unbraid.dynamics.fit import DynamicFit
from unbraid.plots.dynamics.given import dynamic_fit
from unbraid.plots.palette import BLUE, ORANGE
from unbraid.plots.panels import DRAWN_ZERO, axis_for, check_matplotlib, remove_frame, set_decades

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def course(fit: DynamicFit, ax: Axes | None = None) -> Axes:
    """Draw the mean squared simulation error of the best start, step by step, and where all starts ended.

    Parameters
    ----------
    fit
        What `ub.dynamics.state_space` or `ub.dynamics.narx` returns.
    ax
        Matplotlib axes; new ones if None.

    Returns
    -------
    Axes
        A line for the best start, and marks at the right for the ends of all of them, in units of the outputs'
        variance.
    """
    check_matplotlib()
    objectives = np.maximum(dynamic_fit("course", fit).objectives, DRAWN_ZERO)
    ends = np.maximum(np.array(fit.starts), DRAWN_ZERO)
    panel = axis_for(ax)
    steps = len(objectives)
    panel.plot(np.arange(steps), objectives, color=BLUE, linewidth=1.6, label="best start")
    if len(ends) > 1:
        at = np.full(len(ends), max(steps - 1, 1) * 1.04)
        panel.plot(at, ends, linestyle="none", marker="_", markersize=9.0, color=ORANGE, label="ends of all starts")
    set_decades(panel, np.concatenate([objectives, ends]))
    panel.set_xlabel("step")
    panel.set_ylabel("simulation error, squared")
    remove_frame(panel)
    panel.legend(loc="best", framealpha=0.8, edgecolor="none", fontsize="small")
    return panel
