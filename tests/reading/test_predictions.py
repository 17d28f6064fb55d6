"""Predictions are written as the ending of a name says, whole or not at all, and read back bit by bit."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
import scipy.io
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import unbraid as ub
from unbraid.kernels.arrays import Array
from unbraid.reading import predictions, read_problem, sources
from unbraid.reading.predictions import WRITERS, Predictions, with_jacobians, write_predictions

TABLES = (".csv", ".parquet")
finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def some_predictions(draw: st.DrawFn) -> Predictions:
    """Any numbers, of any size and layout."""
    S, m, n = (draw(st.integers(1, most)) for most in (5, 3, 3))
    X, F, J = (draw(arrays(np.float64, shape, elements=finite)) for shape in ((S, m), (S, n), (S, n, m)))
    return Predictions(X, F, J if draw(st.booleans()) else None, draw(st.sampled_from(predictions_layouts())))


def predictions_layouts() -> Sequence[str]:
    return ("samples-first", "samples-last")


def usual(S: int = 6) -> Predictions:
    rng = np.random.default_rng(0)
    return Predictions(rng.standard_normal((S, 2)), rng.standard_normal((S, 3)), rng.standard_normal((S, 3, 2)))


def same_bits(one: Array, other: Array) -> bool:
    """Also the sign of 0."""
    return one.shape == other.shape and one.tobytes() == np.ascontiguousarray(other).tobytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("predictions")


@given(given=some_predictions())
def test_arrays_are_read_back_bit_by_bit(folder: Path, given: Predictions) -> None:
    wanted = given.arrays()
    for suffix in (".npz", ".npy", ".mat"):
        path = folder / f"values{suffix}"
        write_predictions(path, given)
        if suffix == ".npy":
            assert same_bits(np.load(path), wanted["F"])
            continue
        read = np.load(path) if suffix == ".npz" else scipy.io.loadmat(path)
        assert {name for name in read if not name.startswith("_")} == set(wanted)
        for name in wanted:
            assert same_bits(read[name], wanted[name])


@pytest.mark.parametrize("suffix", TABLES)
@given(given=some_predictions())
def test_tables_are_read_back_bit_by_bit(folder: Path, suffix: str, given: Predictions) -> None:
    """By the same reader as samples are: what was predicted can be fitted again."""
    path = folder / f"values{suffix}"
    write_predictions(path, given)
    slopes = () if given.J is None else "d{output}/d{input}"
    problem = read_problem(path, "x*", "y*", slopes).problem
    assert problem.F is not None
    assert same_bits(np.asarray(problem.X), given.X)
    assert same_bits(np.asarray(problem.F), given.F)
    if given.J is not None:
        assert problem.J is not None
        assert same_bits(np.asarray(problem.J), given.J)


@pytest.mark.parametrize("suffix", TABLES)
@given(names=st.lists(st.text(max_size=6), min_size=5, max_size=5))
@example(names=["#x", "a;b;c|d", 'he said "y"', "speed, rpm", "Kräfte [N]"])
@example(names=["x", "x", "x_2", "x", ""])
@example(names=["=1+1", "'=x", "@a", "-b", "+c"])
def test_columns_have_the_names_of_inputs_and_outputs(folder: Path, suffix: str, names: list[str]) -> None:
    """Whatever they are: what would steer a terminal is replaced, and no two are the same."""
    path = folder / f"values{suffix}"
    given = replace(usual(), J=None, input_names=names[:2], output_names=names[2:])
    write_predictions(path, given)
    columns = given.columns()
    assert len(set(columns)) == 5
    plain = [name for name in names if name.isprintable() and names.count(name) == 1]
    assert set(plain) <= set(columns)
    if suffix == ".csv":
        header = next(csv.reader(path.read_text(encoding="utf-8").splitlines()), [])
        assert not any(name.startswith(tuple("=+-@")) for name in header)
    if suffix == ".parquet":
        assert pyarrow.parquet.read_table(path).column_names == columns
    elif all(name.strip() and name == name.strip() for name in columns) and not all(map(str.isdecimal, columns)):
        with predictions_table(path) as table:
            assert list(table.columns) == columns
            assert same_bits(table.read(columns), np.hstack([given.X, given.F]))


def predictions_table(path: Path) -> Any:
    from unbraid.reading.kinds import find_opener

    return find_opener(path)(path)


def test_what_was_written_is_told(tmp_path: Path) -> None:
    given = usual()
    assert write_predictions(tmp_path / "v.npz", given) == "F (6, 3) and J (6, 3, 2)"
    assert write_predictions(tmp_path / "v", replace(given, layout="samples-last")) == "F (3, 6) and J (3, 2, 6)"
    assert write_predictions(tmp_path / "v.npy", given) == "F (6, 3)"
    table = "6 rows (inputs x1, x2, outputs a, b, c, Jacobians in 6 columns)"
    assert write_predictions(tmp_path / "v.CSV", replace(given, output_names="abc")) == table
    header = (tmp_path / "v.CSV").read_text().partition("\n")[0]
    assert header == "x1,x2,a,b,c,da/dx1,da/dx2,db/dx1,db/dx2,dc/dx1,dc/dx2"


def test_jacobians_go_to_arrays_unless_told_otherwise() -> None:
    usually = {suffix: with_jacobians(f"v{suffix}", None) for suffix in WRITERS}
    assert usually == {".npz": True, ".npy": False, ".mat": True, ".csv": False, ".parquet": False}
    for suffix in set(WRITERS) - {".npy"}:
        assert [with_jacobians(f"v{suffix}", asked) for asked in (True, False)] == [True, False]
    with pytest.raises(
        ub.UnbraidError, match=r"v\.npy cannot hold F and J: an \.npy file is one array, F\. Write \.npz"
    ):
        with_jacobians("v.npy", True)


@pytest.mark.parametrize("name", ["v.txt", "v.xlsx", "v.h5", "v.tar.gz", "v.1"])
def test_other_endings_are_refused_with_those_there_are(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        ub.UnbraidError, match=r"are written as \.npz, \.npy, \.mat, \.csv or \.parquet, so end its name"
    ):
        write_predictions(tmp_path / name, usual())
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"values{suffix}"
    write_predictions(path, usual())
    before = path.read_bytes()
    write = WRITERS[suffix].write

    def broken(*arguments: Any) -> None:
        write(*arguments)
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(WRITERS, suffix, replace(WRITERS[suffix], write=broken))
    with pytest.raises(ub.UnbraidError, match="cannot be written: no space left on device"):
        write_predictions(path, usual(7))
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == before


@pytest.mark.parametrize("suffix", WRITERS)
def test_the_same_predictions_give_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    for name in ("one", "two"):
        write_predictions(tmp_path / f"{name}{suffix}", usual())
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


def test_tables_are_written_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbraid.kernels.arrays.TEMPORARY_ENTRIES", 100)
    given = usual(1000)
    for suffix in TABLES:
        write_predictions(tmp_path / f"v{suffix}", given)
        problem = read_problem(tmp_path / f"v{suffix}", "x*", "y*").problem
        assert problem.F is not None
        assert same_bits(np.asarray(problem.F), given.F)


def test_an_array_too_large_for_matlab_is_refused(tmp_path: Path) -> None:
    huge = np.broadcast_to(np.zeros((1, 1, 1)), (2**15, 2**7, 2**7))
    with pytest.raises(
        ub.UnbraidError, match=r"J \(32768, 128, 128\) takes 4 GiB, and MATLAB's files hold arrays of less"
    ):
        write_predictions(tmp_path / "v.mat", Predictions(huge[:, 0], huge[:, :, 0], huge))
    assert not any(tmp_path.iterdir())


def test_a_missing_package_is_named_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "find_spec", lambda name: None)
    with pytest.raises(ub.UnbraidError, match=r"Parquet files need pyarrow, which is not installed"):
        with_jacobians(tmp_path / "v.parquet", None)
    assert predictions.WRITABLE.endswith("or .parquet")
