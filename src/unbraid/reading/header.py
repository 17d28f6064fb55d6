"""Where the names of a text table stand, and what separates them.

Names stand in the first line that is no comment. NumPy's `savetxt` writes them as a comment, so where that line has
numbers in it, the names are those of the last comment before it, if it has as many.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, tee
from typing import Protocol, Self

from unbraid.runtime.text import unguarded

COMMENT = "#"
SEPARATORS = ",;\t|"
BLANKS = " "
"""The separator that stands for blanks and tabs, however many."""
FIELD = re.compile(r'"([^"]*)"|(\S+)')


class RowReader(Protocol):
    """Entries line by line, as the csv module has them."""

    line_num: int

    def __next__(self) -> list[str]:
        """The entries of the next line, or lines where a quote is open."""

    def __iter__(self) -> Self:
        """The reader itself."""


class BlankRows:
    """The entries of lines that blanks separate; an entry in quotes may have blanks.

    Not `csv.reader` with a blank as delimiter, for which a lone quote after a blank opens an entry that goes on over
    the following lines.
    """

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self.line_num = 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> list[str]:
        line = next(self._lines)
        self.line_num += 1
        return [quoted or bare for quoted, bare in FIELD.findall(line)]


def split_lines(lines: Iterator[str], separator: str) -> RowReader:
    """A reader of the entries of lines, like `csv.reader`; `BLANKS` separates by any number of blanks and tabs."""
    return BlankRows(lines) if separator == BLANKS else csv.reader(lines, delimiter=separator)


@dataclass(frozen=True)
class Header:
    """Where a text table has its names, and what they are.

    Attributes
    ----------
    names
        As they stand in the file, without blanks around them.
    separator
        Between numbers, and as a rule between names: the one that finds most of them, or `BLANKS` if none finds two.
    lines
        How many lines come before the numbers.
    """

    names: tuple[str, ...]
    separator: str
    lines: int


def find_header(lines: Iterator[str]) -> Header | None:
    """The names at the beginning of a file; None where the first line is empty.

    Examples
    --------
    >>> find_header(iter(["# made on Monday", "a;b", "1;2"]))
    Header(names=('a', 'b'), separator=';', lines=2)
    >>> find_header(iter(["# made on Monday", "# a b", "1 2"]))
    Header(names=('a', 'b'), separator=' ', lines=2)
    """
    comment, comments = "", 0
    line = next(lines, "")
    while line.startswith(COMMENT) or (comments and line and not line.strip()):
        comment = line.lstrip(COMMENT).strip() or comment
        comments += 1
        line = next(lines, "")
    named = split_names(iter([comment]), comments) if comments else None
    if named is not None:
        separator = between_numbers(line, named) if line else named.separator
        if separator is not None:
            return replace(named, separator=separator, lines=comments)
    return split_names(chain([line], lines), comments)


def split_names(lines: Iterator[str], before: int) -> Header | None:
    """The header in the next line, `before` lines into the file, or in several where a quote is open; None: empty."""
    found = {}
    for separator, copy in zip((*SEPARATORS, BLANKS), tee(lines, len(SEPARATORS) + 1), strict=True):
        reader = split_lines(copy, separator)
        found[separator] = next(reader, []), before + reader.line_num
    separator = max(SEPARATORS, key=lambda one: len(found[one][0]))
    if len(found[separator][0]) < 2:
        separator = BLANKS
    names, after = found[separator]
    return Header(tuple(unguarded(name.strip()) for name in names), separator, after) if names else None


def between_numbers(line: str, named: Header) -> str | None:
    """What separates a line of numbers into as many as there are names, which may be separated otherwise; or None."""
    separators: tuple[str, ...] = (named.separator, *SEPARATORS, BLANKS)
    for separator in separators:
        row = next(split_lines(iter([line]), separator))
        if len(row) == len(named.names) and any(map(is_number, row)):
            return separator
    return None


def is_number(text: str) -> bool:
    """Whether a text spells a number, finite or not; Python's 1_000 is none."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
