"""The block diagram f = W1 g(W0 x), laid out: where boxes, nodes and edges go. The template draws them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unbraid.kernels.arrays import Array
from unbraid.report.words import short_share, signed
from unbraid.results.branch import Branch

MOST_EDGES = 48
"""Edges drawn on each side before the weaker ones wait until their branch is lit."""
WEAK = 0.05
"""A share of the largest weight below which an edge waits."""
NOTHING = 0.01
"""A share of the largest weight below which an edge is not drawn at all."""
CURVE_POINTS = 48
MOST_LIT = 240
"""Edges on each side that are drawn at all: weaker ones would say nothing, and make the page large."""
NAMED = 4
"""How many ends of a branch are named."""


class Form(NamedTuple):
    """A shape of the diagram, for screens of some width; `letters` is how long names may be."""

    name: str
    width: float
    box: float
    letters: int
    thickest: float


WIDE = Form("wide", 760.0, 150.0, 22, 7.0)
NARROW = Form("narrow", 348.0, 92.0, 9, 5.0)
LETTER = 7.3
"""The width of a letter, about."""
PITCHES = ((4, 92.0, 70.0), (8, 70.0, 54.0), (10**9, 50.0, 40.0))
"""For up to so many branches: from one box to the next, and the height of a box."""
HIGH_ENOUGH = 60.0
"""The height from which on a box has room above its curve."""
HEAD = 34.0
"""Room for the headings of the columns."""


class Node(NamedTuple):
    """An input or an output."""

    which: int
    x: float
    y: float
    label: str
    name: str
    says: str


class Box(NamedTuple):
    """A branch: where its box is, its curve as an SVG path, and the width of the bar that is its share."""

    which: int
    x: float
    y: float
    width: float
    height: float
    curve: str
    bar: float
    share: str
    text_y: float
    says: str


class Edge(NamedTuple):
    """A weight: the path, how thick and how strong, and which branch and which node it joins."""

    branch: int
    node: int
    side: str
    path: str
    width: float
    opacity: float
    dash: str
    negative: bool
    weak: bool
    middle: tuple[float, float]
    weight: str


class Diagram(NamedTuple):
    """Everything to be drawn."""

    form: Form
    height: float
    inputs: list[Node]
    boxes: list[Box]
    outputs: list[Node]
    edges: list[Edge]
    labelled: bool
    left_out: str


def diagram(
    form: Form,
    branches: Sequence[Branch],
    into: Array,
    out: Array,
    shares: Array | None,
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> Diagram:
    """Lay out a model whose weights, W0 (r, m) and W1ᵀ (r, n), are comparable with each other, each on its side."""
    (r, m), n = into.shape, out.shape[1]
    pitch, tall = next((pitch, tall) for most, pitch, tall in PITCHES if r <= most)
    height = HEAD + max(r * pitch, 26.0 * max(m, n), 90.0)
    left = (form.width - form.box) / 2.0
    boxes = [
        laid_box(j, branch, left, y - tall / 2.0, form, tall, shares)
        for j, (branch, y) in enumerate(zip(branches, spaced(r, pitch, height), strict=True))
    ]
    before, after = (column(names, form.letters) for names in (inputs, outputs))
    sources = laid_nodes(inputs, before, height, form)
    targets = laid_nodes(outputs, form.width - after, height, form)
    edges = [*laid_edges(form, "in", into, sources, boxes), *laid_edges(form, "out", out, targets, boxes)]
    return Diagram(
        form,
        height,
        [node._replace(says=node_words(node, edges, "in", "goes into")) for node in sources],
        [box._replace(says=box_words(box, edges, inputs, outputs)) for box in boxes],
        [node._replace(says=node_words(node, edges, "out", "comes from")) for node in targets],
        edges,
        labelled=form is WIDE and r <= 4 and max(m, n) <= 3,
        left_out=words_on_edges(edges, into.size + out.size),
    )


def column(names: Sequence[str], letters: int) -> float:
    """The width of a column of names, and of the circles beside it."""
    return 20.0 + LETTER * max(6, min(letters, max(map(len, names))))


def laid_nodes(names: Sequence[str], x: float, height: float, form: Form) -> list[Node]:
    """Inputs or outputs, one above the other."""
    heights = spaced(len(names), 96.0, height)
    return [
        Node(k, x, float(y), shortened(name, form.letters), name, "")
        for k, (name, y) in enumerate(zip(names, heights, strict=True))
    ]


def box_words(box: Box, edges: Sequence[Edge], inputs: Sequence[str], outputs: Sequence[str]) -> str:
    """What a branch is driven by and goes into, strongest first."""
    own = [edge for edge in reversed(edges) if edge.branch == box.which]
    parts = [
        f"{verb} {listed([f'{names[edge.node]} ({edge.weight})' for edge in own if edge.side == side])}"
        for side, verb, names in (("in", "driven by", inputs), ("out", "goes into", outputs))
        if any(edge.side == side for edge in own)
    ]
    return f"Branch {box.which + 1}{box.share and f', {box.share}'}: {'; '.join(parts) or 'connected to nothing'}."


def node_words(node: Node, edges: Sequence[Edge], side: str, verb: str) -> str:
    """Which branches an input goes into, or an output comes from, strongest first."""
    own = [edge for edge in reversed(edges) if edge.side == side and edge.node == node.which]
    if not own:
        return f"{node.name}: connected to nothing."
    return f"{node.name} {verb} {listed([f'branch {edge.branch + 1} ({edge.weight})' for edge in own])}."


def listed(parts: list[str]) -> str:
    """The first of some, and how many more there are."""
    return ", ".join(parts[:NAMED]) + (f" and {len(parts) - NAMED} more" if len(parts) > NAMED else "")


def spaced(count: int, pitch: float, height: float) -> Array:
    """Heights of so many things, `pitch` apart or as far as there is room, around the middle."""
    room = height - HEAD
    pitch = min(pitch, room / count)
    return np.asarray(HEAD + room / 2.0 + pitch * (np.arange(count) - (count - 1) / 2.0))


def laid_box(j: int, branch: Branch, x: float, y: float, form: Form, tall: float, shares: Array | None) -> Box:
    """One branch. Its number and its share stand above the curve, or beside it where the box is low."""
    inside = form.box - 24.0
    share, bar = "", 0.0
    if shares is not None:
        share, bar = short_share(shares[j]), inside * min(1.0, float(shares[j]))
    low = tall < HIGH_ENOUGH
    share = "" if low and form is NARROW else share
    before, after = (34.0, 46.0 if share else 10.0) if low else (12.0, 12.0)
    above, below = (8.0, 12.0) if low else (19.0, 13.0)
    path = curve(branch, x + before, y + above, form.box - before - after, tall - above - below)
    return Box(j, x, y, form.box, tall, path, bar, share, y + (tall / 2.0 + 3.0 if low else 15.0), "")


def curve(branch: Branch, x: float, y: float, width: float, height: float) -> str:
    """The branch over its domain as the path of a line that fills a rectangle."""
    low, high = branch.domain
    if not np.isfinite([low, high]).all():
        return ""
    values = branch(np.linspace(low, high, CURVE_POINTS))
    span = float(np.ptp(values))
    level = (values - values.min()) / span if span > 0.0 else np.full(CURVE_POINTS, 0.5)
    across = x + width * np.linspace(0.0, 1.0, CURVE_POINTS)
    points = (f"{a:.1f} {b:.1f}" for a, b in zip(across, y + height * (1.0 - level), strict=True))
    return "M" + "L".join(points)


def laid_edges(form: Form, side: str, weights: Array, nodes: Sequence[Node], boxes: Sequence[Box]) -> list[Edge]:
    """The edges of one side, weights (r, nodes); strong ones come last, on top of weak ones."""
    largest = float(np.abs(weights).max()) or 1.0
    each, at_all = max(2, MOST_EDGES // len(boxes)), max(3, MOST_LIT // len(boxes))
    found = []
    for j, box in enumerate(boxes):
        size = np.abs(weights[j]) / largest
        place = np.argsort(np.argsort(-size, kind="stable"))
        for k, node in enumerate(nodes):
            if size[k] < NOTHING or place[k] >= at_all:
                continue
            weak = bool(place[k] > 0 and (size[k] < WEAK or place[k] >= each))
            fan = 0.62 * box.height * ((k + 0.5) / len(nodes) - 0.5)
            port = box.y + box.height / 2.0 + fan
            start, end = (
                ((node.x, node.y), (box.x, port)) if side == "in" else ((box.x + box.width, port), (node.x, node.y))
            )
            width = 0.8 + (form.thickest - 0.8) * float(size[k])
            found.append(
                Edge(
                    branch=j,
                    node=k,
                    side=side,
                    path=bend(start, end),
                    width=width,
                    opacity=0.35 + 0.6 * float(size[k]),
                    dash=f"{4.0 + 1.2 * width:.1f} {2.5 + 0.6 * width:.1f}",
                    negative=bool(weights[j, k] < 0.0),
                    weak=weak,
                    middle=middle(start, end, side),
                    weight=signed(weights[j, k]),
                )
            )
    return sorted(found, key=lambda edge: edge.width)


def bend(start: tuple[float, float], end: tuple[float, float]) -> str:
    """A line that leaves and arrives level."""
    (x, y), (to_x, to_y) = start, end
    half = (x + to_x) / 2.0
    return f"M{x:.1f} {y:.1f}C{half:.1f} {y:.1f} {half:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"


def middle(start: tuple[float, float], end: tuple[float, float], side: str) -> tuple[float, float]:
    """A point of that line near the box, where the lines of different nodes are apart."""
    t = 0.74 if side == "in" else 0.26
    s = 1.0 - t
    ease = 3.0 * s * t * t + t**3
    half = (start[0] + end[0]) / 2.0
    x = s**3 * start[0] + 3.0 * s * t * half + t**3 * end[0]
    return x, start[1] + ease * (end[1] - start[1])


def words_on_edges(edges: Sequence[Edge], total: int) -> str:
    """What the picture leaves out, in a sentence, or nothing."""
    drawn, weak = sum(not edge.weak for edge in edges), sum(edge.weak for edge in edges)
    if drawn == total:
        return ""
    lit = "; a branch that is lit shows more of its own" if weak else ""
    return f"The {drawn} strongest of {total} weights are drawn{lit}."


def shortened(name: str, letters: int) -> str:
    """A name that fits."""
    return name if len(name) <= letters else name[: letters - 1] + "…"
