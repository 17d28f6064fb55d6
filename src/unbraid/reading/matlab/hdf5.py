"""MATLAB's `.mat` files of version 7.3, which are HDF5, and other HDF5 files; h5py reads them.

HDF5 stores MATLAB's arrays with their axes reversed, and MATLAB notes a class beside each; its structs are groups.
Octave, told `-hdf5`, reverses axes as well, and wraps everything into a group with a type and a value. Arrays without
such notes were written by somebody else, and have their axes as they are.

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
from unbraid.reading.matlab.octave_types import other_type
from unbraid.reading.matlab.others import CELL, ELSEWHERE, EMPTY, LINK, MATLAB_OBJECT, SPARSE, STRUCT_ARRAY
from unbraid.reading.sources import GROUP, STRUCT, ArraySource, Other, need
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
CLASS, SPARSE_NOTE = "MATLAB_class", "MATLAB_sparse"
OCTAVE, TYPE, VALUE = "OCTAVE_NEW_FORMAT", "type", "value"
"""Octave's note on a group that stands for a variable, and what such a group holds."""
MATLAB_EMPTY, OCTAVE_EMPTY = "MATLAB_empty", "OCTAVE_EMPTY_MATRIX"
LONGEST_TYPE = 64
"""Bytes that the name of one of Octave's types may have."""
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
    """The arrays of an HDF5 file."""
    need("h5py", "MATLAB v7.3 and other HDF5 files")
    import h5py

    try:
        file = h5py.File(path, "r", locking="best-effort")
    except HDF5_ERRORS as error:
        raise FileError(f"{path} is truncated or damaged: HDF5 cannot open it.") from error
    with file:
        yield HDF5Arrays(path, file)


class HDF5Arrays(ArraySource):
    """The arrays of an open HDF5 file, those in groups by paths such as data/X."""

    def __init__(self, path: Path, file: h5py.File) -> None:
        self.path = path
        self._file = file
        with self._damage_as_sentence("its directory"):
            self.names = members(file)
            found = [file[name] for name in self.names if is_inside(file, name)]
            self.from_matlab = any(CLASS in one.attrs or is_octave(one) for one in found)

    def shape(self, name: str) -> Shape:
        with self._damage_as_sentence(name):
            return self._axes(self._dataset(name).shape)

    def inside(self, name: str) -> tuple[str, ...]:
        if not name:
            return ()
        with self._damage_as_sentence(name):
            found = self._locate(name)
            return tuple(f"{name}/{member}" for member in members(found)) if is_struct(found) else ()

    def read(self, name: str) -> npt.NDArray[Any]:
        with self._damage_as_sentence(name):
            dataset = self._dataset(name)
            self._check_chunks(name, dataset)
            array: npt.NDArray[Any] = np.asarray(dataset[()])
            return array.T if self.from_matlab else array

    def _axes(self, shape: Shape) -> Shape:
        """A shape with its axes in the order in which MATLAB shows them, where the file is MATLAB's."""
        return shape[::-1] if self.from_matlab else shape

    def _locate(self, name: str) -> h5py.Group | h5py.Dataset:
        """What a name or a path stands for in this file, links not followed; of Octave's groups, their value."""
        found: Any = self._file
        for part in name.split("/"):
            if not is_inside(found, part):
                raise self.refused(name, LINK)
            found = found[part]
            if is_octave(found):
                other = EMPTY if OCTAVE_EMPTY in found.attrs else other_type(octave_type(found))
                if other not in (None, STRUCT):
                    raise self.refused(name, other)
                found = found[VALUE]
        return found

    def _dataset(self, name: str) -> h5py.Dataset:
        """An array of real numbers that lies in this file, whole."""
        import h5py

        found = self._locate(name)
        if is_struct(found):
            raise self.refused(name, STRUCT if self.from_matlab else GROUP)
        if not isinstance(found, h5py.Dataset):
            raise self.refused(name, SPARSE if SPARSE_NOTE in found.attrs else MATLAB_OBJECT)
        if found.is_virtual or found.external:
            raise self.refused(name, ELSEWHERE)
        if MATLAB_EMPTY in found.attrs:
            raise self.refused(name, EMPTY)
        if self.from_matlab and h5py.check_ref_dtype(found.dtype) is not None:
            raise self.refused(name, CELL if matlab_class(found) == "cell" else STRUCT_ARRAY)
        kind = matlab_class(found) or "double"
        if kind not in MATLAB_NUMBERS or found.dtype.kind not in "fiub" or found.shape is None:
            what = f"of class {clean_name(kind)} and type {found.dtype!s:.40}"
            raise self.refused(name, EMPTY._replace(what=what))
        filters = filters_of(found)
        if not FILTERS.issuperset(filters) or sum(one in PACKERS for one in filters) > 1:
            advice = "save it with gzip or without compression"
            raise self.refused(name, Other(f"compressed by the filters {filters}", advice))
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


def members(group: h5py.Group) -> tuple[str, ...]:
    """The names of what a group holds, without MATLAB's own, #refs# and the like."""
    return tuple(name for name in group if not name.startswith("#"))


def is_inside(group: h5py.Group, name: str) -> bool:
    """Whether a name in a group stands for something in this file, and is no link to elsewhere."""
    import h5py

    return isinstance(group, h5py.Group) and isinstance(group.get(name, getlink=True), h5py.HardLink)


def is_struct(found: h5py.Group | h5py.Dataset) -> bool:
    """Whether this is a group that can be looked into: anybody's, or one of MATLAB's single structs."""
    import h5py

    return isinstance(found, h5py.Group) and matlab_class(found) in (None, "struct") and SPARSE_NOTE not in found.attrs


def matlab_class(found: h5py.Group | h5py.Dataset) -> str | None:
    """The class that MATLAB has noted beside something, or None."""
    kind = found.attrs.get(CLASS)
    return kind.decode("ascii", "replace") if isinstance(kind, bytes) else None if kind is None else str(kind)


def is_octave(found: h5py.Group | h5py.Dataset) -> bool:
    """Whether Octave has wrapped a variable or a field into this group."""
    import h5py

    return (
        isinstance(found, h5py.Group) and OCTAVE in found.attrs and all(is_inside(found, one) for one in (TYPE, VALUE))
    )


def octave_type(group: h5py.Group) -> str:
    """The type of what a group of Octave's stands for."""
    import h5py

    kind = group[TYPE]
    plain = isinstance(kind, h5py.Dataset) and not (kind.is_virtual or kind.external or filters_of(kind))
    if not plain or kind.dtype.kind != "S" or kind.shape != () or kind.dtype.itemsize > LONGEST_TYPE:
        raise ValueError
    text: bytes = kind[()]
    return text.decode("ascii", "replace").rstrip("\0")
