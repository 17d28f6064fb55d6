"""Files of samples, written as the programs that people have write them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import scipy.io

import unbraid as ub
from unbraid.kernels.arrays import Array
from unbraid.reading import read_problem

Arrays = Mapping[str, Any]


def parts(problem: ub.Problem) -> dict[str, Array]:
    """X, F and J, those that there are."""
    given = {"X": problem.X, "F": problem.F, "J": problem.J}
    return {name: array for name, array in given.items() if array is not None}


def samples_last(arrays: Arrays) -> dict[str, Any]:
    """The same as MATLAB code has them."""
    return {name: np.moveaxis(array, 0, -1) for name, array in arrays.items()}


def write_matlab5(path: Path, arrays: Arrays, compressed: bool = True) -> None:
    """As MATLAB's `save` does."""
    scipy.io.savemat(path, dict(arrays), do_compression=compressed)


def write_matlab73(path: Path, arrays: Arrays, compression: str | None = "gzip") -> None:
    """As MATLAB's `save -v7.3` does: a header of 512 bytes, axes reversed, at least two of them, and a class."""
    with h5py.File(path, "w", userblock_size=512) as file:
        matlab73_members(file, arrays, compression)
    header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Mon Jan  1 00:00:00 2024 HDF5 schema 1.00 ."
    with path.open("r+b") as raw:
        raw.write(header.ljust(116) + bytes(8) + b"\x00\x02IM")


def matlab73_members(group: h5py.Group, arrays: Arrays, compression: str | None = "gzip") -> None:
    """Variables, or the fields of a struct, which is a group."""
    for name, value in arrays.items():
        if isinstance(value, Mapping):
            matlab73_members(group.create_group(name), value, compression)
            group[name].attrs["MATLAB_class"] = np.bytes_("struct")
        else:
            two = without_trailing_ones(np.atleast_2d(value))
            group.create_dataset(name, data=two.T, compression=compression)
            group[name].attrs["MATLAB_class"] = np.bytes_("double")


def write_octave_text(path: Path, arrays: Arrays) -> None:
    """As Octave's `save` does by default."""
    header = "# Created by Octave 7.3.0, Mon Jan 01 00:00:00 2024 UTC <somebody@somewhere>\n"
    path.write_text(header + "".join(octave_entry(name, value) for name, value in arrays.items()), encoding="utf-8")


def octave_entry(name: str, value: Any) -> str:
    """A variable or a field: a struct, a matrix, or an array with more axes."""
    if isinstance(value, Mapping):
        fields = "".join(octave_entry(field, inner) for field, inner in value.items())
        return f"# name: {name}\n# type: scalar struct\n# ndims: 2\n 1 1\n# length: {len(value)}\n{fields}\n\n"
    array = without_trailing_ones(np.atleast_2d(np.asarray(value, dtype=np.float64)))
    if array.ndim == 2:
        sizes = f"# rows: {array.shape[0]}\n# columns: {array.shape[1]}\n"
        numbers = "".join(f" {' '.join(map(repr, row))}\n" for row in array.tolist())
    else:
        sizes = f"# ndims: {array.ndim}\n {' '.join(map(str, array.shape))}\n"
        numbers = "".join(f" {number!r}\n" for number in array.ravel(order="F").tolist())
    return f"# name: {name}\n# type: matrix\n{sizes}{numbers}\n\n"


def write_octave_hdf5(path: Path, arrays: Arrays) -> None:
    """As Octave's `save -hdf5` does: everything is a group with a type and a value, axes reversed."""
    with h5py.File(path, "w") as file:
        octave_members(file, arrays)


def octave_members(group: h5py.Group, arrays: Arrays) -> None:
    """Variables, or the fields of a struct."""
    for name, value in arrays.items():
        one = group.create_group(name)
        one.attrs["OCTAVE_NEW_FORMAT"] = np.uint8(1)
        one["type"] = np.bytes_("scalar struct" if isinstance(value, Mapping) else "matrix")
        if isinstance(value, Mapping):
            octave_members(one.create_group("value"), value)
        else:
            one["value"] = without_trailing_ones(np.atleast_2d(value)).T


def without_trailing_ones(array: Array) -> Array:
    """As MATLAB has arrays."""
    while array.ndim > 2 and array.shape[-1] == 1:
        array = array[..., 0]
    return array


def write_npy(path: Path, arrays: Arrays) -> None:
    """A folder."""
    path.mkdir()
    for name, array in arrays.items():
        np.save(path / f"{name}.npy", array)


def columns(arrays: Arrays) -> dict[str, Any]:
    """x1, x2, ..., y1, y2, ..., dy1/dx1, dy1/dx2, ..., and w where there are weights."""
    m = arrays["X"].shape[1]
    table = {f"x{k + 1}": arrays["X"][:, k] for k in range(m)}
    if "F" in arrays:
        table |= {f"y{i + 1}": arrays["F"][:, i] for i in range(arrays["F"].shape[1])}
    if "J" in arrays:
        for i in range(arrays["J"].shape[1]):
            table |= {f"dy{i + 1}/dx{k + 1}": arrays["J"][:, i, k] for k in range(m)}
    if "weights" in arrays:
        table["w"] = arrays["weights"]
    return table


def write_csv(path: Path, arrays: Arrays, separator: str = ",") -> None:
    """With the shortest text that gives each number back."""
    table = columns(arrays)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerow(table)
        writer.writerows(np.column_stack(list(table.values())).tolist())


def write_parquet(path: Path, arrays: Arrays) -> None:
    """In row groups of 25."""
    pyarrow.parquet.write_table(pyarrow.table(columns(arrays)), path, row_group_size=25)


def write_npz(path: Path, arrays: Arrays) -> None:
    """As people do."""
    np.savez(path, **arrays)


def write_hdf5(path: Path, arrays: Arrays) -> None:
    """As people do in Python: samples first, no reversal, no classes."""
    with h5py.File(path, "w") as file:
        hdf5_members(file, arrays)


def hdf5_members(group: h5py.Group, arrays: Arrays) -> None:
    """Datasets, and groups of them."""
    for name, value in arrays.items():
        if isinstance(value, Mapping):
            hdf5_members(group.create_group(name), value)
        else:
            group[name] = value


Writer = Callable[[Path, Arrays], object]
SAMPLES_FIRST: dict[str, Writer] = {"samples.npz": write_npz, "samples.h5": write_hdf5, "samples": write_npy}
MATLAB: dict[str, Writer] = {
    "five.mat": write_matlab5,
    "plain.mat": lambda path, arrays: write_matlab5(path, arrays, compressed=False),
    "seven.mat": write_matlab73,
    "octave.mat": write_octave_text,
    "octave.h5": write_octave_hdf5,
}
HDF5 = ("seven.mat", "samples.h5", "octave.h5")
NESTED: dict[str, Writer] = {**MATLAB, "samples.h5": write_hdf5}
"""What can hold structs or groups, given as dictionaries."""
TABLES: dict[str, Writer] = {
    "samples.csv": write_csv,
    "samples.tsv": lambda path, arrays: write_csv(path, arrays, "\t"),
    "samples.txt": lambda path, arrays: write_csv(path, arrays, ";"),
    "samples.dat": lambda path, arrays: write_csv(path, arrays, " "),
    "samples.parquet": write_parquet,
}


def read_columns(path: Path) -> ub.Problem:
    """The samples in a file of any kind, whose columns are named as `columns` names them."""
    if path.suffix in (".csv", ".tsv", ".txt", ".dat", ".parquet"):
        return read_problem(path, inputs="x*", outputs="y*").problem
    return read_problem(path).problem


def refusal(path: Path) -> str:
    """The one sentence with which a file is refused."""
    with pytest.raises(ub.UnbraidError) as caught:
        read_columns(path)
    text = str(caught.value)
    assert path.name in text or path.parent.name in text
    assert text.isprintable()
    assert len(text) < 600
    return text


def refused(path: Path) -> bool:
    """Whether a file is refused; anything but a refusal fails the test."""
    try:
        read_columns(path)
    except ub.UnbraidError:
        return True
    return False
