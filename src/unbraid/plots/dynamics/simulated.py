"""The picture of a record: measured and simulated, and what is left of it below."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unbraid.dynamics.fit import DynamicFit
from unbraid.dynamics.record import Record
from unbraid.kernels.arrays import Array, BoolArray
from unbraid.plots.branches import panels_for
from unbraid.plots.dynamics.given import check_signal, dynamic_fit, output_labels, run_to_draw
from unbraid.plots.palette import BLUE, GREY, ORANGE, QUIET, RED
from unbraid.plots.panels import check_matplotlib, remove_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 400
"""A longer course than twice this is drawn as the lowest and the highest value of so many bins each."""
TALL = (7.2, 4.2)
"""Width and height of a new figure, in inches."""


def simulated(
    fit: DynamicFit,
    record: int | Record = 0,
    output: int = 0,
    stretch: slice | None = None,
    axes: Any = None,
) -> npt.NDArray[Any]:
    """Draw a record as it was measured and as the model simulates it, and below what is left.

    Parameters
    ----------
    fit
        What `ub.dynamics.state_space` or `ub.dynamics.narx` returns.
    record
        Which of the fit's records, from 0; or another one, whose first outputs then set the initial state.
    output
        Which output, from 0.
    stretch
        A part of it, ``slice(0, 200)``; all of it if None.
    axes
        Two matplotlib axes, for the courses and for what is left; new ones if None.

    Returns
    -------
    ndarray of Axes
        Both. A long course is drawn as the lowest and the highest value of each of 400 bins, so that no peak gets lost.
        Where nothing was measured the ground is hatched, what does not count is grey, and where the model was outside
        the range seen in training there is a bar along the bottom.
    """
    check_matplotlib()
    run = run_to_draw(dynamic_fit("simulated", fit), record)
    i = check_signal(output, fit.model)
    some = slice(*(stretch or slice(None)).indices(len(run.record)))
    t = run.record.time[some]
    y, made = run.record.y[some, i], run.simulation.y[some, i]
    upper, lower = new_pair() if axes is None else panels_for(2, axes, "courses, measured and left over,")
    draw_course(upper, t, y, color=ORANGE, linewidth=2.6, label="measured")
    draw_course(upper, t, made, color=BLUE, linewidth=1.0, label="simulated")
    draw_course(lower, t, run.residual[some, i], color=RED, linewidth=0.9, label="measured − simulated")
    shade(upper, lower, t, np.isnan(y), hatch="////", label="not measured")
    shade(upper, lower, t, np.arange(some.start, some.stop) < run.skip, hatch=None, label="does not count")
    draw_outside(lower, t, run.simulation.outside[some])
    name = output_labels(fit.model)[i]
    upper.set_ylabel(name)
    lower.set_ylabel("left over")
    lower.set_xlabel("time")
    upper.tick_params(axis="x", labelbottom=False)
    lower.axhline(0.0, color=GREY, linewidth=0.6, zorder=0)
    for panel in (upper, lower):
        panel.set_xlim(float(t[0]), float(t[-1]))
        remove_frame(panel)
    both = [dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True)) for panel in (upper, lower)]
    kept = {label: handle for label, handle in (both[0] | both[1]).items() if label != "measured − simulated"}
    where: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
    look: dict[str, Any] = {"frameon": False, "fontsize": "small", "ncols": len(kept), "handlelength": 1.6}
    upper.legend(list(kept.values()), list(kept), **where, **look)
    return np.array([upper, lower], dtype=object)


def new_pair() -> Any:
    """Two axes one above the other, of one time."""
    from matplotlib import pyplot

    settings: dict[str, Any] = {"height_ratios": (2.4, 1.0), "layout": "constrained"}
    return pyplot.subplots(2, 1, sharex=True, figsize=TALL, **settings)[1]


class Course(NamedTuple):
    """The points of a line."""

    t: Array
    y: Array


def thinned(t: Array, y: Array, bins: int = BINS) -> Course:
    """A course (T,) with fewer points that looks the same: of each bin the lowest and the highest, in their order.

    NaN stays NaN where a whole bin has nothing else.
    """
    if len(t) <= 2 * bins:
        return Course(t, y)
    edges = np.linspace(0, len(t), bins + 1).astype(int)
    chosen: list[int] = []
    for begin, end in pairwise(edges):
        part = y[begin:end]
        known = np.flatnonzero(np.isfinite(part))
        ends = {known[np.argmin(part[known])], known[np.argmax(part[known])]} if len(known) else {0}
        chosen += [int(begin + k) for k in sorted(ends)]
    return Course(t[chosen], y[chosen])


def draw_course(panel: Axes, t: Array, y: Array, **look: Any) -> None:
    """Draw a course, thinned where it is long."""
    panel.plot(*thinned(t, y), **look)


def shade(upper: Axes, lower: Axes, t: Array, where: BoolArray, hatch: str | None, label: str) -> None:
    """Shade both panels where something holds."""
    for k, (low, high) in enumerate(spans(t, where)):
        for panel in (upper, lower):
            panel.axvspan(
                low,
                high,
                facecolor=GREY if hatch is None else "none",
                edgecolor=GREY,
                alpha=0.25 if hatch is None else 0.6,
                hatch=hatch,
                linewidth=0.0,
                zorder=0.5,
                label=label if k == 0 and panel is upper else None,
            )


def draw_outside(panel: Axes, t: Array, outside: BoolArray) -> None:
    """Draw a bar along the bottom where the model was outside the range seen in training."""
    across = panel.get_xaxis_transform()
    for k, (low, high) in enumerate(spans(t, outside)):
        label = "outside the range seen" if k == 0 else None
        panel.plot([low, high], [0.0, 0.0], color=QUIET, linewidth=4.0, transform=across, label=label, clip_on=False)


def spans(t: Array, where: BoolArray, bins: int = BINS) -> list[tuple[float, float]]:
    """From when to when something holds; spans that would touch one another in a picture of so many bins are one."""
    if not where.any():
        return []
    half = 0.5 * (t[1] - t[0]) if len(t) > 1 else 0.5
    near = max(1, len(t) // bins)
    index = np.flatnonzero(where)
    cuts = np.flatnonzero(np.diff(index) > near)
    begins, ends = index[np.append(0, cuts + 1)], index[np.append(cuts, len(index) - 1)]
    return [(float(t[a]) - half, float(t[b]) + half) for a, b in zip(begins, ends, strict=True)]
