"""What every file of samples looks like from inside: named arrays, or a table with named columns.

Arrays in MATLAB's structs and in HDF5's groups are named by paths, such as data/train/X or, as MATLAB has it,
data.train.X.

Opening reads names and sizes only. Numbers come with `read`, after the sizes have been compared with the memory
available. A file is a stranger's: nothing in it is executed, and it leads to no other file.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy.typing as npt

from unbraid.data.checks import MASK
from unbraid.errors import DataError, FileError, MissingDependencyError, UnbraidError, install_hint
from unbraid.kernels.arrays import Array, Shape
from unbraid.reading.cells import Cells
from unbraid.runtime.progress import Callback
from unbraid.runtime.text import MOST_NAMES, clean_name, name_list, printable, quoted_name

MOST_COLUMNS = 40
"""Columns of a table that are listed."""
UNDECODED = re.compile("[\udc80-\udcff]")
"""Characters that stand for bytes which are no text."""
DEEPEST = 16
"""Levels of structs and groups that are looked through."""
MOST_PATHS = 10_000
"""Paths that are looked at for a message, or in a struct."""
LONGEST_PATH = 80
"""Characters of a path that are shown."""


class Other(NamedTuple):
    """What something in a file is that is no array of real numbers, and what to do about it."""

    what: str
    advice: str


STRUCT = Other("a struct", "name an array in it")
GROUP = Other("a group", "name an array in it")


class NoArrayError(FileError):
    """Something in a file is no array of real numbers; `what` says what it is."""

    def __init__(self, said: str, what: str) -> None:
        super().__init__(said)
        self.what = what


class CellError(FileError):
    """A cell of a table holds no finite number."""


class ArraySource(ABC):
    """An open file with named arrays.

    Attributes
    ----------
    path
        The file, as it was named.
    names
        The names of what it holds on its first level, arrays or not.
    mapped
        Whether large arrays are mapped into memory, and so need not fit there.
    from_matlab
        Whether MATLAB's habits are to be expected: samples last, and no trailing axes of length one.
    """

    path: Path
    names: tuple[str, ...]
    mapped: bool = False
    from_matlab: bool = False

    @abstractmethod
    def shape(self, name: str) -> Shape:
        """The shape of an array; a `FileError` where it is damaged or no array of real numbers."""

    @abstractmethod
    def read(self, name: str) -> npt.NDArray[Any]:
        """The array of this name, with the shape that `shape` tells."""

    def inside(self, name: str) -> tuple[str, ...]:
        """The paths of what a struct or a group holds, such as data/X, one level down; none for anything else."""
        return ()

    def find(self, name: str) -> str | None:
        """What the file calls the array that somebody calls `name`, which may be a path; None if there is none."""
        return name if name in self.names else self._find_path(name.lstrip("/"), self.names)

    def beside(self, name: str) -> dict[str, str]:
        """The paths of what lies in the same struct or group as an array, by their names there: X of data/X."""
        above = name.rpartition("/")[0]
        inner = {path.removeprefix(f"{above}/"): path for path in self.inside(above)}
        return inner or {name: name for name in self.names}

    def holds(self) -> str:
        """What the file holds, in a few words: names or paths with shapes, or with what else they are."""
        paths = self._paths()
        if not paths:
            return "no arrays"
        others = self._others(paths)
        described = (
            f"{clean_path(path)} ({others[path]})" if path in others else f"{clean_path(path)} {self.shape(path)}"
            for path in paths
        )
        arrays = "" if others else f"the array{'s' if len(paths) > 1 else ''} "
        return arrays + name_list(described, len(paths))

    def lacks(self, name: str, option: str) -> UnbraidError:
        """The error about an array that is not there, with what is."""
        paths = self._paths()
        deeper = next((path for path in paths if path.endswith(f"/{name}")), None)
        advice = ""
        if deeper is not None:
            advice = f", so set `{option}` to {clean_path(deeper)}"
        elif len(self._others(paths)) < len(paths[:MOST_NAMES]):
            advice = f", so name the one to use with `{option}`"
        return DataError(f"{self.path} has no array named {clean_path(name)}: it holds {self.holds()}{advice}.")

    def _find_path(self, asked: str, level: Sequence[str], above: str = "") -> str | None:
        """The path, among those of a level and below, that is meant by names with slashes or dots between them."""
        for path in level:
            name = path.removeprefix(above)
            if asked == name:
                return path
            if name and asked.startswith((f"{name}/", f"{name}.")):
                found = self._find_path(asked[len(name) + 1 :], self.inside(path), f"{path}/")
                if found is not None:
                    return found
        return None

    def _paths(self) -> tuple[str, ...]:
        """The paths of what is neither a struct nor a group with something in it, of many the first."""
        return tuple(islice(self._leaves(self.names, DEEPEST), MOST_PATHS))

    def _leaves(self, paths: Sequence[str], levels: int) -> Iterator[str]:
        """These paths, or what lies inside them, some levels down: hard links of HDF5 may lead in circles."""
        for path in paths:
            inner = self._inside_if_sound(path) if levels else ()
            yield from self._leaves(inner, levels - 1) if inner else (path,)

    def _inside_if_sound(self, path: str) -> tuple[str, ...]:
        """What a path holds; nothing where it is damaged."""
        try:
            return self.inside(path)
        except FileError:
            return ()

    def _others(self, paths: Sequence[str]) -> dict[str, str]:
        """Paths, among the first few, of what is no array of real numbers, with what it is instead."""
        others = {}
        for path in paths[:MOST_NAMES]:
            try:
                self.shape(path)
            except NoArrayError as error:
                others[path] = error.what
            except FileError:
                others[path] = "damaged"
        return others

    def crowded(self) -> FileError:
        """The error about a file with more variables and fields than are looked at."""
        return FileError(f"{self.path} has more than {MOST_PATHS} variables and fields: save X, F and J alone.")

    def refused(self, name: str, other: Other) -> NoArrayError:
        """The error about something that is no array of real numbers; of a struct or a group, with what is in it."""
        inner = self._inside_if_sound(name) if other in (STRUCT, GROUP) else ()
        held = f", of {name_list(map(clean_path, inner), len(inner))}" if inner else ""
        said = f"{self.path}: {clean_path(name)} must be an array of real numbers, and it is {other.what}"
        return NoArrayError(f"{said}: {other.advice}{held}.", other.what)


@dataclass(frozen=True)
class Gaps:
    """Where in a table values may be missing.

    Attributes
    ----------
    columns
        The names of the columns of outputs and Jacobians.
    allowed
        Whether empty cells and NaN are read there, as NaN.
    """

    columns: Collection[str] = ()
    allowed: bool = False

    def __contains__(self, name: str) -> bool:
        return self.allowed and name in self.columns

    def advice(self, name: str, line: str, empty: bool = True) -> str:
        """What to do about a cell of column `name` without a finite number; `line` is what the file calls its rows."""
        mask = f", or {MASK} where that stands for what is not known"
        return f"repair or remove that {line}{mask if empty and not self.allowed and name in self.columns else ''}."


class Table(ABC):
    """An open file with one sample a row and named columns.

    Attributes
    ----------
    path
        The file, as it was named.
    columns
        The names of the columns.
    """

    path: Path
    columns: tuple[str, ...]

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each column stands, the last of those that share a name."""
        return {name: k for k, name in enumerate(self.columns)}

    @cached_property
    def times(self) -> Counter[str]:
        """How many columns have each name."""
        return Counter(self.columns)

    @abstractmethod
    def read(self, columns: Sequence[str], callback: Callback | None = None, gaps: Gaps | None = None) -> Array:
        """Some columns, (S, how many), all finite but for NaN in gaps; a `CellError` says where something else is."""

    @abstractmethod
    def read_cells(self, columns: Sequence[str]) -> list[Cells]:
        """Some columns as they are, with texts and gaps in them."""

    def holds(self) -> str:
        """What the file holds, in a few words: the names of its columns."""
        names = (quoted_name(name) or "(no name)" for name in self.columns)
        listed = name_list(names, len(self.columns), MOST_COLUMNS)
        held = f"the column{'s' if len(self.columns) > 1 else ''} {listed}"
        if any(UNDECODED.search(name) for name in self.columns):
            return f"{held}. Its names are not in UTF-8, so that some letters cannot be read: save it as UTF-8"
        return held


def need(package: str, kind: str) -> None:
    """Raise a sentence with advice where an optional package is missing."""
    if find_spec(package) is None:
        raise MissingDependencyError(
            f"{kind} need {package}, which is not installed: {install_hint('files')}, or save the data as .npz."
        )


def clean_path(path: str) -> str:
    """A name as `clean_name` has it; or a path, whose end is shown where it is long.

    Examples
    --------
    >>> clean_path("data/train/X"), clean_path("deep/" * 100 + "X")[:10]
    ('data/train/X', '.../deep/d')
    """
    if "/" not in path:
        return clean_name(path)
    short = path if len(path) <= LONGEST_PATH else "..." + path[3 - LONGEST_PATH :]
    return printable(short).replace("\n", "?")
