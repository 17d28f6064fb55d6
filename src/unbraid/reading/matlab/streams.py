"""Bytes one after another, as they stand in a `.mat` file or packed in it: none is unpacked unless it is asked for."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from typing import BinaryIO

PACKED_AT_ONCE = 1 << 20
"""Bytes that are read from the file, or skipped, at a time."""


class Stream(ABC):
    """The bytes of a variable, one after another.

    Attributes
    ----------
    at
        How many of them have been read or skipped.
    """

    at: int = 0

    @abstractmethod
    def read(self, count: int) -> bytes:
        """The next `count` bytes, or fewer at the end."""

    @abstractmethod
    def skip(self, count: int) -> None:
        """Leave out the next `count` bytes; an `EOFError` where there are fewer, a `ValueError` below 0."""

    @abstractmethod
    def skip_rest(self) -> None:
        """Leave out all bytes but those that `ends` looks at."""

    @abstractmethod
    def ends(self) -> bool:
        """Whether no more than padding follows; where a checksum is wrong that is an error."""


class Plain(Stream):
    """The next `length` bytes of a file."""

    def __init__(self, file: BinaryIO, length: int) -> None:
        self._file = file
        self._length = length

    def read(self, count: int) -> bytes:
        data = self._file.read(min(count, self._length - self.at))
        self.at += len(data)
        return data

    def skip(self, count: int) -> None:
        if count < 0:
            raise ValueError
        if self.at + count > self._length:
            raise EOFError
        self._file.seek(count, 1)
        self.at += count

    def skip_rest(self) -> None:
        self.skip(self._length - self.at)

    def ends(self) -> bool:
        return True  # whatever follows


class Unpacked(Stream):
    """The bytes packed in the next `length` bytes of a file; no more is unpacked than is asked for."""

    def __init__(self, file: BinaryIO, length: int) -> None:
        self._file = file
        self._left = length
        self._unpacker = zlib.decompressobj()

    def read(self, count: int) -> bytes:
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
            self.at += len(part)
        return b"".join(parts)

    def skip(self, count: int) -> None:
        if count < 0:
            raise ValueError
        while count:
            skipped = len(read_exactly(self, min(count, PACKED_AT_ONCE)))
            count -= skipped

    def skip_rest(self) -> None:
        while self.read(PACKED_AT_ONCE):
            pass

    def ends(self) -> bool:
        self.read(8)
        return self._unpacker.eof


def read_exactly(stream: Stream, count: int) -> bytes:
    """The next `count` bytes of a stream; an `EOFError` where there are fewer."""
    data = stream.read(count)
    if len(data) < count:
        raise EOFError
    return data
