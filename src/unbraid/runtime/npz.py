"""`.npz` files, read without trusting them: no pickle, and no memory for what the file only claims to hold.

NumPy's own reader allocates what an array's header declares before it looks at how many bytes follow. Here
the header, the zip directory and the file must agree first.
"""

from __future__ import annotations

import lzma
import math
import os
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from unbraid.errors import FileError, shown
from unbraid.runtime.files import StrPath, opened, why_refused
from unbraid.runtime.text import clean_name, name_list

SUFFIX = ".npy"
BEST_DEFLATE = 1100
"""Deflate cannot shrink data by more than 1032 times: a member that claims more is a trap."""
LOOKS_LIKE = {
    b"\x93NUMPY": "it is a single .npy array",
    b"\x80": "it looks like a Python pickle, which is never loaded",
    b"MATLAB": "it looks like a MATLAB file",
    b"\x89HDF": "it looks like an HDF5 or MATLAB v7.3 file",
}
UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,
    EOFError,
    MemoryError,
    OSError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
"""What NumPy and zipfile raise on bytes that they cannot read."""


def write_npz(file: BinaryIO, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write arrays as `.npz` to an open file: the same arrays give the same bytes."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(name + SUFFIX)  # dated 1980, not today
            with archive.open(member, "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)


@contextmanager
def open_npz(path: StrPath) -> Iterator[ArrayFile]:
    """Open a `.npz` file, or raise a `FileError` with a sentence about what it is instead."""
    with opened(path, "an .npz file") as file:
        try:
            archive = zipfile.ZipFile(file)
        except UNREADABLE as error:
            raise FileError(f"{path} {not_a_zip(file)}.") from error
        with archive:
            yield ArrayFile(path, archive, os.fstat(file.fileno()).st_size)


def not_a_zip(file: BinaryIO) -> str:
    """What a file that cannot be opened as a zip archive seems to be."""
    try:
        file.seek(0)
        start = file.read(8)
    except OSError as error:
        return f"cannot be read: {why_refused(error)}"
    if not start:
        return "is empty, not an .npz file"
    if start.startswith(b"PK\x03\x04"):
        return "is truncated or damaged: it begins like an .npz file but its directory cannot be read"
    looks = next((text for magic, text in LOOKS_LIKE.items() if start.startswith(magic)), None)
    return "is not an .npz file" + (f": {looks}" if looks else "")


class ArrayFile:
    """The arrays of an open `.npz` file, read one at a time.

    Attributes
    ----------
    path
        The file, as it was named.
    names
        The names of its arrays.
    """

    def __init__(self, path: StrPath, archive: zipfile.ZipFile, size: int) -> None:
        self.path = path
        self._archive, self._size = archive, size
        self._members = {info.filename: info for info in archive.infolist()}
        self.names = tuple(name.removesuffix(SUFFIX) for name in self._members if name.endswith(SUFFIX))

    def holds(self) -> str:
        """What the file holds, in a few words: the names of its arrays."""
        if not self.names:
            return "no arrays"
        names = name_list(map(clean_name, self.names), len(self.names))
        return f"the array{'s' if len(self.names) > 1 else ''} {names}"

    def check_size(self, most: int) -> None:
        """Refuse a file that unpacks to more than `most` bytes, before anything is unpacked."""
        size = sum(info.file_size for info in self._members.values())
        if size > most:
            raise FileError(
                f"{self.path} unpacks to {size / 2**20:.0f} MiB, more than the {most / 2**20:.0f} accepted."
            )

    def read(self, name: str, shape: tuple[int | None, ...] | None = None) -> npt.NDArray[Any]:
        """One array; refused, before it is unpacked, where its shape is not the one given (None: any length)."""
        with self._opened(name) as (stream, size):
            found, _ = read_header(stream, size, self.path, name)
            if shape is not None:
                check_shape(self.path, name, found, shape)
            stream.seek(0)
            return np.lib.format.read_array(stream, allow_pickle=False)

    def header(self, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and dtype of one array, which is not unpacked."""
        with self._opened(name) as (stream, size):
            return read_header(stream, size, self.path, name)

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[IO[bytes], int]]:
        """The bytes of one array, unpacked as they are read, and how many they are."""
        member = self._members[name + SUFFIX]
        packed = min(member.compress_size, self._size)
        if member.file_size > BEST_DEFLATE * (packed + 1):
            raise FileError(f"{self.path} is damaged: {clean_name(name)} claims to unpack to {member.file_size} bytes.")
        with damage_as_sentence(self.path, name), self._archive.open(member) as stream:
            yield stream, member.file_size


@contextmanager
def damage_as_sentence(path: StrPath, name: str) -> Iterator[None]:
    """Turn whatever NumPy and zipfile raise on bytes that they cannot read into one `FileError`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # NumPy's about headers from Python 2
            yield
    except FileError:
        raise
    except UNREADABLE as error:
        raise FileError(f"{path} is truncated or damaged: {clean_name(name)} cannot be read.") from error


def read_header(stream: IO[bytes], size: int, path: StrPath, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype at the start of `size` bytes of `.npy`, once they agree with how many bytes follow."""
    version = np.lib.format.read_magic(stream)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise FileError(f"{path} cannot be read: {clean_name(name)} is in version {version[0]}.{version[1]} of .npy.")
    shape, _, dtype = readers[version](stream)
    if dtype.hasobject:
        raise FileError(f"{path} is refused: {clean_name(name)} holds pickled Python objects, which are never loaded.")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size - stream.tell():
        raise FileError(
            f"{path} is damaged: {clean_name(name)} declares shape {shown(shape)}, which is not what follows."
        )
    return shape, dtype


def check_shape(path: StrPath, name: str, found: tuple[int, ...], shape: tuple[int | None, ...]) -> None:
    """Refuse an array whose shape is not the wanted one, in which None stands for any length above 0."""
    if not fits(found, shape):
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise FileError(f"{path} is inconsistent: {clean_name(name)} has shape {shown(found)}, not ({wanted}).")


def fits(found: tuple[int, ...], shape: tuple[int | None, ...]) -> bool:
    """Whether a shape is the wanted one, in which None stands for any length above 0."""
    if len(found) != len(shape):
        return False
    return all(length > 0 if want is None else length == want for length, want in zip(found, shape, strict=True))
