"""From the columns of a table to samples, or to points."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from unbraid.data.checks import counted
from unbraid.data.encoding import EncodedColumn, Encoding
from unbraid.data.problem import Problem
from unbraid.errors import FileError
from unbraid.kernels.arrays import Array
from unbraid.reading.cells import Cells
from unbraid.reading.columns import Columns, check_distinct, choose, choose_jacobians
from unbraid.reading.layout import FIRST
from unbraid.reading.samples import Points, Samples, describe_samples
from unbraid.reading.settling import Settled, Wanted, count_strange, in_numbers, settle
from unbraid.reading.sources import CellError, Gaps, Table
from unbraid.runtime.progress import Callback
from unbraid.runtime.text import name_list, quoted_name


def samples_in_table(table: Table, columns: Columns, callback: Callback | None = None) -> Samples:
    """The samples in the named columns of a table; without names of inputs, all other columns of numbers are these."""
    if not (columns.outputs or (columns.inputs and columns.jacobians)):
        raise FileError(
            f"{table.path} is a table: name the columns that are outputs with `outputs`, with commas between them, and "
            f"those that are inputs with `inputs`, or leave that out, and all others that hold numbers are; it holds "
            f"{table.holds()}."
        )
    if columns.jacobians and not columns.inputs:
        raise FileError(f"{table.path}: `jacobians` needs the names of `inputs`, whose order is that of its columns.")
    x = choose(table, columns.inputs, "inputs")
    f = choose(table, columns.outputs, "outputs")
    w = () if columns.weights is None else choose(table, [columns.weights], "weights")
    if len(w) > 1:
        raise FileError(
            f"{table.path}: `weights` names {len(w)} columns, {name_list(map(quoted_name, w), len(w))}: name one."
        )
    x = x or others_than(table, (*f, *w, *choose(table, columns.exclude, "exclude")))
    j = choose_jacobians(table, columns.jacobians, x, f)
    check_distinct(table, (*x, *f, *j, *w))
    gaps = columns.missing, columns.categories, columns.encoding
    wanted = Wanted(x, (*f, *j, *w), frozenset((*f, *j)), not columns.inputs, *gaps)
    read = read_wanted(table, wanted, callback)
    x = read.encoding.input_names
    F, J, W = np.split(read.others, np.cumsum([len(f), len(j)]), axis=1)
    problem = Problem(
        read.X,
        F if f else None,
        J.reshape(len(J), -1, len(x)) if j else None,
        W[:, 0] if w else None,
        "mask" if columns.missing == "mask" else "error",
        input_names=x,
        output_names=f or None,
        encoding=None if x == read.encoding.column_names else read.encoding,
    )
    taken = [list_columns("input", x), list_columns("output", f)] if f else [list_columns("input", x)]
    if j:
        taken.append(f"Jacobians in {counted(len(j), 'column')}")
    return describe_samples(problem, "; ".join([", ".join(taken), *read.told]), w[0] if w else None)


def others_than(table: Table, named: Sequence[str]) -> tuple[str, ...]:
    """The columns that were not named; one without a name, as of row numbers, is no input."""
    others = set(named)
    left = tuple(name for name in table.columns if name and name not in others)
    twice = [name for name in left if table.times[name] > 1]
    if twice:
        raise FileError(f"{table.path} has {counted(2, 'column')} or more named {quoted_name(twice[0])}: rename them.")
    if not left:
        raise FileError(f"{table.path} has no inputs beside {name_list(map(quoted_name, named), len(named))}.")
    return left


def read_wanted(table: Table, wanted: Wanted, callback: Callback | None) -> Settled:
    """The columns that are wanted: at once where all cells are numbers, and else cell by cell."""
    try:
        values = table.read((*wanted.inputs, *wanted.others), callback, Gaps(wanted.gappy, wanted.missing == "mask"))
    except CellError as first:
        cells = table.read_cells((*wanted.inputs, *wanted.others))
        if wanted.missing != "drop" and not wanted.open and count_strange(cells, wanted) == 1:
            raise first  # which names the line
        return settle(table.path, cells, wanted)
    X, others = np.split(values, [len(wanted.inputs)], axis=1)
    return Settled(X, others, Encoding.of_numbers(wanted.inputs), ())


def points_in_table(
    table: Table, columns: Columns, m: int, encoding: Encoding | None = None, callback: Callback | None = None
) -> Points:
    """The points in the m named columns of a table, or in those that a model knows by name.

    Rows that cannot be predicted keep their place, as NaN, and it is told why; refused where no row can be.
    """
    x = choose(table, columns.inputs, "inputs")
    if encoding is None and not x:
        raise FileError(
            f"{table.path} is a table: name the {counted(m, 'column')} of inputs with `inputs`; it holds "
            f"{table.holds()}."
        )
    if encoding is not None and not x:
        x = own_columns(table, encoding)
    elif encoding is None or len(encoding.columns) != len(x):
        if len(x) != m:
            raise FileError(
                f"{table.path}: the model has {counted(m, 'input')}, and `inputs` names {counted(len(x), 'column')}, "
                f"{name_list(map(quoted_name, x), len(x))}: name as many as the model has."
            )
        encoding = Encoding.of_numbers(x)
    taken, plain = list_columns("input", x), all(column.levels is None for column in encoding.columns)
    if plain:
        with suppress(CellError):  # cell by cell below
            return Points(table.read(x, callback), FIRST, taken, x)
    pairs = zip(encoding.columns, table.read_cells(x), strict=True)
    cells = tuple(one if column.levels is None else one.as_texts() for column, one in pairs)
    parts, told = zip(*map(points_of, encoding.columns, cells), strict=True)
    X, told = np.hstack(parts), tuple(filter(None, told))
    if np.isnan(X).any(axis=1).all():
        why = name_list(told, len(told), between="; ") or "it has none"
        raise FileError(f"{table.path} has no row that can be predicted: {why}.")
    return Points(X, FIRST, taken, x if plain else None, cells, told)


def own_columns(table: Table, encoding: Encoding) -> tuple[str, ...]:
    """The columns that a model knows by name, refused where a table lacks some."""
    lacking = [name for name in encoding.column_names if name not in table.places]
    if lacking:
        raise FileError(
            f"{table.path} lacks {counted(len(lacking), 'column')} that the model needs, "
            f"{name_list(map(quoted_name, lacking), len(lacking))}: it holds {table.holds()}."
        )
    return choose(table, encoding.column_names, "inputs")


def points_of(column: EncodedColumn, one: Cells) -> tuple[Array, str]:
    """The inputs (S, k) of a column, NaN where it has nothing that the model can use; and in words what that is."""
    levels = column.levels
    usable = np.isfinite(one.numbers)
    if levels is not None:
        usable[[row for row, text in one.texts.items() if text in levels]] = True
    X = np.full((len(usable), len(column.input_names)), np.nan)
    X[usable] = in_numbers(column, one, usable)
    gaps, strange = int(one.is_gap.sum()), np.flatnonzero(~usable & ~one.is_gap)
    told = [f"column {quoted_name(one.name)} has {counted(gaps, 'gap')}"] if gaps else []
    if strange.size:
        every = list(dict.fromkeys(one.texts.get(int(row), f"{one.numbers[row]:g}") for row in strange))
        said = f"{name_list(map(quoted_name, every), len(every))} (the first in row {strange[0] + 1})"
        if levels is None:
            what = f"holds what is no finite number, {said}" + (f": {one.cure}" if one.cure else "")
        else:
            what = f"says {said}, and the model knows {name_list(map(quoted_name, levels), len(levels))}"
        told.append(f"column {quoted_name(one.name)} {what}")
    return X, "; ".join(told)


def list_columns(what: str, columns: Sequence[str]) -> str:
    """What columns are, and their names: 'inputs x1, x2'."""
    return f"{what}{'s' if len(columns) > 1 else ''} {name_list(map(quoted_name, columns), len(columns))}"
