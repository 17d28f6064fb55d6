"""Tables as text: `.csv` and its kin, with names in the first line.

Blocks of lines without quotes go through NumPy's reader, which is fast. A block that it cannot read, or that has
numbers that are not finite, is read again with the csv module, which knows where it is: that way either gives the
numbers after all or the line and the column of what is wrong.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TextIO

import numpy as np

from unbraid.arrays import Array
from unbraid.errors import FileError
from unbraid.memory import check_memory
from unbraid.printable import shown
from unbraid.problem import counted
from unbraid.progress import Callback, Progress
from unbraid.reading.sources import Table

SEPARATORS = ",;\t|"
LINES = 20_000
"""How many are read at a time."""
LONGEST = 1 << 20
"""Characters that a line may have."""
BLOCK = 1 << 22
DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")


@contextmanager
def open_delimited(path: Path) -> Iterator[DelimitedTable]:
    """The columns of a text file."""
    yield DelimitedTable(path)


class DelimitedTable(Table):
    """See `open_delimited`. The separator is the one that finds most names in the first line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        rows = {separator: self._first_row(separator) for separator in SEPARATORS}
        self._separator = max(SEPARATORS, key=lambda separator: len(rows[separator]))
        self.columns = tuple(name.strip() for name in rows[self._separator])
        if all(map(is_number, self.columns)) and self.columns != tuple(map(str, range(len(self.columns)))):
            raise FileError(f"{path} has numbers in its first line: put the names of the columns there.")

    def _first_row(self, separator: str) -> list[str]:
        """The names, if that is the separator."""
        with self._opened() as lines, self._told(1):
            row = next(csv.reader(lines, delimiter=separator), [])
        if not row:
            raise FileError(f"{self.path} begins with an empty line: put the names of the columns there.")
        return [row[0].removeprefix("#"), *row[1:]]  # NumPy's savetxt writes names as a comment

    def read(self, columns: Sequence[str], callback: Callback | None = None) -> Array:
        at = [self.columns.index(name) for name in columns]
        most = count_lines(self.path)
        check_memory(f"Reading {counted(len(at), 'column')} of {self.path}", 8 * most * len(at))
        table = np.empty((most, len(at)))
        S = 0
        with self._opened() as lines:
            first = csv.reader(lines, delimiter=self._separator)
            next(first)
            line = first.line_num
            while block := list(islice(lines, LINES)):
                values, taken = self._fast(block, at), len(block)
                if values is None:
                    values, taken = self._carefully(chain(block, lines), len(block), line, at)
                table[S : S + len(values)] = values
                S += len(values)
                line += taken
                if callback is not None:
                    callback(Progress("read", line, max(line, most)))
        if S == 0:
            raise FileError(f"{self.path} has names in its first line but no numbers below.")
        return table[:S]

    def _fast(self, block: list[str], at: list[int]) -> Array | None:
        """The numbers in a block of lines, or None where anything is out of the ordinary."""
        separator, expected = self._separator, len(self.columns) - 1
        if not expected or any(line.count(separator) != expected or '"' in line for line in block):
            return None
        try:
            values: Array = np.loadtxt(block, delimiter=separator, usecols=at, comments=None, ndmin=2)
        except ValueError:
            return None
        return values if len(values) == len(block) and np.isfinite(values).all() else None

    def _carefully(self, lines: Iterator[str], count: int, before: int, at: list[int]) -> tuple[Array, int]:
        """The numbers in the next `count` lines, or a few more where a quoted text goes on; and how many they were."""
        reader = csv.reader(lines, delimiter=self._separator)
        values = []
        while reader.line_num < count:
            line = before + reader.line_num + 1
            with self._told(line):
                row = next(reader, None)
            if row is None:
                break
            if any(map(str.strip, row)) or len(row) > 1:  # else the line is empty
                values.append(self._numbers(row, line, at))
        return np.array(values, dtype=np.float64).reshape(-1, len(at)), reader.line_num

    def _numbers(self, row: list[str], line: int, at: list[int]) -> list[float]:
        """The numbers in one row."""
        if len(row) != len(self.columns):
            entries, names = counted(len(row), "entry", "entries"), counted(len(self.columns), "name")
            raise FileError(
                f"{self.path}, line {line}, has {entries}, and the first line has {names}: repair or remove that line."
            )
        for index in at:
            text = row[index].strip()
            if not is_number(text) or not math.isfinite(float(text)):
                said = f'has "{shown(text)}", which is not a finite number' if text else "is empty"
                comma = " Write decimal points, not commas." if DECIMAL_COMMA.fullmatch(text) else ""
                raise FileError(
                    f"{self.path}, line {line}, column {shown(self.columns[index])}, {said}: repair or remove that "
                    f"line.{comma}"
                )
        return [float(row[index]) for index in at]

    @contextmanager
    def _opened(self) -> Iterator[Iterator[str]]:
        """The lines of the file. Bytes that are not UTF-8 do no harm: they can only stand in names and texts."""
        with self.path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            yield self._lines(file)

    def _lines(self, file: TextIO) -> Iterator[str]:
        for number, line in enumerate(iter(partial(file.readline, LONGEST), ""), 1):
            if len(line) == LONGEST:
                raise FileError(f"{self.path}, line {number}, has more than {LONGEST} characters: this is no table.")
            yield line

    @contextmanager
    def _told(self, line: int) -> Iterator[None]:
        try:
            yield
        except csv.Error as error:
            raise FileError(f"{self.path}, line {line}, cannot be split: {error}. Is a quote not closed?") from error


def is_number(text: str) -> bool:
    """Whether a text spells a number, finite or not; Python's 1_000 is none."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def count_lines(path: Path) -> int:
    """How many lines a file has at most, whichever way they end."""
    ends = {b"\n": 1, b"\r": 1}
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            for end in ends:
                ends[end] += block.count(end)
    return max(ends.values())
