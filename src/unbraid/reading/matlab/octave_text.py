"""Octave's text files, which its `save` writes unless it is told another format.

Everything begins with its name and its type, each in a line of its own::

    # name: X
    # type: matrix
    # rows: 2
    # columns: 3
     1 2 3
     4 5 6

Arrays with more axes than two, and those of integers and truth values, have a line ``# ndims: 3``, a line of lengths,
and then one number a line, the first axis fastest. A struct has its lengths, the number of its fields in
``# length: 2``, and its fields, each with name and type like everything else. So has a cell array its elements, and a
function the variables that it keeps; they are passed over.

Opening goes once through the lines, without looking at numbers: where each array begins, and its shape. Numbers are
read a few lines at a time, none longer than as many numbers as belong there can make it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from unbraid.errors import FileError
from unbraid.kernels.arrays import Shape
from unbraid.reading.matlab.octave_types import other_type
from unbraid.reading.matlab.others import CELL, HANDLE
from unbraid.reading.sources import DEEPEST, MOST_PATHS, STRUCT, ArraySource, Other

START = b"# Created by Octave"
NAME, TYPE, LENGTH = b"# name: ", b"# type: ", b"# length: "
ROWS, COLUMNS, AXES = b"# rows: ", b"# columns: ", b"# ndims: "
LONGEST_HEADER = 4096
"""Bytes that a line with a name, a type or lengths may have."""
SHORTEST_NUMBER, LONGEST_NUMBER = 2, 64
"""Bytes that a number may take, blanks included."""
NUMBERS_AT_ONCE = 1 << 16
"""Numbers that are read at a time, but for a line that has more."""
MISSING = b"NA", b"nan"
"""How Octave writes a missing value, and how it is read."""


@dataclass(frozen=True)
class Entry:
    """Where the numbers of an array stand in a file.

    Attributes
    ----------
    start
        The place of the first line of numbers.
    shape
        As Octave shows it.
    rows
        Whether each line has a row of a matrix, and not one number.
    other
        What it is where it is no array of real numbers.
    """

    start: int
    shape: Shape = ()
    rows: bool = False
    other: Other | None = None


@contextmanager
def open_octave_text(path: Path) -> Iterator[OctaveTextArrays]:
    """The variables of a text file of Octave."""
    with path.open("rb") as file:
        yield OctaveTextArrays(path, file)


class OctaveTextArrays(ArraySource):
    """The arrays of an open text file of Octave."""

    from_matlab = True

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self._file, self._size = file, path.stat().st_size
        self._entries: dict[str, Entry] = {}
        self._fields: dict[str, tuple[str, ...]] = {}
        with self._damage_as_sentence():
            self.names = tuple(self._walk())

    def shape(self, name: str) -> Shape:
        entry = self._entries[name]
        if entry.other is not None:
            raise self.refused(name, entry.other)
        return entry.shape

    def inside(self, name: str) -> tuple[str, ...]:
        return self._fields.get(name, ())

    def read(self, name: str) -> npt.NDArray[Any]:
        entry = self._entries[name]
        numbers = max(1, entry.shape[1]) if entry.rows else 1  # in a line
        values = np.empty((math.prod(entry.shape) // numbers, numbers))
        with self._damage_as_sentence():
            self._file.seek(entry.start)
            step = max(1, NUMBERS_AT_ONCE // numbers)
            for start in range(0, len(values), step):
                part = values[start : start + step]
                lines = [self._line((numbers + 1) * LONGEST_NUMBER).replace(*MISSING) for _ in part]
                if not all(map(bytes.strip, lines)):
                    raise ValueError
                part[:] = np.loadtxt(lines, comments=None, ndmin=2).reshape(part.shape)
        return values if entry.rows else values.reshape(entry.shape, order="F")

    def _walk(self) -> Iterator[str]:
        """The names of the variables, one after another; where they and what they hold lie is noted."""
        while (line := self._next_name()) is not None:
            yield self._note(line, "", DEEPEST)

    def _note(self, line: bytes | None, above: str, levels: int) -> str:
        """Note the variable, field or element whose name stands in a line; its path. What is inside is noted, too."""
        if line is None or not levels:
            raise ValueError
        if len(self._entries) > MOST_PATHS:
            raise self.crowded()
        path, kind = above + text_of(line, NAME), text_of(self._line(), TYPE)
        other = other_type(kind)
        if other == HANDLE:
            self._leave_out_text()
        shape, rows, length = self._read_sizes()
        start = self._file.tell()
        if other is None and start + SHORTEST_NUMBER * math.prod(shape) > self._size + 1:
            raise ValueError
        self._entries[path] = Entry(start, shape, rows, other)
        inner = math.prod(shape) if other == CELL else length
        fields = tuple(self._note(self._next_name(), f"{path}/", levels - 1) for _ in range(inner))
        if other == STRUCT:  # only there names are paths
            self._fields[path] = fields
        return path

    def _read_sizes(self) -> tuple[Shape, bool, int]:
        """The shape that the next lines tell, (1, 1) if none, whether as rows and columns, and how many fields."""
        shape: Shape = (1, 1)
        rows, length = False, 0
        place = self._file.tell()
        while line := self._file.readline(LONGEST_HEADER):
            if line.startswith(ROWS):
                shape, rows = (int(text_of(line, ROWS)), int(text_of(self._line(), COLUMNS))), True
            elif line.startswith(AXES):
                shape = tuple(map(int, self._line().split()))
            elif line.startswith(LENGTH):
                length = int(text_of(line, LENGTH))
            else:
                break
            place = self._file.tell()
        self._file.seek(place)
        if min(shape, default=-1) < 0:
            raise ValueError
        return shape, rows, length

    def _leave_out_text(self) -> None:
        """Go on behind the text of a function, to the number of variables that it keeps, if it does."""
        place = self._file.tell()
        while (line := self._file.readline(LONGEST_HEADER)).strip() and not line.startswith(LENGTH):
            place = self._file.tell()
        self._file.seek(place)

    def _next_name(self) -> bytes | None:
        """The next line with a name, whatever comes before it; None at the end."""
        begins = True
        while line := self._file.readline(LONGEST_HEADER):
            if begins and line.startswith(NAME):
                return line
            begins = line.endswith(b"\n")
        return None

    def _line(self, most: int = LONGEST_HEADER) -> bytes:
        """The next line, refused where it is longer than it may be, or the file ends in it."""
        line = self._file.readline(most)
        if not line.endswith(b"\n"):
            raise ValueError
        return line

    @contextmanager
    def _damage_as_sentence(self) -> Iterator[None]:
        """Turn whatever is raised on lines that make no variable into one `FileError`."""
        try:
            yield
        except FileError:
            raise
        except (ValueError, OSError, MemoryError) as error:
            raise FileError(f"{self.path} is truncated or damaged: its variables cannot be read.") from error


def text_of(line: bytes, key: bytes) -> str:
    """What stands behind a key at the beginning of a line; a `ValueError` where another does."""
    if not line.startswith(key):
        raise ValueError
    return line.removeprefix(key).decode("utf-8", errors="replace").strip()
