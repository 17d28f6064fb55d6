"""The picture of the starts: how low each came, and whether they found the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from unbraid.data.checks import counted
from unbraid.errors import DataError
from unbraid.plots.palette import BLUE, GREY, RED
from unbraid.plots.panels import DRAWN_ZERO, axis_for, check_matplotlib, fit_of, remove_frame, set_decades
from unbraid.results.carrying import left_out
from unbraid.results.fit import AGREEING, Fit, StartSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def starts(fit: Fit, ax: Axes | None = None) -> Axes:
    """Draw the objective of every start, best first.

    Parameters
    ----------
    fit
        What `decouple` returns.
    ax
        Matplotlib axes; new ones if None.

    Returns
    -------
    Axes
        Filled marks are starts that were finished, hollow ones were left after the search. Circles agree with the best
        start on the directions (within 5 degrees), squares do not.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, truth = ub.datasets.trig(S=100, rng=0)
    >>> ub.plots.starts(ub.decouple(problem, rank=3, rng=0)).get_title()
    '4 of 16 starts finished, 4 agree'
    """
    check_matplotlib()
    from matplotlib.ticker import MaxNLocator

    summaries = fit_of("starts", fit).starts
    if not summaries:
        raise DataError("starts needs fit.starts, and this fit has none.")
    panel = axis_for(ax)
    places = np.arange(1, len(summaries) + 1)
    objectives = np.array([start.objective for start in summaries])
    drawn = np.isfinite(objectives)
    objectives = np.maximum(objectives, DRAWN_ZERO)
    for finished in (True, False):
        for agrees in (True, False):
            which = drawn & np.array([is_kind(start, finished, agrees) for start in summaries])
            if which.any():
                panel.plot(places[which], objectives[which], **mark_look(finished, agrees))
    set_decades(panel, objectives[drawn])
    panel.set_xlim(0.0, len(summaries) + 1.0)
    panel.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    panel.set_xlabel("start, best first")
    panel.set_ylabel("objective")
    panel.set_title(count_words(summaries) + compared_words(fit), fontsize="medium", loc="center")
    panel.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
    remove_frame(panel)
    if drawn.any():
        panel.legend(loc="best", framealpha=0.8, edgecolor="none", fontsize="small")
    return panel


def compared_words(fit: Fit) -> str:
    """What starts agree on where that are not only the branches of the model; else nothing."""
    several = sum(start.finished for start in fit.starts) > 1
    return f" on all {fit.model.rank} branches" if several and left_out(fit.model, fit.smoothing) else ""


def is_kind(start: StartSummary, finished: bool, agrees: bool) -> bool:
    """Whether a start was finished or not, and agrees with the best or not, as asked."""
    return start.finished == finished and (start.angle <= AGREEING) == agrees


def mark_look(finished: bool, agrees: bool) -> dict[str, Any]:
    """How marks look: colour and shape say whether a start agrees, filling whether it was finished."""
    words = ("finished" if finished else "left after the search") + (", agrees" if agrees else ", differs")
    return {
        "marker": "o" if agrees else "s",
        "color": BLUE if agrees else RED,
        "markerfacecolor": None if finished else "none",
        "markersize": 6.0,
        "linestyle": "none",
        "label": words,
    }


def count_words(summaries: tuple[StartSummary, ...]) -> str:
    """How many starts there are and agree, in words: '4 of 16 starts finished, 4 agree'."""
    total, finished = len(summaries), sum(start.finished for start in summaries)
    if total == 1:
        return "1 start" if finished else "1 start, not finished"
    some = f"{total} starts finished" if finished == total else f"{finished} of {counted(total, 'start')} finished"
    if finished < 2:
        return some
    agreeing = sum(start.finished and start.angle <= AGREEING for start in summaries)
    return f"{some}, {agreeing} {'agrees' if agreeing == 1 else 'agree'}"
