"""Names from files of strangers, fit to stand in a sentence or on a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

LONGEST = 40
MOST = 8


def shown(name: str) -> str:
    r"""A name without control characters, and not too long.

    Examples
    --------
    >>> shown("speed"), shown("\x1b[31mred"), shown("x" * 100)
    ('speed', '?[31mred', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...')
    """
    short = name if len(name) <= LONGEST else name[: LONGEST - 3] + "..."
    return "".join(letter if letter.isprintable() else "?" for letter in short)


def quoted(name: str) -> str:
    """The same in quotes where a list of names could be misread: with a comma or a blank in it.

    Examples
    --------
    >>> print(quoted("speed"), quoted("load [N]"), quoted("speed, rpm"))
    speed "load [N]" "speed, rpm"
    """
    return f'"{shown(name)}"' if "," in name or " " in name else shown(name)


def listed(names: Iterable[str], count: int) -> str:
    """The first of `count` texts, and how many more there are.

    Examples
    --------
    >>> listed(["a", "b"], 2)
    'a, b'
    >>> listed((f"x{i}" for i in range(1000)), 1000)
    'x0, x1, x2, x3, x4, x5, x6, x7 and 992 more'
    """
    more = f" and {count - MOST} more" if count > MOST else ""
    return ", ".join(islice(names, MOST)) + more
