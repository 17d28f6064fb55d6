"""Numbers in exported programs: all their digits, and as many lines as they need."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import wrap

import numpy as np

from unbraid.errors import SettingError
from unbraid.kernels.arrays import Array

WIDTH = 100
"""Characters of a line of numbers, about."""


def double(number: float) -> str:
    """The fewest digits that every language reads as just this number."""
    return finite(repr(float(number)), "float64")


def single(number: float) -> str:
    """The fewest digits that are read as the nearest number of 32 bits."""
    with np.errstate(over="ignore"):
        return finite(str(np.float32(number)), "float32")


def finite(digits: str, dtype: str) -> str:
    """The digits, refused where they are no number that languages have digits for."""
    if digits.strip("-") in ("inf", "nan"):
        raise SettingError(
            f"The model has numbers beyond {dtype}, which cannot be exported: rescale inputs or outputs."
        )
    return digits


def row_text(row: Array, number: Callable[[float], str], new_line: str) -> str:
    """Numbers with commas between them, and `new_line` where a line is full."""
    text = ", ".join(map(number, row.tolist()))
    return new_line.join(wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False))
