"""Models in files: `.npz`, no pickle, a schema number, written whole or not at all.

Schema 1. The string array ``metadata`` is JSON text::

    {"format": "unbraid-model", "schema": 1, "unbraid": "0.1.0",
     "branches": [{"basis": "BSpline", "settings": {"df": 12, "degree": 3, "of": "value"}}, ...]}

It may also have the lists ``input_names`` and ``output_names``, of m and n texts, and ``encoding``, a list of the
columns of a table that become the inputs, ``{"name": "fuel", "levels": ["petrol", "diesel"]}``, the reference level
first, or with levels null where they are numbers (`data.encoding`).

The arrays are ``W0`` (r, m), ``W1`` (n, r), ``bias`` (n,) and, for branch j = 0, 1, …, its coordinates
``branch_j.coordinates`` (K,) with what fixes its placement: ``branch_j.breakpoints`` or ``branch_j.range``. Where the
branch goes on as a polynomial, ``branch_j.continued`` (2,) has the ends of that; without it, it goes on linearly.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np

from unbraid.bases import BASES, Basis
from unbraid.data.checks import read_only
from unbraid.data.encoding import Encoding
from unbraid.errors import DataError, FileError, ModelFileError, UnbraidError, shown
from unbraid.kernels.arrays import Array
from unbraid.results.branch import Branch, FittedBranch
from unbraid.results.model import DecoupledModel
from unbraid.runtime.files import StrPath, replacing
from unbraid.runtime.npz import ArrayFile, open_npz, write_npz
from unbraid.runtime.text import clean_name
from unbraid.version import __version__

FORMAT = "unbraid-model"
SCHEMA = 1
MOST_BYTES = 1 << 28
"""Bytes that a model may unpack to: 256 MiB, some 30 million coefficients."""
MOST_COLUMNS = 1_000_000
"""Inputs and outputs of a model that is read, at most."""
MOST_BRANCHES = 100_000
"""Branches of a model that is read, at most."""
HIGHEST_DEGREE = 100
"""The degree of a basis that is read, at most."""
CONTINUED = "continued"
"""The name of the array with the ends between which a branch is not linear."""
FINEST = 2.0**-30
"""Reaches that are read are rounded to multiples of this share of a domain, which fits give: they come back exactly."""
NARROWEST_KNOTS, FARTHEST_KNOTS = 1e-60, 1e60
"""Knots that are closer to each other, or farther from zero, cannot be computed with."""


def save_model(model: DecoupledModel, path: StrPath) -> None:
    """Write a model to exactly `path`; an older file there stays as it is until the new one is whole."""
    arrays: dict[str, Array] = {"W0": model.W0, "W1": model.W1, "bias": model.bias}
    described = []
    for j, branch in enumerate(model.branches):
        fitted = check_storable(j, branch)
        described.append({"basis": type(fitted.basis).__name__, "settings": dataclasses.asdict(fitted.basis)})  # type: ignore[call-overload]
        arrays |= {f"branch_{j}.{name}": array for name, array in branch_arrays(fitted).items()}
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ModelFileError(f"This model cannot be saved: {name} has entries that are NaN or infinite.")
    metadata = {"format": FORMAT, "schema": SCHEMA, "unbraid": __version__, "branches": described, **names_of(model)}
    text = json.dumps(metadata, allow_nan=False, default=lambda number: number.item())  # NumPy's integers, too
    try:
        with replacing(path) as file:
            write_npz(file, {"metadata": np.array(text), **arrays})
    except FileError as error:
        raise ModelFileError(str(error)) from error


def names_of(model: DecoupledModel) -> dict[str, Any]:
    """The names and the encoding of a model, as far as it has them."""
    encoding = None if model.encoding is None else model.encoding.as_json()
    named = {"input_names": model.input_names, "output_names": model.output_names, "encoding": encoding}
    return {name: value for name, value in named.items() if value is not None}


def branch_arrays(branch: FittedBranch) -> dict[str, Array]:
    """The arrays of a branch, by the names that they have in files."""
    arrays = {"coordinates": branch.coordinates, **branch.placement.arrays()}
    if np.any(branch.reach):
        low, high = branch.domain
        arrays[CONTINUED] = np.array([low, high]) + branch.reach * (high - low) * np.array([-1.0, 1.0])
    return arrays


def check_storable(j: int, branch: Branch) -> FittedBranch:
    """Branch j as a `FittedBranch` whose basis is known; refused if a file could not hold it."""
    if not isinstance(branch, FittedBranch):
        raise ModelFileError(
            f"This model cannot be saved: branch {j + 1} is {branch!r}, and a file holds coefficients, not Python "
            "functions; save a model that `decouple` has fitted to it."
        )
    if BASES.get(type(branch.basis).__name__) is not type(branch.basis):
        raise ModelFileError(
            f"This model cannot be saved: the basis of branch {j + 1}, {branch.basis!r}, is not in unbraid.bases.BASES"
            "; add it there, so that it can be found when the file is read."
        )
    return branch


def load_model(path: StrPath) -> DecoupledModel:
    """Read a model that `save_model` has written; anything else is refused with a sentence."""
    try:
        with open_npz(path) as file:
            metadata = read_metadata(file)
            branches = metadata["branches"]
            r = len(branches)
            check_columns(file)
            W0, W1 = read_floats(file, "W0", (r, None)), read_floats(file, "W1", (None, r))
            bias = read_floats(file, "bias", (W1.shape[0],))
            model = DecoupledModel(W0, W1, [read_branch(file, j, one) for j, one in enumerate(branches)], bias)
            return model.changed(**read_names(file, metadata, model))
    except ModelFileError:
        raise
    except FileError as error:
        raise ModelFileError(str(error)) from error


def read_names(file: ArrayFile, metadata: dict[str, Any], model: DecoupledModel) -> dict[str, Any]:
    """The names and the encoding of a model, None where it has none; they are a stranger's texts."""
    names: dict[str, Any] = {}
    for key, count in (("input_names", model.m), ("output_names", model.n)):
        given = metadata.get(key)
        if given is not None and not (
            isinstance(given, list) and len(given) == count and all(isinstance(one, str) for one in given)
        ):
            raise damage_error(file, f"its {key} are not {count} texts")
        names[key] = None if given is None else tuple(given)
    if metadata.get("encoding") is not None:
        try:
            names["encoding"] = Encoding.from_json(metadata["encoding"])
        except DataError as error:
            raise damage_error(file, "its encoding is none") from error
        if names["encoding"].input_names != names["input_names"]:
            raise damage_error(file, "its encoding does not give its inputs")
    return names


def read_metadata(file: ArrayFile) -> dict[str, Any]:
    """What describes the model, its branches among it, once the file has proved to be one of a known schema."""
    if "metadata" not in file.names:
        raise ModelFileError(f"{file.path} is not an unbraid model: it holds {file.holds()}.")
    file.check_size(MOST_BYTES)
    array = file.read("metadata")
    try:
        if array.dtype.kind != "U" or array.ndim != 0:
            raise ValueError
        metadata = json.loads(str(array))
        foreign = metadata["format"] != FORMAT
    except (ValueError, TypeError, KeyError, RecursionError):
        foreign = True
    if foreign:
        raise ModelFileError(
            f"{file.path} is not an unbraid model: it holds {file.holds()}, but its metadata are not this library's."
        )
    schema = metadata.get("schema")
    if type(schema) is not int or schema < 1:
        raise damage_error(file, f"its schema number is {shown(schema)}")
    if schema > SCHEMA:
        made = metadata.get("unbraid")
        by = f" by unbraid {clean_name(made)}" if isinstance(made, str) else ""
        raise ModelFileError(
            f"{file.path} was written{by} in schema {shown(schema)}, and this version ({__version__}) reads up to "
            f"schema {SCHEMA}: upgrade unbraid."
        )
    branches = metadata.get("branches")
    if not isinstance(branches, list) or not branches:
        raise damage_error(file, "its metadata describe no branches")
    if len(branches) > MOST_BRANCHES:
        raise damage_error(file, f"it has {len(branches)} branches, more than the {MOST_BRANCHES} accepted")
    return dict(metadata)


def read_branch(file: ArrayFile, j: int, described: Any) -> FittedBranch:
    """Branch j of a file, from its description; every array is checked against the basis."""
    basis = read_basis(file, j, described)
    check_basis(file, j, basis)
    coordinates = read_floats(file, f"branch_{j}.coordinates", (basis.size,))
    placed = basis.place(np.array([0.0, 1.0])).arrays()
    arrays = {name: read_points(file, f"branch_{j}.{name}", like.shape) for name, like in placed.items()}
    placement, where = basis.placement_from(arrays), f"branch_{j}.{CONTINUED}"
    if where not in file.names:
        return FittedBranch(basis, placement, coordinates)
    (low, high), (below, above) = placement.domain(), read_points(file, where, (2,))
    reach = np.array([low - below, above - high]) / (high - low)
    return FittedBranch(basis, placement, coordinates, read_only(np.clip(np.round(reach / FINEST), 0.0, None) * FINEST))


def read_points(file: ArrayFile, where: str, shape: tuple[int, ...]) -> Array:
    """An array of points that increase, and can be computed with."""
    points = read_floats(file, where, shape)
    if not np.all(points[:-1] < points[1:]):
        raise damage_error(file, f"{where} is not strictly increasing")
    gap, reach = np.diff(points).min(initial=1.0), np.abs(points).max(initial=0.0)
    if gap < NARROWEST_KNOTS or reach > FARTHEST_KNOTS:
        raise damage_error(file, f"{where} has entries {gap:.3g} apart, or as far out as {reach:.3g}")
    return points


def check_columns(file: ArrayFile) -> None:
    """Refuse more inputs or outputs than any model has, before they are unpacked."""
    for name, axis in (("W0", -1), ("W1", 0)):
        shape = file.header(name)[0] if name in file.names else ()
        if shape and shape[axis] > MOST_COLUMNS:
            raise damage_error(
                file, f"{name} has shape {shown(shape)}, and at most {MOST_COLUMNS} inputs or outputs are accepted"
            )


def check_basis(file: ArrayFile, j: int, basis: Basis) -> None:
    """Refuse a basis that would take long to work with, or is not the one of the coefficients, before it is placed."""
    degree = getattr(basis, "degree", 0)
    if degree > HIGHEST_DEGREE:
        raise damage_error(file, f"branch {j + 1} has degree {shown(degree)}, and at most {HIGHEST_DEGREE} is accepted")
    name = f"branch_{j}.coordinates"
    found = file.header(name)[0] if name in file.names else (basis.size,)
    if found != (basis.size,):
        raise damage_error(file, f"{name} has shape {shown(found)}, not ({shown(basis.size)})")


def read_basis(file: ArrayFile, j: int, described: Any) -> Basis:
    """The basis of branch j, from its description in the metadata."""
    name, settings = (
        (described.get("basis"), described.get("settings")) if isinstance(described, dict) else (None, None)
    )
    if not isinstance(name, str) or not isinstance(settings, dict):
        raise damage_error(file, f"the description of branch {j + 1} has no basis")
    if name not in BASES:
        raise damage_error(
            file, f"branch {j + 1} has the basis {name!r:.80}, and this version knows {', '.join(BASES)}"
        )
    kind = BASES[name]
    if settings.keys() != {field.name for field in dataclasses.fields(kind)}:  # type: ignore[arg-type]
        raise damage_error(file, f"the settings of branch {j + 1} are not those of {name}")
    try:
        return kind(**settings)
    except UnbraidError as error:
        raise damage_error(file, f"the basis of branch {j + 1} is refused, {str(error).rstrip('.')}") from error


def read_floats(file: ArrayFile, name: str, shape: tuple[int | None, ...]) -> Array:
    """The array of this name, of finite float64 and of this shape (None: any length), read-only."""
    if name not in file.names:
        raise damage_error(file, f"the array {name} is missing")
    array = file.read(name, shape)
    if array.dtype.kind != "f" or array.dtype.itemsize != 8:
        raise damage_error(file, f"{name} has dtype {array.dtype!s:.40}, not float64")
    if not np.isfinite(array).all():
        raise damage_error(file, f"{name} has entries that are NaN or infinite")
    return read_only(array.astype(np.float64, copy=False))


def damage_error(file: ArrayFile, what: str) -> ModelFileError:
    """The error about a model file that contradicts itself."""
    return ModelFileError(f"{file.path} is not a usable unbraid model: {what}.")
