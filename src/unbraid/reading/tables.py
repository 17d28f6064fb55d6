"""From the columns of a table to samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unbraid.data.checks import counted
from unbraid.data.problem import Problem
from unbraid.errors import FileError
from unbraid.reading.columns import Columns, check_distinct, choose, choose_jacobians
from unbraid.reading.layout import FIRST
from unbraid.reading.samples import Points, Samples, describe_samples
from unbraid.reading.sources import Gaps, Table
from unbraid.runtime.progress import Callback
from unbraid.runtime.text import name_list, quoted_name


def samples_in_table(table: Table, columns: Columns, callback: Callback | None = None) -> Samples:
    """The samples in the named columns of a table."""
    if not columns.inputs or not (columns.outputs or columns.jacobians):
        raise FileError(
            f"{table.path} is a table: name the columns that are inputs with `inputs` and those that are outputs with "
            f"`outputs`, with commas between them; it holds {table.holds()}."
        )
    x, f = choose(table, columns.inputs, "inputs"), choose(table, columns.outputs, "outputs")
    j = choose_jacobians(table, columns.jacobians, x, f)
    w = () if columns.weights is None else choose(table, [columns.weights], "weights")
    if len(w) > 1:
        raise FileError(
            f"{table.path}: `weights` names {len(w)} columns, {name_list(map(quoted_name, w), len(w))}: name one."
        )
    check_distinct(table, (*x, *f, *j, *w))
    values = table.read((*x, *f, *j, *w), callback, Gaps((*f, *j), columns.missing == "mask"))
    X, F, J, W = np.split(values, np.cumsum([len(x), len(f), len(j)]), axis=1)
    problem = Problem(
        X,
        F if f else None,
        J.reshape(len(J), -1, len(x)) if j else None,
        W[:, 0] if w else None,
        columns.missing,
        input_names=x,
        output_names=f or None,
    )
    taken = [list_columns("input", x), list_columns("output", f)] if f else [list_columns("input", x)]
    if j:
        taken.append(f"Jacobians in {counted(len(j), 'column')}")
    return describe_samples(problem, ", ".join(taken), w[0] if w else None)


def points_in_table(table: Table, columns: Columns, m: int, callback: Callback | None = None) -> Points:
    """The points in the m named columns of a table."""
    if not columns.inputs:
        raise FileError(
            f"{table.path} is a table: name the {counted(m, 'column')} of inputs with `inputs`; it holds "
            f"{table.holds()}."
        )
    x = choose(table, columns.inputs, "inputs")
    if len(x) != m:
        raise FileError(
            f"{table.path}: the model has {counted(m, 'input')}, and `inputs` names {counted(len(x), 'column')}, "
            f"{name_list(map(quoted_name, x), len(x))}: name as many as the model has."
        )
    return Points(table.read(x, callback), FIRST, list_columns("input", x))


def list_columns(what: str, columns: Sequence[str]) -> str:
    """What columns are, and their names: 'inputs x1, x2'."""
    return f"{what}{'s' if len(columns) > 1 else ''} {name_list(map(quoted_name, columns), len(columns))}"
