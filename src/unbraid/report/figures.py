"""Matplotlib figures as SVG that can stand in a page beside others."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from unbraid import plots
from unbraid.alignment import align
from unbraid.report.subject import Subject, subscript

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from markupsafe import Markup

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
BRANCH_SIZE = (4.2, 2.9)


@contextmanager
def page_look() -> Iterator[None]:
    """Matplotlib's settings for figures of a page."""
    from matplotlib import rc_context

    with rc_context(LOOK):
        yield


def new_figure(size: tuple[float, float]) -> tuple[Figure, Axes]:
    """A figure that no window knows of, with one axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots()


def branch_figures(subject: Subject) -> list[Markup]:
    """One a branch, in the model's order."""
    with page_look():
        pairs = [new_figure(BRANCH_SIZE) for _ in range(subject.rank)]
        plots.branches(subject.model, subject.truth, [axes for _, axes in pairs])
        order = range(subject.rank) if subject.truth is None else [one.found for one in align(subject.model, subject.truth)]
        drawn: list[Any] = [None] * subject.rank
        for j, (figure, axes) in zip(order, pairs, strict=True):
            axes.set_xlabel(subscript("u", j + 1))
            axes.set_ylabel("")
            axes.set_title("")
            drawn[j] = inline(figure, f"b{j + 1}", f"The curve of branch {j + 1}")
    return drawn


def inline(figure: Figure, prefix: str, says: str) -> Markup:
    """The figure as an `<svg>` element whose ids begin with `prefix`, and which tells what it shows."""
    from markupsafe import Markup, escape

    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}-", svg)
    svg = re.sub(r'(xlink:)?href="#', f'href="#{prefix}-', svg)
    svg = svg.replace(INK, "currentColor")
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    assert box is not None
    opening = f'<svg viewBox="0 0 {box[1]} {box[2]}" width="{float(box[1]):.0f}" height="{float(box[2]):.0f}" role="img"'
    svg = re.sub(r"<svg[^>]*>", opening + f' class="plot" aria-label="{escape(says)}">', svg, count=1)
    return Markup(re.sub(r"\n\s*", "\n", svg))
