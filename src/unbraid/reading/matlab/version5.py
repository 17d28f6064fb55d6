"""MATLAB's `.mat` files of version 5, which `save` writes unless told `-v7.3` (or `-v4`); Octave and SciPy do as well.

The format, from MATLAB's "MAT-File Format": 128 bytes of header, of which the last two tell the byte order, then
elements. An element is a tag, (type, length) in eight bytes, and its data, padded to eight bytes; up to four bytes
of data may stand in the tag itself. A variable is an element of type matrix, which holds elements: flags, dimensions,
name and numbers, the numbers in the smallest type that keeps them. It may be packed, whole, in an element of type
compressed. A struct has, in place of numbers, the length of a field's name, all those names, and a matrix a field.

This reader is used rather than SciPy's, which is not made for files of strangers. `scipy.io.loadmat` (1.17) ends the
process with a segmentation fault on about one in a hundred small files in which up to three bytes were changed, and
allocates what a tag claims before it looks at what follows; `scipy.io.whosmat` does the latter too, and does not tell
complex arrays from real ones. Here the dimensions, the tag and the bytes in the file must agree first, and only full
real arrays are read, those in structs when a path such as data/X names them.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from unbraid.errors import FileError
from unbraid.kernels.arrays import Shape
from unbraid.reading.matlab.others import CELL, COMPLEX, HANDLE, MATLAB_OBJECT, SPARSE, STRUCT_ARRAY, TEXT
from unbraid.reading.matlab.streams import Plain, Stream, Unpacked, read_exactly
from unbraid.reading.sources import DEEPEST, MOST_PATHS, STRUCT, ArraySource, Other
from unbraid.runtime.npz import BEST_DEFLATE

HEADER, TAG = 128, 8
"""Bytes of the file's header, and of the tag before an element."""
MATRIX, COMPRESSED = 14, 15
NUMBER_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
"""The types of elements that hold numbers."""
FULL_CLASSES = range(6, 16)
"""The classes of variables that are full arrays of numbers."""
STRUCT_CLASS, OPAQUE = 2, 17
OTHER_CLASSES = {1: CELL, STRUCT_CLASS: STRUCT, 3: MATLAB_OBJECT, 4: TEXT, 5: SPARSE, 16: HANDLE}
"""The other classes of variables."""
COMPLEX_FLAG = 0x0800
LONGEST_ELEMENT = 4096
"""Bytes that the flags, dimensions and name of a variable may take each."""
LONGEST_NAMES = 1 << 20
"""Bytes that the names of a struct's fields may take."""


@dataclass(frozen=True)
class Variable:
    """Where a variable, or a field of one, lies in a file, and what its header says."""

    start: int
    length: int
    packed: bool
    at: int = 0
    """Bytes, once unpacked, from the elements of the variable to those of the field; 0: the variable itself."""
    name: str = ""
    shape: Shape = ()
    other: Other | None = None
    """What it is where it is no full array of real numbers."""


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
        self._fields: dict[str, tuple[str, ...]] = {}
        file.seek(HEADER - 2)
        self._order = "<" if file.read(2) == b"IM" else ">"
        with self._damage_as_sentence():
            self._variables = {one.name: one for one in self._walk(path.stat().st_size) if one.name}
        self.names = tuple(self._variables)

    def shape(self, name: str) -> Shape:
        variable = self._variables[name]
        if variable.other:
            raise self.refused(name, variable.other)
        return variable.shape

    def inside(self, name: str) -> tuple[str, ...]:
        variable = self._variables.get(name)
        if variable is not None and not variable.at and variable.other == STRUCT and name not in self._fields:
            with self._damage_as_sentence():
                stream = self._stream(variable)
                self._read_variable(stream, variable)
                self._read_fields(stream, variable, DEEPEST)
        return self._fields.get(name, ())

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
            if variable.at:
                stream.skip_rest()
            if not stream.ends():
                raise ValueError
            return np.frombuffer(data, dtype).reshape(variable.shape, order="F")

    def _walk(self, size: int) -> Iterator[Variable]:
        """The variables of a file of `size` bytes one after another; only the header of each is read."""
        start = HEADER
        while start < size:
            self._file.seek(start)
            kind, length = struct.unpack(self._order + "II", read_exactly(Plain(self._file, TAG), TAG))
            start += TAG
            if start + length > size:
                raise EOFError
            if kind in (MATRIX, COMPRESSED) and length:
                place = Variable(start, length, kind == COMPRESSED)
                yield self._read_variable(self._stream(place), place)
            start += length

    def _stream(self, place: Variable) -> Stream:
        """The bytes of the elements of a variable or a field, unpacked where they are packed."""
        self._file.seek(place.start)
        stream = Unpacked(self._file, place.length) if place.packed else Plain(self._file, place.length)
        if place.packed:
            read_exactly(stream, TAG)  # of the variable itself, now seen
            stream.at = 0
        stream.skip(place.at)
        return stream

    def _read_fields(self, stream: Stream, above: Variable, levels: int) -> None:
        """Note where the fields of a struct lie, and those of structs in it; the stream is behind its header."""
        (width,) = struct.unpack(self._order + "i", self._read_element(stream))
        names = self._read_element(stream, LONGEST_NAMES)
        if not 0 < width <= LONGEST_ELEMENT or len(names) % width:
            raise ValueError
        fields = {}
        for start in range(0, len(names), width):
            field = names[start : start + width].partition(b"\0")[0].decode("utf-8", errors="replace")
            kind, length, within = self._read_tag(stream)
            if kind != MATRIX or within is not None:
                raise ValueError
            end, path = stream.at + length, f"{above.name}/{field}"
            place = replace(above, at=stream.at, shape=(0, 0), other=None)
            found = self._read_variable(stream, place) if length else place
            fields[path] = replace(found, name=path)
            if len(self._variables) + len(fields) > MOST_PATHS:
                raise self.crowded()
            if found.other == STRUCT and levels:
                self._read_fields(stream, fields[path], levels - 1)
            stream.skip(end - stream.at)
        self._variables |= fields
        self._fields[above.name] = tuple(fields)

    def _read_variable(self, stream: Stream, place: Variable) -> Variable:
        """The header of a variable; the stream is then at its numbers."""
        flags = struct.unpack(self._order + "II", self._read_element(stream))[0]
        kind = flags & 0xFF
        if kind == OPAQUE:  # has no dimensions
            return replace(place, other=MATLAB_OBJECT)
        dimensions = self._read_element(stream)
        shape = struct.unpack(f"{self._order}{len(dimensions) // 4}i", dimensions)
        if min(shape) < 0:
            raise ValueError
        name = self._read_element(stream).decode("utf-8", errors="replace")
        other = COMPLEX if flags & COMPLEX_FLAG else None
        if kind not in FULL_CLASSES:
            other = OTHER_CLASSES.get(kind, MATLAB_OBJECT)
        if kind == STRUCT_CLASS and math.prod(shape) != 1:
            other = STRUCT_ARRAY
        return replace(place, name=name, shape=shape, other=other)

    def _read_element(self, stream: Stream, most: int = LONGEST_ELEMENT) -> bytes:
        """The data of the next element, which belongs to a header and so is short."""
        _, length, within = self._read_tag(stream)
        if within is not None:
            return within
        if length > most:
            raise ValueError
        return read_exactly(stream, length + -length % 8)[:length]

    def _read_tag(self, stream: Stream) -> tuple[int, int, bytes | None]:
        """Type and length of the next element, and its data where they stand in the tag, else None."""
        tag = read_exactly(stream, TAG)
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
        except FileError:
            raise
        except (ValueError, KeyError, EOFError, OSError, MemoryError, struct.error, zlib.error) as error:
            raise FileError(f"{self.path} is truncated or damaged: its variables cannot be read.") from error
