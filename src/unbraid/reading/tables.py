"""From the columns of a table to samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unbraid.data.checks import Missing, counted
from unbraid.data.problem import Problem
from unbraid.errors import FileError
from unbraid.reading.columns import check_distinct, choose, choose_jacobians
from unbraid.reading.layout import FIRST
from unbraid.reading.samples import Points, Samples, described
from unbraid.reading.sources import Gaps, Table
from unbraid.runtime.progress import Callback
from unbraid.runtime.text import listed, quoted


def read_problem(
    table: Table,
    inputs: Sequence[str],
    outputs: Sequence[str],
    jacobians: Sequence[str],
    callback: Callback | None = None,
    weights: str | None = None,
    missing: Missing = "error",
) -> Samples:
    """The samples in the named columns."""
    if not inputs or not (outputs or jacobians):
        raise FileError(
            f"{table.path} is a table: name the columns that are inputs with `inputs` and those that are outputs with "
            f"`outputs`, with commas between them; it holds {table.holds()}."
        )
    x, f = choose(table, inputs, "inputs"), choose(table, outputs, "outputs")
    j = choose_jacobians(table, jacobians, x, f)
    w = () if weights is None else choose(table, [weights], "weights")
    if len(w) > 1:
        raise FileError(f"{table.path}: `weights` names {len(w)} columns, {listed(map(quoted, w), len(w))}: name one.")
    check_distinct(table, (*x, *f, *j, *w))
    values = table.read((*x, *f, *j, *w), callback, Gaps((*f, *j), missing == "mask"))
    X, F, J, W = np.split(values, np.cumsum([len(x), len(f), len(j)]), axis=1)
    problem = Problem(
        X,
        F if f else None,
        J.reshape(len(J), -1, len(x)) if j else None,
        W[:, 0] if w else None,
        missing,
        input_names=x,
        output_names=f or None,
    )
    taken = [named("input", x), named("output", f)] if f else [named("input", x)]
    if j:
        taken.append(f"Jacobians in {counted(len(j), 'column')}")
    return described(problem, ", ".join(taken), w[0] if w else None)


def read_points(table: Table, inputs: Sequence[str], m: int, callback: Callback | None = None) -> Points:
    """The points in the named columns."""
    if not inputs:
        raise FileError(
            f"{table.path} is a table: name the {counted(m, 'column')} of inputs with `inputs`; it holds "
            f"{table.holds()}."
        )
    x = choose(table, inputs, "inputs")
    if len(x) != m:
        raise FileError(
            f"{table.path}: the model has {counted(m, 'input')}, and `inputs` names {counted(len(x), 'column')}, "
            f"{listed(map(quoted, x), len(x))}: name as many as the model has."
        )
    return Points(table.read(x, callback), FIRST, named("input", x))


def named(what: str, columns: Sequence[str]) -> str:
    """'inputs x1, x2'."""
    return f"{what}{'s' if len(columns) > 1 else ''} {listed(map(quoted, columns), len(columns))}"
