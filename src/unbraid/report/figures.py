"""The figures of a page."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from unbraid import plots
from unbraid.data.problem import Problem
from unbraid.plots.branch_panel import bands_of, draw_branch
from unbraid.plots.diagnostics import (
    draw_against_input,
    draw_in_order,
    draw_influence,
    draw_quantiles,
    most_alike,
    residuals_of,
)
from unbraid.plots.labels import indexed
from unbraid.plots.palette import QUIET
from unbraid.plots.residuals import FEW_OUTPUTS
from unbraid.report.subject import Subject
from unbraid.report.svg import inline, page_look
from unbraid.results.alignment import lay_truth
from unbraid.results.fit import Fit
from unbraid.results.outcome import Trace
from unbraid.runtime.progress import Callback, Progress

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_FIGURES = 30
"""Branches that have a figure each: more would make the page too large."""
NOISE_POINTS, NOISE_INPUTS = 120, 3
"""Points in figures of residuals, and inputs that residuals are drawn against: the page stays small."""
NOISE_SIZE, NOISE_MARGINS = (4.0, 2.7), (0.15, 0.165, 0.97, 0.9)
BRANCH_SIZE, BRANCH_MARGINS = (4.0, 3.0), (0.155, 0.15, 0.965, 0.985)


def new_figure(
    size: tuple[float, float], margins: tuple[float, float, float, float] | None = None
) -> tuple[Figure, Axes]:
    """A figure that no window knows of, with one axes; margins (left, bottom, right, top) save the time of a layout."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained" if margins is None else None)
    axes = figure.subplots()
    if margins is not None:
        figure.subplots_adjust(*margins)
    return figure, axes


def branch_figures(subject: Subject, callback: Callback | None = None) -> list[Markup | None]:
    """One figure a branch that carries something, in the model's order; of very many, None for those that matter least.

    What else there is to say of a branch stands beside its figure.
    """
    order = np.argsort(-subject.shares[subject.carrying], kind="stable")
    chosen = np.sort(subject.carrying[order[:MOST_FIGURES]])
    model, X = subject.model, subject.problem.counting().X
    laid = {} if subject.truth is None else lay_truth(model, subject.truth)
    sure = subject.glance.uncertainty if subject.glance is not None and subject.banded else None
    drawn: dict[int, Markup | None] = dict.fromkeys(map(int, subject.carrying))
    with page_look():
        for done, j in enumerate(map(int, chosen), start=1):
            figure, axes = new_figure(BRANCH_SIZE, BRANCH_MARGINS)
            strip = draw_branch(axes, model.branches[j], laid.get(j), X @ model.W0[j], bands_of(sure, j))
            plain_labels(axes, strip, j + 1)
            drawn[j] = inline(figure, f"b{j + 1}", f"The curve of branch {j + 1}")
            if callback is not None:
                callback(Progress("draw", done, len(chosen)))
    return list(drawn.values())


def plain_labels(axes: Axes, strip: Axes, number: int) -> None:
    """Labels in letters of the page's typeface, and neither title nor legend: the page has them."""
    axes.set_xlabel(indexed("u", number))
    axes.set_ylabel(indexed("g", number), y=0.69)
    strip.set_ylabel("slope", color=QUIET, fontsize="small", y=0.5)
    for one in (axes, strip):
        one.set_title("", y=1.0)  # a place of its own: matplotlib is slow to find one


def residual_figure(subject: Subject) -> Markup:
    """The figure of the residuals: what the model leaves unexplained, output by output."""
    given = subject.problem
    named = Problem(given.X, given.F, given.J, given.weights, "mask", output_names=subject.outputs)
    with page_look():
        figure, axes = new_figure((max(5.4, min(9.6, 1.2 + 0.28 * given.n)), 3.0 if given.n <= FEW_OUTPUTS else 3.6))
        plots.residuals(subject.model, named, axes)
        axes.set_ylabel("residual, %")  # of what, the caption says
        return inline(figure, "residuals", "Residuals of the outputs")


def noise_figures(subject: Subject) -> list[Markup]:
    """Figures that show whether what is left of the samples is noise, with few points each."""
    if subject.glance is None:
        return []
    shown = residuals_of(subject.glance, NOISE_POINTS)
    draws = [draw_quantiles, draw_influence, draw_in_order]
    draws += [partial(draw_against_input, k=k) for k in most_alike(shown, NOISE_INPUTS)]
    found = []
    with page_look():
        for i, draw in enumerate(draws):
            figure, axes = new_figure(NOISE_SIZE, NOISE_MARGINS)
            draw(axes, shown)
            says = f"Residuals {axes.get_title()}" if draw is not draw_influence else "Influence of samples"
            if i == 0 and len(shown.columns) > 1:
                panel_legend(axes)
            found.append(inline(figure, f"n{i}", says))
    return found


def panel_legend(axes: Axes) -> None:
    """A legend inside of axes, where it hides least."""
    axes.legend(loc="upper left", frameon=False, fontsize="small", handletextpad=0.2, handlelength=1.0)


def course_figures(fit: Fit) -> list[tuple[str, Markup]]:
    """How the best start went, and how all starts ended, as far as there is anything to draw; with headings."""
    found = []
    with page_look():
        if not is_flat(fit.trace):
            figure, axes = new_figure((4.8, 3.2))
            plots.convergence(fit, axes)
            found.append(("The course of the best start", inline(figure, "convergence", "Errors step by step")))
        if len(fit.starts) > 1:
            figure, axes = new_figure((4.8, 3.2))
            plots.starts(fit, axes)
            found.append(("How all starts ended", inline(figure, "starts", "The objective of every start")))
    return found


FLAT_COURSE = 1.1
"""A course that begins within this factor of its end has nothing to show."""


def is_flat(trace: Trace) -> bool:
    """Whether a course has nothing to show: no sweep, or an objective that begins where it ends.

    So it is with values alone, whose first, coarse fits are not part of it.
    """
    return not trace.sweeps or bool(trace.objective[0] <= FLAT_COURSE * np.nanmin(trace.objective))
