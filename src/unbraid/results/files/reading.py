"""A model from a file of either kind: anything but a model is refused with a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unbraid.data.encoding import Encoding
from unbraid.errors import DataError, ModelFileError, shown
from unbraid.results.files.container import Container
from unbraid.results.files.description import DYNAMIC_SCHEMA
from unbraid.results.files.kinds import read_branch
from unbraid.results.model import DecoupledModel
from unbraid.runtime.text import clean_name
from unbraid.version import __version__

MOST_COLUMNS = 1_000_000
"""Inputs and outputs of a model that is read, at most."""
MOST_BRANCHES = 100_000
"""Branches of a model that is read, at most."""
LONGEST_NAME = 100_000
"""Characters of a name that is read, at most."""


def read_model(file: Container) -> DecoupledModel:
    """The model of an open file."""
    return read_function(file, read_metadata(file))


def read_function(file: Container, metadata: dict[str, Any]) -> DecoupledModel:
    """The decoupled model that a file describes by these metadata."""
    branches = metadata["branches"]
    r = len(branches)
    check_columns(file)
    W0, W1 = file.floats("W0", (r, None)), file.floats("W1", (None, r))
    bias = file.floats("bias", (W1.shape[0],))
    model = DecoupledModel(W0, W1, [read_branch(file, j, one) for j, one in enumerate(branches)], bias)
    return model.changed(**read_names(file, metadata, model))


def read_metadata(file: Container, dynamic: bool = False) -> dict[str, Any]:
    """What describes the model, its branches among it, once the file has proved to be one of a known schema.

    Models of dynamic systems have a schema of their own, and may do without branches.
    """
    metadata = file.metadata()
    schema = metadata.get("schema")
    if type(schema) is not int or schema < 1:
        raise file.damage(f"its schema number is {shown(schema)}")
    if schema == DYNAMIC_SCHEMA and not dynamic:
        raise ModelFileError(
            f"{file.path} holds a model of a dynamic system: read it with ub.dynamics.load, or use `unbraid simulate`."
        )
    if schema > DYNAMIC_SCHEMA:
        made = metadata.get("unbraid")
        by = f" by unbraid {clean_name(made)}" if isinstance(made, str) else ""
        raise ModelFileError(
            f"{file.path} was written{by} in schema {shown(schema)}, and this version ({__version__}) reads up to "
            f"schema {DYNAMIC_SCHEMA}: upgrade unbraid."
        )
    branches = metadata.get("branches")
    if not isinstance(branches, list) or not (branches or dynamic):
        raise file.damage("its metadata describe no branches")
    if len(branches) > MOST_BRANCHES:
        raise file.damage(f"it has {len(branches)} branches, more than the {MOST_BRANCHES} accepted")
    return metadata


def read_names(file: Container, metadata: dict[str, Any], model: DecoupledModel) -> dict[str, Any]:
    """The names and the encoding of a model, None where it has none; they are a stranger's texts."""
    names: dict[str, Any] = {}
    for key, count in (("input_names", model.m), ("output_names", model.n)):
        given = metadata.get(key)
        if given is not None and not (
            isinstance(given, list) and len(given) == count and all(isinstance(one, str) for one in given)
        ):
            raise file.damage(f"its {key} are not {count} texts")
        names[key] = None if given is None else tuple(given)
    if metadata.get("encoding") is not None:
        try:
            names["encoding"] = Encoding.from_json(metadata["encoding"])
        except DataError as error:
            raise file.damage("its encoding is none") from error
        if names["encoding"].input_names != names["input_names"]:
            raise file.damage("its encoding does not give its inputs")
    longest = max(map(len, texts_of(names)), default=0)
    if longest > LONGEST_NAME:
        raise file.damage(f"one of its names has {longest} characters, and at most {LONGEST_NAME} are accepted")
    return names


def texts_of(names: dict[str, Any]) -> Iterator[str]:
    """All texts among the names and the encoding of a model."""
    for key in ("input_names", "output_names"):
        yield from names[key] or ()
    for column in names["encoding"].columns if "encoding" in names else ():
        yield column.name
        yield from column.levels or ()


def check_columns(file: Container) -> None:
    """Refuse more inputs or outputs than any model has, before they are unpacked."""
    for name, axis in (("W0", -1), ("W1", 0)):
        shape = file.shape(name) if name in file.names else ()
        if shape and shape[axis] > MOST_COLUMNS:
            raise file.damage(
                f"{name} has shape {shown(shape)}, and at most {MOST_COLUMNS} inputs or outputs are accepted"
            )
