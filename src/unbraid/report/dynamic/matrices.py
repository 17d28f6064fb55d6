"""The matrices of a dynamic model, as tables of a page."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unbraid.dynamics.models.state_space import StateSpaceModel
from unbraid.kernels.arrays import Array
from unbraid.plots.labels import indexed
from unbraid.report.dynamic.subject import DynamicSubject, f_names, phi_names
from unbraid.report.words import plain_number

MOST_CELLS = 400
"""Entries of a matrix that is shown."""


class Matrix(NamedTuple):
    """A matrix with names of its rows and columns, ready to be shown; of a large one, no cells."""

    name: str
    shape: str
    columns: list[str]
    rows: list[tuple[str, list[str]]]


def matrices_of(subject: DynamicSubject) -> list[Matrix]:
    """The linear part, the directions, the weights and the constants, in the order of the equations."""
    model = subject.fit.model
    inner, f, u = (
        phi_names(model, subject.inputs, subject.outputs),
        f_names(model, subject.outputs),
        list(subject.inputs),
    )
    g = [indexed("g", j + 1) for j in range(model.rank)]
    found = []
    if isinstance(model, StateSpaceModel):
        x, y, nx = inner[: model.order], list(subject.outputs), model.order
        found += [
            as_table("A", model.A, f[:nx], x),
            as_table("B", model.B, f[:nx], u),
            as_table("C", model.C, y, x),
            as_table("D", model.D, y, u),
        ]
        if model.K.any():
            found.append(as_table("K", model.K, x, y))
    else:
        found.append(as_table("L", model.function.L, f, inner))
    if model.rank:
        found += [
            as_table("W₀", model.nonlinearity.W0, [f"into {one}" for one in g], inner),
            as_table("W₁", model.nonlinearity.W1, f, g),
        ]
    return [*found, as_table("bias", model.nonlinearity.bias[:, None], f, [""])]


def as_table(name: str, values: Array, rows: list[str], columns: list[str]) -> Matrix:
    """A matrix ready to be shown."""
    shape = " × ".join(map(str, np.shape(values)))
    if values.size > MOST_CELLS:
        return Matrix(name, shape, [], [])
    cells = [[plain_number(float(one)) for one in row] for row in values]
    return Matrix(name, shape, columns, list(zip(rows, cells, strict=True)))
