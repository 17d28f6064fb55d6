"""Dynamic models in `.npz` files: the description of the nonlinearity, and what is around it.

The metadata are those of a decoupled model, schema 3, with one entry more::

    "dynamics": {"kind": "state space", "dt": 0.01, "input_names": ["u"], "output_names": ["y"]}
    "dynamics": {"kind": "NARX", "dt": 0.01, "input_lags": [0, 1], "output_lags": [1, 2], "inputs": 1, …}

and the arrays have ``A``, ``B``, ``C``, ``D``, ``K``, ``rest`` and ``spread``, or ``L`` and ``spread``, beside those of the nonlinearity.
"""

from __future__ import annotations

from typing import Any

from unbraid.dynamics.models.base import DynamicModel
from unbraid.dynamics.models.narx import NarxModel
from unbraid.dynamics.models.state_space import StateSpaceModel
from unbraid.errors import FileError, ModelFileError, UnbraidError, check_path
from unbraid.results.files.archive import open_archive, write_archive
from unbraid.results.files.container import Container
from unbraid.results.files.description import DYNAMIC_SCHEMA, Description, describe
from unbraid.results.files.reading import read_function, read_metadata
from unbraid.runtime.files import StrPath, replacing

STATE_SPACE, NARX = "state space", "NARX"
ARRAYS = {STATE_SPACE: ("A", "B", "C", "D", "K", "rest", "spread"), NARX: ("L", "spread")}


def save_model(model: DynamicModel, path: StrPath) -> None:
    """Write a dynamic model to exactly `path`, whole or not at all."""
    check_path("path", path)
    description = describe_dynamic(model)
    try:
        with replacing(path) as file:
            write_archive(file, description)
    except FileError as error:
        raise ModelFileError(str(error)) from error


def describe_dynamic(model: DynamicModel) -> Description:
    """The description of a dynamic model."""
    function = describe(model.nonlinearity)
    own: dict[str, Any] = {"dt": model.dt, "input_names": model.input_names, "output_names": model.output_names}
    if isinstance(model, NarxModel):
        own |= {"kind": NARX, "input_lags": model.input_lags, "output_lags": model.output_lags, "inputs": model.nu}
    elif isinstance(model, StateSpaceModel):
        own |= {"kind": STATE_SPACE}
    else:
        raise ModelFileError(f"This model cannot be saved: {model!r} is of no kind that a file holds.")
    arrays = {name: getattr(model, name) for name in ARRAYS[own["kind"]]}
    metadata = {**function.metadata, "schema": DYNAMIC_SCHEMA, "dynamics": own}
    return Description(metadata, {**function.arrays, **arrays})


def is_dynamic(path: StrPath) -> bool:
    """Whether a file holds a dynamic model; what is wrong with one that cannot be read, reading it tells."""
    try:
        with open_archive(path) as file:
            return bool(file.metadata().get("schema") == DYNAMIC_SCHEMA)
    except (UnbraidError, RecursionError):
        return False


def load_model(path: StrPath) -> DynamicModel:
    """Read a dynamic model that `save` has written; anything else is refused with a sentence. Runs no code of the file."""
    check_path("path", path)
    try:
        with open_archive(path) as file:
            return read_dynamic(file)
    except ModelFileError:
        raise
    except (FileError, RecursionError) as error:
        raise ModelFileError(str(error)) from error


def read_dynamic(file: Container) -> DynamicModel:
    """The dynamic model of an open file."""
    metadata = read_metadata(file, dynamic=True)
    own = metadata.get("dynamics")
    if not isinstance(own, dict):
        raise ModelFileError(
            f"{file.path} holds a decoupled model of no dynamic system: read it with ub.DecoupledModel.load."
        )
    kind = own.get("kind")
    if kind not in ARRAYS:
        raise file.damage("its kind of dynamic model is not known")
    function = read_function(file, metadata)
    one = {"K": 2, "rest": 1, "spread": 1}
    arrays = {name: file.floats(name, (None,) * one.get(name, 2)) for name in ARRAYS[kind]}
    names = {name: own.get(name) for name in ("input_names", "output_names")}
    try:
        dt = float(own["dt"])
        if kind == STATE_SPACE:
            return StateSpaceModel(*(arrays.pop(name) for name in "ABCD"), function, dt=dt, **arrays, **names)
        lags = {name: own[name] for name in ("input_lags", "output_lags")}
        return NarxModel(arrays["L"], function, nu=own["inputs"], dt=dt, spread=arrays["spread"], **lags, **names)
    except (KeyError, TypeError, ValueError, UnbraidError) as error:
        raise file.damage(f"its parts do not fit together ({error})") from error
