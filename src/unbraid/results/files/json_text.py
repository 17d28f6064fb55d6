"""Models as JSON texts, for people and for other programs: the metadata, and every array where it belongs.

The text is one object with the metadata of a model, ``W0``, ``W1`` and ``bias`` beside them, and in each object of
``branches`` its arrays: ``branch_0.coordinates`` of an archive is ``coordinates`` of the first branch here,
``branch_0.polynomials.breaks`` is ``breaks`` in its ``polynomials``. Numbers come back to the last bit.

Reading ignores what is there for other readers alone: ``about``, in a formula what it ``reads``, and in a fitted branch
its ``polynomials``, by which programs that know nothing of bases evaluate it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.errors import FileError, ModelFileError
from unbraid.kernels.arrays import Array
from unbraid.results.branch import Branch
from unbraid.results.branches.words import form_text
from unbraid.results.files.container import Container
from unbraid.results.files.description import FORMAT, describe
from unbraid.results.files.kinds import piece_arrays
from unbraid.results.files.strict_json import parse_json
from unbraid.results.model import DecoupledModel
from unbraid.runtime.files import StrPath, opened, why_refused
from unbraid.runtime.npz import check_shape

ENDING = ".json"
KIND = "a JSON file"
MOST_BYTES = 1 << 26
"""Bytes of a text: 64 MiB, some three million coefficients."""
MOST_LISTS = 4_000_000
"""Lists and objects in a text, each of which takes more memory than its bytes."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MATRICES = ("W0", "W1", "bias")
ABOUT_MODEL = "f(x) = W1 g(W0 x) + bias: entry j of W0 x is the input u of branch j, g_j(u) its value."
ABOUT_FORMULA = "A branch with a formula is what it reads, with its parameters in the order of the letters."
ABOUT_POLYNOMIALS = (
    "A branch with polynomials is at u the sum of powers[p][i] t^p over p, with t = (u - middle[i]) rate[i], where i "
    "is the number of breaks that are at most u."
)
ABOUT_BASIS = "Of a branch with a basis unbraid reads the coordinates and their places; its polynomials are a copy."


# Writing


def json_bytes(model: DecoupledModel) -> bytes:
    """The text of a model, in UTF-8; refused where a file cannot hold it, or not as text."""
    metadata, arrays = describe(model)
    branches = [dict(one) for one in metadata.pop("branches")]
    for described in branches:
        if "formula" in described:
            described["reads"] = form_text(described["formula"])
    for name, array in arrays.items():
        owner, _, own_name = name.partition(".")
        if own_name:
            put(branches[int(owner.removeprefix("branch_"))], own_name, array)
    for branch, described in zip(model.branches, branches, strict=True):
        if "basis" in described:
            put_polynomials(described, branch)
    begin = {name: metadata.pop(name) for name in ("format", "schema", "unbraid")}
    matrices = {name: arrays[name].tolist() for name in MATRICES}
    text = lines_of({**begin, "about": about(branches), **metadata, **matrices, "branches": branches}) + "\n"
    content = text.encode()
    if len(content) > MOST_BYTES:
        raise ModelFileError(
            f"This model cannot be saved as JSON: it would take {len(content) / 2**20:.0f} MiB, more than the "
            f"{MOST_BYTES / 2**20:.0f} accepted; save it as .npz."
        )
    return content


def put(described: dict[str, Any], name: str, array: Array) -> None:
    """Put an array into the object of a branch, as a list; a point in its name leads into an object."""
    *inside, last = name.split(".")
    for key in inside:
        described = described.setdefault(key, {})
    described[last] = array.tolist()


def put_polynomials(described: dict[str, Any], branch: Branch) -> None:
    """Put a fitted branch into its object once more as polynomials, where it is made of such."""
    pieces = branch.polynomials()
    if pieces is not None and all(np.isfinite(array).all() for array in piece_arrays(pieces).values()):
        for name, array in piece_arrays(pieces).items():
            put(described, name, array)


def about(branches: list[dict[str, Any]]) -> list[str]:
    """What the text means, for who reads it without a manual."""
    kinds = {"formula": ABOUT_FORMULA, "polynomials": ABOUT_POLYNOMIALS, "basis": ABOUT_BASIS}
    return [ABOUT_MODEL, *(text for key, text in kinds.items() if any(key in one for one in branches))]


def lines_of(value: Any, indent: str = "") -> str:
    """JSON with a line for each entry of an object, for each row of a matrix, and for each text about it."""
    deeper = indent + "  "
    if isinstance(value, dict) and not all(is_plain(one) for one in value.values()):
        entries = [f"{deeper}{line_of(key)}: {lines_of(one, deeper)}" for key, one in value.items()]
        return "{\n" + ",\n".join(entries) + f"\n{indent}}}"
    if isinstance(value, list) and value and (isinstance(value[0], list | dict) or " " in str(value[0])):
        return "[\n" + ",\n".join(deeper + lines_of(one, deeper) for one in value) + f"\n{indent}]"
    return line_of(value)


def is_plain(value: Any) -> bool:
    """Whether a value is neither a list nor an object."""
    return not isinstance(value, list | tuple | dict)


def line_of(value: Any) -> str:
    """JSON on one line; letters that cannot be seen, or turn the order of others around, are escaped."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=lambda number: number.item())
    return text if text.isprintable() else json.dumps(value, allow_nan=False, default=lambda number: number.item())


# Reading


def looks_like_json(path: StrPath) -> bool:
    """Whether the first bytes of a file are those of a JSON text, or its name says so and they are no archive's."""
    start = b""
    with suppress(OSError, ValueError):
        if not Path(path).is_file():
            return False
        with Path(path).open("rb") as file:
            start = file.read(64)
    text = start.removeprefix(BYTE_ORDER_MARK).lstrip()
    return text.startswith(b"{") or (Path(path).suffix.lower() == ENDING and not start.startswith(b"PK"))


@contextmanager
def open_json(path: StrPath) -> Iterator[JsonText]:
    """Read a JSON text that may hold a model."""
    with opened(path, KIND) as file:
        try:
            content = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise FileError(f"{path} cannot be read: {why_refused(error)}.") from error
    yield read_json(path, content)


def read_json(path: StrPath, content: bytes) -> JsonText:
    """A JSON text that may hold a model, of the file of this name."""
    if len(content) > MOST_BYTES:
        raise FileError(f"{path} has more than the {MOST_BYTES / 2**20:.0f} MiB accepted of a JSON text.")
    if content.count(b"[") + content.count(b"{") > MOST_LISTS:
        raise FileError(f"{path} has more than the {MOST_LISTS} lists and objects accepted.")
    if not content.strip():
        raise FileError(f"{path} is empty, not {KIND}.")
    try:
        document = parse_json(content.removeprefix(BYTE_ORDER_MARK).decode())
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not {KIND}: it is not UTF-8.") from error
    except ValueError as error:
        raise FileError(f"{path} is not {KIND}, or is damaged: {error}.") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not an unbraid model: it is JSON, but not with this library's format.")
    return JsonText(path, document)


class JsonText(Container):
    """A model in the object of a JSON text."""

    def __init__(self, path: StrPath, document: dict[str, Any]) -> None:
        self.path = path
        self._document = document
        self._lists = dict(named_lists(document))
        self.names = self._lists.keys()

    def metadata(self) -> dict[str, Any]:
        """The object itself: its arrays do no harm."""
        return self._document

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a list, by the first of its rows."""
        value = self._lists[name]
        return (len(value), len(value[0])) if value and isinstance(value[0], list) else (len(value),)

    def numbers(self, name: str, shape: tuple[int | None, ...]) -> Array:
        """A list as an array, where all of it is numbers and all rows are of the same length."""
        found = self.shape(name)
        check_shape(self.path, name, found, shape)
        value = self._lists[name]
        rows = value if len(found) == 2 else [value]
        if not all(isinstance(row, list) and len(row) == found[-1] for row in rows):
            raise self.damage(f"the rows of {name} are not of the same length")
        if not all({int, float}.issuperset(map(type, row)) for row in rows):
            raise self.damage(f"{name} has entries that are no numbers")
        return np.array(value, dtype=np.float64)


def named_lists(document: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """The lists of a document that may be arrays, by the names that arrays have."""
    branches = document.get("branches")
    objects = {"": {name: document.get(name) for name in MATRICES}}
    for j, branch in enumerate(branches if isinstance(branches, list) else []):
        for key, value in branch.items() if isinstance(branch, dict) else ():
            if isinstance(value, dict):
                objects[f"branch_{j}.{key}."] = value
        objects[f"branch_{j}."] = branch if isinstance(branch, dict) else {}
    for begin, held in objects.items():
        yield from ((begin + key, value) for key, value in held.items() if isinstance(value, list))
