"""What is written in any format is read back bit by bit, and it is said what was taken for what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow.parquet
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from sample_files import MATLAB, SAMPLES_FIRST, TABLES, Writer, parts, samples_last, without_trailing_ones
from unbraid.kernels.arrays import Array
from unbraid.reading import delimited, parquet, read_points, read_problem

KEPT = ("XFJ", "XF", "XJ")
sizes = st.tuples(st.integers(3, 60), st.integers(1, 4), st.integers(1, 4))


def some_arrays(S: int = 60, m: int = 2, n: int = 3, keep: str = KEPT[0]) -> dict[str, Any]:
    rng = np.random.default_rng(S + 100 * m + 1000 * n)
    arrays = {
        "X": rng.standard_normal((S, m)),
        "F": 1e-7 * rng.standard_normal((S, n)),
        "J": rng.standard_normal((S, n, m)),
    }
    return {name: array for name, array in arrays.items() if name in keep}


def agree(problem: ub.Problem, arrays: dict[str, Any]) -> bool:
    read = parts(problem)
    return read.keys() == arrays.keys() and all(np.array_equal(read[name], arrays[name]) for name in read)


@pytest.mark.parametrize("keep", KEPT)
@pytest.mark.parametrize(("name", "write"), SAMPLES_FIRST.items(), ids=SAMPLES_FIRST)
def test_arrays_are_read_samples_first(tmp_path: Path, name: str, write: Writer, keep: str) -> None:
    arrays = some_arrays(keep=keep)
    write(tmp_path / name, arrays)
    samples = read_problem(tmp_path / name)
    assert agree(samples.problem, arrays)
    assert samples.taken == "samples first"


@pytest.mark.parametrize(("name", "write"), MATLAB.items(), ids=MATLAB)
@given(size=sizes, keep=st.sampled_from(KEPT), last=st.booleans())
def test_matlab_files_are_read_in_the_layout_that_is_named(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    write: Writer,
    size: tuple[int, int, int],
    keep: str,
    last: bool,
) -> None:
    arrays = some_arrays(*size, keep=keep)
    path = tmp_path_factory.getbasetemp() / name
    write(path, {name: without_trailing_ones(a) for name, a in (samples_last(arrays) if last else arrays).items()})
    samples = read_problem(path, layout="samples-last" if last else "samples-first")
    assert agree(samples.problem, arrays)


@pytest.mark.parametrize("keep", KEPT)
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize(("name", "write"), MATLAB.items(), ids=MATLAB)
def test_the_layout_of_matlab_files_is_told_from_their_shapes(
    tmp_path: Path, name: str, write: Writer, last: bool, keep: str
) -> None:
    arrays = some_arrays(keep=keep)
    write(tmp_path / name, samples_last(arrays) if last else arrays)
    samples = read_problem(tmp_path / name)
    assert agree(samples.problem, arrays)
    assert samples.taken == ("samples last" if last else "samples first")


@pytest.mark.parametrize(("name", "write"), TABLES.items(), ids=TABLES)
@given(size=sizes, keep=st.sampled_from(KEPT))
def test_tables_are_read_bit_by_bit(
    tmp_path_factory: pytest.TempPathFactory, name: str, write: Writer, size: tuple[int, int, int], keep: str
) -> None:
    arrays = some_arrays(*size, keep=keep)
    path = tmp_path_factory.getbasetemp() / name
    write(path, arrays)
    _, m, n = size
    slopes = [f"dy{i + 1}/dx{k + 1}" for i in range(n) for k in range(m)] if "F" not in keep else "d{output}/d{input}"
    samples = read_problem(path, "x*", "y*" if "F" in keep else (), slopes if "J" in keep else ())
    assert agree(samples.problem, arrays)
    names = tuple(f"y{i + 1}" for i in range(n))
    assert samples.problem.output_names == (names if "F" in keep else None)


@pytest.mark.parametrize("dtype", ["f4", "i1", "u2", "i8", "?"])
@pytest.mark.parametrize("name", ["s.npz", "s.h5", "s.mat", "v73.mat"])
def test_numbers_of_any_kind_are_read(tmp_path: Path, name: str, dtype: str) -> None:
    X = (10 * np.random.default_rng(0).random((20, 2))).astype(dtype)
    F = np.ones((20, 1))
    path = tmp_path / name
    write = {**SAMPLES_FIRST, **MATLAB}[
        {"s.npz": "samples.npz", "s.h5": "samples.h5", "s.mat": "five.mat", "v73.mat": "seven.mat"}[name]
    ]
    write(path, {"X": X, "F": F})
    assert np.array_equal(read_problem(path).problem.X, X)


def test_arrays_may_have_other_names_and_lower_case(tmp_path: Path) -> None:
    arrays = some_arrays()
    np.savez(tmp_path / "lower.npz", **{name.lower(): array for name, array in arrays.items()})
    assert agree(read_problem(tmp_path / "lower.npz").problem, arrays)
    np.savez(tmp_path / "other.npz", U=arrays["X"], Y=arrays["F"], dY=arrays["J"], X=0)
    samples = read_problem(tmp_path / "other.npz", inputs="U", outputs="Y", jacobians=["dY"])
    assert agree(samples.problem, arrays)


def test_upper_case_goes_first(tmp_path: Path) -> None:
    arrays = some_arrays()
    scipy.io.savemat(tmp_path / "both.mat", {"x": np.ones(4), **arrays})
    assert agree(read_problem(tmp_path / "both.mat").problem, arrays)
    del arrays["J"]
    scipy.io.savemat(tmp_path / "counter.mat", {"j": 7, **arrays})
    assert agree(read_problem(tmp_path / "counter.mat").problem, arrays)


def test_single_npy_files_are_named_by_their_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = some_arrays()
    monkeypatch.chdir(tmp_path)
    for name, file in (("X", "points.npy"), ("F", "values.npy"), ("J", "slopes.npy")):
        np.save(file, arrays[name])
    assert agree(read_problem("points.npy", (), "values.npy", "slopes.npy").problem, arrays)
    assert agree(read_problem(".", "points.npy", "values", "slopes").problem, arrays)
    assert np.array_equal(read_points("points.npy", 2).X, arrays["X"])


@pytest.mark.parametrize(("name", "write"), [*SAMPLES_FIRST.items(), *MATLAB.items()])
def test_points_are_read_from_arrays(tmp_path: Path, name: str, write: Writer) -> None:
    arrays = some_arrays()
    write(tmp_path / name, arrays)
    points = read_points(tmp_path / name, 2)
    assert np.array_equal(points.X, arrays["X"])
    assert points.layout == "samples-first"


@pytest.mark.parametrize(("name", "write"), TABLES.items(), ids=TABLES)
def test_points_are_read_from_tables(tmp_path: Path, name: str, write: Writer) -> None:
    arrays = some_arrays()
    write(tmp_path / name, arrays)
    points = read_points(tmp_path / name, 2, inputs=["x2", "x1"])
    assert np.array_equal(points.X, arrays["X"][:, ::-1])
    assert points.taken == "inputs x2, x1"
    with pytest.raises(ub.UnbraidError, match=r"the model has 3 inputs, and `inputs` names 2 columns, x1, x2"):
        read_points(tmp_path / name, 3, inputs="x*")
    with pytest.raises(ub.UnbraidError, match="name the 2 columns of inputs"):
        read_points(tmp_path / name, 2)


def test_other_variables_do_no_harm(tmp_path: Path) -> None:
    """Cells, structs, text, objects: they are listed, and left alone."""
    arrays = some_arrays()
    cell = np.array([np.ones(3), "text"], dtype=object)
    others = {"c": cell, "s": {"field": 1.0}, "t": "text", "z": 1j * np.ones(3)}
    scipy.io.savemat(tmp_path / "mixed.mat", {**others, **arrays})
    assert agree(read_problem(tmp_path / "mixed.mat").problem, arrays)
    MATLAB["seven.mat"](tmp_path / "seven.mat", arrays)
    with h5py.File(tmp_path / "seven.mat", "r+") as file:
        file.create_group("#refs#")
        file.create_group("s").attrs["MATLAB_class"] = np.bytes_("struct")
        file["t"] = np.array([[72], [105]], dtype="u2")
        file["t"].attrs["MATLAB_class"] = np.bytes_("char")
    assert agree(read_problem(tmp_path / "seven.mat").problem, arrays)


def test_big_endian_files_are_read(tmp_path: Path) -> None:
    """Older workstations wrote them, and so does whoever wants to."""
    numbers = np.arange(6.0).reshape(2, 3)
    element = matlab_element(">", "X", numbers) + matlab_element(">", "F", numbers[:1])
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    (tmp_path / "big.mat").write_bytes(header + element)
    assert np.array_equal(scipy.io.loadmat(tmp_path / "big.mat")["X"], numbers)
    assert np.array_equal(read_problem(tmp_path / "big.mat").problem.X, numbers.T)


def matlab_element(order: str, name: str, numbers: Array) -> bytes:
    """A variable as MATLAB lays it out; its numbers are kept as uint8, as MATLAB does where they allow it."""
    u4 = np.dtype(order + "u4")
    flags = np.array([6, 8, 6, 0], u4).tobytes()
    dimensions = np.array([5, 8, *numbers.shape], u4).tobytes()
    called = np.array([1 << 16 | 1], u4).tobytes() + name.encode().ljust(4, b"\0")
    data = numbers.astype("u1").tobytes(order="F")
    values = np.array([2, len(data)], u4).tobytes() + data + bytes(-len(data) % 8)
    body = flags + dimensions + called + values
    return np.array([14, len(body)], u4).tobytes() + body


@pytest.mark.parametrize(("name", "write"), [*SAMPLES_FIRST.items(), *MATLAB.items(), *TABLES.items()])
def test_reading_is_told_to_its_end(tmp_path: Path, name: str, write: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "LINES_AT_ONCE", 25)
    monkeypatch.setattr(parquet, "ROWS_AT_ONCE", 25)
    write(tmp_path / name, some_arrays())
    inputs, outputs, jacobians = ("x*", "y*", "d{output}/d{input}") if name in TABLES else ((), (), ())
    seen: list[ub.Progress] = []
    samples = read_problem(tmp_path / name, inputs, outputs, jacobians, callback=seen.append)
    assert agree(samples.problem, some_arrays())
    assert len(seen) == 3, "three arrays, or 25, 25 and 10 rows"
    assert {one.phase for one in seen} == {"read"}
    assert [one.done for one in seen] == sorted({one.done for one in seen})
    assert seen[-1].total - seen[-1].done in (0, 1), "lines are counted by their ends, and the last may have none"


def test_the_schema_of_a_parquet_table_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes as long as the table is wide, so that once a column would be quadratic."""
    path = tmp_path / "data.parquet"
    asked: list[Any] = []
    pyarrow.parquet.write_table(pyarrow.table({f"x{k}": [1.0, 2.0, 4.0] for k in range(9)}), path)
    schema = pyarrow.parquet.ParquetFile.schema_arrow

    def counting(file: Any) -> Any:
        asked.append(file)
        return schema.fget(file)

    monkeypatch.setattr(pyarrow.parquet.ParquetFile, "schema_arrow", property(counting))
    assert read_problem(path, outputs="x8").problem.m == 8
    assert len(asked) == 1
