"""The block diagram f = W1 g(W0 x), laid out: where boxes, nodes and edges go. The template draws them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unbraid.kernels.arrays import Array
from unbraid.report.subject import MOST_NAMED, NEGLIGIBLE_WEIGHT, Subject
from unbraid.report.words import short_share, signed
from unbraid.results.branch import Branch

MOST_EDGES = 48
"""Edges drawn on each side before the weaker ones wait until their branch is lit."""
WEAK = 0.05
"""A share of the largest weight below which an edge waits."""
CURVE_POINTS = 48
MOST_LIT = 240
"""Edges on each side that are drawn at all: weaker ones would say nothing, and make the page large."""


class Proportions(NamedTuple):
    """Sizes of a diagram for screens of some width; `names` is how wide names may be."""

    name: str
    width: float
    box: float
    names: float
    thickest: float


WIDE_SCREEN = Proportions("wide", 760.0, 150.0, 165.0, 7.0)
NARROW_SCREEN = Proportions("narrow", 348.0, 92.0, 70.0, 5.0)
PITCHES = ((4, 92.0, 70.0), (8, 70.0, 54.0), (10**9, 50.0, 40.0))
"""For up to so many branches: from one box to the next, and the height of a box."""
HIGH_ENOUGH = 60.0
"""The height from which on a box has room above its curve."""
HEAD = 34.0
"""Room for the headings of the columns."""


class Node(NamedTuple):
    """An input or an output of the diagram: where its circle is, and its name."""

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
    """A block diagram, laid out: everything to be drawn."""

    form: Proportions
    height: float
    inputs: list[Node]
    boxes: list[Box]
    outputs: list[Node]
    edges: list[Edge]
    labelled: bool
    left_out: str


def lay_out(form: Proportions, subject: Subject, shares: Array | None) -> Diagram:
    """The diagram of a model in given proportions; `shares` (r,) are those of its branches, if known.

    Branches that carry nothing have no box.
    """
    (into, out), inputs, outputs = subject.weights, subject.inputs, subject.outputs
    m, n, shown = into.shape[1], out.shape[1], subject.carrying
    r = len(shown)
    pitch, tall = next((pitch, tall) for most, pitch, tall in PITCHES if r <= most)
    height = HEAD + max(r * pitch, 26.0 * max(m, n), 90.0)
    centres = zip(map(int, shown), spread_heights(r, pitch, height), strict=True)
    boxes = [
        lay_box(form, tall, y - tall / 2.0, j, subject.model.branches[j], None if shares is None else float(shares[j]))
        for j, y in centres
    ]
    before, after = (column_width(names, form.names) for names in (inputs, outputs))
    sources = lay_nodes(inputs, before, height, form)
    targets = lay_nodes(outputs, form.width - after, height, form)
    edges = [*lay_edges(form, "in", into, sources, boxes), *lay_edges(form, "out", out, targets, boxes)]
    return Diagram(
        form,
        height,
        [node._replace(says=node_words(node, edges, "in", "goes into")) for node in sources],
        [box._replace(says=box_words(box, edges, inputs, outputs)) for box in boxes],
        [node._replace(says=node_words(node, edges, "out", "comes from")) for node in targets],
        edges,
        labelled=form is WIDE_SCREEN and r <= 4 and max(m, n) <= 3,
        left_out=left_out_words(edges, r * (m + n)),
    )


def column_width(names: Sequence[str], most: float) -> float:
    """The width of a column of names, each at most so wide, and of the circles beside it."""
    return 20.0 + max(text_width("inputs"), *map(text_width, shorten_names(names, most)))


def lay_nodes(names: Sequence[str], x: float, height: float, form: Proportions) -> list[Node]:
    """Nodes of the inputs or the outputs, one above the other, at x."""
    heights = spread_heights(len(names), 96.0, height)
    shown = zip(names, shorten_names(names, form.names), heights, strict=True)
    return [Node(k, x, float(y), label, name, "") for k, (name, label, y) in enumerate(shown)]


def box_words(box: Box, edges: Sequence[Edge], inputs: Sequence[str], outputs: Sequence[str]) -> str:
    """What the diagram says of a branch: what it is driven by and goes into, strongest first."""
    own = [edge for edge in reversed(edges) if edge.branch == box.which]
    parts = [
        f"{verb} {name_first([f'{names[edge.node]} ({edge.weight})' for edge in own if edge.side == side])}"
        for side, verb, names in (("in", "driven by", inputs), ("out", "goes into", outputs))
        if any(edge.side == side for edge in own)
    ]
    return f"Branch {box.which + 1}{box.share and f', {box.share}'}: {'; '.join(parts) or 'connected to nothing'}."


def node_words(node: Node, edges: Sequence[Edge], side: str, verb: str) -> str:
    """What the diagram says of a node: which branches an input goes into, or an output comes from, strongest first."""
    own = [edge for edge in reversed(edges) if edge.side == side and edge.node == node.which]
    if not own:
        return f"{node.name}: connected to nothing."
    return f"{node.name} {verb} {name_first([f'branch {edge.branch + 1} ({edge.weight})' for edge in own])}."


def name_first(parts: list[str]) -> str:
    """The first few of some names, and how many more there are."""
    return ", ".join(parts[:MOST_NAMED]) + (f" and {len(parts) - MOST_NAMED} more" if len(parts) > MOST_NAMED else "")


def spread_heights(count: int, pitch: float, height: float) -> Array:
    """Heights of so many things, `pitch` apart or as far as there is room, around the middle."""
    room = height - HEAD
    pitch = min(pitch, room / count)
    return np.asarray(HEAD + room / 2.0 + pitch * (np.arange(count) - (count - 1) / 2.0))


def lay_box(form: Proportions, tall: float, y: float, j: int, branch: Branch, share: float | None) -> Box:
    """The box of branch j, its upper edge at y. Number and share stand above the curve, or beside it in a low box."""
    x, inside, low = (form.width - form.box) / 2.0, form.box - 24.0, tall < HIGH_ENOUGH
    bar = 0.0 if share is None else inside * min(1.0, max(0.0, share))
    text = "" if share is None or (low and form is NARROW_SCREEN) else short_share(share)
    before, after = (34.0, 46.0 if text else 10.0) if low else (12.0, 12.0)
    above, below = (8.0, 12.0) if low else (19.0, 13.0)
    path = curve_path(branch, x + before, y + above, form.box - before - after, tall - above - below)
    return Box(j, x, y, form.box, tall, path, bar, text, y + (tall / 2.0 + 3.0 if low else 15.0), "")


def curve_path(branch: Branch, x: float, y: float, width: float, height: float) -> str:
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


def lay_edges(form: Proportions, side: str, weights: Array, nodes: Sequence[Node], boxes: Sequence[Box]) -> list[Edge]:
    """The edges of one side, weights (r, nodes); strong ones come last, on top of weak ones."""
    largest = float(np.abs(weights[[box.which for box in boxes]]).max()) or 1.0
    each, at_all = max(2, MOST_EDGES // len(boxes)), max(3, MOST_LIT // len(boxes))
    found = []
    for box in boxes:
        j = box.which
        size = np.abs(weights[j]) / largest
        place = np.argsort(np.argsort(-size, kind="stable"))
        for k, node in enumerate(nodes):
            if size[k] < NEGLIGIBLE_WEIGHT or place[k] >= at_all:
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
                    path=bent_path(start, end),
                    width=width,
                    opacity=0.35 + 0.6 * float(size[k]),
                    dash=f"{4.0 + 1.2 * width:.1f} {2.5 + 0.6 * width:.1f}",
                    negative=bool(weights[j, k] < 0.0),
                    weak=weak,
                    middle=near_box(start, end, side),
                    weight=signed(weights[j, k]),
                )
            )
    return sorted(found, key=lambda edge: edge.width)


def bent_path(start: tuple[float, float], end: tuple[float, float]) -> str:
    """The SVG path of a line that leaves and arrives level."""
    (x, y), (to_x, to_y) = start, end
    half = (x + to_x) / 2.0
    return f"M{x:.1f} {y:.1f}C{half:.1f} {y:.1f} {half:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"


def near_box(start: tuple[float, float], end: tuple[float, float], side: str) -> tuple[float, float]:
    """A point of an edge near its box, where the edges of different nodes are apart."""
    t = 0.74 if side == "in" else 0.26
    s = 1.0 - t
    ease = 3.0 * s * t * t + t**3
    half = (start[0] + end[0]) / 2.0
    x = s**3 * start[0] + 3.0 * s * t * half + t**3 * end[0]
    return x, start[1] + ease * (end[1] - start[1])


def left_out_words(edges: Sequence[Edge], total: int) -> str:
    """What the picture leaves out, in a sentence, or nothing."""
    drawn, weak = sum(not edge.weak for edge in edges), sum(edge.weak for edge in edges)
    if drawn == total:
        return ""
    lit = "; a branch that is lit shows more of its own" if weak else ""
    return f"The {drawn} strongest of {total} weights are drawn{lit}."


def shorten_names(names: Sequence[str], most: float) -> list[str]:
    """Names that are at most so wide, without their ends; those that would be the same then, without their middles."""
    cut = [shorten_name(name, most, 0.0) for name in names]
    return [
        shorten_name(name, most, 0.5) if cut.count(short) > 1 else short for name, short in zip(names, cut, strict=True)
    ]


def shorten_name(name: str, most: float, ending: float) -> str:
    """A name that is at most so wide; of a longer one, this share of what is left of it is its end."""
    kept, short = len(name), name
    while kept > 2 and text_width(short) > most:
        kept -= 1
        end = int(ending * kept)
        short = f"{name[: kept - end].rstrip()}…{name[len(name) - end :].lstrip()}"
    return short


NARROW_LETTERS, WIDE_LETTERS = frozenset("ijlrtfI.,:;'|!()[]{} /-"), frozenset("mwMW@%—…&")
LETTER_WIDTHS = (5.4, 8.3, 9.8, 13.0)
"""Of narrow letters, others, capitals and wide ones, those of other scripts among these, in the widest of the
typefaces that browsers take for system-ui, at the diagram's 13 pixels."""


def text_width(text: str) -> float:
    """How wide a text is at most, in the diagram's units."""
    narrow, plain, capital, wide = LETTER_WIDTHS
    return sum(
        narrow
        if letter in NARROW_LETTERS
        else wide
        if letter in WIDE_LETTERS or ord(letter) >= FIRST_WIDE
        else capital
        if letter.isupper()
        else plain
        for letter in text
    )


FIRST_WIDE = 0x2E80
"""From this character on scripts have letters as wide as they are high."""
