"""Samples in memory maps and Dask arrays: the same numbers, a block at a time."""

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from unbraid.data.checks import Flaws, not_finite
from unbraid.data.known import all_known
from unbraid.data.problem import Problem
from unbraid.data.reductions import extremes, inputs, mean, outputs, variance
from unbraid.data.units import Units
from unbraid.kernels.arrays import Array
from unbraid.results.fit import errors_on

S, M, N = 57, 3, 2


def samples(weighted: bool = False, gaps: bool = False, seed: int = 0) -> dict[str, Any]:
    """The arguments of a problem, far from zero, so that a careless variance would show."""
    rng = np.random.default_rng(seed)
    X, F, J = rng.normal(1e4, 1.0, (S, M)), rng.normal(-1e4, 2.0, (S, N)), rng.normal(size=(S, N, M))
    if gaps:
        F[rng.random(F.shape) < 0.3] = np.nan
        J[rng.random(J.shape) < 0.3] = np.nan
    weights = rng.choice([0.0, 0.5, 1.0, 7.0], S) if weighted else None
    return {"X": X, "F": F, "J": J, "weights": weights, "missing": "mask" if gaps else "error"}


def lazy(given: dict[str, Any], lengths: tuple[int, ...]) -> dict[str, Any]:
    """The same with Dask arrays in chunks of those lengths."""
    return {
        name: da.from_array(value, chunks=(lengths, *value.shape[1:])) if isinstance(value, np.ndarray) else value
        for name, value in given.items()
    }


def moments_of_block(block: Problem, factor: float) -> tuple[Any, ...]:
    assert block.J is not None
    for array in (block.X, block.F, block.J, block.weights):
        assert array is None or (type(array) is np.ndarray and array.dtype == np.float64 and array.flags.c_contiguous)
    rows = np.ones(block.S) if block.weights is None else block.weights
    return factor * (rows @ block.X), float(rows @ np.nansum(block.J**2, axis=(1, 2))), block.S, None


def chunkings(draw: st.DataObject) -> tuple[int, ...]:
    cuts = sorted(draw.draw(st.sets(st.integers(1, S - 1), max_size=6)))
    return tuple(int(size) for size in np.diff([0, *cuts, S]))


@given(data=st.data(), weighted=st.booleans(), gaps=st.booleans(), seed=st.integers(0, 99))
def test_a_sum_over_any_chunks_is_the_sum_over_arrays(data: Any, weighted: bool, gaps: bool, seed: int) -> None:
    arrays = samples(weighted, gaps, seed)
    whole, parts = ub.Problem(**arrays), ub.Problem(**lazy(arrays, chunkings(data)))
    for one, other in zip(parts.sum(moments_of_block, 2.0), whole.sum(moments_of_block, 2.0), strict=True):
        if other is None:
            assert one is None
        else:
            np.testing.assert_allclose(one, other, rtol=1e-13)
    assert parts.complete == whole.complete
    assert parts.known.entries == whole.known.entries
    ours, theirs = Units.balanced(parts), Units.balanced(whole)
    for name in ("center", "x_scale", "f_scale"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-11)
    model = ub.datasets.random_system(n=N, m=M, r=2, S=20, rng=0)[1]
    for error, expected in zip(errors_on(parts, model), errors_on(whole, model), strict=True):
        np.testing.assert_allclose(error, expected, rtol=1e-10)  # type: ignore[arg-type]


@given(weighted=st.booleans(), gaps=st.booleans(), seed=st.integers(0, 99))
def test_means_variances_and_extremes_are_those_of_numpy(weighted: bool, gaps: bool, seed: int) -> None:
    problem = ub.Problem(**samples(weighted, gaps, seed))
    values = np.ma.masked_invalid(np.asarray(problem.F))
    center = mean(problem, outputs)
    np.testing.assert_allclose(center, np.ma.average(values, axis=0, weights=problem.weights), rtol=1e-14)
    spread = np.ma.average((values - center) ** 2, axis=0, weights=problem.weights)
    np.testing.assert_allclose(variance(problem, center, outputs), spread, rtol=1e-12)
    np.testing.assert_array_equal(extremes(problem, inputs), [problem.X.min(axis=0), problem.X.max(axis=0)])
    counts = slice(None) if problem.weights is None else problem.weights > 0.0
    once = mean(problem, inputs, counted_once=True)
    np.testing.assert_allclose(once, problem.X[counts].mean(axis=0), rtol=1e-14)


@given(bad=st.lists(st.booleans(), min_size=2, max_size=30), cut=st.integers(1, 28))
def test_flaws_of_parts_add_up_to_those_of_the_whole(bad: list[bool], cut: int) -> None:
    rows = np.array(bad)[:, None]
    cut = min(cut, len(bad) - 1)
    assert Flaws.of(rows[:cut]) + Flaws.of(rows[cut:]) == Flaws.of(rows)


def test_flaws_are_looked_for_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbraid.kernels.arrays.BLOCK_ENTRIES", 4)
    array = np.ones((9, 2))
    array[7, 1] = np.inf
    assert Flaws.among(array, not_finite) == Flaws(9, 1, (7, 1))


# Memory maps.


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


# Dask arrays.


def test_dask_arrays_stay_lazy_and_are_chunked_alike() -> None:
    arrays = samples(weighted=True)
    problem = ub.Problem(
        da.from_array(arrays["X"], chunks=(10, 1)),
        arrays["F"],
        da.from_array(arrays["J"], chunks=(20, 2, 3)),
        da.from_array(arrays["weights"], chunks=7),
    )
    for name in ("X", "F", "J", "weights"):
        array = getattr(problem, name)
        assert isinstance(array, da.Array)
        assert array.chunks == ((20, 20, 17), *((size,) for size in arrays[name].shape[1:]))
    assert (problem.S, problem.m, problem.n) == (S, M, N)
    assert repr(problem).endswith("values and Jacobians, weighted, in 3 blocks)")
    assert problem.counting() is problem
    assert not problem.in_memory


def test_jacobians_split_along_outputs_are_put_together_and_blocks_stay_short() -> None:
    J = da.ones((40, 4, 5), chunks=(10, 1, 5))
    assert ub.Problem(da.ones((40, 5)), J=J).J.chunks == ((10,) * 4, (4,), (5,))  # type: ignore[union-attr]
    with dask.config.set({"array.chunk-size": "1000 B"}):
        joined = ub.Problem(da.ones((40, 5)), J=J).J.chunks  # type: ignore[union-attr]
    assert max(joined[0]) * 4 * 5 * 8 <= 1000


def test_empty_chunks_are_left_out() -> None:
    arrays = samples()
    problem = ub.Problem(da.from_array(arrays["X"], chunks=((30, 0, 27), M)), arrays["F"])
    assert problem.X.chunks[0] == (30, 27)  # type: ignore[attr-defined]


def test_one_output_of_dask_arrays_may_drop_its_axis() -> None:
    problem = ub.Problem(da.ones((40, 5), chunks=10), da.ones(40, chunks=20), da.ones((40, 5), chunks=8))
    assert problem.J is not None
    assert problem.J.shape == (40, 1, 5)
    assert problem.n == 1


@given(data=st.data())
def test_samples_can_be_taken_in_any_order(data: Any) -> None:
    arrays = samples(weighted=True)
    problem = ub.Problem(**lazy(arrays, chunkings(data)))
    index = data.draw(st.lists(st.integers(-S, S - 1), min_size=1, max_size=20))
    weights = arrays["weights"][index]
    if not weights.any():
        return
    some = problem.take(index)
    assert some.in_memory
    for name in ("X", "F", "J", "weights"):
        np.testing.assert_array_equal(getattr(some, name), arrays[name][index])


def test_slices_and_masks_of_dask_arrays_are_taken() -> None:
    arrays = samples()
    problem = ub.Problem(**lazy(arrays, (20, 37)))
    mask = arrays["X"][:, 0] > 1e4
    np.testing.assert_array_equal(problem.take(mask).X, arrays["X"][mask])
    np.testing.assert_array_equal(problem.take(slice(50, 10, -3)).X, arrays["X"][50:10:-3])
    for strange in ([S], [0.5], [[1]], []):
        with pytest.raises(ub.UnbraidError, match=r"index must be|No sample"):
            problem.take(strange)  # type: ignore[arg-type]


@pytest.mark.parametrize("most", [1, 13, S, 10 * S])
def test_thinned_problems_are_spread_evenly_and_always_the_same(most: int) -> None:
    arrays = samples()
    arrays["X"][:, 0] = np.arange(S)
    whole, parts = ub.Problem(**arrays), ub.Problem(**lazy(arrays, (20, 37)))
    some, same = whole.thinned(most), parts.thinned(most)
    np.testing.assert_array_equal(some.X, same.X)
    assert same.in_memory
    assert min(most, S) == some.S
    gaps = np.diff(some.X[:, 0])
    assert (gaps >= 1).all()
    assert gaps.max(initial=0) <= 2 * -(-S // most)
    assert (some is whole) == (most >= S)


def test_only_the_chunks_that_are_needed_are_computed() -> None:
    made: list[int] = []

    def chunk(block_info: Any = None) -> Array:
        made.append(block_info[None]["chunk-location"][0])
        return np.ones((10, 2))

    X = da.map_blocks(chunk, chunks=((10,) * 4, (2,)), dtype=np.float64, meta=np.empty((0, 0)))
    problem = ub.Problem(X, F=np.ones(40))
    assert made == [0, 1, 2, 3]
    problem.take([11, 35])
    assert made[4:] == [1, 3]


def test_one_chunk_is_in_memory_at_a_time() -> None:
    """A sum over 80 MB in chunks of 4 MB."""
    X = da.random.default_rng(0).random((1_000_000, 10), chunks=(50_000, 10))
    tracemalloc.start()
    try:
        problem = ub.Problem(X, F=da.ones(1_000_000, chunks=50_000))
        center = mean(problem, inputs)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(center, 0.5, atol=2e-3)
    assert peak < 25e6


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"F": da.full((S, N), np.inf)}, r"F has 114 entries that are NaN or infinite, the first at F\[0, 0\]"),
        ({"X": da.ones((S, M), dtype=complex)}, r"X must be real, got complex128"),
        ({"F": da.from_array(np.full((S, N), "a"))}, r"F must be an array of real numbers"),
        ({"J": da.ones((S, M, N))}, r"Its last two axes look swapped"),
        ({"F": da.ones((0, N))}, r"F must not be empty"),
        ({"weights": da.ones(3)}, r"weights must be \(S,\) = \(57,\)"),
        ({"weights": da.zeros(S)}, r"weights are all zero"),
        ({"weights": da.concatenate([da.ones(50), -da.ones(7)])}, r"weights must be ≥ 0, got -1 at weights\[50\]"),
        ({"X": dask.delayed(np.ones)((S, M))}, r"X must be an array, got a Dask Delayed"),
    ],
    ids=["infinite", "complex", "text", "swapped", "empty", "few weights", "no weights", "negative", "delayed"],
)
def test_what_is_wrong_with_dask_arrays_is_said(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ub.UnbraidError, match=says):
        ub.Problem(**{**lazy(samples(), (20, 37)), **change})


def test_the_first_flaw_of_dask_arrays_is_found_in_its_chunk() -> None:
    arrays = samples()
    arrays["J"][[41, 50], 1, 0] = np.nan
    with pytest.raises(ub.UnbraidError, match=r"J has 2 entries that are NaN or infinite, the first at J\[41, 1, 0\]"):
        ub.Problem(**lazy(arrays, (20, 20, 17)))


def test_chunks_of_unknown_size_get_advice() -> None:
    X = da.ones((S, M), chunks=(10, M))
    X = X[X[:, 0] > 0.5]
    with pytest.raises(ub.UnbraidError, match=r"X\.compute_chunk_sizes\(\)"):
        ub.Problem(X, F=np.ones(S))
    assert ub.Problem(X.compute_chunk_sizes(), F=np.ones(S)).S == S


def test_a_block_that_cannot_be_computed_is_told_of() -> None:
    def chunk() -> Array:
        raise FileNotFoundError("part-3.npy")

    X = da.map_blocks(chunk, chunks=((10, 10), (2,)), dtype=np.float64, meta=np.empty((0, 0)))
    with pytest.raises(ub.UnbraidError, match=r"could not be computed \(FileNotFoundError: part-3\.npy\)"):
        ub.Problem(X, F=np.ones(20))


def test_numpy_arrays_are_told_from_dask_arrays_without_dask() -> None:
    code = "import sys, unbraid as ub; ub.Problem([[1.0], [2.0]], [1.0, 2.0]); print('dask' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# After a fit.


def test_diagnostics_pictures_and_reports_take_dask_arrays(tmp_path: Path) -> None:
    problem, _ = ub.datasets.trig(S=200, rng=0)
    fit = ub.decouple(problem, rank=3, starts=2, rng=0)
    chunks = ub.Problem(da.from_array(problem.X, chunks=(60, 2)), problem.F, problem.J)
    ours, theirs = ub.diagnose(fit, chunks), ub.diagnose(fit)
    np.testing.assert_allclose(ours.importance, theirs.importance, rtol=1e-8)
    assert ours.thinned is None
    ub.plots.branches(fit, problem=chunks)
    ub.plots.weights(fit, problem=chunks)
    assert "samples" not in ub.plots.residuals(fit, chunks).get_xlabel()
    fit.without_problem().report(tmp_path / "report.html", problem=chunks)
    assert "values and Jacobians, in 4 blocks" in (tmp_path / "report.html").read_text()


def test_what_looks_at_some_of_the_samples_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = ub.datasets.trig(S=400, rng=0)
    fit = ub.decouple(problem, rank=3, starts=2, rng=0)
    monkeypatch.setattr("unbraid.data.problem.THIN_SAMPLES", 150)
    assert "150 of 400, spread evenly" in repr(ub.diagnose(fit))
    assert ub.plots.residuals(fit).get_xlabel().endswith("(150 of 400 samples)")
    fit.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "Errors are of all 400 samples; figures, misses and shares are of 150 of them, spread evenly." in page
    assert ub.select(problem, [3], starts=1, rng=0).reason.endswith("This was found on 150 of 400 samples.")


def test_reports_name_samples_as_the_user_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, truth = ub.datasets.trig(S=400, rng=0)
    monkeypatch.setattr("unbraid.data.problem.THIN_SAMPLES", 150)
    index = problem.thinning()
    assert index is not None
    F = np.array(problem.F)
    F[index[-2]] += 100.0
    other = ub.Problem(problem.X, F, problem.J)
    ub.decouple(problem, rank=3, starts=1, rng=0).report(tmp_path / "report.html", problem=other)
    assert f"at sample {index[-2]}" in (tmp_path / "report.html").read_text()
    assert truth.rank == 3
