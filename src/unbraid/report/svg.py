"""Matplotlib's figures as SVG in the look of the page, as few bytes as they can be."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from unbraid.plots.palette import BLACK, BLUE, ORANGE, QUIET, RED
from unbraid.plots.panels import settle_layout

if TYPE_CHECKING:
    from markupsafe import Markup
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


@contextmanager
def page_look() -> Iterator[None]:
    """Matplotlib's settings for figures of a page, without its warnings of letters that its own typeface lacks."""
    from matplotlib import rc_context

    with rc_context(LOOK), warnings.catch_warnings():  # type: ignore[arg-type]
        for said in NO_LETTER:
            warnings.filterwarnings("ignore", said, UserWarning)
        yield


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
    svg = without_repeated_styles(without_repeated_strokes(svg))
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


def without_repeated_styles(svg: str) -> str:
    """The same with the style of marks on their group, where all have one, and with short names: points are many."""

    def grouped(group: re.Match[str]) -> str:
        styles = set(re.findall(r'style="([^"]*)"', group[2]))
        if len(styles) != 1 or group[2].count("style=") != group[2].count("<use"):
            return group[0]
        marks = re.sub(r' style="[^"]*"', "", group[2])
        return f'{group[1]} style="{styles.pop()}">{marks}</g>'

    svg = re.sub(r"(<g(?: clip-path=[^>]*)?)>\s*((?:<use [^>]*/>\s*)+)</g>", grouped, svg)
    names: dict[str, str] = {}
    return re.sub(r"(?<=-)m[0-9a-f]{8,}", lambda name: names.setdefault(name[0], f"m{len(names)}"), svg)


def tidy_tag(tag: str, prefix: str) -> str:
    """A tag with `prefix` before its ids, the page's colours, and coordinates to a hundredth of a point.

    Those of marks are to a tenth. Text between tags is the reader's, and stays.
    """
    tag = re.sub(r' id="[^"]*"', "", tag) if tag.startswith("<g ") else tag  # which nothing refers to
    tag = re.sub(r'\bid="', f'id="{prefix}-', tag)
    tag = re.sub(r"url\(#", f"url(#{prefix}-", tag)
    tag = re.sub(r'(xlink:)?href="#', f'href="#{prefix}-', tag)
    for colour, name in PAGE_COLOURS.items():
        tag = tag.replace(colour.lower(), name)
    if tag.startswith("<use "):
        return re.sub(r"(?<=\d\.\d)\d+(?=\")", "", tag)
    return re.sub(r"(?<=\d\.\d\d)\d+", "", tag)
