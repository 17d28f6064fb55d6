"""Samples in Dask arrays: the same numbers, a chunk at a time."""

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from sample_blocks import M, N, S, chunkings, lazy, samples
from unbraid.data.reductions import inputs, mean
from unbraid.kernels.arrays import Array


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
    said = r"The block of samples 0 to 9 could not be computed \(FileNotFoundError: part-3\.npy\)"
    with pytest.raises(ub.UnbraidError, match=said):
        ub.Problem(X, F=np.ones(20))


LIES: dict[str, tuple[Callable[[Array], Any], str]] = {
    "short": (lambda block: block[:8], r"has shape \(8, 2\), and the array declares \(10, 2\) there: make"),
    "long": (lambda block: np.concatenate([block, block[:1]]), r"has shape \(11, 2\), and the array declares"),
    "wide": (lambda block: np.hstack([block, block]), r"has shape \(10, 4\), and the array declares \(10, 2\)"),
    "flat": (np.ravel, r"has shape \(20,\), and the array declares \(10, 2\)"),
    "complex": (lambda block: block + 1j, r"must be real, got complex128"),
    "text": (lambda block: block.astype(str), r"must be an array of real numbers, got dtype"),
    "masked": (lambda block: np.ma.masked_equal(block, block[0, 0]), r"has masked entries"),
    "nothing": (lambda block: None, r"must be an array of numbers, got None"),
}


@pytest.mark.parametrize("chunks", [10, 15])
@pytest.mark.parametrize("name", ["X", "F"])
@pytest.mark.parametrize("lie", LIES)
def test_a_block_that_is_not_what_its_array_declares_is_named(lie: str, name: str, chunks: int) -> None:
    """Also where the other array is chunked in another way, so that blocks are cut and put together."""
    change, says = LIES[lie]
    rows = np.random.default_rng(0).normal(size=(30, 2))

    def block(i: int) -> Any:
        own = rows[10 * i : 10 * i + 10]
        return change(own) if i == 1 else own

    blocks = [da.from_delayed(dask.delayed(block)(i), (10, 2), dtype=np.float64) for i in range(3)]
    arrays = {"X": da.from_array(rows, chunks=(chunks, 2)), "F": da.from_array(rows, chunks=(chunks, 2))}
    with pytest.raises(ub.UnbraidError, match=rf"^{name}\[10:20\]\D* {says}"):
        ub.Problem(**{**arrays, name: da.concatenate(blocks)})


@pytest.mark.parametrize("change", [np.ndarray.tolist, lambda block: block.astype(object), lambda block: block.data])
def test_blocks_of_numbers_in_other_forms_are_taken(change: Callable[[Array], Any]) -> None:
    rows = np.random.default_rng(0).normal(size=(20, 2))
    X = da.from_delayed(dask.delayed(change)(rows), (20, 2), dtype=np.float64)
    np.testing.assert_array_equal(ub.Problem(X, F=rows).take(slice(None)).X, rows)


def test_numpy_arrays_are_told_from_dask_arrays_without_dask() -> None:
    code = "import sys, unbraid as ub; ub.Problem([[1.0], [2.0]], [1.0, 2.0]); print('dask' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
