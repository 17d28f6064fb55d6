"""How wide the columns of a table are on a terminal: words may go to the next line, numbers and units stay whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len

BETWEEN = 3
"""Characters between two columns."""
WHOLE = 16
"""A cell of at most so many characters, a number with its unit, is not broken."""


class Block(NamedTuple):
    """Columns of a table that stand side by side, by their numbers, and their widths."""

    which: list[int]
    widths: list[int]


def lay_columns(header: Sequence[str], rows: Sequence[Sequence[str]], lead: int, room: int) -> list[Block]:
    """The columns of a table in blocks that fit into the room, in their order; each begins with the first `lead` ones.

    Columns become narrower as far as no number and no word has to be broken; what then is too wide goes on below.
    """
    columns = list(zip(header, *rows, strict=True))
    natural = [max(map(cell_len, column)) for column in columns]
    least = [max(longest_word(title), *map(least_width, cells), 0) for title, *cells in columns]
    blocks = [list(range(lead))]
    for k in range(lead, len(columns)):
        if len(blocks[-1]) > lead and width_of([least[j] for j in (*blocks[-1], k)]) > room:
            blocks.append(list(range(lead)))
        blocks[-1].append(k)
    return [Block(one, narrowed([natural[k] for k in one], [least[k] for k in one], room)) for one in blocks]


def least_width(cell: str) -> int:
    """How narrow a cell may become: all of a short one, the longest word of another."""
    return cell_len(cell) if cell_len(cell) <= WHOLE else longest_word(cell)


def longest_word(text: str) -> int:
    """The length of the longest word of a text."""
    return max(map(cell_len, text.split()), default=0)


def narrowed(widths: list[int], least: list[int], room: int) -> list[int]:
    """Widths that fit into the room, the widest columns made narrower first, none below its least."""
    widths = [*widths]
    while width_of(widths) > room:
        slack = [k for k in range(len(widths)) if widths[k] > least[k]]
        if not slack:
            break
        widths[max(slack, key=widths.__getitem__)] -= 1
    return widths


def width_of(widths: Sequence[int]) -> int:
    """The width of columns side by side."""
    return sum(widths) + BETWEEN * (len(widths) - 1)
