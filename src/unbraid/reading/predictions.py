"""Predictions to files: arrays in `.npz`, `.npy` and `.mat`, tables in `.csv` and `.parquet`, by how a name ends.

A table has one row a point: its inputs, then what is predicted there, every number so that it reads back as it was.
Arrays are laid out as those of the points were.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from unbraid.data.checks import counted
from unbraid.errors import FileError, SettingError
from unbraid.kernels.arrays import Array, blocks
from unbraid.reading.cells import Cells
from unbraid.reading.layout import FIRST, LAST
from unbraid.reading.sources import need
from unbraid.reading.tables import list_columns
from unbraid.runtime.files import StrPath, replacing
from unbraid.runtime.npz import write_npz
from unbraid.runtime.text import guarded, printable

MATLAB_BYTES = 2**32 - 2**10
"""Bytes that the numbers of an array may take in a MATLAB file of version 5: with their header, less than 4 GiB."""
MATLAB_HEADER = b"MATLAB 5.0 MAT-file, written by unbraid".ljust(116)
"""In place of SciPy's, which has the time: the same predictions give the same bytes."""
PLAIN_NAME = re.compile(r"[^\W\d][\w./() \[\]^*+-]*")
"""Names that need no quotes wherever a table is read."""
Column = np.ndarray[tuple[int], np.dtype[Any]]
"""Numbers, NaN where there are none; or objects, numbers and texts, None where there is nothing."""


@dataclass(frozen=True)
class Predictions:
    """What a model predicts at some points.

    Attributes
    ----------
    X
        (S, m), the points.
    F
        (S, n), values.
    J
        (S, n, m), Jacobians, or None.
    layout
        Where samples stand in arrays that are written, "samples-first" or "samples-last".
    input_names, output_names
        The m and n names of the columns of tables; None: x1, x2, … and y1, y2, ….
    letter
        What the array of values is called in files.
    cells
        The columns of inputs as the points' own table has them, where X does not hold all that is written there.
    """

    X: Array
    F: Array
    J: Array | None = None
    layout: str = FIRST
    input_names: Sequence[str] | None = None
    output_names: Sequence[str] | None = None
    letter: str = "F"
    cells: Sequence[Cells] = ()

    def arrays(self) -> dict[str, Array]:
        """F, by its letter, and J where there is one, in the layout of the points."""
        given = {self.letter: self.F} if self.J is None else {self.letter: self.F, "J": self.J}
        return {name: np.moveaxis(array, 0, -1) if self.layout == LAST else array for name, array in given.items()}

    def columns(self) -> list[str]:
        """The names of a table's columns, all different: inputs, outputs, and derivatives such as dy1/dx2."""
        x = self.input_names or [f"x{k + 1}" for k in range(self.X.shape[1])]
        own = [one.name for one in self.cells] or x
        y = self.output_names or [f"y{i + 1}" for i in range(self.F.shape[1])]
        slopes = [] if self.J is None else [f"d{output}/d{name}" for output in y for name in x]
        return tell_apart([printable(name).replace("\n", "?") for name in (*own, *y, *slopes)])

    def table(self) -> list[Column]:
        """The columns of a table."""
        own: list[Column] = [one.written() for one in self.cells] or list(self.X.T)
        return [*own, *self.F.T, *(() if self.J is None else self.J.reshape(len(self.J), -1).T)]


@dataclass(frozen=True)
class FileWriter:
    """How predictions are written to a file of one kind.

    Attributes
    ----------
    write
        Writes them to an open file.
    table
        Whether it has rows and columns, to which Jacobians go only where they are asked for.
    slopes
        Whether Jacobians can be written at all.
    most
        Bytes that an array may have.
    """

    write: Callable[[BinaryIO, Predictions], None]
    table: bool = False
    slopes: bool = True
    most: float = math.inf


def write_arrays(file: BinaryIO, predictions: Predictions) -> None:
    """F and J as `.npz`."""
    write_npz(file, predictions.arrays())


def write_values(file: BinaryIO, predictions: Predictions) -> None:
    """F as `.npy`."""
    np.lib.format.write_array(file, predictions.arrays()[predictions.letter], allow_pickle=False)


def write_matlab(file: BinaryIO, predictions: Predictions) -> None:
    """F and J as a `.mat` file of version 5."""
    import scipy.io

    scipy.io.savemat(file, predictions.arrays(), format="5")  # type: ignore[arg-type]  # files will do
    file.seek(0)
    file.write(MATLAB_HEADER)
    file.seek(0, io.SEEK_END)


def write_csv(file: BinaryIO, predictions: Predictions) -> None:
    """One row a point, in the shortest digits that give each number back; where X has gaps, cells are empty.

    No spreadsheet takes a text for a formula (`guarded`).
    """
    names = [guarded(name) for name in predictions.columns()]
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    plain = all(map(PLAIN_NAME.fullmatch, names))
    csv.writer(text, quoting=csv.QUOTE_MINIMAL if plain else csv.QUOTE_ALL, lineterminator="\n").writerow(names)
    writer = csv.writer(text, lineterminator="\n")
    columns = predictions.table()
    for part in blocks(len(predictions.X), len(columns)):
        writer.writerows(zip(*(csv_cells(one[part]) for one in columns), strict=True))
    text.detach()


def csv_cells(column: Column) -> list[Any]:
    """What stands in a column of a .csv file."""
    if column.dtype == object:
        return ["" if one is None else guarded(one) if isinstance(one, str) else one for one in column.tolist()]
    return np.where(np.isnan(column), "", column.astype(object)).tolist() if np.isnan(column).any() else column.tolist()


def write_parquet(file: BinaryIO, predictions: Predictions) -> None:
    """One row a point, a column of float64 for each input, output and derivative; of texts where there are any."""
    import pyarrow
    import pyarrow.parquet

    def own(column: Column) -> pyarrow.Array:
        if column.dtype == object:
            return pyarrow.array([None if one is None else str(one) for one in column], type=pyarrow.string())
        return pyarrow.array(np.ascontiguousarray(column))

    names, columns = predictions.columns(), predictions.table()
    types = [pyarrow.string() if one.dtype == object else pyarrow.float64() for one in columns]
    schema = pyarrow.schema(list(zip(names, types, strict=True)))
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        for part in blocks(len(predictions.X), len(columns)):
            writer.write_table(pyarrow.table([own(one[part]) for one in columns], schema=schema))


WRITERS = {
    ".npz": FileWriter(write_arrays),
    ".npy": FileWriter(write_values, slopes=False),
    ".mat": FileWriter(write_matlab, most=MATLAB_BYTES),
    ".csv": FileWriter(write_csv, table=True),
    ".parquet": FileWriter(write_parquet, table=True),
}
"""By the ending of the name; a name without an ending stands for `.npz`."""
WRITABLE = f"{', '.join(list(WRITERS)[:-1])} or {list(WRITERS)[-1]}"


def find_writer(path: StrPath) -> FileWriter:
    """What writes predictions to a file of this name; refused where its ending stands for nothing that is written."""
    suffix = Path(path).suffix.lower()
    writer = WRITERS.get(suffix or ".npz")
    if writer is None:
        raise FileError(
            f"{path} cannot be written: predictions are written as {WRITABLE}, so end its name in one of them."
        )
    if suffix == ".parquet":
        need("pyarrow", "Parquet files")
    return writer


def with_jacobians(path: StrPath, asked: bool | None) -> bool:
    """Whether Jacobians go to a file of this name; None asks for what is usual: in arrays yes, in tables no."""
    writer = find_writer(path)
    if asked and not writer.slopes:
        raise SettingError(
            f"{path} cannot hold F and J: an .npy file is one array, F. Write .npz or .mat, or leave out `jacobians`."
        )
    return writer.slopes and not writer.table if asked is None else asked


def write_predictions(path: StrPath, predictions: Predictions) -> str:
    """Write predictions to a file, whole or not at all; in words, what was written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "values.csv"
    ...     written = write_predictions(path, Predictions(np.array([[1.0, 2.0]]), np.array([[0.1]])))
    ...     print(path.read_text(), end="")
    x1,x2,y1
    1.0,2.0,0.1
    >>> written
    '1 row (inputs x1, x2, output y1)'
    """
    writer = find_writer(path)
    if not writer.slopes:
        predictions = replace(predictions, J=None)
    for name, array in predictions.arrays().items():
        if array.nbytes > writer.most:
            raise FileError(
                f"{path} cannot be written: {name} {array.shape} takes {array.nbytes / 2**30:.3g} GiB, and MATLAB's "
                f"files hold arrays of less than 4 GiB. Write .npz."
            )
    with replacing(path) as file:
        writer.write(file, predictions)
    return describe_table(predictions) if writer.table else describe_arrays(predictions)


def describe_arrays(predictions: Predictions) -> str:
    """The arrays that were written, with their shapes: 'F (5, 2) and J (5, 2, 3)'."""
    return " and ".join(f"{name} {array.shape}" for name, array in predictions.arrays().items())


def describe_table(predictions: Predictions) -> str:
    """How many rows were written, and of which columns."""
    S, m = len(predictions.X), len(predictions.cells) or predictions.X.shape[1]
    x, y, slopes = np.split(np.array(predictions.columns()), [m, m + predictions.F.shape[1]])
    parts = [list_columns("input", x.tolist()), list_columns("output", y.tolist())]
    parts += [f"Jacobians in {counted(len(slopes), 'column')}"] if len(slopes) else []
    return f"{counted(S, 'row')} ({', '.join(parts)})"


def tell_apart(names: Sequence[str]) -> list[str]:
    """These names, with a number behind those that have come before.

    Examples
    --------
    >>> tell_apart(["x1", "y1", "y1"])
    ['x1', 'y1', 'y1_2']
    """
    taken: dict[str, None] = {}
    seen = set(names)
    for name in names:
        number, one = 2, name
        while one in taken or (one != name and one in seen):
            one, number = f"{name}_{number}", number + 1
        taken[one] = None
    return list(taken)
