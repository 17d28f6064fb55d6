"""Names from files of strangers, fit to stand in a sentence or on a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

FORMULA = re.compile(r"'*[=+@\t\r-]")
"""How formulas of spreadsheets begin."""
LONGEST_NAME = 40
"""Characters of a name that are shown."""
MOST_NAMES = 8
"""Names of many that are listed."""


def printable(text: str) -> str:
    r"""A text in which control characters and marks that turn the order of letters around are question marks.

    Lines stay lines.

    Examples
    --------
    >>> printable("one\ntwo: \x1b[31mred")
    'one\ntwo: ?[31mred'
    """
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)


def clean_name(name: str) -> str:
    r"""A name without control characters, and not too long.

    Examples
    --------
    >>> clean_name("speed"), clean_name("\x1b[31mred"), clean_name("x" * 100)
    ('speed', '?[31mred', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...')
    """
    short = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 3] + "..."
    return printable(short).replace("\n", "?")


def guarded(text: str) -> str:
    """A text that no spreadsheet takes for a formula: where it begins like one, an apostrophe stands before it.

    Examples
    --------
    >>> guarded("=1+1"), unguarded("'=1+1"), guarded("speed"), unguarded(guarded("'=1"))
    ("'=1+1", '=1+1', 'speed', "'=1")
    """
    return f"'{text}" if FORMULA.match(text) else text


def unguarded(text: str) -> str:
    """The text that `guarded` was given."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def quoted_name(name: str) -> str:
    """A name as `clean_name` has it, in quotes where it has a comma or a blank, so that a list cannot be misread.

    Examples
    --------
    >>> print(quoted_name("speed"), quoted_name("load [N]"), quoted_name("speed, rpm"))
    speed "load [N]" "speed, rpm"
    """
    return f'"{clean_name(name)}"' if "," in name or " " in name else clean_name(name)


def name_list(names: Iterable[str], count: int, most: int = MOST_NAMES, between: str = ", ") -> str:
    """The first few of `count` texts, with commas or what else is to stand between them, and how many more there are.

    Examples
    --------
    >>> name_list(["a", "b"], 2)
    'a, b'
    >>> name_list((f"x{i}" for i in range(1000)), 1000)
    'x0, x1, x2, x3, x4, x5, x6, x7 and 992 more'
    """
    more = f" and {count - most} more" if count > most else ""
    return between.join(islice(names, most)) + more
