"""Pickles in the place of checkpoints: refused, and never run, whatever they would do to the library's classes."""

from __future__ import annotations

import io
import pickle
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import unbraid as ub
from interrupted_fits import finished_file
from killed_fits import fitted
from unbraid.errors import FileError
from unbraid.fitting.checkpoints.checkpoint import digest_parts
from unbraid.reading import read_problem
from unbraid.runtime.helpers import Message, next_helper
from unbraid.runtime.npz import write_npz

ATTRIBUTES = ("__subclasscheck__", "__subclasses__", "__defaults__", "taken_over")


class Victim:
    """A class that a pickle can name."""


def building(module: str, name: str, attribute: str) -> bytes:
    """A pickle that names a class and nothing else, and sets an attribute of it by BUILD."""
    return f"c{module}\n{name}\n(N}}V{attribute}\nI1\nstb.".encode()


def test_the_exploit_would_work_if_it_were_read() -> None:
    pickle.loads(building(__name__, "Victim", "taken_over"))
    assert Victim.taken_over == 1  # type: ignore[attr-defined]


def raw(hostile: bytes) -> bytes:
    """The pickle, as it is."""
    return hostile


def older(hostile: bytes) -> bytes:
    """A file of the schema that was a pickle."""
    return b"unbraid checkpoint 2\n" + b"0" * 64 + b"\n{}\n" + hostile


def as_object_array(hostile: bytes) -> bytes:
    """An `.npz` file whose arrays are of Python objects."""
    npy, whole = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(npy, {"descr": "|O", "fortran_order": False, "shape": (1,)})
    with zipfile.ZipFile(whole, "w") as archive:
        for name in ("checkpoint", "digest", "unit_0.text"):
            archive.writestr(f"{name}.npy", npy.getvalue() + hostile)
    return whole.getvalue()


def as_part(hostile: bytes) -> bytes:
    """A checkpoint that is whole but for the pickle in the place of what its units say."""
    with np.load(io.BytesIO(finished_file())) as arrays:
        parts = {name: arrays[name].tobytes() for name in arrays.files if name != "digest"}
    parts |= {name: hostile for name in parts if name.startswith("unit_")}
    whole = io.BytesIO()
    write_npz(
        whole, {name: np.frombuffer(one, np.uint8) for name, one in (parts | {"digest": digest_parts(parts)}).items()}
    )
    return whole.getvalue()


@pytest.mark.parametrize("attribute", ATTRIBUTES)
@pytest.mark.parametrize("file", [raw, older, as_object_array, as_part])
def test_pickles_that_build_are_refused(file: object, attribute: str, tmp_path: Path) -> None:
    path, before = tmp_path / "fit.checkpoint", dict(vars(ub.bases.Basis))
    assert callable(file)
    path.write_bytes(file(building("unbraid.bases", "Basis", attribute)))
    content = path.read_bytes()
    with pytest.raises(FileError, match=r"no checkpoint of unbraid|older version|damaged"):
        fitted("dejonghe2025", path)
    assert dict(vars(ub.bases.Basis)) == before
    assert path.read_bytes() == content


@pytest.mark.parametrize("file", [raw, as_object_array])
def test_pickles_in_the_place_of_models_and_samples_are_refused(file: object, tmp_path: Path) -> None:
    path, before = tmp_path / "file.npz", dict(vars(ub.bases.Basis))
    assert callable(file)
    path.write_bytes(file(building("unbraid.bases", "Basis", "taken_over")))
    with pytest.raises(FileError):
        ub.DecoupledModel.load(path)
    with pytest.raises(ub.UnbraidError):
        read_problem(path, inputs="checkpoint", outputs="digest")
    assert dict(vars(ub.bases.Basis)) == before


UNPICKLING = re.compile(r"pickle\.loads?\(|Unpickler|torch\.load\(|joblib|marshal|shelve|dill|allow_pickle=True")
OWN_PROCESSES = {"runtime/helpers.py", "runtime/callers.py", "data/dask_blocks.py"}
"""Modules that read pickles, of processes of the library's own; why that is safe is said in the first."""


def test_only_what_own_processes_write_is_unpickled() -> None:
    root = Path(ub.__file__).parent
    found = {path.relative_to(root).as_posix() for path in root.rglob("*.py") if UNPICKLING.search(path.read_text())}
    assert found == OWN_PROCESSES


@pytest.mark.parametrize(
    "piece", [(print, ("hostile",)), (subprocess.call, ([sys.executable, "-c", "print('hostile')"],))]
)
def test_what_a_piece_of_work_prints_is_no_answer(piece: tuple[object, ...]) -> None:
    """Nor is what a program prints that it starts: the pipe that is read has one writer."""
    helper = next_helper()
    try:
        assert helper.wait()
        assert helper.ask(Message.of((*piece, None))).kind == "done"
        assert helper.ask(Message.of((len, ("answer",), None))).value == len("answer")
    finally:
        helper.end()


class PickyError(Exception):
    """An error that pickle writes and cannot read: it asks for more than its message."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} {other}")


def fail_in_an_own_way() -> None:
    raise PickyError("so", "so")


def test_an_answer_that_cannot_be_read_is_none() -> None:
    helper = next_helper()
    try:
        assert helper.wait()
        assert helper.ask(Message.of((fail_in_an_own_way, (), None))).kind == "unread"
        assert not helper.there
    finally:
        helper.end()
