"""Arrays in MATLAB's structs and in HDF5's groups are named by paths; what else lies there is told, and left alone."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.io
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from sample_files import HDF5, NESTED, Writer, hdf5_members, octave_entry, parts
from unbraid.cli import app
from unbraid.reading import read_points, read_problem, sources
from unbraid.reading.matlab import octave_text, version5

writers = pytest.mark.parametrize(("name", "write"), NESTED.items(), ids=NESTED)
PROBLEM = ub.datasets.trig(S=30, rng=0)[0]


def arrays() -> dict[str, Any]:
    return parts(PROBLEM)


def agree(read: ub.Problem, wanted: str = "XFJ") -> bool:
    found = parts(read)
    return "".join(found) == wanted and all(np.array_equal(found[name], arrays()[name]) for name in found)


def refusal(path: Path, inputs: str | tuple[str, ...] = ()) -> str:
    """The one sentence with which a file is refused, without the file's name."""
    with pytest.raises(ub.UnbraidError) as caught:
        read_problem(path, inputs)
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 600
    return text.replace(str(path), "FILE")


@writers
@pytest.mark.parametrize("between", "/.")
def test_arrays_are_named_by_paths(tmp_path: Path, name: str, write: Writer, between: str) -> None:
    given = arrays()
    write(tmp_path / name, {"other": np.ones((2, 2)), "data": {"train": {"X": given["X"], "F": given["F"]}, **given}})
    inside = between.join(["data", "train", ""])
    samples = read_problem(tmp_path / name, f"{inside}X", f"{inside}F", f"data{between}J", "samples-first")
    assert agree(samples.problem)
    assert np.array_equal(read_points(tmp_path / name, 2, f"{inside}X", "samples-first").X, given["X"])
    assert agree(read_problem(tmp_path / name, "/data/X", layout="samples-first").problem)


@writers
def test_weights_are_named_by_a_path(tmp_path: Path, name: str, write: Writer) -> None:
    write(tmp_path / name, {**arrays(), "counts": {"w": np.arange(1.0, 31.0)}})
    problem = read_problem(tmp_path / name, layout="samples-first", weights="counts/w").problem
    assert problem.weights is not None
    assert np.array_equal(np.asarray(problem.weights), np.arange(1.0, 31.0))


@writers
def test_values_and_jacobians_lie_where_x_does(tmp_path: Path, name: str, write: Writer) -> None:
    given = arrays()
    elsewhere = {"F": np.ones((4, 4)), "J": np.ones((4, 4)), "weights": np.ones(3)}
    write(tmp_path / name, {**elsewhere, "data": {"X": given["X"], "F": given["F"], "weights": np.full(30, 2.0)}})
    samples = read_problem(tmp_path / name, "data/X", layout="samples-first")
    assert agree(samples.problem, "XF")
    assert samples.problem.weights is not None
    assert samples.taken == "samples first, weighted by data/weights"
    write(tmp_path / "lower", {"data": {key.lower(): value for key, value in given.items()}})
    assert agree(read_problem(tmp_path / "lower", "data/x", layout="samples-first").problem)


@writers
def test_a_missing_array_is_told_with_the_paths_there_are(tmp_path: Path, name: str, write: Writer) -> None:
    path = tmp_path / name
    write(path, {"data": {"F": np.ones((30, 3)), "X": np.ones((30, 2))}})
    held = "the arrays data/F (30, 3), data/X (30, 2)"
    assert refusal(path) == f"FILE has no array named X: it holds {held}, so set `inputs` to data/X."
    assert refusal(path, "data/Q").endswith(f"named data/Q: it holds {held}, so name the one to use with `inputs`.")
    what = "a group" if name == "samples.h5" else "a struct"
    assert refusal(path, "data") == (
        f"FILE: data must be an array of real numbers, and it is {what}: name an array in it, of data/F, data/X."
    )


def test_the_command_line_takes_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scipy.io.savemat("all.mat", {"data": {"train": arrays(), "test": {"X": arrays()["X"][:7]}}})
    names = ["--inputs", "data/train/X", "--outputs", "data.train.F", "--jacobians", "data/train/J"]
    fit = ["--rank", "2", "--starts", "1", "--max-sweeps", "5", "-o", "model.npz"]
    result = CliRunner().invoke(app, ["fit", "all.mat", *names, *fit])
    assert result.exit_code == 0, result.output
    result = CliRunner().invoke(app, ["predict", "model.npz", "all.mat", "--inputs", "data/test/X", "-o", "v.mat"])
    assert "Read 7 points, samples first.\nWrote F (7, 2) and J (7, 2, 2) to v.mat.\n" in result.stdout
    result = CliRunner().invoke(app, ["fit", "all.mat", *fit])
    assert "so set --inputs to data/train/X." in result.stderr


# What else lies in a struct.


def matlab_others() -> dict[str, Any]:
    return {
        "cell": np.array([np.ones(3), "a"], dtype=object),
        "text": "text",
        "complex": 1j * np.ones((2, 3)),
        "many": np.array([(1, 2), (3, 4)], dtype=[("a", "O"), ("b", "O")]),
        "sparse": scipy.sparse.eye_array(3).tocsc(),
    }


OCTAVE_OTHERS = """\
# name: cell
# type: cell
# rows: 1
# columns: 2
# name: <cell-element>
# type: scalar
1


# name: <cell-element>
# type: scalar struct
# ndims: 2
 1 1
# length: 1
# name: X
# type: scalar
1






# name: text
# type: sq_string
# elements: 1
# length: 3
abc


# name: complex
# type: complex matrix
# rows: 1
# columns: 1
 (1,1)


# name: many
# type: struct
# ndims: 2
 1 2
# length: 1
# name: X
# type: cell
# rows: 1
# columns: 2
# name: <cell-element>
# type: scalar
1


# name: <cell-element>
# type: scalar
2






# name: sparse
# type: sparse matrix
# nnz: 1
# rows: 2
# columns: 2
1 1 1


# name: handle
# type: function handle
@<anonymous>
@(x) x + X
# length: 1
# name: X
# type: scalar
5




# name: range
# type: double_range
# base, limit, increment
0 5 1


"""
"""As Octave 7.3 writes them."""


@pytest.mark.parametrize("compressed", [True, False])
def test_what_else_lies_in_a_struct_of_matlab_does_no_harm(tmp_path: Path, compressed: bool) -> None:
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"data": {**matlab_others(), **arrays()}}, do_compression=compressed)
    assert agree(read_problem(path, "data/X", layout="samples-first").problem)
    for name, what in [("cell", "a cell array"), ("text", "text"), ("complex", "complex"), ("many", "a struct array")]:
        assert f"data/{name} must be an array of real numbers, and it is {what}: " in refusal(path, f"data/{name}")
    assert "no array named data/many/a" in refusal(path, "data/many/a")
    assert "it holds data/cell (a cell array), data/text (text)" in refusal(path)


def test_what_else_lies_in_a_text_file_of_octave_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    inner = OCTAVE_OTHERS + "".join(octave_entry(name, value) for name, value in arrays().items())
    head = "# Created by Octave 7.3.0\n"
    nested = f"# name: data\n# type: scalar struct\n# ndims: 2\n 1 1\n# length: 10\n{inner}\n\n"
    for text, above in ((inner, ""), (nested, "data/")):
        path.write_text(head + text + octave_entry("last", np.ones((2, 2))))
        assert agree(read_problem(path, f"{above}X", layout="samples-first").problem)
        for name, what in [
            ("cell", "a cell array"),
            ("text", "text"),
            ("complex", "complex"),
            ("many", "a struct array"),
            ("sparse", "a sparse matrix"),
            ("handle", "a function handle"),
            ("range", "a range"),
        ]:
            assert f"{above}{name} must be an array of real numbers, and it is {what}: " in refusal(path, above + name)
        assert "last (2, 2)" in refusal(path, "last/Q") or "more" in refusal(path, "last/Q")


def test_numbers_of_octave_of_any_kind_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    kinds = "# name: X\n# type: int32 matrix\n# ndims: 2\n 3 2\n  1\n  2\n  3\n  4\n  5\n  6\n\n\n"
    kinds += "# name: F\n# type: bool matrix\n# rows: 3\n# columns: 1\n 1\n 0\n 1\n\n\n"
    kinds += "# name: G\n# type: float matrix\n# rows: 3\n# columns: 2\n 1.5 NA\n NaN 2\n 3 4\n\n\n"
    path.write_text("# Created by Octave 7.3.0\n" + kinds)
    found = parts(read_problem(path, layout="samples-first").problem)
    assert np.array_equal(found["X"], [[1, 4], [2, 5], [3, 6]])
    assert np.array_equal(found["F"], [[1], [0], [1]])
    found = parts(read_problem(path, outputs="G", layout="samples-first", missing="mask").problem)
    assert np.array_equal(found["F"], np.array([[1.5, np.nan], [np.nan, 2], [3, 4]]), equal_nan=True)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("cell", "a cell array"),
        ("struct", "a struct array"),
        ("sparse matrix", "a sparse matrix"),
        ("sq_string", "text"),
        ("function handle", "a function handle"),
        ("something new", "an object"),
    ],
)
def test_what_else_octave_writes_in_hdf5_is_refused(tmp_path: Path, kind: str, said: str) -> None:
    NESTED["octave.h5"](tmp_path / "a.h5", {"data": arrays()})
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        del file["data/value/X/type"]
        file["data/value/X/type"] = np.bytes_(kind)
    assert f"data/X must be an array of real numbers, and it is {said}: " in refusal(tmp_path / "a.h5", "data/X")


def test_a_sparse_matrix_in_version_73_is_no_struct(tmp_path: Path) -> None:
    NESTED["seven.mat"](tmp_path / "a.mat", {"A": {"data": np.ones(3), "ir": np.ones(3), "jc": np.ones(3)}})
    with h5py.File(tmp_path / "a.mat", "r+") as file:
        file["A"].attrs["MATLAB_class"] = np.bytes_("double")
        file["A"].attrs["MATLAB_sparse"] = np.uint64(3)
    assert "A must be an array of real numbers, and it is a sparse matrix" in refusal(tmp_path / "a.mat", "A")
    assert "it holds A (a sparse matrix)." in refusal(tmp_path / "a.mat", "A/data")


# Strangers' structs and groups.


@pytest.mark.parametrize(
    "link",
    [lambda: h5py.ExternalLink("other.h5", "/data"), lambda: h5py.SoftLink("/real")],
    ids=["external", "soft"],
)
def test_paths_follow_no_links(tmp_path: Path, link: Callable[[], Any]) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        hdf5_members(file, {"data": arrays()})
    with h5py.File(tmp_path / "a.h5", "w") as file:
        hdf5_members(file, {"real": arrays(), "deep": {}})
        file["data"] = link()
        file["deep"]["data"] = link()
    for path in ("data/X", "data", "deep/data/X"):
        assert "must be an array of real numbers, and it is a link: save the numbers" in refusal(
            tmp_path / "a.h5", path
        )
    assert "data (a link)" in refusal(tmp_path / "a.h5", "Q")


def test_groups_may_lead_in_circles(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        hdf5_members(file, {"data": arrays()})
        for k in range(20):
            file[f"data/again{k}"] = file["data"]
    assert "so name the one to use with `inputs`" in refusal(tmp_path / "a.h5", "Q")
    assert agree(read_problem(tmp_path / "a.h5", "data/again3/again0/again1/X").problem)


def test_what_octave_says_of_a_type_is_looked_at_first(tmp_path: Path) -> None:
    for lie in (np.arange(10_000.0), np.bytes_("m" * 1000)):
        NESTED["octave.h5"](tmp_path / "a.h5", arrays())
        with h5py.File(tmp_path / "a.h5", "r+") as file:
            del file["X/type"]
            file["X/type"] = lie
        assert refusal(tmp_path / "a.h5").endswith("truncated or damaged: X cannot be read.")


@pytest.mark.parametrize("name", [name for name in NESTED if name not in HDF5])
@given(at=st.floats(0, 1, exclude_max=True), value=st.integers(0, 255))
def test_a_changed_byte_in_a_struct_is_refused_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, name: str, at: float, value: int
) -> None:
    path = tmp_path_factory.getbasetemp() / f"nested-{name}"
    NESTED[name](path, {"data": {"train": {"X": np.ones((5, 2)), "F": np.ones((5, 1))}, "more": {}}})
    changed = bytearray(path.read_bytes())
    changed[int(at * len(changed))] = value
    path.write_bytes(changed)
    for inputs in ("data/train/X", "X"):
        with suppress(ub.UnbraidError):
            read_problem(path, inputs)


@pytest.mark.parametrize("name", NESTED)
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_truncated_struct_is_refused(tmp_path_factory: pytest.TempPathFactory, name: str, share: float) -> None:
    path = tmp_path_factory.getbasetemp() / f"nested-{name}"
    NESTED[name](path, {"data": {"X": np.ones((5, 2)), "F": np.ones((5, 1))}})
    whole = path.read_bytes()
    path.write_bytes(whole[: round(share * (len(whole) - 5))])  # of a text, the last lines are empty
    with pytest.raises(ub.UnbraidError):
        read_problem(path, "data/X", layout="samples-first")


def test_a_struct_that_lies_about_its_fields_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"data": {"X": np.ones((5, 2)), "F": np.ones((5, 1))}})
    sound = path.read_bytes()
    assert read_problem(path, "data/X", layout="samples-first").problem.S == 5
    width = sound.index(struct.pack("<HHi", 5, 4, 2))
    for lie in (0, -1, 7, 2**31 - 1):
        path.write_bytes(sound[: width + 4] + struct.pack("<i", lie) + sound[width + 8 :])
        assert "damaged" in refusal(path, "data/X")


@pytest.mark.parametrize("name", ["five.mat", "octave.mat"])
def test_a_struct_of_very_many_fields_is_refused(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sources, octave_text, version5):
        monkeypatch.setattr(module, "MOST_PATHS", 20)
    NESTED[name](tmp_path / name, {"data": {f"field{k}": np.ones((1, 1)) for k in range(30)}})
    assert "has more than 20 variables and fields: save X, F and J alone." in refusal(tmp_path / name, "data/field3")


def test_deep_and_wide_files_of_octave_are_refused(tmp_path: Path) -> None:
    level = "# name: X\n# type: scalar struct\n# ndims: 2\n 1 1\n# length: 1\n"
    (tmp_path / "deep.mat").write_text("# Created by Octave\n" + 10_000 * level + octave_entry("X", np.ones((2, 2))))
    assert "damaged" in refusal(tmp_path / "deep.mat")
    for lie in ("-1", "10000000000", "x"):
        text = f"# Created by Octave\n# name: X\n# type: matrix\n# rows: {lie}\n# columns: 2\n 1 2\n"
        (tmp_path / "wide.mat").write_text(text)
        assert "damaged" in refusal(tmp_path / "wide.mat")
    text = "# Created by Octave\n# name: X\n# type: matrix\n# rows: 1\n# columns: 2\n" + " 1" * 1000 + "\n"
    (tmp_path / "long.mat").write_text(text + octave_entry("F", np.ones((1, 1))))
    assert "damaged" in refusal(tmp_path / "long.mat")
