"""What every file of samples looks like from inside: named arrays, or a table with named columns.

Opening reads names and sizes only. Numbers come with `read`, after the sizes have been compared with the memory
available. A file is a stranger's: nothing in it is executed, and it leads to no other file.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy.typing as npt

from unbraid.data.checks import MASK
from unbraid.errors import DataError, FileError, MissingDependencyError, UnbraidError
from unbraid.kernels.arrays import Array, Shape
from unbraid.reading.cells import Cells
from unbraid.runtime.progress import Callback
from unbraid.runtime.text import MOST_NAMES, clean_name, name_list, quoted_name

UNDECODED = re.compile("[\udc80-\udcff]")
"""Characters that stand for bytes which are no text."""
STRUCT, GROUP = "a struct", "a group"


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
        The names of what it holds, arrays or not.
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

    def find(self, name: str) -> str | None:
        """What the file calls the array that somebody calls `name`, or None."""
        return name if name in self.names else None

    def holds(self) -> str:
        """What the file holds, in a few words: names with shapes, or with what else they are."""
        if not self.names:
            return "no arrays"
        others = self._others()
        described = (
            f"{clean_name(name)} ({others[name]})" if name in others else f"{clean_name(name)} {self.shape(name)}"
            for name in self.names
        )
        arrays = "" if others else f"the array{'s' if len(self.names) > 1 else ''} "
        return arrays + name_list(described, len(self.names))

    def lacks(self, name: str, option: str) -> UnbraidError:
        """The error about an array that is not there, with what is."""
        others = self._others()
        nested = next((clean_name(one) for one, what in others.items() if what in (STRUCT, GROUP)), None)
        held = self.holds()
        if nested is None or len(others) < len(self.names):
            held += f", so name the one to use with `{option}`"
        if nested is not None:
            save = f", in MATLAB with save('{self.path.name}', '-struct', '{nested}')" if self.from_matlab else ""
            held += f". What is inside {nested} is not looked at: save X, F and J on the first level{save}"
        return DataError(f"{self.path} has no array named {clean_name(name)}: it holds {held}.")

    def _others(self) -> dict[str, str]:
        """Names, among the first few, of what is no array of real numbers, with what it is instead."""
        others = {}
        for name in self.names[:MOST_NAMES]:
            try:
                self.shape(name)
            except NoArrayError as error:
                others[name] = error.what
            except FileError:
                others[name] = "damaged"
        return others

    def refused(self, name: str, what: str, advice: str) -> NoArrayError:
        """The error about something that is no array of real numbers."""
        said = f"{self.path}: {clean_name(name)} must be an array of real numbers, and it is {what}: {advice}."
        return NoArrayError(said, what)


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

    @abstractmethod
    def read(self, columns: Sequence[str], callback: Callback | None = None, gaps: Gaps | None = None) -> Array:
        """Some columns, (S, how many), all finite but for NaN in gaps; a `CellError` says where something else is."""

    @abstractmethod
    def read_cells(self, columns: Sequence[str]) -> list[Cells]:
        """Some columns as they are, with texts and gaps in them."""

    def holds(self) -> str:
        """What the file holds, in a few words: the names of its columns."""
        names = (quoted_name(name) or "(no name)" for name in self.columns)
        held = f"the column{'s' if len(self.columns) > 1 else ''} {name_list(names, len(self.columns))}"
        if any(UNDECODED.search(name) for name in self.columns):
            return f"{held}. Its names are not in UTF-8, so that some letters cannot be read: save it as UTF-8"
        return held


def need(package: str, kind: str) -> None:
    """Raise a sentence with advice where an optional package is missing."""
    if find_spec(package) is None:
        raise MissingDependencyError(
            f"{kind} need {package}, which is not installed: pip install 'unbraid[files]', or save the data as .npz."
        )
