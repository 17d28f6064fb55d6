"""Samples first or last: told from shapes where they tell, and said where they do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.io
from hypothesis import given
from hypothesis import strategies as st

from sample_files import MATLAB
from unbraid.errors import DataError, SettingError
from unbraid.reading import Points, Samples, read_points, read_problem
from unbraid.reading.layout import FIRST, LAST, SampleSizes, find_sizes

Shape = tuple[int, ...]
small = st.integers(1, 5)


def read(folder: Path, shapes: dict[str, Shape], layout: str | None = None) -> Samples:
    scipy.io.savemat(folder / "data.mat", {name: np.ones(shape) for name, shape in shapes.items()})
    return read_problem(folder / "data.mat", layout=layout)


@given(S=small, m=small, n=small, keep=st.sampled_from(["XFJ", "XF", "XJ"]))
def test_the_true_sizes_are_found_in_the_true_layout(S: int, m: int, n: int, keep: str) -> None:
    first = (S, m), (S, n) if "F" in keep else None, (S, n, m) if "J" in keep else None
    last = (m, S), (n, S) if "F" in keep else None, (n, m, S) if "J" in keep else None
    if n > 1 or S > 1 or "F" not in keep:
        assert find_sizes(FIRST, *first) == find_sizes(LAST, *last) == SampleSizes(S, m, n)


@pytest.mark.parametrize(
    ("shapes", "found", "taken"),
    [
        ({"X": (2, 50), "F": (3, 50), "J": (3, 2, 50)}, (50, 2, 3), "samples last"),
        ({"X": (50, 2), "F": (50, 3), "J": (50, 3, 2)}, (50, 2, 3), "samples first"),
        ({"X": (50, 2), "F": (50, 2), "J": (50, 2, 2)}, (50, 2, 2), "samples first"),
        ({"X": (1, 50), "F": (1, 50), "J": (1, 1, 50)}, (50, 1, 1), "samples last"),
        ({"X": (50, 1), "F": (50, 1), "J": (50, 1)}, (50, 1, 1), "samples first"),
        ({"X": (2, 50), "F": (1, 50), "J": (1, 2, 50)}, (50, 2, 1), "samples last"),
        ({"X": (2, 50), "F": (1, 50), "J": (2, 50)}, (50, 2, 1), "samples last"),
        ({"X": (2, 50), "F": (50, 1), "J": (2, 50)}, (50, 2, 1), "samples last"),
        ({"X": (50, 2), "F": (1, 50), "J": (50, 2)}, (50, 2, 1), "samples first"),
        ({"X": (50, 1), "F": (50, 3), "J": (50, 3)}, (50, 1, 3), "samples first"),
        ({"X": (1, 50), "F": (3, 50), "J": (3, 50)}, (50, 1, 3), "samples last"),
        ({"X": (1, 50), "F": (50, 1)}, (50, 1, 1), "samples last"),
        ({"X": (2, 50), "J": (3, 2, 50)}, (50, 2, 3), "samples last"),
    ],
)
def test_shapes_that_tell_the_layout(tmp_path: Path, shapes: dict[str, Shape], found: Shape, taken: str) -> None:
    samples = read(tmp_path, shapes)
    assert (samples.problem.S, samples.problem.m, samples.problem.n) == found
    assert samples.taken == taken


@pytest.mark.parametrize(
    ("shapes", "found", "other"),
    [
        ({"X": (4, 4), "F": (4, 4), "J": (4, 4, 4)}, (4, 4, 4), "samples-first"),
        ({"X": (2, 50), "F": (2, 50)}, (50, 2, 2), "samples-first"),
        ({"X": (50, 2), "F": (50, 2)}, (50, 2, 2), "samples-last"),
        ({"X": (2, 50), "J": (2, 50)}, (50, 2, 1), "samples-first"),
    ],
)
def test_where_both_fit_the_other_can_be_asked_for(
    tmp_path: Path, shapes: dict[str, Shape], found: Shape, other: str
) -> None:
    """Taken is the one with more samples, and if that does not decide, MATLAB's habit."""
    samples = read(tmp_path, shapes)
    assert (samples.problem.S, samples.problem.m, samples.problem.n) == found
    assert f"(the shapes fit both layouts; `layout` {other} takes the other)" in samples.taken
    swapped = read(tmp_path, shapes, other)
    assert shapes["X"][0 if other == FIRST else 1] == swapped.problem.S
    assert "both" not in swapped.taken


@pytest.mark.parametrize("writer", MATLAB)
def test_square_arrays_are_read_as_matlab_code_has_them(tmp_path: Path, writer: str) -> None:
    rng = np.random.default_rng(0)
    X, F, J = rng.random((3, 3)), rng.random((3, 3)), rng.random((3, 3, 3))
    MATLAB[writer](tmp_path / "square.mat", {"X": X, "F": F, "J": J})
    problem = read_problem(tmp_path / "square.mat").problem
    assert np.array_equal(problem.X, X.T)
    assert np.array_equal(problem.J, np.moveaxis(J, -1, 0))  # type: ignore[arg-type]
    problem = read_problem(tmp_path / "square.mat", layout="samples-first").problem
    assert np.array_equal(problem.X, X)
    assert np.array_equal(problem.J, J)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        (
            {"X": (2, 50), "F": (3, 40)},
            r"F \(3, 40\), which fit neither samples last, X \(m, S\), F \(n, S\), nor",
        ),
        ({"X": (2, 50), "F": (3, 50), "J": (2, 3, 50)}, r"J \(2, 3, 50\), which fit neither"),
        ({"X": (2, 5, 10), "F": (3, 50)}, "fit neither"),
        ({"X": (2, 0), "F": (3, 0)}, r"X must not be empty, got shape \(2, 0\)"),
    ],
)
def test_shapes_that_fit_no_layout_are_refused(tmp_path: Path, shapes: dict[str, Shape], said: str) -> None:
    with pytest.raises(DataError, match=said):
        read(tmp_path, shapes)


def test_single_numbers_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", X=np.ones((3, 2)), F=1.0)
    with pytest.raises(DataError, match=r"F must be an array with one row a sample, got the single number 1\.0"):
        read_problem(tmp_path / "data.npz")


def test_a_layout_that_does_not_fit_is_refused_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"samples last: use Problem\.from_paper_layout"):
        read(tmp_path, {"X": (2, 50), "F": (3, 50)}, "samples-first")
    with pytest.raises(DataError, match=r"have them first: use Problem\(X, F, J\)"):
        read(tmp_path, {"X": (50, 2), "F": (50, 3)}, "samples-last")
    with pytest.raises(SettingError, match="layout must be None, 'samples-first' or 'samples-last', got 'sideways'"):
        read_problem(tmp_path / "data.mat", layout="sideways")


def points(folder: Path, shape: Shape, m: int, layout: str | None = None) -> Points:
    scipy.io.savemat(folder / "points.mat", {"X": np.arange(float(np.prod(shape))).reshape(shape)})
    return read_points(folder / "points.mat", m, layout=layout)


def test_points_are_laid_out_as_the_model_has_inputs(tmp_path: Path) -> None:
    for shape, m, layout in (((2, 7), 2, LAST), ((7, 2), 2, FIRST), ((1, 7), 1, LAST), ((7, 1), 1, FIRST)):
        read = points(tmp_path, shape, m)
        assert (read.X.shape, read.layout) == ((7, m), layout)
        assert "both" not in read.taken
    square = points(tmp_path, (2, 2), 2)
    assert square.X.tolist() == [[0, 2], [1, 3]]
    assert "fit both layouts" in square.taken
    assert points(tmp_path, (2, 2), 2, FIRST).X.tolist() == [[0, 1], [2, 3]]
    with pytest.raises(DataError, match=r"X must be \(S, 3\) for a model with m = 3 inputs, got shape \(2, 2\)\.$"):
        points(tmp_path, (2, 2), 3)


@pytest.mark.parametrize("layout", [None, FIRST, LAST])
def test_points_of_one_input_may_be_a_vector(tmp_path: Path, layout: str | None) -> None:
    np.savez(tmp_path / "points.npz", X=np.arange(5.0))
    assert read_points(tmp_path / "points.npz", 1, layout=layout).X.tolist() == [[0], [1], [2], [3], [4]]
