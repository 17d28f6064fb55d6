"""NumPy's files: `.npz`, a folder of `.npy` files, or a single one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from unbraid.errors import DataError, FileError, UnbraidError
from unbraid.kernels.arrays import Shape
from unbraid.reading.sources import ArraySource, Other
from unbraid.runtime.npz import SUFFIX, ArrayFile, damage_as_sentence, open_npz, read_header
from unbraid.runtime.text import clean_name

MAPPED = 1 << 26
"""Bytes of an `.npy` file above which it is not read but mapped into memory, so that it need not fit there."""


@contextmanager
def open_archive(path: Path) -> Iterator[NpzArrays]:
    """The arrays of an `.npz` file."""
    with open_npz(path) as file:
        yield NpzArrays(path, file)


@contextmanager
def open_folder(path: Path) -> Iterator[NpyArrays]:
    """The `.npy` files in a folder, named without their suffix."""
    files = {one.stem: one for one in sorted(path.glob("*" + SUFFIX)) if one.is_file()}
    if not files:
        raise FileError(f"{path} is a folder without .npy files: put X.npy, F.npy and J.npy there, or name a file.")
    yield NpyArrays(path, files)


@contextmanager
def open_single(path: Path) -> Iterator[NpyArrays]:
    """One `.npy` file, which is taken for X; the others are named by their paths."""
    yield NpySingle(path, {"X": path})


class NpzArrays(ArraySource):
    """The arrays of an open `.npz` file."""

    def __init__(self, path: Path, file: ArrayFile) -> None:
        self.path, self.names = path, file.names
        self._file = file

    def shape(self, name: str) -> Shape:
        shape, dtype = self._file.header(name)
        check_real(self, name, dtype)
        return shape

    def read(self, name: str) -> npt.NDArray[Any]:
        return self._file.read(name)


class NpyArrays(ArraySource):
    """The `.npy` files of a folder, by their names without the suffix."""

    mapped = True

    def __init__(self, path: Path, files: dict[str, Path]) -> None:
        self.path, self.names = path, tuple(files)
        self._files = files

    def find(self, name: str) -> str | None:
        """An array of this folder, with or without the suffix, or the path of an `.npy` file."""
        found = super().find(name.removesuffix(SUFFIX))
        if found is None and name.endswith(SUFFIX) and Path(name).is_file():
            self._files[name] = Path(name)
            return name
        return found

    def shape(self, name: str) -> Shape:
        with self._opened(name) as (file, size):
            shape, dtype = read_header(file, size, self._files[name], name)
        check_real(self, name, dtype)
        return shape

    def read(self, name: str) -> npt.NDArray[Any]:
        with self._opened(name) as (file, size):
            if size > MAPPED:
                return np.lib.format.open_memmap(self._files[name], mode="r")
            return np.lib.format.read_array(file, allow_pickle=False)

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[BinaryIO, int]]:
        """One file, open, and its size in bytes."""
        path = self._files[name]
        with damage_as_sentence(path, name), path.open("rb") as file:
            yield file, path.stat().st_size


class NpySingle(NpyArrays):
    """A single `.npy` file, which is X."""

    def lacks(self, name: str, option: str) -> UnbraidError:
        beside = self.path.parent / (name if name.endswith(SUFFIX) else name + SUFFIX)
        if beside.is_file():
            hint = f" {beside} lies beside {self.path.name}: set `{option}` to {beside}."
        else:
            hint = "" if name.endswith(SUFFIX) else f" Name a file with `{option}`, such as {beside}."
        if name.endswith(SUFFIX):
            return FileError(f"{name!s:.200} does not exist.{hint}")
        return DataError(f"{self.path} is a single array, which is X, and has none named {clean_name(name)}.{hint}")


def check_real(source: ArraySource, name: str, dtype: np.dtype[Any]) -> None:
    """Refuse an array whose dtype is not that of real numbers."""
    if dtype.kind not in "fiub":
        advice = f"save {clean_name(name)}.real if the imaginary part is zero" if dtype.kind == "c" else "save numbers"
        raise source.refused(name, Other(f"of dtype {dtype!s:.40}", advice))
