"""HDF5 files from strangers: only what the file itself holds is read, and no more of it than its shapes allow."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from sample_files import read_columns, refusal, write_matlab73
from unbraid.reading.matlab import hdf5


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
        (lambda file: file.create_group("X"), "it is a struct: name an array in it."),
        (lambda file: file.create_dataset("X", (30, 2), h5py.ref_dtype), "it is a struct array: save one of its"),
        (
            lambda file: file.create_dataset("X", (30, 2), h5py.ref_dtype).attrs.__setitem__("MATLAB_class", "cell"),
            "it is a cell array",
        ),
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
    assert np.array_equal(read_columns(tmp_path / "a.h5").X, X)
