"""Parquet tables; pyarrow reads them, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unbraid.data.checks import counted
from unbraid.errors import FileError
from unbraid.kernels.arrays import Array
from unbraid.reading.cells import CELL_BYTES, Cells
from unbraid.reading.sources import CellError, Gaps, Table, need
from unbraid.runtime.memory import check_memory
from unbraid.runtime.progress import Callback, Progress
from unbraid.runtime.text import clean_name

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

ROWS_AT_ONCE = 1 << 16
"""How many rows are read at a time."""
PARQUET_ERRORS = (OSError, ValueError, KeyError, RuntimeError, MemoryError, NotImplementedError)
"""What pyarrow raises on bytes that it cannot read."""


@contextmanager
def open_parquet(path: Path) -> Iterator[ParquetTable]:
    """The columns of a Parquet file."""
    need("pyarrow", "Parquet files")
    import pyarrow.parquet

    with path.open("rb") as file:  # not by name, in which pyarrow might see an address
        try:
            opened = pyarrow.parquet.ParquetFile(file)
        except PARQUET_ERRORS as error:
            raise FileError(f"{path} is truncated or damaged: pyarrow cannot open it.") from error
        with opened:
            yield ParquetTable(path, opened)


class ParquetTable(Table):
    """The columns of an open Parquet file."""

    def __init__(self, path: Path, file: pyarrow.parquet.ParquetFile) -> None:
        self.path = path
        self._file = file
        self._schema = file.schema_arrow  # which is made anew each time it is asked for
        self.columns = tuple(self._schema.names)

    def read(self, columns: Sequence[str], callback: Callback | None = None, gaps: Gaps | None = None) -> Array:
        for name in columns:
            self._check_type(name)
        S = self._file.metadata.num_rows
        if S == 0:
            raise FileError(f"{self.path} has columns but no rows.")
        check_memory(f"Reading {counted(len(columns), 'column')} of {self.path}", 8 * S * len(columns))
        try:
            return self._read(columns, S, callback, gaps or Gaps())
        except FileError:
            raise
        except PARQUET_ERRORS as error:
            raise FileError(f"{self.path} is truncated or damaged: its rows cannot be read.") from error

    def read_cells(self, columns: Sequence[str]) -> list[Cells]:
        S = self._file.metadata.num_rows
        check_memory(f"Reading {counted(len(columns), 'column')} of {self.path}", CELL_BYTES * S * len(columns))
        try:
            table = self._file.read(columns=list(columns), use_threads=False)
            return [self._cells(name, table.column(name)) for name in columns]
        except CellError:
            raise
        except PARQUET_ERRORS as error:
            raise FileError(f"{self.path} is truncated or damaged: its rows cannot be read.") from error

    def _cells(self, name: str, column: pyarrow.ChunkedArray) -> Cells:
        """The cells of a column; dates and the like count as texts."""
        import pyarrow

        if pyarrow.types.is_nested(column.type):
            self._check_type(name)
        if self._holds_numbers(name):
            numbers = column.cast(pyarrow.float64(), safe=False).to_numpy()
            return Cells(name, np.array(numbers, dtype=np.float64), {})
        return Cells.of(name, ["" if one is None else str(one) for one in column.to_pylist()])

    def _read(self, columns: Sequence[str], S: int, callback: Callback | None, gaps: Gaps) -> Array:
        """S rows of some columns, (S, how many), read a few at a time."""
        table = np.empty((S, len(columns)))
        done = 0
        for batch in self._file.iter_batches(ROWS_AT_ONCE, columns=list(columns), use_threads=False):
            if done + batch.num_rows > S:
                raise ValueError
            for k, name in enumerate(columns):
                table[done : done + batch.num_rows, k] = self._numbers(batch.column(name), name, done, gaps)
            done += batch.num_rows
            if callback is not None:
                callback(Progress("read", done, S))
        if done < S:
            raise ValueError
        return table

    def _check_type(self, name: str) -> None:
        """Refuse a column that does not hold numbers."""
        if not self._holds_numbers(name):
            kind = self._schema.field(name).type
            raise CellError(f"{self.path}: column {clean_name(name)} must hold numbers, and its type is {kind!s:.40}.")

    def _holds_numbers(self, name: str) -> bool:
        """Whether a column holds numbers."""
        from pyarrow import types

        kind, tests = self._schema.field(name).type, (types.is_floating, types.is_integer)
        return any(test(kind) for test in (*tests, types.is_boolean, types.is_decimal))

    def _numbers(self, values: pyarrow.Array, name: str, before: int, gaps: Gaps) -> Array:
        """Some rows of a column as float64, `before` rows into the file; refused unless finite or gaps."""
        import pyarrow

        numbers: Array = values.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
        wrong = np.flatnonzero(np.isinf(numbers) if name in gaps else ~np.isfinite(numbers))
        if wrong.size:
            row = int(wrong[0])
            said = f"is {numbers[row]}" if values[row].is_valid else "is empty"
            advice = gaps.advice(name, "row", bool(np.isnan(numbers[row])))
            raise CellError(f"{self.path}, row {before + row + 1}, column {clean_name(name)}, {said}: {advice}")
        return numbers
