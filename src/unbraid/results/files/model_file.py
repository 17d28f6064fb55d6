"""Models to files and back, written whole or not at all; what a file is, its first bytes say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unbraid.errors import FileError, ModelFileError, check_path
from unbraid.results.files.archive import open_archive, write_archive
from unbraid.results.files.container import Container
from unbraid.results.files.description import DYNAMIC_SCHEMA, describe
from unbraid.results.files.json_text import ENDING, json_bytes, looks_like_json, open_json
from unbraid.results.files.reading import read_metadata, read_model
from unbraid.results.model import DecoupledModel
from unbraid.runtime.files import StrPath, replacing


def save_model(model: DecoupledModel, path: StrPath) -> None:
    """Write a model to exactly `path`, as JSON where it ends in `.json` and else as `.npz`.

    An older file there stays as it is until the new one is whole.
    """
    check_path("path", path)
    try:
        if Path(path).suffix.lower() == ENDING:
            content = json_bytes(model)
            with replacing(path) as file:
                file.write(content)
        else:
            description = describe(model)
            with replacing(path) as file:
                write_archive(file, description)
    except ModelFileError:
        raise
    except FileError as error:
        raise ModelFileError(str(error)) from error


def load_model(path: StrPath) -> DecoupledModel:
    """Read a model that `save_model` has written; anything else is refused with a sentence."""
    with open_model(path) as file:
        return read_model(file)


def is_dynamic(path: StrPath) -> bool:
    """Whether a file holds a model of a dynamic system, not a decoupled one alone; refused where it holds no model."""
    with open_model(path) as file:
        return bool(read_metadata(file, dynamic=True)["schema"] == DYNAMIC_SCHEMA)


@contextmanager
def open_model(path: StrPath) -> Iterator[Container]:
    """Open a file of either kind that may hold a model; whatever goes wrong while it is read is a `ModelFileError`."""
    check_path("path", path)
    try:
        with open_json(path) if looks_like_json(path) else open_archive(path) as file:
            yield file
    except ModelFileError:
        raise
    except FileError as error:
        raise ModelFileError(str(error)) from error
    except RecursionError as error:
        raise ModelFileError(f"{path} is not a usable unbraid model: it is nested too deeply.") from error
