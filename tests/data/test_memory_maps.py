"""Samples in memory maps: the same numbers, a block at a time."""

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from sample_blocks import S, moments_of_block, samples
from unbraid.data.known import all_known
from unbraid.data.units import Units
from unbraid.kernels.arrays import Array
from unbraid.results.fit import errors_on


def mapped(path: Path, array: Array) -> Array:
    np.save(path, array)
    stored: Array = np.load(path, mmap_mode="r")
    return stored


def maps(folder: Path, change: Callable[[Array], Any] = np.asarray) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments of a problem as memory maps of changed arrays, and these arrays."""
    arrays = {name: change(array) for name, array in samples(weighted=True).items() if isinstance(array, np.ndarray)}
    return {name: mapped(folder / f"{name}.npy", array) for name, array in arrays.items()}, arrays


FORMS: dict[str, Callable[[Array], Any]] = {
    "float64": np.asarray,
    "float32": lambda array: array.astype(np.float32),
    "int16": lambda array: np.round(array).astype(np.int16),
    "big-endian": lambda array: array.astype(">f8"),
    "Fortran order": np.asfortranarray,
}


@pytest.mark.parametrize("form", FORMS)
def test_memory_maps_are_used_where_they_are(form: str, tmp_path: Path) -> None:
    stored, arrays = maps(tmp_path, FORMS[form])
    problem, plain = ub.Problem(**stored), ub.Problem(**arrays)
    for name in stored:
        here = getattr(problem, name)
        assert np.shares_memory(here, stored[name])
        assert not here.flags.writeable
        assert here.dtype == arrays[name].dtype
    assert not problem.in_memory
    assert plain.in_memory
    for one, other in zip(problem.sum(moments_of_block, 1.0), plain.sum(moments_of_block, 1.0), strict=True):
        assert np.array_equal(one, other)
    some = problem.take([5, 2, 2, -1])
    assert some.J is not None
    np.testing.assert_array_equal(some.J, arrays["J"][[5, 2, 2, -1]])
    assert problem.thinned(9).in_memory
    assert problem.thinned(9).X.dtype == np.float64


def test_jacobians_in_a_map_are_flattened_without_a_copy(tmp_path: Path) -> None:
    stored, _ = maps(tmp_path)
    J = ub.Problem(**stored).J
    assert J is not None
    assert np.shares_memory(J.reshape(S, -1), stored["J"])


def test_the_papers_layout_in_a_map_is_turned_without_a_copy(tmp_path: Path) -> None:
    arrays = samples()
    J = mapped(tmp_path / "J.npy", np.ascontiguousarray(np.moveaxis(arrays["J"], 0, -1)))
    problem = ub.Problem.from_paper_layout(arrays["X"].T, arrays["F"].T, J)
    assert np.shares_memory(problem.J, J)
    expected = ub.Problem(arrays["X"], arrays["F"], arrays["J"]).sum(moments_of_block, 1.0)
    assert problem.sum(moments_of_block, 1.0)[1] == expected[1]


def test_a_map_is_checked_like_an_array(tmp_path: Path) -> None:
    arrays = samples()
    arrays["J"][40, 1, 2] = np.nan
    J = mapped(tmp_path / "J.npy", arrays["J"].astype(np.float32))
    with pytest.raises(ub.UnbraidError, match=r"J has 1 entry that is NaN or infinite, the first at J\[40, 1, 2\]"):
        ub.Problem(arrays["X"], J=J)
    problem = ub.Problem(arrays["X"], J=J, missing="mask")
    assert not problem.complete
    assert problem.known.entries == all_known(problem).entries - 1
    assert "0.29 % missing" in repr(problem)


def test_samples_of_a_map_that_do_not_count_stay_in_it(tmp_path: Path) -> None:
    stored, _ = maps(tmp_path)
    problem = ub.Problem(**stored)
    assert problem.counting() is problem


def test_a_large_map_needs_little_memory(tmp_path: Path) -> None:
    """Building the problem, its units and the errors of a model on it, on 100 MB of Jacobians."""
    long = 125_000
    J = np.lib.format.open_memmap(tmp_path / "J.npy", mode="w+", dtype=np.float64, shape=(long, 10, 10))
    for start in range(0, long, 12_500):
        J[start : start + 12_500] = np.random.default_rng(start).normal(size=(12_500, 10, 10))
    J.flush()
    stored = np.load(tmp_path / "J.npy", mmap_mode="r")
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (long, 10))
    model = ub.datasets.random_system(n=10, m=10, r=3, S=20, rng=0)[1]
    tracemalloc.start()
    try:
        problem = ub.Problem(X, J=stored)
        Units.balanced(problem)
        error, _ = errors_on(problem, model)
        assert problem.counting().complete
        assert repr(problem)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert error is not None
    assert peak < 20e6


def test_a_file_that_was_cut_short_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """To read what is not there any more would end the process."""
    path = tmp_path / "X.npy"
    np.save(path, np.ones((5000, 3)))
    X = np.load(path, mmap_mode="r")
    ub.Problem(X[10:, 1:], F=np.ones(4990))
    os.truncate(path, 1000)
    with pytest.raises(ub.UnbraidError, match="X lies in a file that has 1,000 bytes, and had 120,128 or more when"):
        ub.Problem(X[10:, 1:], F=np.ones(4990))
