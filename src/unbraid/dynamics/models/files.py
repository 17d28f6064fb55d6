"""Dynamic models in `.npz` files: the description of the nonlinearity, and what is around it.

The metadata are those of a decoupled model, schema 3, with one entry more::

    "dynamics": {"kind": "state space", "dt": 0.01, "input_names": ["u"], "output_names": ["y"]}
    "dynamics": {"kind": "NARX", "dt": 0.01, "input_lags": [0, 1], "output_lags": [1, 2], "inputs": 1, …}

and the arrays have ``A``, ``B``, ``C``, ``D``, ``K``, ``rest``, ``spread``, ``noise`` and ``rest_input``, or ``L`` and
the last three of these, beside those of the nonlinearity.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unbraid.dynamics.models.base import DynamicModel
from unbraid.dynamics.models.narx import NarxModel
from unbraid.dynamics.models.state_space import StateSpaceModel
from unbraid.errors import DataError, FileError, ModelFileError, SettingError, check_number, check_path
from unbraid.results.files.archive import write_archive
from unbraid.results.files.container import Container
from unbraid.results.files.description import DYNAMIC_SCHEMA, Description, describe
from unbraid.results.files.json_text import ENDING
from unbraid.results.files.model_file import open_model
from unbraid.results.files.reading import LONGEST_NAME, read_function, read_metadata
from unbraid.runtime.files import StrPath, replacing

STATE_SPACE, NARX = "state space", "NARX"
ARRAYS = {
    STATE_SPACE: ("A", "B", "C", "D", "K", "rest", "spread", "noise", "rest_input"),
    NARX: ("L", "spread", "noise", "rest_input"),
}
VECTORS = ("rest", "spread", "noise", "rest_input")
LONGEST_LAG = 1_000_000
"""The longest lag of a model that is read."""


def save_model(model: DynamicModel, path: StrPath) -> None:
    """Write a dynamic model to exactly `path`, whole or not at all."""
    check_path("path", path)
    if Path(path).suffix.lower() == ENDING:
        raise ModelFileError(f"{path} cannot be written: dynamic models are not saved as JSON; save it as .npz.")
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


def load_model(path: StrPath) -> DynamicModel:
    """Read a dynamic model that `save` has written, or refuse the file with a sentence; runs no code of it."""
    with open_model(path) as file:
        return read_dynamic(file)


def read_dynamic(file: Container) -> DynamicModel:
    """The dynamic model of an open file."""
    metadata = read_metadata(file, dynamic=True)
    if metadata["schema"] != DYNAMIC_SCHEMA:
        raise ModelFileError(
            f"{file.path} holds a decoupled model of no dynamic system: read it with ub.DecoupledModel.load, or "
            "use `unbraid predict`."
        )
    own = metadata.get("dynamics")
    if not isinstance(own, dict) or own.get("kind") not in (STATE_SPACE, NARX):
        raise file.damage("its metadata describe no kind of dynamic model that is known")
    kind: str = own["kind"]
    function = read_function(file, metadata)
    arrays = {name: file.floats(name, (None,) * (1 if name in VECTORS else 2)) for name in ARRAYS[kind]}
    arguments: dict[str, Any] = {**arrays, "dt": own.get("dt"), **read_signal_names(file, own)}
    try:
        check_number("dt", arguments["dt"], 0.0)
        if kind == STATE_SPACE:
            return StateSpaceModel(nonlinearity=function, **arguments)
        lags = {name: read_lags(file, name, own.get(name)) for name in ("input_lags", "output_lags")}
        return NarxModel(nonlinearity=function, nu=own.get("inputs"), **arguments, **lags)  # type: ignore[arg-type]
    except (DataError, SettingError) as error:
        raise file.damage(f"its parts do not fit together, {str(error).rstrip('.')}") from error


def read_signal_names(file: Container, own: dict[str, Any]) -> dict[str, list[str] | None]:
    """The names of inputs and outputs, None where there are none; they are a stranger's texts."""
    names = {}
    for key in ("input_names", "output_names"):
        given = own.get(key)
        texts = isinstance(given, list) and all(isinstance(one, str) and len(one) <= LONGEST_NAME for one in given)
        if given is not None and not texts:
            raise file.damage(f"its {key} are not texts of at most {LONGEST_NAME} characters")
        names[key] = given
    return names


def read_lags(file: Container, name: str, given: object) -> list[int]:
    """Some lags of a file, none of which is longer than any record."""
    if not isinstance(given, list) or not all(type(lag) is int and lag <= LONGEST_LAG for lag in given):
        raise file.damage(f"its {name} are not whole numbers up to {LONGEST_LAG}")
    return given
