"""MATLAB's `.mat` files of version 7.3, which are HDF5, and other HDF5 files; h5py reads them.

HDF5 stores MATLAB's arrays with their axes reversed, and MATLAB notes a class beside each. Arrays without that note
were written by somebody else, and have their axes as they are.

An HDF5 file may point to other files (external links, external storage, virtual datasets) and may ask for filters,
which HDF5 would look for in shared libraries. All that is refused: only what the file itself holds is read.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unbraid.errors import FileError
from unbraid.kernels.arrays import Shape
from unbraid.reading.sources import GROUP, STRUCT, ArraySource, need
from unbraid.runtime.npz import BEST_DEFLATE
from unbraid.runtime.text import clean_name

if TYPE_CHECKING:
    import h5py

DEFLATE, SZIP, LZF = 1, 4, 32000
PACKERS = {DEFLATE, SZIP, LZF}
FILTERS = {*PACKERS, 2, 3, 5, 6}
"""Those that come with HDF5 and h5py; the others are shuffle, checksum, and two for bits."""
HARMLESS = 1 << 28
"""Bytes that a chunk may unpack to without being looked at first."""
CHECKSUM = 4
CLASS, EMPTY = "MATLAB_class", "MATLAB_empty"
MATLAB_NUMBERS = {
    "double",
    "single",
    "logical",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
}
"""MATLAB's classes of full arrays of real numbers."""
HDF5_ERRORS = (OSError, RuntimeError, ValueError, TypeError, KeyError, MemoryError, zlib.error)
"""What h5py raises on bytes that it cannot read."""


@contextmanager
def open_hdf5(path: Path) -> Iterator[HDF5Arrays]:
    """The arrays on the first level of an HDF5 file."""
    need("h5py", "MATLAB v7.3 and other HDF5 files")
    import h5py

    try:
        file = h5py.File(path, "r", locking="best-effort")
    except HDF5_ERRORS as error:
        raise FileError(f"{path} is truncated or damaged: HDF5 cannot open it.") from error
    with file:
        yield HDF5Arrays(path, file)


class HDF5Arrays(ArraySource):
    """The arrays on the first level of an open HDF5 file."""

    def __init__(self, path: Path, file: h5py.File) -> None:
        self.path = path
        self._file = file
        with self._damage_as_sentence("its directory"):
            self.names = tuple(name for name in file if not name.startswith("#"))  # MATLAB's own: #refs#
            self.from_matlab = any(CLASS in self._file[name].attrs for name in self.names if self._is_inside(name))

    def shape(self, name: str) -> Shape:
        with self._damage_as_sentence(name):
            return self._axes(self._dataset(name).shape)

    def read(self, name: str) -> npt.NDArray[Any]:
        with self._damage_as_sentence(name):
            dataset = self._dataset(name)
            self._check_chunks(name, dataset)
            array: npt.NDArray[Any] = np.asarray(dataset[()])
            return array.T if self.from_matlab else array

    def _axes(self, shape: Shape) -> Shape:
        """A shape with its axes in the order in which MATLAB shows them, where the file is MATLAB's."""
        return shape[::-1] if self.from_matlab else shape

    def _is_inside(self, name: str) -> bool:
        """Whether a name stands for something in this file, and is no link to elsewhere."""
        import h5py

        return isinstance(self._file.get(name, getlink=True), h5py.HardLink)

    def _dataset(self, name: str) -> h5py.Dataset:
        """An array of real numbers that lies in this file, whole."""
        import h5py

        if not self._is_inside(name):
            raise self.refused(name, "a link", "save the numbers in this file")
        found = self._file[name]
        if not isinstance(found, h5py.Dataset):
            what = STRUCT if CLASS in found.attrs else GROUP
            raise self.refused(name, what, "save what it holds on the first level of the file")
        if found.is_virtual or found.external:
            raise self.refused(name, "stored in other files, which are not read", "save the numbers in this file")
        kind = found.attrs.get(CLASS, b"double")
        kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
        if kind not in MATLAB_NUMBERS or EMPTY in found.attrs or found.dtype.kind not in "fiub" or found.shape is None:
            what = "empty" if EMPTY in found.attrs else f"of class {clean_name(kind)} and type {found.dtype!s:.40}"
            raise self.refused(name, what, "save a full array of numbers")
        filters = filters_of(found)
        if not FILTERS.issuperset(filters) or sum(one in PACKERS for one in filters) > 1:
            raise self.refused(name, f"compressed by the filters {filters}", "save it with gzip or without compression")
        return found

    def _check_chunks(self, name: str, dataset: h5py.Dataset) -> None:
        """Refuse a chunk that unpacks to more than it should: HDF5 itself would go on until memory ends."""
        filters = filters_of(dataset)
        if DEFLATE not in filters:
            return
        left_out = 1 << filters.index(DEFLATE)
        large: list[Any] = []
        dataset.id.chunk_iter(lambda chunk: large.append(chunk) if chunk.size * BEST_DEFLATE > HARMLESS else None)
        most = math.prod(dataset.chunks) * dataset.dtype.itemsize + CHECKSUM
        for chunk in large:
            if not chunk.filter_mask & left_out:
                _, packed = dataset.id.read_direct_chunk(chunk.chunk_offset)
                if len(zlib.decompressobj().decompress(packed, most + 1)) > most:
                    raise FileError(
                        f"{self.path} is damaged: {clean_name(name)} unpacks to more than its shape allows."
                    )

    @contextmanager
    def _damage_as_sentence(self, what: str) -> Iterator[None]:
        """Turn whatever h5py raises while `what` is read into one `FileError`."""
        try:
            yield
        except FileError:
            raise
        except HDF5_ERRORS as error:
            raise FileError(f"{self.path} is truncated or damaged: {clean_name(what)} cannot be read.") from error


def filters_of(dataset: h5py.Dataset) -> list[int]:
    """The numbers of the filters that a dataset passes through, in order."""
    settings = dataset.id.get_create_plist()
    return [settings.get_filter(i)[0] for i in range(settings.get_nfilters())]
