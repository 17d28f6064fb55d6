"""Files from strangers: damaged, lying or dangerous ones are refused with a sentence, and nothing else happens."""

from __future__ import annotations

import gzip
import os
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from sample_files import MATLAB, SAMPLES_FIRST, TABLES, columns, parts, write_matlab73
from unbraid.reading import hdf5, read_problem, sources
from unbraid.runtime import memory

WRITERS = {**SAMPLES_FIRST, **MATLAB, **TABLES}
FILES = [name for name in WRITERS if name != "samples"]


def arrays() -> dict[str, Any]:
    return parts(ub.datasets.trig(S=40, rng=0)[0])


def read(path: Path) -> ub.Problem:
    if path.suffix in (".csv", ".tsv", ".txt", ".dat", ".parquet"):
        return read_problem(path, inputs="x*", outputs="y*").problem
    return read_problem(path).problem


def refusal(path: Path) -> str:
    """The one sentence with which a file is refused."""
    with pytest.raises(ub.UnbraidError) as caught:
        read(path)
    text = str(caught.value)
    assert path.name in text or path.parent.name in text
    assert text.isprintable()
    assert len(text) < 600
    return text


def refused(path: Path) -> bool:
    """Whether a file is refused; anything but a refusal fails the test."""
    try:
        read(path)
    except ub.UnbraidError:
        return True
    return False


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The bytes of a sound file of each kind."""
    folder = tmp_path_factory.mktemp("whole")
    for name in FILES:
        WRITERS[name](folder / name, arrays())
    return {name: (folder / name).read_bytes() for name in FILES}


@pytest.mark.parametrize("name", FILES)
@given(share=st.floats(0, 1))
def test_a_truncated_file_is_refused_or_a_shorter_table(
    whole: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory, name: str, share: float
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(whole[name][: int(share * len(whole[name]))])
    if not refused(path):
        assert share == 1 or name in TABLES  # the rest of a table is a table


@pytest.mark.parametrize("name", [name for name in FILES if name not in ("seven.mat", "samples.h5")])
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
        read(Path("/dev/zero"))


def test_folders_and_nonsense_are_refused(tmp_path: Path) -> None:
    assert "is a folder without .npy files" in refusal(tmp_path)
    with pytest.raises(ub.UnbraidError, match="does not exist"):
        read(tmp_path / "none.csv")
    with pytest.raises(ub.UnbraidError, match="cannot be read"):
        read(Path("null\0character.csv"))


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


# MATLAB version 5.


def matlab5(*elements: bytes) -> bytes:
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + b"".join(elements)


def element(kind: int, data: bytes, length: int | None = None) -> bytes:
    return struct.pack("<II", kind, len(data) if length is None else length) + data + bytes(-len(data) % 8)


def variable(name: str, shape: tuple[int, ...], numbers: bytes, length: int | None = None) -> bytes:
    """A matrix of doubles, whose shape and length may lie."""
    flags, dimensions = element(6, struct.pack("<II", 6, 0)), element(5, struct.pack(f"<{len(shape)}i", *shape))
    return element(14, flags + dimensions + element(1, name.encode()) + element(9, numbers, length))


def packed(one: bytes) -> bytes:
    data = zlib.compress(one)
    return struct.pack("<II", 15, len(data)) + data


SOUND = np.arange(6.0).tobytes()


def test_the_hand_made_file_is_sound(tmp_path: Path) -> None:
    for wrap in (bytes, packed):
        (tmp_path / "a.mat").write_bytes(
            matlab5(wrap(variable("X", (2, 3), SOUND)), wrap(variable("F", (2, 3), SOUND)))
        )
        assert np.array_equal(scipy.io.loadmat(tmp_path / "a.mat")["X"], read(tmp_path / "a.mat").X.T)


@pytest.mark.parametrize("wrap", [bytes, packed])
@pytest.mark.parametrize(
    "lie",
    [
        variable("X", (20000, 30000), SOUND),
        variable("X", (2, 3), SOUND, 2**31),
        variable("X", (2, 3), SOUND + SOUND),
        variable("X", (2, 3), SOUND[:-8]),
        variable("X", (-2, -3), SOUND),
        variable("X", (2**30, 2**30, 2**30), SOUND),
        variable("X" * 10_000, (2, 3), SOUND),
        variable("X", (), SOUND),
    ],
)
def test_a_variable_that_lies_is_refused(tmp_path: Path, lie: bytes, wrap: Callable[[bytes], bytes]) -> None:
    (tmp_path / "a.mat").write_bytes(matlab5(wrap(lie), wrap(variable("F", (2, 3), SOUND))))
    assert any(word in refusal(tmp_path / "a.mat") for word in ("damaged", "fit neither", "would take"))


def test_a_matlab_bomb_is_refused_before_it_goes_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 2**24)
    zeros = packed(variable("X", (1, 4_000_000), bytes(32_000_000)))
    (tmp_path / "a.mat").write_bytes(matlab5(zeros, packed(variable("F", (2, 3), SOUND))))
    assert (tmp_path / "a.mat").stat().st_size < 50_000
    assert "fit neither" in refusal(tmp_path / "a.mat") or "would take" in refusal(tmp_path / "a.mat")
    hidden = packed(variable("X", (2, 3), bytes(32_000_000)))
    (tmp_path / "a.mat").write_bytes(matlab5(hidden, packed(variable("F", (2, 3), SOUND))))
    assert "damaged" in refusal(tmp_path / "a.mat")


def test_a_wrong_checksum_is_noticed(tmp_path: Path) -> None:
    whole = bytearray(matlab5(packed(variable("F", (2, 3), SOUND)), packed(variable("X", (2, 3), SOUND))))
    whole[-1] ^= 1
    (tmp_path / "a.mat").write_bytes(whole)
    assert "damaged" in refusal(tmp_path / "a.mat")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"field": 1.0}, "it is a struct: save its fields"),
        (np.array([np.ones(2), "a"], dtype=object), "it is a cell array"),
        ("text", "it is text"),
        (1j * np.ones((2, 3)), "it is complex: save its real part"),
        (scipy.sparse.eye_array(3).tocsc(), "it is a sparse matrix: save what full makes of it"),
    ],
)
def test_what_is_no_full_real_array_is_refused(tmp_path: Path, value: Any, said: str) -> None:
    scipy.io.savemat(tmp_path / "a.mat", {"X": value, "F": np.ones((2, 3))})
    assert f"X must be an array of real numbers, and {said}" in refusal(tmp_path / "a.mat")


def test_what_is_missing_is_said_with_what_is_there(tmp_path: Path) -> None:
    scipy.io.savemat(tmp_path / "a.mat", {"U": np.ones((2, 30)), "Y": np.ones((3, 30)), "s": {"f": 1}})
    assert refusal(tmp_path / "a.mat").endswith(
        "has no array named X: it holds U (2, 30), Y (3, 30), s (a struct), so name the one to use with `inputs`. "
        "What is inside s is not looked at: save X, F and J on the first level, in MATLAB with "
        "save('a.mat', '-struct', 's')."
    )
    with pytest.raises(ub.UnbraidError, match="has X but neither F nor J"):
        read_problem(tmp_path / "a.mat", inputs="U")
    with pytest.raises(ub.UnbraidError, match="has no array named Z: it holds"):
        read_problem(tmp_path / "a.mat", inputs="U", outputs="Z")
    with pytest.raises(ub.UnbraidError, match="`inputs` names one of them, got U, Y"):
        read_problem(tmp_path / "a.mat", inputs=["U", "Y"])


def test_a_struct_or_a_group_in_place_of_arrays_is_called_so(tmp_path: Path) -> None:
    arrays = {"X": np.ones((2, 30)), "F": np.ones((3, 30))}
    advice = "What is inside data is not looked at: save X, F and J on the first level"
    scipy.io.savemat(tmp_path / "five.mat", {"data": arrays})
    for name, attributes in (("seven.mat", {"MATLAB_class": np.bytes_("struct")}), ("group.h5", {})):
        with h5py.File(tmp_path / name, "w") as file:
            group = file.create_group("data")
            group.attrs.update(attributes)
            for letter, array in arrays.items():
                group[letter] = array
    for name in ("five.mat", "seven.mat"):
        save = f"in MATLAB with save('{name}', '-struct', 'data')"
        assert refusal(tmp_path / name).endswith(f"named X: it holds data (a struct). {advice}, {save}.")
    assert refusal(tmp_path / "group.h5").endswith(f"has no array named X: it holds data (a group). {advice}.")


# HDF5.


def hdf5_file(path: Path, change: Callable[[h5py.File], object]) -> Path:
    write_matlab73(path, {"X": np.ones((2, 30)), "F": np.ones((3, 30))})
    with h5py.File(path, "r+") as file:
        del file["X"]
        change(file)
    return path


def layouts(file: h5py.File) -> None:
    virtual = h5py.VirtualLayout((30, 2), "f8")
    virtual[...] = h5py.VirtualSource("other.h5", "X", (30, 2))
    file.create_virtual_dataset("X", virtual)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda file: file.__setitem__("X", h5py.ExternalLink("other.h5", "/X")), "it is a link"),
        (lambda file: file.__setitem__("X", h5py.SoftLink("/F")), "it is a link"),
        (layouts, "it is stored in other files, which are not read"),
        (
            lambda file: file.create_dataset("X", (30, 2), "f8", external=[("/etc/passwd", 0, 480)]),
            "it is stored in other files, which are not read",
        ),
        (lambda file: file.create_group("X"), "it is a group: save what it holds on the first level"),
        (lambda file: file.create_dataset("X", (30, 2), h5py.ref_dtype), "type object"),
        (lambda file: file.create_dataset("X", data=["text"]), "type object"),
        (lambda file: file.create_dataset("X", (30, 2), "c16"), "type complex128"),
        (lambda file: file.create_dataset("X", data=h5py.Empty("f8")), "must be an array of real numbers"),
        (
            lambda file: file.create_dataset("X", (30, 2), "u2").attrs.__setitem__("MATLAB_class", "char"),
            "of class char",
        ),
        (lambda file: file.create_dataset("X", (2,), "u8").attrs.__setitem__("MATLAB_empty", 1), "it is empty"),
    ],
)
def test_only_what_the_file_itself_holds_is_read(
    tmp_path: Path, change: Callable[[h5py.File], object], said: str
) -> None:
    assert said in refusal(hdf5_file(tmp_path / "a.mat", change))


def test_filters_that_would_be_looked_for_in_libraries_are_refused(tmp_path: Path) -> None:
    def filtered(file: h5py.File) -> None:
        settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        settings.set_chunk((10, 2))
        settings.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, ())
        space = h5py.h5s.create_simple((30, 2))
        h5py.h5d.create(file.id, b"X", h5py.h5t.NATIVE_DOUBLE, space, settings)

    assert "compressed by the filters [32015]" in refusal(hdf5_file(tmp_path / "a.mat", filtered))


def test_a_claim_of_much_room_takes_none(tmp_path: Path) -> None:
    huge = hdf5_file(tmp_path / "a.mat", lambda file: file.create_dataset("X", (10**7, 10**6), "f8", chunks=(10, 10)))
    assert any(said in refusal(huge) for said in ("would take", "fit neither"))


def test_a_chunk_that_unpacks_to_more_than_a_chunk_is_refused(tmp_path: Path) -> None:
    def bomb(file: h5py.File) -> None:
        dataset = file.create_dataset("X", (30, 2), "f8", chunks=(30, 2), compression="gzip")
        dataset.id.write_direct_chunk((0, 0), zlib.compress(bytes(2 * hdf5.HARMLESS), 9))

    path = hdf5_file(tmp_path / "a.mat", bomb)
    assert path.stat().st_size < 2**20
    assert "unpacks to more than its shape allows" in refusal(path)


def test_large_chunks_are_no_bombs(tmp_path: Path) -> None:
    X = np.random.default_rng(0).random((30_000, 2))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=X.shape, compression="gzip", shuffle=True, fletcher32=True)
        file.create_dataset("F", data=X, chunks=(1000, 1), compression="lzf")
    assert np.array_equal(read(tmp_path / "a.h5").X, X)


# Optional packages.


@pytest.mark.parametrize("name", ["seven.mat", "samples.parquet"])
def test_a_missing_package_is_named(
    whole: dict[str, bytes], tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(whole[name])
    monkeypatch.setattr(sources, "find_spec", lambda name: None)
    with pytest.raises(ub.UnbraidError, match=r"which is not installed: pip install 'unbraid\[files\]'"):
        read(tmp_path / name)


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
