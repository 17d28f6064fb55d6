"""Files from strangers: damaged, lying or dangerous ones are refused with a sentence, and nothing else happens."""

from __future__ import annotations

import gzip
import os
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import unbraid as ub
from sample_files import HDF5, MATLAB, SAMPLES_FIRST, TABLES, columns, parts, read_columns, refusal, refused
from unbraid.reading import read_problem, sources
from unbraid.runtime import memory

WRITERS = {**SAMPLES_FIRST, **MATLAB, **TABLES}
FILES = [name for name in WRITERS if name != "samples"]


def arrays() -> dict[str, Any]:
    return parts(ub.datasets.trig(S=40, rng=0)[0])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The bytes of a sound file of each kind."""
    folder = tmp_path_factory.mktemp("whole")
    for name in FILES:
        WRITERS[name](folder / name, arrays())
    return {name: (folder / name).read_bytes() for name in FILES}


def whole_variables(name: str, data: bytes, kept: int) -> bool:
    """Whether the first bytes of a file of MATLAB 5 or Octave end where a variable does: they are then a file, too."""
    if name == "octave.mat":
        begins = [at for at in range(len(data)) if data.startswith(b"# name: ", at)]
        return any(at - 2 <= kept < at + len(b"# name: ") for at in [*begins, len(data)])
    if name not in ("five.mat", "plain.mat"):
        return False
    ends = [128]
    while ends[-1] < len(data):
        ends.append(ends[-1] + 8 + struct.unpack_from("<I", data, ends[-1] + 4)[0])
    return kept in ends


@pytest.mark.parametrize("name", FILES)
@given(share=st.floats(0, 1))
@example(share=1.0)
def test_a_truncated_file_is_refused_or_a_smaller_whole_one(
    whole: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory, name: str, share: float
) -> None:
    """The rest of a table is a table, and each of MATLAB's variables stands alone: nothing tells how many follow."""
    path = tmp_path_factory.getbasetemp() / name
    kept = round(share * len(whole[name]))
    path.write_bytes(whole[name][:kept])
    if not refused(path):
        assert kept == len(whole[name]) or name in TABLES or whole_variables(name, whole[name], kept)


@pytest.mark.parametrize("name", ["five.mat", "plain.mat"])
def test_a_matlab_file_that_ends_between_two_variables_has_those_before(
    whole: dict[str, bytes], tmp_path: Path, name: str
) -> None:
    data = whole[name]
    ends = [kept for kept in range(len(data)) if whole_variables(name, data, kept)]
    for count, kept in enumerate(ends):
        (tmp_path / name).write_bytes(data[:kept])
        if count < 2:  # X at most
            refusal(tmp_path / name)
        else:
            found = read_columns(tmp_path / name)
            assert np.array_equal(found.X, arrays()["X"])
            assert (found.F is None, found.J is None) == (False, True)


@pytest.mark.parametrize("name", [name for name in FILES if name not in HDF5])
@given(at=st.floats(0, 1, exclude_max=True), value=st.integers(0, 255))
def test_a_changed_byte_is_refused_or_harmless(
    whole: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory, name: str, at: float, value: int
) -> None:
    """Not for HDF5, whose library is not proof against that."""
    path = tmp_path_factory.getbasetemp() / name
    changed = bytearray(whole[name])
    changed[int(at * len(changed))] = value
    path.write_bytes(changed)
    refused(path)


@pytest.mark.parametrize("name", FILES)
def test_an_empty_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert "is empty" in refusal(tmp_path / name)


@pytest.mark.parametrize("name", FILES)
def test_what_is_too_large_for_memory_is_refused_before_it_is_read(
    whole: dict[str, bytes], tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(whole[name])
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    assert "is the most that is read: keep fewer samples" in refusal(tmp_path / name)


# What a file is.


@pytest.mark.parametrize(
    ("name", "start", "said"),
    [
        ("data.csv", b"PAR1\x15\x04\x00\x00", "is a Parquet file, though its name ends in .csv: rename it"),
        ("data.npz", b"\x93NUMPY\x01\x00", "is an .npy array, though its name ends in .npz"),
        ("data.npz", b"x,y\n1,2\n", "does not begin as a .npz file does"),
        ("data.mat", b"x,y\n1,2\n", "MATLAB's files are read in versions 5 to 7.3: save it again with -v7."),
        ("data.mat", pickle.dumps([1]), "It is a Python pickle, which is never loaded."),
        ("data.pkl", pickle.dumps([1]), "It is a Python pickle, which is never loaded."),
        ("data.npy", pickle.dumps([1]), "It is a Python pickle, which is never loaded."),
        ("data.csv.gz", gzip.compress(b"x,y\n1,2\n", mtime=0), "compressed with gzip: unpack it first"),
        ("data.csv", "x,y\n1,2\n".encode("utf-16"), "text in UTF-16: save it as UTF-8"),
        ("data.xlsx", b"PK\x03\x04", "is a spreadsheet: save it as .csv"),
        ("data.dat", b"1 2 3", "has numbers in its first line"),
        ("data.dat", b"\x00\x01\x02", "is not a file that can be read: give a .npz, .mat, .h5, .csv or .parquet file"),
        ("data", b"\x00" * 600, "is not a file that can be read"),
        ("data.mat", b"Octave-1-L\x00\x01", "It is a binary file of Octave: save it with -v7, or as text"),
        (
            "data.csv",
            b"# Created by Octave 7.3.0\n",
            "is a text file of Octave, though its name ends in .csv: rename it",
        ),
        ("data.h5", b"not HDF5", "does not begin as a .h5 file does"),
    ],
)
def test_files_are_known_by_name_and_content(tmp_path: Path, name: str, start: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(start)
    assert said in refusal(tmp_path / name)


def test_a_name_without_a_known_ending_is_no_obstacle(whole: dict[str, bytes], tmp_path: Path) -> None:
    for name in ("five.mat", "seven.mat", "samples.npz"):
        for called in ("data", "data.dat"):
            (tmp_path / called).write_bytes(whole[name])
            assert read_problem(tmp_path / called).problem.S == 40


@pytest.mark.skipif(os.name != "posix", reason="needs a device")
def test_devices_are_refused() -> None:
    with pytest.raises(ub.UnbraidError, match="is a device or a pipe"):
        read_columns(Path("/dev/zero"))


def test_folders_and_nonsense_are_refused(tmp_path: Path) -> None:
    assert "is a folder without .npy files" in refusal(tmp_path)
    with pytest.raises(ub.UnbraidError, match="does not exist"):
        read_columns(tmp_path / "none.csv")
    with pytest.raises(ub.UnbraidError, match="cannot be read"):
        read_columns(Path("null\0character.csv"))


# NumPy's files.


def test_npy_files_are_read_without_pickle(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save(tmp_path / "F.npy", np.ones((3, 1)))
    assert "X holds pickled Python objects, which are never loaded" in refusal(tmp_path)


def test_an_npy_file_that_declares_more_than_it_has_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "F.npy", np.ones((3, 1)))
    np.save(tmp_path / "X.npy", np.ones((3, 2)))
    sound = (tmp_path / "X.npy").read_bytes()
    for lie in (b"(3000000000, 2), }", b"(3000000000, 2)   ", b"(-3, 2), }        "):
        (tmp_path / "X.npy").write_bytes(sound.replace(b"(3, 2), }         ", lie))
        assert "damaged" in refusal(tmp_path)


def test_an_npz_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 2**20)
    np.savez_compressed(tmp_path / "data.npz", X=np.zeros((10**6, 1)), F=np.zeros((10**6, 1)))
    assert (tmp_path / "data.npz").stat().st_size < 2**16
    assert "would take" in refusal(tmp_path / "data.npz")


@pytest.mark.parametrize("dtype", ["U5", "c16", "M8[s]", [("a", "f8")]])
def test_arrays_of_other_things_are_refused(tmp_path: Path, dtype: Any) -> None:
    np.savez(tmp_path / "data.npz", X=np.zeros(3, dtype), F=np.ones(3))
    assert "X must be an array of real numbers, and it is of dtype" in refusal(tmp_path / "data.npz")


def test_names_are_printed_short_and_without_control_characters(tmp_path: Path) -> None:
    names: dict[str, Any] = {"\x1b[31m\u202e" + "n" * 5000: np.ones(3), "X": np.ones(3)}
    np.savez(tmp_path / "data.npz", **names)
    text = refusal(tmp_path / "data.npz")
    assert "?[31m?nnn" in text
    assert "n..." in text


# Optional packages.


@pytest.mark.parametrize("name", ["seven.mat", "samples.parquet"])
def test_a_missing_package_is_named(
    whole: dict[str, bytes], tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(whole[name])
    monkeypatch.setattr(sources, "find_spec", lambda name: None)
    with pytest.raises(
        ub.UnbraidError, match=r'which is not installed: from a clone of unbraid, pip install -e "\.\[files\]"'
    ):
        read_columns(tmp_path / name)


# Parquet.


def test_a_parquet_file_of_many_equal_rows_is_measured_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 2**20)
    table = pyarrow.table({name: np.zeros(10**6) for name in columns({"X": np.ones((1, 2)), "F": np.ones((1, 1))})})
    pyarrow.parquet.write_table(table, tmp_path / "data.parquet")
    assert (tmp_path / "data.parquet").stat().st_size < 2**17
    assert "would take" in refusal(tmp_path / "data.parquet")


def test_a_zip_without_arrays_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "data.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert "has no array named X: it holds no arrays" in refusal(tmp_path / "data.npz")
