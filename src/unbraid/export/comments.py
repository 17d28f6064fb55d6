r"""Names of inputs and outputs in the comments of exported programs, where a stranger's name must do no harm.

What is left of a name are letters and digits of ASCII, blanks and a few marks that mean nothing in a comment of any
language: no quotes, no backslash, no question mark (trigraphs), no asterisk (``*/``), no colon (modelines of editors).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from unicodedata import normalize

from unbraid.data.checks import counted
from unbraid.export.portable import Portable
from unbraid.runtime.text import LONGEST_NAME, clean_name
from unbraid.version import __version__

HARMLESS = r"A-Za-z0-9 _.,;/()\[\]<>=+^&|#$%~!-"
"""Characters that a comment may have, as a class of a regular expression."""
MOST_NAMES = 100
"""Names that are listed one by one."""


def safe_name(name: str) -> str:
    r"""A name that no comment and no text in quotes of any language can be ended or changed by.

    Examples
    --------
    >>> safe_name("speed [m/s]"), safe_name("Höhe"), safe_name("*/ ??/\n \"\"\" ω")
    ('speed [m/s]', 'Hohe', '_/ __/_ ___ _')
    """
    letters = normalize("NFKD", clean_name(name))
    without_accents = re.sub("[\u0300-\u036f]", "", letters)
    return re.sub(f"[^{HARMLESS}]", "_", without_accents)[:LONGEST_NAME].strip()


def heading(model: Portable) -> list[str]:
    """The first lines of every exported program: what it computes, and what wrote it."""
    sizes = (
        counted(model.m, "input"),
        counted(model.rank, "univariate function") + " g",
        counted(model.n, "output"),
    )
    return [f"f(x) = W1 g(W0 x) + bias: {', '.join(sizes)}.", f"Written by unbraid {__version__}."]


def names_listed(places: Sequence[str], names: Sequence[str]) -> list[str]:
    """A line for each name, after its place, for as many as people read."""
    width = max(map(len, places[:MOST_NAMES]))
    lines = [
        f"  {place:{width}}  {safe_name(name)}".rstrip()
        for place, name in zip(places[:MOST_NAMES], names[:MOST_NAMES], strict=True)
    ]
    return lines if len(names) <= MOST_NAMES else [*lines, f"  and {len(names) - MOST_NAMES} more"]


def domain_text(domain: tuple[float, float]) -> str:
    """The range of inputs that a function has seen in training."""
    low, high = domain
    return f"meant for u from {low:.6g} to {high:.6g}"
