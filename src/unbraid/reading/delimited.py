"""Tables as text: `.csv` and its kin, with names in the first line that is no comment, or in a comment.

Blocks of lines without quotes go through NumPy's reader, which is fast. A block that it cannot read, or that has
numbers that are not finite, is read again with the csv module, which knows where it is: that way either gives the
numbers after all or the line and the column of what is wrong.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TextIO

import numpy as np

from unbraid.data.checks import counted
from unbraid.errors import FileError
from unbraid.kernels.arrays import Array
from unbraid.reading.cells import CELL_BYTES, Cells, number_cure
from unbraid.reading.header import BLANKS, RowReader, find_header, is_number, split_lines
from unbraid.reading.sources import CellError, Gaps, Table
from unbraid.runtime.memory import check_memory
from unbraid.runtime.progress import Callback, Progress
from unbraid.runtime.text import clean_name, unguarded

LINES_AT_ONCE = 20_000
"""How many lines are read at a time."""
LONGEST_LINE = 1 << 20
"""Characters that a line may have."""
BYTES_AT_ONCE = 1 << 22
"""How many bytes are read at a time to count lines."""


@contextmanager
def open_delimited(path: Path) -> Iterator[DelimitedTable]:
    """The columns of a text file."""
    yield DelimitedTable(path)


class DelimitedTable(Table):
    """The columns of a text file; `find_header` says where their names stand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._opened() as lines, self._splitting_as_sentence(1):
            header = find_header(lines)
        if header is None:
            raise FileError(f"{path} begins with an empty line: put the names of the columns there.")
        self.columns, self._header = header.names, header
        if all(map(is_number, self.columns)) and self.columns != tuple(map(str, range(len(self.columns)))):
            where = "its first line" if header.lines == 1 else f"line {header.lines}, the first that is no comment"
            advice = "put the names of the columns there" + (", or into the comment above" if header.lines > 1 else "")
            raise FileError(f"{path} has numbers in {where}: {advice}.")

    def read(self, columns: Sequence[str], callback: Callback | None = None, gaps: Gaps | None = None) -> Array:
        gaps = gaps or Gaps()
        at = [self.places[name] for name in columns]
        most = count_lines(self.path)
        check_memory(f"Reading {counted(len(at), 'column')} of {self.path}", 8 * most * len(at))
        table = np.empty((most, len(at)))
        S = 0
        with self._opened() as lines:
            line = sum(1 for _ in islice(lines, self._header.lines))
            while block := list(islice(lines, LINES_AT_ONCE)):
                values, taken = self._fast(block, at, gaps), len(block)
                if values is None:
                    values, taken = self._carefully(chain(block, lines), len(block), line, at, gaps)
                table[S : S + len(values)] = values
                S += len(values)
                line += taken
                if callback is not None:
                    callback(Progress("read", line, max(line, most)))
        if S == 0:
            raise FileError(f"{self.path} has names in {self._line_of_names()} but no numbers below.")
        return table[:S]

    def read_cells(self, columns: Sequence[str]) -> list[Cells]:
        at = [self.places[name] for name in columns]
        most = count_lines(self.path)
        check_memory(f"Reading {counted(len(at), 'column')} of {self.path}", CELL_BYTES * most * len(at))
        written: list[list[str]] = [[] for _ in at]
        with self._opened() as lines:
            line = sum(1 for _ in islice(lines, self._header.lines))
            for _, row in self._rows(split_lines(lines, self._header.separator), line):
                for column, index in zip(written, at, strict=True):
                    column.append(unguarded(row[index]))
        return [Cells.of(name, column) for name, column in zip(columns, written, strict=True)]

    def _fast(self, block: list[str], at: list[int], gaps: Gaps) -> Array | None:
        """The numbers in the columns `at` of a block of lines, or None where anything is out of the ordinary."""
        separator: str | None = self._header.separator
        expected = len(self.columns) - 1
        if separator == BLANKS:
            separator, whole = None, all(len(line.split()) == expected + 1 for line in block)
        else:
            whole = all(line.count(self._header.separator) == expected for line in block)
        if not expected or not whole or any('"' in line for line in block):
            return None
        try:
            values: Array = np.loadtxt(block, delimiter=separator, usecols=at, comments=None, ndmin=2)
        except ValueError:
            return None
        gappy = [self.columns[index] in gaps for index in at]
        known = np.isfinite(values) | (np.isnan(values) & gappy)
        return values if len(values) == len(block) and known.all() else None

    def _carefully(self, lines: Iterator[str], count: int, before: int, at: list[int], gaps: Gaps) -> tuple[Array, int]:
        """The numbers in the next `count` lines, or a few more where a quoted text goes on; and how many they were."""
        reader = split_lines(lines, self._header.separator)
        values = [self._numbers(row, line, at, gaps) for line, row in self._rows(reader, before, count)]
        return np.array(values, dtype=np.float64).reshape(-1, len(at)), reader.line_num

    def _rows(self, reader: RowReader, before: int, count: float = math.inf) -> Iterator[tuple[int, list[str]]]:
        """The rows in the next `count` lines that are not empty, each with its line, `before` lines into the file."""
        while reader.line_num < count:
            line = before + reader.line_num + 1
            with self._splitting_as_sentence(line):
                row = next(reader, None)
            if row is None:
                return
            if any(map(str.strip, row)) or len(row) > 1:  # else the line is empty
                self._check_length(row, line)
                yield line, row

    def _numbers(self, row: list[str], line: int, at: list[int], gaps: Gaps) -> list[float]:
        """The numbers in the columns `at` of one row, which stands in a given line of the file."""
        return [self._number(row[index].strip(), line, self.columns[index], gaps) for index in at]

    def _check_length(self, row: list[str], line: int) -> None:
        """Refuse a row that has not as many entries as there are names."""
        if len(row) != len(self.columns):
            entries, names = counted(len(row), "entry", "entries"), counted(len(self.columns), "name")
            why = " Is a quote not closed?" if any("\n" in cell for cell in row) else ""
            if self._header.separator == "," and len(row) > len(self.columns):
                why = " Are there commas within numbers?"
            raise FileError(
                f"{self.path}, line {line}, has {entries}, and {self._line_of_names()} has {names}: repair or remove "
                f"that line.{why}"
            )

    def _number(self, text: str, line: int, column: str, gaps: Gaps) -> float:
        """The number in one cell, NaN where it may be empty; a `FileError` says where something else is."""
        value = float(text or math.nan) if is_number(text) or not text else math.inf
        empty = math.isnan(value)
        if math.isfinite(value) or (empty and column in gaps):
            return value
        said = f'has "{clean_name(text)}", which is not a finite number' if text else "is empty"
        cure = number_cure([text])
        advice = f"{cure}." if cure else gaps.advice(column, "line", empty)
        raise CellError(f"{self.path}, line {line}, column {clean_name(column)}, {said}: {advice}")

    def _line_of_names(self) -> str:
        """Which line of the file has the names, in words."""
        return "the first line" if self._header.lines == 1 else f"line {self._header.lines}"

    @contextmanager
    def _opened(self) -> Iterator[Iterator[str]]:
        """The lines of the file. Bytes that are not UTF-8 do no harm: they can only stand in names and texts."""
        with self.path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            yield self._lines(file)

    def _lines(self, file: TextIO) -> Iterator[str]:
        """Lines one by one; one that is too long is refused before it fills the memory."""
        for number, line in enumerate(iter(partial(file.readline, LONGEST_LINE), ""), 1):
            if len(line) == LONGEST_LINE:
                raise FileError(
                    f"{self.path}, line {number}, has more than {LONGEST_LINE} characters: this is no table."
                )
            yield line

    @contextmanager
    def _splitting_as_sentence(self, line: int) -> Iterator[None]:
        """Turn what the csv module raises on a line into one `FileError`."""
        try:
            yield
        except csv.Error as error:
            raise FileError(f"{self.path}, line {line}, cannot be split: {error}. Is a quote not closed?") from error


def count_lines(path: Path) -> int:
    """How many lines a file has at most, whichever way they end."""
    ends = {b"\n": 1, b"\r": 1}
    with path.open("rb") as file:
        while block := file.read(BYTES_AT_ONCE):
            for end in ends:
                ends[end] += block.count(end)
    return max(ends.values())
