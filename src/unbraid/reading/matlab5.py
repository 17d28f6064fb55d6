"""MATLAB's `.mat` files of version 5, which `save` writes unless told `-v7.3` (or `-v4`); Octave and SciPy do as well.

The format, from MATLAB's "MAT-File Format": 128 bytes of header, of which the last two tell the byte order, then
elements. An element is a tag, (type, length) in eight bytes, and its data, padded to eight bytes; up to four bytes
of data may stand in the tag itself. A variable is an element of type matrix, which holds elements: flags, dimensions,
name and numbers, the numbers in the smallest type that keeps them. It may be packed, whole, in an element of type
compressed.

This reader is used rather than SciPy's, which is not made for files of strangers. `scipy.io.loadmat` (1.17) ends the
process with a segmentation fault on about one in a hundred small files in which up to three bytes were changed, and
allocates what a tag claims before it looks at what follows; `scipy.io.whosmat` does the latter too, and does not tell
complex arrays from real ones. Here the dimensions, the tag and the bytes in the file must agree first, and only full
real arrays are read.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt

from unbraid.errors import FileError
from unbraid.kernels.arrays import Shape
from unbraid.reading.sources import STRUCT, ArraySource
from unbraid.runtime.npz import BEST_DEFLATE

HEADER = 128
MATRIX, COMPRESSED = 14, 15
NUMBER_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
"""The types of elements that hold numbers."""
FULL_CLASSES = range(6, 16)
"""The classes of variables that are full arrays of numbers."""
MATLAB_OBJECT = ("an object", "save a matrix of its numbers")
OTHER_CLASSES = {
    1: ("a cell array", "save a matrix of its numbers"),
    2: (STRUCT, "save its fields as variables, which save does with -struct"),
    3: MATLAB_OBJECT,
    4: ("text", "save numbers"),
    5: ("a sparse matrix", "save what full makes of it"),
    16: ("a function handle", "save a matrix of its values"),
}
"""The other classes of variables, with what they are and advice."""
OPAQUE = 17
COMPLEX_ARRAY, COMPLEX_FLAG = ("complex", "save its real part if the other is zero"), 0x0800
LONGEST_ELEMENT = 4096
"""Bytes that the flags, dimensions and name of a variable may take each."""
PACKED_AT_ONCE = 1 << 20
"""Bytes of a packed variable that are read from the file at a time."""


class Stream(Protocol):
    """Bytes one after another: a file, or what is packed in it."""

    def read(self, count: int, /) -> bytes:
        """The next `count` bytes, or fewer at the end."""


@dataclass(frozen=True)
class Variable:
    """Where a variable lies in a file, and what its header says."""

    start: int
    length: int
    packed: bool
    name: str = ""
    shape: Shape = ()
    other: tuple[str, str] | None = None
    """What it is where it is no full array of real numbers, with advice."""


@contextmanager
def open_matlab5(path: Path) -> Iterator[Matlab5Arrays]:
    """The variables of a `.mat` file of version 5."""
    with path.open("rb") as file:
        yield Matlab5Arrays(path, file)


class Matlab5Arrays(ArraySource):
    """The arrays of an open `.mat` file of version 5."""

    from_matlab = True

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self._file = file
        file.seek(HEADER - 2)
        self._order = "<" if file.read(2) == b"IM" else ">"
        with self._damage_as_sentence():
            self._variables = {one.name: one for one in self._walk(path.stat().st_size) if one.name}
        self.names = tuple(self._variables)

    def shape(self, name: str) -> Shape:
        variable = self._variables[name]
        if variable.other:
            raise self.refused(name, *variable.other)
        return variable.shape

    def read(self, name: str) -> npt.NDArray[Any]:
        variable = self._variables[name]
        with self._damage_as_sentence():
            stream = self._stream(variable)
            self._read_variable(stream, variable)
            kind, length, within = self._read_tag(stream)
            dtype = np.dtype(self._order + NUMBER_TYPES[kind])
            most = variable.length * (BEST_DEFLATE if variable.packed else 1)
            if length != math.prod(variable.shape) * dtype.itemsize or length > most:
                raise ValueError
            data = read_exactly(stream, length) if within is None else within
            if isinstance(stream, Unpacked) and not stream.ends():
                raise ValueError
            return np.frombuffer(data, dtype).reshape(variable.shape, order="F")

    def _walk(self, size: int) -> Iterator[Variable]:
        """The variables of a file of `size` bytes one after another; only the header of each is read."""
        start = HEADER
        while start < size:
            self._file.seek(start)
            kind, length = struct.unpack(self._order + "II", read_exactly(self._file, 8))
            start += 8
            if start + length > size:
                raise EOFError
            if kind in (MATRIX, COMPRESSED) and length:
                place = Variable(start, length, kind == COMPRESSED)
                yield self._read_variable(self._stream(place), place)
            start += length

    def _stream(self, place: Variable) -> Stream:
        """The bytes of a variable's elements, unpacked where they are packed."""
        self._file.seek(place.start)
        if not place.packed:
            return self._file
        stream = Unpacked(self._file, place.length)
        read_exactly(stream, 8)  # the tag of the variable itself, now seen
        return stream

    def _read_variable(self, stream: Stream, place: Variable) -> Variable:
        """The header of a variable; the stream is then at its numbers."""
        flags = struct.unpack(self._order + "II", self._read_element(stream))[0]
        kind = flags & 0xFF
        if kind == OPAQUE:  # has no dimensions
            return place
        dimensions = self._read_element(stream)
        shape = struct.unpack(f"{self._order}{len(dimensions) // 4}i", dimensions)
        if min(shape) < 0:
            raise ValueError
        name = self._read_element(stream).decode("utf-8", errors="replace")
        other = COMPLEX_ARRAY if flags & COMPLEX_FLAG else None
        return replace(
            place,
            name=name,
            shape=shape,
            other=other if kind in FULL_CLASSES else OTHER_CLASSES.get(kind, MATLAB_OBJECT),
        )

    def _read_element(self, stream: Stream) -> bytes:
        """The data of the next element, which belongs to a header and so is short."""
        _, length, within = self._read_tag(stream)
        if within is not None:
            return within
        if length > LONGEST_ELEMENT:
            raise ValueError
        return read_exactly(stream, length + -length % 8)[:length]

    def _read_tag(self, stream: Stream) -> tuple[int, int, bytes | None]:
        """Type and length of the next element, and its data where they stand in the tag, else None."""
        tag = read_exactly(stream, 8)
        kind, length = struct.unpack(self._order + "II", tag)
        if kind >> 16:
            kind, length = kind & 0xFFFF, kind >> 16
            return kind, length, tag[4 : 4 + length]
        return kind, length, None

    @contextmanager
    def _damage_as_sentence(self) -> Iterator[None]:
        """Turn whatever is raised on bytes that make no variable into one `FileError`."""
        try:
            yield
        except (ValueError, KeyError, EOFError, OSError, MemoryError, struct.error, zlib.error) as error:
            raise FileError(f"{self.path} is truncated or damaged: its variables cannot be read.") from error


class Unpacked:
    """The bytes packed in the next `length` bytes of a file; no more is unpacked than is asked for."""

    def __init__(self, file: BinaryIO, length: int) -> None:
        self._file = file
        self._left = length
        self._unpacker = zlib.decompressobj()

    def read(self, count: int, /) -> bytes:
        """The next `count` bytes, unpacked, or fewer at the end."""
        parts = []
        while count:
            packed = self._unpacker.unconsumed_tail
            if not packed:
                packed = self._file.read(min(self._left, PACKED_AT_ONCE))
                self._left -= len(packed)
            part = self._unpacker.decompress(packed, count)
            if not part and not packed:
                break
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def ends(self) -> bool:
        """Whether no more than padding follows; where the checksum is wrong that is an error."""
        self.read(8)
        return self._unpacker.eof


def read_exactly(stream: Stream, count: int) -> bytes:
    """The next `count` bytes of a stream; an `EOFError` where there are fewer."""
    data = stream.read(count)
    if len(data) < count:
        raise EOFError
    return data
