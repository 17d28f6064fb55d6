"""Models as `.npz` archives: no pickle; the string array ``metadata`` is JSON text, and arrays are arrays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from unbraid.errors import ModelFileError
from unbraid.kernels.arrays import Array
from unbraid.results.files.container import Container
from unbraid.results.files.description import FORMAT, Description
from unbraid.results.files.strict_json import parse_json
from unbraid.runtime.files import StrPath
from unbraid.runtime.npz import ArrayFile, open_npz, write_npz

METADATA = "metadata"
MOST_BYTES = 1 << 28
"""Bytes that a model may unpack to: 256 MiB, some 30 million coefficients."""


def write_archive(file: BinaryIO, description: Description) -> None:
    """Write a model to an open file: the same model gives the same bytes."""
    text = json.dumps(description.metadata, allow_nan=False, default=lambda number: number.item())  # NumPy's integers
    write_npz(file, {METADATA: np.array(text), **description.arrays})


@contextmanager
def open_archive(path: StrPath) -> Iterator[Archive]:
    """Open a `.npz` file that may hold a model."""
    with open_npz(path) as file:
        yield Archive(file)


class Archive(Container):
    """A model in an open `.npz` file."""

    def __init__(self, file: ArrayFile) -> None:
        self.path, self.names = file.path, file.names
        self._file = file

    def metadata(self) -> dict[str, Any]:
        """The metadata, once the file has proved not to unpack to too much."""
        if METADATA not in self.names:
            raise ModelFileError(f"{self.path} is not an unbraid model: it holds {self._file.holds()}.")
        self._file.check_size(MOST_BYTES)
        array = self._file.read(METADATA)
        try:
            if array.dtype.kind != "U" or array.ndim != 0:
                raise ValueError
            metadata = parse_json(str(array))
            foreign = metadata["format"] != FORMAT
        except (ValueError, TypeError, KeyError):
            foreign = True
        if foreign:
            raise ModelFileError(
                f"{self.path} is not an unbraid model: it holds {self._file.holds()}, but its metadata are not this "
                "library's."
            )
        return dict(metadata)

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape in the header of an array."""
        return self._file.header(name)[0]

    def numbers(self, name: str, shape: tuple[int | None, ...]) -> Array:
        """An array, of float64 or refused."""
        array = self._file.read(name, shape)
        if array.dtype.kind != "f" or array.dtype.itemsize != 8:
            raise self.damage(f"{name} has dtype {array.dtype!s:.40}, not float64")
        return array.astype(np.float64, copy=False)
