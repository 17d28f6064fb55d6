"""The cells of a table as people keep them: numbers, texts and gaps, column by column."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unbraid.kernels.arrays import Array, BoolArray
from unbraid.reading.header import is_number
from unbraid.runtime.text import clean_name, name_list

GAPS = frozenset(("", "na", "n/a", "nan", "null", "none", "-", "--", "?", ".", "missing"))
"""What people write where there is nothing to write, in small letters."""

COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
"""A number with a comma where others have a point."""
THOUSANDS = re.compile(r"[-+]?\d{1,3}([,.'’ \u00a0\u2009\u202f])\d{3}((\1\d{3})*|(\1\d{3})*[.,]\d*)")
"""A number with a separator of thousands."""
UNIT = re.compile(r"([€$£¥]?) ?[-+]?\d+\.?\d*([eE][-+]?\d+)? ?(%|(?<= )[^\d\s]\S*|(?<=\d)|(?<=\.))")
"""A number with a unit: behind it, a percent sign or a word after a blank; or a currency before it."""
CELL_BYTES = 100
"""Bytes that a cell may take while it is a text."""


@dataclass(frozen=True)
class Cells:
    """The cells of one column.

    Attributes
    ----------
    name
        What the column is called.
    numbers
        (S,), NaN where a cell is a gap or a text.
    texts
        The cells that are texts, by their rows.
    spelled
        (S,), what is written in all cells; empty where they are numbers in the file as well.
    """

    name: str
    numbers: Array
    texts: Mapping[int, str]
    spelled: Sequence[str] = ()

    @classmethod
    def of(cls, name: str, written: Sequence[str]) -> Cells:
        """The cells of a column from what is written in them."""
        stripped = [one.strip() for one in written]
        parsed = {text: parse(text) for text in set(stripped)}
        numbers = np.array([parsed[text] for text in stripped], dtype=np.float64)  # NaN for None
        texts = {row: text for row, text in enumerate(stripped) if parsed[text] is None}
        return cls(name, numbers, texts, stripped)

    def as_texts(self) -> Cells:
        """The same with numbers as texts, such as a shop's 12 among A1 and B7."""
        numerals = {row: self.spelled[row] for row in map(int, np.flatnonzero(~self.is_gap)) if self.spelled}
        return Cells(self.name, np.full(len(self.numbers), np.nan), {**numerals, **self.texts}, self.spelled)

    @cached_property
    def is_text(self) -> BoolArray:
        """Which cells are texts, (S,)."""
        result = np.zeros(len(self.numbers), dtype=bool)
        result[list(self.texts)] = True
        return result

    @cached_property
    def is_gap(self) -> BoolArray:
        """Which cells hold nothing, (S,)."""
        return np.isnan(self.numbers) & ~self.is_text

    @cached_property
    def is_infinite(self) -> BoolArray:
        """Which cells hold an infinite number, (S,)."""
        return np.isinf(self.numbers)

    @property
    def of_texts(self) -> bool:
        """Whether most of what is written in it are texts."""
        return 2 * len(self.texts) > len(self.numbers) - int(self.is_gap.sum())

    @property
    def empty(self) -> bool:
        """Whether nothing is written in it."""
        return bool(self.is_gap.all())

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """The different texts in it, in their order."""
        return tuple(sorted(set(self.texts.values())))

    @cached_property
    def cure(self) -> str:
        """How to write its texts as numbers, where that is what all of them are; else nothing."""
        return number_cure(self.levels)

    def written(self) -> np.ndarray[tuple[int], np.dtype[Any]]:
        """The cells as they are written, (S,): numbers, NaN in gaps; where there are texts objects, None in gaps."""
        if not self.texts:
            return self.numbers
        result: np.ndarray[tuple[int], np.dtype[Any]] = self.numbers.astype(object)
        result[self.is_gap] = None
        result[list(self.texts)] = list(self.texts.values())
        return result

    def examples(self) -> str:
        """Some of the texts in it."""
        levels = self.levels
        return name_list(map(clean_name, levels), len(levels))


def number_cure(texts: Collection[str]) -> str:
    """How to write texts that are numbers with commas, separators of thousands or a unit; else nothing.

    Examples
    --------
    >>> number_cure(["1,5", "2,25"])
    'write decimal points, not commas'
    >>> number_cure(["1,234,567"]), number_cure(["red"])
    ('write nothing between thousands, 1234567.8', '')
    >>> number_cure(["1.5 %", "20 %"]), number_cure(["5 kg", "7 g"]), number_cure(["\u22121.5"])
    ('write the numbers alone, without %', '', 'write - for the minus sign')
    >>> number_cure(["1,234"])
    'write 1,234 as 1234 if the comma separates thousands, as 1.234 if it is a decimal comma'
    """
    if texts and all(text.startswith("\u2212") and is_number(text[1:]) for text in texts):
        return "write - for the minus sign"
    units = {(match[1] + match[3]) if (match := UNIT.fullmatch(text)) else "" for text in texts}
    if len(units) == 1 and "" not in units:
        return f"write the numbers alone, without {clean_name(*units)}"
    if not texts or not all(COMMA.fullmatch(text) or THOUSANDS.fullmatch(text) for text in texts):
        return ""
    commas, thousands = (all(kind.fullmatch(text) for text in texts) for kind in (COMMA, THOUSANDS))
    if commas and thousands:
        return "write 1,234 as 1234 if the comma separates thousands, as 1.234 if it is a decimal comma"
    return "write decimal points, not commas" if commas else "write nothing between thousands, 1234567.8"


def parse(text: str) -> float | None:
    """The number in a cell, NaN where it is a gap, None where it is a text."""
    if text.lower() in GAPS:
        return math.nan
    return float(text) if is_number(text) else None
