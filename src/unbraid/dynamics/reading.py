"""Records from files of any kind that samples are read from: columns of a table, or arrays u and y."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from unbraid.data.checks import counted, numbers
from unbraid.dynamics.record import Record, as_records, sampling_time
from unbraid.errors import DataError, FileError, UnbraidError
from unbraid.kernels.arrays import Array
from unbraid.reading.arrays import check_sizes
from unbraid.reading.columns import Columns, check_distinct, choose
from unbraid.reading.problems import Names, open_source, several
from unbraid.reading.sources import ArraySource, CellError, Gaps, Table
from unbraid.reading.tables import list_columns
from unbraid.runtime.files import StrPath
from unbraid.runtime.progress import Callback
from unbraid.runtime.text import clean_name, name_list, quoted_name

USUAL = {"inputs": ("u", "U"), "outputs": ("y", "Y")}
"""What arrays are called that nobody named."""
Signals = tuple[Array, tuple[str, ...] | None]
"""A signal (T, how many), and the names of its columns where they have any."""


def read_record(
    path: StrPath,
    inputs: Names = (),
    outputs: Names = (),
    dt: float | None = None,
    *,
    time: str | None = None,
    burn_in: int = 0,
    period: int | None = None,
    callback: Callback | None = None,
) -> Record:
    r"""A record from a file: a table (`.csv`, Parquet) or arrays (`.npz`, `.mat`, HDF5, a folder of `.npy` files).

    Parameters
    ----------
    path
        The file, or the folder.
    inputs, outputs
        In a table, which columns, by names, patterns and ranges (`unbraid.reading.columns`). Elsewhere the arrays, if
        they are not u and y: one (T, how many), time along its longer axis, or several with commas between them.
        Empty cells and NaN are gaps in outputs, and refused in inputs.
    dt
        The sampling time; 1 if None.
    time
        The column or the array with the moments of sampling, instead of `dt`: they have to be even.
    burn_in, period
        As of a `Record`.
    callback
        Called with a `Progress`, whose phase is "read", after each part of a table.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "record.csv"
    ...     _ = path.write_text("t,force,position\n0,1.5,0\n0.1,2.5,\n0.2,2.0,0.3\n")
    ...     read_record(path, inputs="force", outputs="position", time="t")
    Record(T=3 samples, 1 input, 1 output, dt=0.1)
    """
    asked = {"inputs": several(inputs), "outputs": several(outputs)}
    with open_source(path, Columns()) as source:
        if isinstance(source, Table):
            signals, t = signals_in_table(source, asked, time, callback)
        else:
            signals, t = signals_in_arrays(source, asked, time)
    (u, u_names), (y, y_names) = signals["inputs"], signals["outputs"]
    with naming(path):
        record = Record(u, y, dt, t=t, burn_in=burn_in, period=period, input_names=u_names, output_names=y_names)
        as_records(record)  # refuses periods that are none
    return record


@contextmanager
def naming(path: StrPath) -> Iterator[None]:
    """What is refused is refused with the name of its file."""
    try:
        yield
    except UnbraidError as error:
        raise type(error)(f"{path}: {error}") from error


def read_inputs(
    path: StrPath,
    inputs: Names = (),
    start_outputs: Names = (),
    known: Sequence[str] = (),
    callback: Callback | None = None,
) -> tuple[Signals, Signals | None]:
    """The inputs of a record alone, to be simulated, and the outputs that set its initial state where they are named.

    Without `inputs`, those of a table are the columns `known` by name.
    """
    asked = {"inputs": several(inputs)} | ({"start_outputs": several(start_outputs)} if start_outputs else {})
    with open_source(path, Columns()) as source:
        if isinstance(source, Table):
            signals, _ = signals_in_table(source, {**asked, "inputs": asked["inputs"] or tuple(known)}, None, callback)
        else:
            signals, _ = signals_in_arrays(source, asked, None)
    return signals["inputs"], signals.get("start_outputs")


def read_sampling_time(path: StrPath, time: str) -> float:
    """The sampling time that a column or an array with moments tells; they have to be even."""
    with open_source(path, Columns()) as source:
        if isinstance(source, Table):
            _, t = signals_in_table(source, {}, time)
        else:
            _, t = signals_in_arrays(source, {}, time)
    assert t is not None
    with naming(path):
        return sampling_time(None, t, len(t))


def signals_in_table(
    table: Table, asked: Mapping[str, Sequence[str]], time: str | None, callback: Callback | None = None
) -> tuple[dict[str, Signals], Array | None]:
    """The signals in the named columns of a table, and the moments t (T,) where a column has them."""
    for option, given in asked.items():
        if not given:
            raise FileError(
                f"{table.path} is a table: name the columns that are {option} with `{option}`, with commas between "
                f"them; it holds {table.holds()}."
            )
    columns = {option: choose(table, given, option) for option, given in asked.items()}
    t = () if time is None else choose(table, [time], "time")
    if len(t) > 1:
        raise FileError(
            f"{table.path}: `time` names {len(t)} columns, {name_list(map(quoted_name, t), len(t))}: name one."
        )
    every = [name for names in columns.values() for name in names]
    check_distinct(table, (*every, *t))
    values = read_columns(table, (*every, *t), (*columns.get("inputs", ()), *t), callback)
    parts = np.split(values, np.cumsum([len(names) for names in columns.values()]), axis=1)
    signals: dict[str, Signals] = {
        option: (part, names) for (option, names), part in zip(columns.items(), parts, strict=False)
    }
    return signals, parts[-1][:, 0] if t else None


def read_columns(table: Table, names: Sequence[str], whole: Sequence[str], callback: Callback | None) -> Array:
    """Columns (T, how many) of a table, NaN in gaps, of which the `whole` ones have to have none."""
    try:
        return table.read(names, callback, Gaps([name for name in names if name not in whole], allowed=True))
    except CellError as error:  # cell by cell, for gaps may be written as NA and the like
        cells = table.read_cells(names)
        texts = next((one for one in cells if one.of_texts and not one.cure), None)
        if texts is not None:
            raise FileError(
                f"{table.path}: the column {quoted_name(texts.name)} holds texts, such as "
                f"{clean_name(texts.levels[0])}: write numbers, times in seconds. Or leave times out and give `dt`."
            ) from error
        if any(one.texts or one.is_infinite.any() for one in cells):
            raise
        gappy = next((one for one in cells if one.name in whole and one.is_gap.any()), None)
        if gappy is not None:
            row = int(np.argmax(gappy.is_gap))
            raise FileError(
                f"{table.path}: the column {quoted_name(gappy.name)} has gaps, the first in row {row + 1}, and inputs "
                "and times have to be known at every moment: fill them in, or cut the record there into two files."
            ) from error
        return np.column_stack([one.numbers for one in cells])


def signals_in_arrays(
    source: ArraySource, asked: Mapping[str, Sequence[str]], time: str | None
) -> tuple[dict[str, Signals], Array | None]:
    """The signals in the arrays of a file, and the moments t (T,) where an array has them."""
    found: dict[str, list[str]] = {}
    for option, given in asked.items():
        beside = source.beside(next(iter(found.values()))[0]) if found else {name: name for name in source.names}
        found[option] = find_signals(source, given, option, beside)
    moments = [] if time is None else find_signals(source, [time], "time", {})
    check_sizes(source, {name: source.shape(name) for names in (*found.values(), moments) for name in names})
    signals: dict[str, Signals] = {}
    for option, names in found.items():
        parts = [along_time(name, source.read(name)) for name in names]
        lengths = sorted({len(one) for one in parts})
        if len(lengths) > 1:
            raise DataError(f"{source.path}: the arrays of `{option}` must be of one length, got {lengths}.")
        single = len(names) > 1 and all(one.shape[1] == 1 for one in parts)
        signals[option] = np.concatenate(parts, axis=1), tuple(names) if single else None
    return signals, numbers("t", source.read(moments[0])).ravel() if moments else None


def find_signals(source: ArraySource, given: Sequence[str], option: str, beside: Mapping[str, str]) -> list[str]:
    """What the file calls the arrays that were named, with commas between them; or the usual one."""
    if not given:
        usual = USUAL.get(option, (option,))
        name = next((beside[one] for one in usual if one in beside), None)
        if name is None:
            raise source.lacks(usual[0], option)
        return [name]
    names = [part.strip() for text in given for part in ([text] if source.find(text) else text.split(","))]
    found = {name: source.find(name) for name in names if name}
    for name, there in found.items():
        if there is None:
            raise source.lacks(name, option)
    if not found:
        raise FileError(f"{source.path}: `{option}` names no array: it holds {source.holds()}.")
    return [there for there in found.values() if there is not None]


def along_time(name: str, values: npt.ArrayLike) -> Array:
    """A signal (T, how many) of an array whose longer axis is time."""
    array = numbers(name, values)
    array = array.reshape(-1, 1) if array.size == max(array.shape, default=0) else array
    if array.ndim != 2:
        raise DataError(f"{name} must be (T,) or (T, how many signals), got shape {array.shape}.")
    return array.T if array.shape[0] < array.shape[1] else array


def describe_record(record: Record) -> str:
    """'4000 samples, input u, output y, 12 gaps', in words; where there are no names, how many signals."""
    parts = [counted(len(record), "sample")]
    for what, names, count in (("input", record.input_names, record.nu), ("output", record.output_names, record.ny)):
        parts.append(counted(count, what) if names is None else list_columns(what, names))
    gaps = int(np.isnan(record.y).sum())
    return ", ".join([*parts, *([f"{counted(gaps, 'number')} missing"] if gaps else [])])
