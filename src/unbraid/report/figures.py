"""Matplotlib figures as SVG that can stand in a page beside others."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from unbraid import plots
from unbraid.data.problem import Problem
from unbraid.plots.labels import indexed
from unbraid.plots.palette import BLACK, BLUE, ORANGE, QUIET, RED
from unbraid.plots.panels import settle_layout
from unbraid.plots.residuals import FEW_OUTPUTS
from unbraid.report.subject import Subject
from unbraid.results.carrying import some_branches
from unbraid.results.fit import Fit
from unbraid.results.outcome import Trace
from unbraid.runtime.progress import Callback, Progress

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#2b313b"
"""Of text and axes; it becomes the page's own colour, so that figures follow a dark page."""
LOOK: dict[str, Any] = {
    "svg.fonttype": "none",  # letters stay letters: small, selectable, and in the page's own typeface
    "svg.hashsalt": "unbraid",
    "font.family": "sans-serif",
    "font.size": 10.0,
    "axes.titlesize": 10.0,
    "axes.labelsize": 10.0,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "path.simplify_threshold": 0.2,
}
PAGE_COLOURS = {
    INK: "currentColor",
    BLACK: "currentColor",
    QUIET: "var(--soft)",
    BLUE: "var(--plus)",
    RED: "var(--minus)",
    ORANGE: "var(--true)",
}
"""What the page has names for, so that figures follow it into the dark."""
USELESS = (
    r"<!--.*?-->",
    r"<metadata>.*?</metadata>",
    r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>",  # it would hold for the whole page, which has it for figures
    r" font-family: [^;\"]*;",  # the page's own is used
    r' transform="rotate\(-?0 [^)]*\)"',
    r'<g id="patch_1">.*?</g>',  # the background
)
"""What the page does not need of a figure."""
NO_LETTER = (r"Glyph .* missing from", r"Matplotlib currently does not support .* natively")
"""What matplotlib says of names in other scripts; text stays text in a page, where the browser has the letters."""
MOST_FIGURES = 30
"""Branches that have a figure each: more would make the page too large."""
BRANCH_SIZE, BRANCH_MARGINS = (4.0, 3.0), (0.155, 0.15, 0.965, 0.985)


@contextmanager
def page_look() -> Iterator[None]:
    """Matplotlib's settings for figures of a page, without its warnings of letters that its own typeface lacks."""
    from matplotlib import rc_context

    with rc_context(LOOK), warnings.catch_warnings():  # type: ignore[arg-type]
        for said in NO_LETTER:
            warnings.filterwarnings("ignore", said, UserWarning)
        yield


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
    truth = None if subject.truth is None else some_branches(subject.truth, chosen)
    drawn: dict[int, Markup | None] = dict.fromkeys(map(int, subject.carrying))
    with page_look():
        pairs = [new_figure(BRANCH_SIZE, BRANCH_MARGINS) for _ in chosen]
        plots.branches(some_branches(subject.model, chosen), truth, [axes for _, axes in pairs], subject.problem)
        for done, (j, (figure, axes)) in enumerate(zip(chosen, pairs, strict=True), start=1):
            plain_labels(axes, j + 1)
            drawn[int(j)] = inline(figure, f"b{j + 1}", f"The curve of branch {j + 1}")
            if callback is not None:
                callback(Progress("draw", done, len(chosen)))
    return list(drawn.values())


def plain_labels(axes: Axes, number: int) -> None:
    """Labels in letters of the page's typeface, and neither title nor legend: the page has them."""
    axes.set_xlabel(indexed("u", number))
    axes.set_ylabel(indexed("g", number), y=0.69)
    for strip in axes.child_axes:
        strip.set_ylabel("slope")
    for side in ("left", "center", "right"):
        axes.set_title("", loc=side)
    legend = axes.get_legend()
    if legend is not None:
        legend.remove()


def residual_figure(subject: Subject) -> Markup:
    """The figure of the residuals: what the model leaves unexplained, output by output."""
    given = subject.problem
    named = Problem(given.X, given.F, given.J, given.weights, "mask", output_names=subject.outputs)
    with page_look():
        figure, axes = new_figure((max(5.4, min(9.6, 1.2 + 0.28 * given.n)), 3.0 if given.n <= FEW_OUTPUTS else 3.6))
        plots.residuals(subject.model, named, axes)
        axes.set_ylabel("residual, %")  # of what, the caption says
        return inline(figure, "residuals", "Residuals of the outputs")


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


def inline(figure: Figure, prefix: str, says: str) -> Markup:
    """The figure as an `<svg>` element whose ids begin with `prefix`, and which tells what it shows."""
    from markupsafe import Markup, escape

    text = io.StringIO()
    settle_layout(figure)
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    for useless in USELESS:
        svg = re.sub(useless, "", svg, flags=re.DOTALL)
    svg = re.sub(r"\s*\n\s*", "\n", re.sub(r" ?\n(?=[LMQCz\"] ?)", "", svg))
    svg = re.sub(r"<[^>]*>", lambda tag: tidy_tag(tag.group(), prefix), svg)
    svg = without_repeated_strokes(svg)
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    assert box is not None
    width, height = (f"{float(side):.0f}" for side in box.groups())
    opening = (
        f'<svg class="plot" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(says)}">'
    )
    svg = re.sub(r"<svg[^>]*>", lambda _: opening, svg, count=1)
    return Markup(svg)


def without_repeated_strokes(svg: str) -> str:
    """The same without the strokes of marks that say again what the mark they use says: knots are many."""
    styled = set(re.findall(r'<path id="([^"]+)"[^>]*style="stroke:', svg))
    return re.sub(
        r'(<use href="#([^"]+)"[^>]*?); stroke: [^"]*(")',
        lambda use: use[1] + use[3] if use[2] in styled else use[0],
        svg,
    )


def tidy_tag(tag: str, prefix: str) -> str:
    """A tag with `prefix` before its ids, the page's colours, and coordinates to a hundredth of a point.

    Text between tags is the reader's, and stays.
    """
    tag = re.sub(r'\bid="', f'id="{prefix}-', tag)
    tag = re.sub(r"url\(#", f"url(#{prefix}-", tag)
    tag = re.sub(r'(xlink:)?href="#', f'href="#{prefix}-', tag)
    for colour, name in PAGE_COLOURS.items():
        tag = tag.replace(colour.lower(), name)
    return re.sub(r"(?<=\d\.\d\d)\d+", "", tag)
