"""Exported models as files: the writer by the ending, written whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from unbraid.errors import FileError, SettingError, check_path, shown
from unbraid.runtime.files import StrPath, opened, replacing


@dataclass(frozen=True)
class Options:
    """How a model is written.

    Attributes
    ----------
    name
        What the exported function is called: a name of letters, digits and underscores.
    dtype
        The type of numbers: "float64" or "float32".
    jacobian
        Whether the Jacobian is exported where that is a choice.
    """

    name: str
    dtype: Literal["float64", "float32"] = "float64"
    jacobian: bool = False


Writer = Callable[[Any, Options], Mapping[str, bytes]]
"""Makes the contents of the files of an exported model, a `DecoupledModel` or one around it, by their endings."""
ENDINGS = {
    ".c": "unbraid.export.c",
    ".h": "unbraid.export.c",
    ".onnx": "unbraid.export.onnx_graphs.graph",
    ".m": "unbraid.export.matlab",
    ".mat": "unbraid.export.matlab_struct",
    ".json": "unbraid.export.json_text",
    ".py": "unbraid.export.python_module",
    ".tex": "unbraid.export.latex",
}
"""The modules that write files, by ending; each has a function `write` that is a `Writer`."""
WRITTEN, START = b"Written by unbraid", 4096
"""What the first lines of exported programs say, and how many bytes have them."""
LONGEST_NAME = 63
"""Characters of a function's name: MATLAB takes no more."""


def export_model(
    model: object,
    path: StrPath,
    *,
    name: str | None = None,
    dtype: Literal["float64", "float32"] = "float64",
    jacobian: bool = False,
    endings: Mapping[str, str] = ENDINGS,
) -> tuple[Path, ...]:
    """Write a model to a file whose ending says in which language, and return the files that were written.

    `endings` has the modules that can write a model of its kind.
    """
    check_path("path", path)
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in endings:
        raise SettingError(f"The ending of {target.name!r} must be one of {', '.join(endings)}: it says the language.")
    if dtype not in ("float64", "float32"):
        raise SettingError(f"dtype must be 'float64' or 'float32', got {shown(dtype)}.")
    write: Writer = import_module(endings[ending]).write
    contents = write(model, Options(function_name(target, name), dtype, jacobian))
    files = {target if own == ending else target.with_suffix(own): content for own, content in contents.items()}
    for own in files:
        check_companion(own, target)
    for own, content in files.items():
        with replacing(own) as file:
            file.write(content)
    return tuple(files)


def check_companion(own: Path, target: Path) -> None:
    """Refuse to replace a file beside the one that was asked for, unless unbraid wrote it."""
    if own == target or not own.is_file():
        return
    with opened(own, "a file that unbraid wrote") as file:
        foreign = WRITTEN not in file.read(START)
    if foreign:
        raise FileError(
            f"{own} is there already, and was not written by unbraid. Exporting to {target.name} would replace it: "
            "choose another name, or move that file."
        )


def function_name(target: Path, name: str | None) -> str:
    """The name of the exported function: the one that was asked for, if languages take it, or one after the file."""
    if name is None:
        made = re.sub(r"[^A-Za-z0-9_]+", "_", target.stem).strip("_")[:LONGEST_NAME]
        return made if re.match(r"[A-Za-z]", made) else f"model_{made}".strip("_")[:LONGEST_NAME]
    if not isinstance(name, str) or not re.fullmatch(rf"[A-Za-z][A-Za-z0-9_]{{0,{LONGEST_NAME - 1}}}", name):
        raise SettingError(
            f"name must begin with a letter and have letters, digits and underscores only, {LONGEST_NAME} at most, "
            f"got {shown(name)}."
        )
    return name
