"""Names of inputs and outputs, fit to stand in a picture: matplotlib reads what is between two `$` as a formula."""

from __future__ import annotations

from collections.abc import Sequence

from unbraid.printable import shown

LONGEST = 16
"""Letters of a name at an axis."""


def label(name: str, longest: int = LONGEST) -> str:
    r"""A name, shortened, without control characters, and with no formula in it.

    Examples
    --------
    >>> label("speed_of_the_left_wheel"), label("price in $ or US$")
    ('speed_of_the_le…', 'price in \\$ or U…')
    """
    short = name if len(name) <= longest else name[: longest - 1] + "…"
    return shown(short).replace("$", r"\$")


def labels(names: Sequence[str] | None, letter: str, count: int) -> list[str]:
    """The names, or the letter with indices where there are none.

    Examples
    --------
    >>> labels(None, "x", 2)
    ['$x_{1}$', '$x_{2}$']
    """
    if names is None:
        return [f"${letter}_{{{k + 1}}}$" for k in range(count)]
    return [label(name) for name in names]
