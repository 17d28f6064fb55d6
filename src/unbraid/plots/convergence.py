"""The picture of a fit's course: errors sweep by sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from unbraid.errors import DataError
from unbraid.kernels.arrays import Array
from unbraid.plots.palette import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, QUIET, RED
from unbraid.plots.panels import DRAWN_ZERO, axis_for, check_matplotlib, fit_of, remove_frame, set_decades
from unbraid.results.fit import Fit
from unbraid.results.outcome import EventKind, Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EVENTS = {
    EventKind.REVIVED: ("direction renewed", "^", GREEN),
    EventKind.REPLACED: ("branch replaced", "s", PURPLE),
    EventKind.COUPLING_RAISED: ("λ raised", "|", BLACK),
    EventKind.NOT_FINITE: ("not finite", "X", RED),
}
"""How events are called and drawn."""


def convergence(fit: Fit, ax: Axes | None = None) -> Axes:
    """Draw the objective and Error(J) of the best start, sweep by sweep.

    Parameters
    ----------
    fit
        What `decouple` returns.
    ax
        Matplotlib axes; new ones if None.

    Returns
    -------
    Axes
        Marks are events of the trace. Where the search ends and Gauss–Newton steps begin there is a vertical line.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, truth = ub.datasets.trig(S=100, rng=0)
    >>> axes = ub.plots.convergence(ub.decouple(problem, rank=3, starts=4, rng=0))
    >>> axes.get_yscale(), [line.get_label() for line in axes.get_lines()[:2]]
    ('log', ['objective', 'Error(J)'])
    """
    check_matplotlib()
    from matplotlib.ticker import MaxNLocator

    trace = fit_of("convergence", fit).trace
    if trace.sweeps == 0:
        raise DataError("convergence needs a trace, and this fit made no sweeps: it is its `init` as it was.")
    panel = axis_for(ax)
    sweeps = np.arange(1, trace.sweeps + 1)
    dot = "." if trace.sweeps == 1 else None
    panel.plot(sweeps, for_log_axis(trace.objective), color=BLUE, linewidth=1.8, label="objective", marker=dot)
    if np.nanmax(trace.jacobian_error, initial=0.0) > 0.0:
        error = for_log_axis(trace.jacobian_error)
        panel.plot(sweeps, error, color=ORANGE, linewidth=1.4, linestyle=(0, (4, 2)), label="Error(J)", marker=dot)
    draw_events(panel, trace)
    set_decades(panel, np.concatenate([line.get_ydata() for line in panel.get_lines()]))
    draw_phases(panel, trace)
    panel.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    panel.set_xlabel(counted_in(trace))
    panel.set_ylabel("relative error, squared")
    panel.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
    remove_frame(panel)
    panel.legend(loc="upper right", framealpha=0.8, edgecolor="none", fontsize="small")
    return panel


def counted_in(trace: Trace) -> str:
    """What the horizontal axis counts: sweeps, Gauss–Newton steps, or both."""
    if trace.search is None or trace.search >= trace.sweeps:
        return "sweep"
    return "sweeps, then Gauss–Newton steps" if trace.search else "Gauss–Newton step"


def for_log_axis(values: Array) -> Array:
    """Values as a logarithmic axis takes them: those near zero raised, NaN where they are not finite."""
    return np.where(np.isfinite(values), np.maximum(values, DRAWN_ZERO), np.nan)


def draw_events(panel: Axes, trace: Trace) -> None:
    """Draw the events of a trace as marks on its objective, one kind of mark a kind of event."""
    for kind, (called, marker, colour) in EVENTS.items():
        at = np.array([event.sweep for event in trace.events if event.kind is kind], dtype=int)
        if at.size:
            at = np.unique(np.clip(at, 1, trace.sweeps))
            heights = for_log_axis(trace.objective)[at - 1]
            panel.plot(at, heights, marker=marker, color=colour, markersize=6, linestyle="none", label=called)


def draw_phases(panel: Axes, trace: Trace) -> None:
    """Draw a line where the search ends and the Gauss–Newton steps begin, where there are both."""
    if trace.search is None or not 0 < trace.search < trace.sweeps:
        return
    panel.axvline(trace.search + 0.5, color=QUIET, linewidth=0.8, linestyle=":")
    where = panel.get_xaxis_transform()
    look: dict[str, Any] = {"transform": where, "fontsize": "x-small", "color": QUIET, "va": "bottom"}
    panel.text(trace.search, 1.01, "search ", ha="right", **look)
    panel.text(trace.search, 1.01, " Gauss–Newton", ha="left", **look)
