"""The description of a model that files hold: metadata, and arrays by name. Schema 1, or 2 with other branches.

The metadata are what JSON can say::

    {"format": "unbraid-model", "schema": 1, "unbraid": "0.1.0",
     "branches": [{"basis": "BSpline", "settings": {"df": 12, "degree": 3, "of": "value"}}, ...]}

They may also have the lists ``input_names`` and ``output_names``, of m and n texts, and ``encoding``, a list of the
columns of a table that become the inputs, ``{"name": "fuel", "levels": ["petrol", "diesel"]}``, the reference level
first, or with levels null where they are numbers (`data.encoding`).

The arrays are ``W0`` (r, m), ``W1`` (n, r), ``bias`` (n,) and, for branch j = 0, 1, …, those of its kind
(`results.files.kinds`), ``branch_j.coordinates``, say. A model with branches that are no fitted bases is of schema 2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unbraid.errors import ModelFileError
from unbraid.kernels.arrays import Array
from unbraid.results.files.kinds import described_branch
from unbraid.results.model import DecoupledModel
from unbraid.version import __version__

FORMAT = "unbraid-model"
SCHEMA, DYNAMIC_SCHEMA = 2, 3
"""The newest schema of decoupled models that this version reads, and that of models of dynamic systems around one."""


class Description(NamedTuple):
    """What a file holds of a model: metadata for JSON, and arrays by name."""

    metadata: dict[str, Any]
    arrays: dict[str, Array]


def describe(model: DecoupledModel) -> Description:
    """The description of a model; refused where no file can hold it."""
    arrays: dict[str, Array] = {"W0": model.W0, "W1": model.W1, "bias": model.bias}
    branches = []
    for j, branch in enumerate(model.branches):
        described, own = described_branch(j, branch)
        branches.append(described)
        arrays |= {f"branch_{j}.{name}": array for name, array in own.items()}
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ModelFileError(f"This model cannot be saved: {name} has entries that are NaN or infinite.")
    schema = 1 if all("basis" in one for one in branches) else SCHEMA
    metadata = {"format": FORMAT, "schema": schema, "unbraid": __version__, "branches": branches, **names_of(model)}
    return Description(metadata, arrays)


def names_of(model: DecoupledModel) -> dict[str, Any]:
    """The names and the encoding of a model, as far as it has them."""
    encoding = None if model.encoding is None else model.encoding.as_json()
    named = {"input_names": model.input_names, "output_names": model.output_names, "encoding": encoding}
    return {name: value for name, value in named.items() if value is not None}
