"""Reading a model: nothing but models gets in, however a file was damaged or made up."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from model_files import Arrays, contents, refusal, rewritten, with_metadata
from unbraid.errors import ModelFileError
from unbraid.results.files import archive
from unbraid.runtime import npz


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.npz").endswith("none.npz does not exist.")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert "is a folder" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (b"", "is empty"),
        (b"hello, world", "is not an .npz file"),
        (pickle.dumps({"W0": 1}), "pickle"),
        (b"MATLAB 5.0 MAT-file", "MATLAB"),
        (b"\x93NUMPY\x01\x00", "a single .npy array"),
    ],
)
def test_a_file_that_is_no_npz_is_refused(tmp_path: Path, start: bytes, said: str) -> None:
    (tmp_path / "odd.npz").write_bytes(start)
    assert said in refusal(tmp_path / "odd.npz")


def test_a_truncated_file_is_refused_wherever_it_ends(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(4, len(whole), 37):
        path.write_bytes(whole[:length])
        assert "truncated or damaged" in refusal(path)


def test_a_flipped_byte_is_refused_or_harmless(path: Path, model: ub.DecoupledModel) -> None:
    whole = path.read_bytes()
    X = np.ones((1, 2))
    expected = model(X).tobytes()
    for position in range(0, len(whole), 7):
        flipped = bytearray(whole)
        flipped[position] ^= 0x55
        path.write_bytes(flipped)
        with contextlib.suppress(ModelFileError):
            assert ub.DecoupledModel.load(path)(X).tobytes() == expected, f"byte {position}"


def test_pickled_objects_are_refused_and_never_run(path: Path) -> None:
    touched = path.with_name("touched")

    class Trap:
        def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
            return (os.mkdir, (str(touched),))

    trap = np.array([Trap()], dtype=object)
    arrays = contents(path)
    for name in ("metadata", "W0", "branch_0.coordinates"):
        np.savez(path, **{**arrays, name: trap})
        assert "pickled Python objects, which are never loaded" in refusal(path)
    assert not touched.exists()


def test_another_npz_is_refused_with_what_it_holds(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", X=np.ones(3), F=np.ones(3))
    assert refusal(tmp_path / "data.npz").endswith("is not an unbraid model: it holds the arrays X, F.")
    np.savez(tmp_path / "empty.npz")
    assert refusal(tmp_path / "empty.npz").endswith("it holds no arrays.")


@pytest.mark.parametrize("text", ["{", "3", "{}", "[]", '{"format": "other"}', "[" * 100_000, '{"format": NaN}'])
def test_foreign_metadata_are_refused(path: Path, text: str) -> None:
    rewritten(path, lambda arrays: arrays.update(metadata=np.array(text)))
    assert "its metadata are not this library's" in refusal(path)


def test_a_future_schema_is_refused_with_advice(path: Path) -> None:
    with_metadata(path, lambda metadata: metadata.update(schema=7, unbraid="9.1.0"))
    text = refusal(path)
    assert "was written by unbraid 9.1.0 in schema 7" in text
    assert "reads up to schema 3: upgrade unbraid." in text


@pytest.mark.parametrize("schema", [0, -1, "1", 1.0, True, None])
def test_a_schema_that_never_was_is_refused(path: Path, schema: object) -> None:
    with_metadata(path, lambda metadata: metadata.update(schema=schema))
    assert "its schema number is" in refusal(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda a: a.pop("W1"), "the array W1 is missing"),
        (lambda a: a.pop("branch_1.breakpoints"), "the array branch_1.breakpoints is missing"),
        (lambda a: a.update(W0=np.ones((2, 2))), "W0 has shape (2, 2), not (3, any)"),
        (lambda a: a.update(W1=np.ones((3, 2))), "W1 has shape (3, 2), not (any, 3)"),
        (lambda a: a.update(W1=np.ones((0, 3))), "W1 has shape (0, 3)"),
        (lambda a: a.update(bias=np.ones(4)), "bias has shape (4,), not (3)"),
        (lambda a: a.update(W0=np.ones((3, 2), dtype=int)), "W0 has dtype int64, not float64"),
        (lambda a: a.update(W0=np.ones((3, 2), dtype=complex)), "W0 has dtype complex128"),
        (lambda a: a.update(W0=np.full((3, 2), np.nan)), "W0 has entries that are NaN or infinite"),
        (lambda a: a.update(bias=np.full(3, np.inf)), "bias has entries that are NaN or infinite"),
        (lambda a: a.update({"branch_0.coordinates": np.ones(5)}), "branch_0.coordinates has shape (5,), not (7)"),
        (lambda a: a.update({"branch_0.coordinates": np.full(7, np.nan)}), "branch_0.coordinates has entries"),
        (lambda a: a.update({"branch_0.breakpoints": np.arange(4.0)}), "branch_0.breakpoints has shape (4,), not (5)"),
        (lambda a: a.update({"branch_0.breakpoints": np.array([0.0, 1, 1, 2, 3])}), "is not strictly increasing"),
        (lambda a: a.update({"branch_2.range": np.array([1.0, -1.0])}), "branch_2.range is not strictly increasing"),
        (lambda a: a.update({"branch_2.range": np.array([0.0, np.inf])}), "branch_2.range has entries"),
    ],
)
def test_arrays_that_contradict_the_model_are_refused(
    path: Path, change: Callable[[Arrays], object], said: str
) -> None:
    assert said in refusal(rewritten(path, change))


@pytest.mark.parametrize(
    ("branch", "said"),
    [
        ({"basis": "Wavelet", "settings": {}}, "has the basis 'Wavelet', and this version knows BSpline"),
        ({"basis": "__import__", "settings": {}}, "has the basis '__import__'"),
        ({"basis": "BSpline", "settings": {"df": 6}}, "the settings of branch 1 are not those of BSpline"),
        ({"basis": "BSpline", "settings": {"df": 2, "degree": 3, "of": "value"}}, "df must be at least the degree"),
        ({"basis": "BSpline", "settings": {"df": "6", "degree": 3, "of": "value"}}, "must be a whole number"),
        ({"basis": "BSpline", "settings": {"df": 6, "degree": 3, "of": []}}, "must be 'value' or 'slope'"),
        ({"basis": "BSpline", "settings": {"df": 10**12, "degree": 3, "of": "value"}}, "has shape (7,)"),
        ({"basis": "BSpline"}, "has no basis"),
        (3, "has no basis"),
    ],
)
def test_descriptions_that_make_no_basis_are_refused(path: Path, branch: object, said: str) -> None:
    assert said in refusal(with_metadata(path, lambda metadata: metadata["branches"].__setitem__(0, branch)))


@pytest.mark.parametrize("branches", [[], None, {}, "abc"])
def test_a_model_without_branches_is_refused(path: Path, branches: object) -> None:
    with_metadata(path, lambda metadata: metadata.update(branches=branches))
    assert "describe no branches" in refusal(path)


# Traps: files that claim to be larger than they are.


def added(path: Path, name: str, data: bytes) -> Path:
    with zipfile.ZipFile(path) as old:
        members = {one.filename: old.read(one) for one in old.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for one, content in {**members, name: data}.items():
            new.writestr(one, content)
    return path


def test_a_zip_bomb_is_refused_before_it_is_unpacked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 1 << 20)
    added(path, "bomb.npy", bytes(2 << 20))
    assert path.stat().st_size < 20_000
    assert "unpacks to 2 MiB, more than the 1 accepted" in refusal(path)


def test_a_header_that_declares_more_than_follows_is_refused_without_memory(path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (3, 10**14)})
    added(path, "W0.npy", header.getvalue() + bytes(48))
    assert "W0 declares shape (3, 100000000000000), which is not what follows" in refusal(path)


def test_a_member_that_claims_an_impossible_size_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npz, "BEST_DEFLATE", 0)
    assert "claims to unpack to" in refusal(path)
