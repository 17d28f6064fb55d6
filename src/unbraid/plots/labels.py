"""Names of inputs and outputs, fit to stand in a picture: matplotlib reads what is between two `$` as a formula."""

from __future__ import annotations

import math
from collections.abc import Sequence

from unbraid.runtime.text import clean_name

LONGEST_LABEL = 16
"""Letters of a name at an axis."""


def label(name: str, longest: int = LONGEST_LABEL) -> str:
    r"""A name, shortened in its middle, without control characters, and with no formula in it.

    Examples
    --------
    >>> label("speed_of_the_left_wheel"), label("price in $ or US$")
    ('speed_of…t_wheel', 'price in… or US\\$')
    """
    end = (longest - 1) // 2
    short = name if len(name) <= longest else f"{name[: longest - 1 - end]}…{name[-end:]}"
    return clean_name(short).replace("$", r"\$")


def labels(names: Sequence[str] | None, letter: str, count: int) -> list[str]:
    """The names, or the letter with indices where there are none.

    Examples
    --------
    >>> labels(None, "x", 2)
    ['x₁', 'x₂']
    """
    return [indexed(letter, k + 1) for k in range(count)] if names is None else [label(name) for name in names]


def indexed(letter: str, index: int) -> str:
    """A letter with an index: plain text, because formulas are slow to set and large in files.

    Examples
    --------
    >>> indexed("u", 12)
    'u₁₂'
    """
    return letter + str(index).translate(LOWERED)


def power(value: float) -> str:
    """A number as a power of ten, in plain text.

    Examples
    --------
    >>> power(0.001), power(20.0), power(1.0), power(0.5)
    ('10⁻³', '20', '1', '0.5')
    >>> power(2e-7)
    '2·10⁻⁷'
    """
    if not value > 0.0 or 0.05 < value < 500.0:
        return f"{value:g}"
    exponent = math.floor(math.log10(value) + 1e-9)
    factor = round(value / 10.0**exponent)
    return ("" if factor == 1 else f"{factor}·") + "10" + str(exponent).translate(RAISED)


RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
