"""What goes in: everything array-like is taken, nothing is written to, and refusals say what to do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import unbraid as ub
from unbraid.kernels.arrays import Array

S, M, N = 20, 3, 2
QUICK = ub.methods.dejonghe2025(max_sweeps=5)


def data(seed: int = 0) -> tuple[Array, Array, Array]:
    """X (20, 3), F (20, 2), J (20, 2, 3)."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((S, M)), rng.standard_normal((S, N)), rng.standard_normal((S, N, M))


def whole(seed: int = 0) -> tuple[Array, Array, Array]:
    """Data that are whole numbers, so that every number type holds them exactly."""
    X, F, J = (np.round(10.0 * array) for array in data(seed))
    return X, F, J


def read_only(array: Array) -> Array:
    array = array.copy()
    array.flags.writeable = False
    return array


# What is accepted.

FORMS: dict[str, Callable[[Array], Any]] = {
    "lists": lambda array: array.tolist(),
    "tuples": lambda array: tuple(map(tuple, array.tolist())),
    "float32": lambda array: array.astype(np.float32),
    "float16": lambda array: array.astype(np.float16),
    "longdouble": lambda array: array.astype(np.longdouble),
    "int64": lambda array: array.astype(np.int64),
    "int8": lambda array: array.astype(np.int8),
    "big-endian": lambda array: array.astype(">f8"),
    "objects": lambda array: array.astype(object),
    "Fortran order": np.asfortranarray,
    "non-contiguous": lambda array: np.repeat(array, 2, axis=0)[::2],
    "reversed": lambda array: array[::-1].copy()[::-1],
    "read-only": read_only,
    "matrix subclass": lambda array: array.view(np.ma.MaskedArray).data,
}


@pytest.mark.parametrize("form", FORMS)
def test_anything_array_like_is_accepted(form: str) -> None:
    X, F, J = whole()
    problem = ub.Problem(*(FORMS[form](array) for array in (X, F, J)))
    for stored, array in ((problem.X, X), (problem.F, F), (problem.J, J)):
        assert stored is not None
        np.testing.assert_array_equal(stored, array)
        assert stored.dtype == np.float64
        assert stored.dtype.isnative
        assert stored.flags.c_contiguous
    assert (problem.S, problem.m, problem.n) == (S, M, N)


def test_truth_values_are_numbers() -> None:
    problem = ub.Problem([[True, False], [False, True]], F=[[True], [False]])
    np.testing.assert_array_equal(problem.X, np.eye(2))


def test_data_frames_are_accepted() -> None:
    X, F, _ = data()
    problem = ub.Problem(pd.DataFrame(X, columns=list("abc")), pd.DataFrame(F).astype(np.float32))
    np.testing.assert_array_equal(problem.X, X)
    assert problem.n == N
    mixed = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5], "c": [True, False]})
    np.testing.assert_array_equal(ub.Problem(mixed, pd.Series([1.0, 2.0])).X, [[1.0, 0.5, 1.0], [2.0, 1.5, 0.0]])


def test_one_output_and_one_input_may_drop_their_axis() -> None:
    X, F, J = data()
    problem = ub.Problem(X, F[:, 0], J[:, 0])
    assert (problem.S, problem.m, problem.n) == (S, M, 1)
    assert problem.F is not None
    assert problem.J is not None
    assert (problem.F.shape, problem.J.shape) == ((S, 1), (S, 1, M))
    assert ub.Problem(X[:, 0], F).m == 1
    jacobians = ub.Problem(X, J=J[:, 0]).J
    assert jacobians is not None
    assert jacobians.shape == (S, 1, M)


@pytest.mark.parametrize(
    ("values", "jacobians", "says"),
    [(True, True, "values and Jacobians"), (True, False, "values only"), (False, True, "Jacobians only")],
)
def test_values_or_jacobians_may_be_absent_and_the_repr_says_so(values: bool, jacobians: bool, says: str) -> None:
    X, F, J = data()
    problem = ub.Problem(X, F if values else None, J if jacobians else None)
    assert (problem.F is None, problem.J is None) == (not values, not jacobians)
    assert repr(problem) == f"Problem(S=20 samples, m=3 inputs, n=2 outputs, {says})"


def test_the_papers_layout_is_turned_samples_first() -> None:
    X, F, J = data()
    problem = ub.Problem.from_paper_layout(X.T, F.T, np.moveaxis(J, 0, -1))
    for stored, array in ((problem.X, X), (problem.F, F), (problem.J, J)):
        assert stored is not None
        np.testing.assert_array_equal(stored, array)
        assert stored.flags.c_contiguous
    assert ub.Problem.from_paper_layout(X.T, J=np.moveaxis(J, 0, -1)).F is None


@pytest.mark.parametrize(("name", "position"), [("X", 0), ("F", 1), ("J", 2)])
def test_the_papers_layout_needs_its_axes(name: str, position: int) -> None:
    arrays: list[Array] = [np.ones((M, S)), np.ones((N, S)), np.ones((N, M, S))]
    arrays[position] = np.ones(S)
    with pytest.raises(ub.UnbraidError, match=rf"{name} must be \(.*S\) in the paper's layout, got shape \(20,\)"):
        ub.Problem.from_paper_layout(arrays[0], arrays[1], arrays[2])


# Memory.


def test_float64_in_c_order_is_not_copied() -> None:
    arrays = data()
    problem = ub.Problem(*arrays)
    for stored, array in zip((problem.X, problem.F, problem.J), arrays, strict=True):
        assert stored is not None
        assert np.shares_memory(stored, array)


def test_stored_arrays_cannot_be_written_while_the_users_own_can() -> None:
    arrays = data()
    problem = ub.Problem(*arrays)
    for stored, array in zip((problem.X, problem.F, problem.J), arrays, strict=True):
        assert stored is not None
        assert array.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            stored[0] = 0.0


def test_lists_are_left_as_they_were() -> None:
    rows = [[1, 2], [3, 4]]
    ub.Problem(rows, F=rows)
    assert rows == [[1, 2], [3, 4]]


@pytest.mark.parametrize("method", [None, QUICK], ids=["default", "dejonghe2025"])
@pytest.mark.parametrize("constraint", [None, ub.Increasing()], ids=repr)
@pytest.mark.parametrize("values", [True, False], ids=["with F", "without F"])
def test_decoupling_never_writes_to_its_inputs(method: Any, constraint: Any, values: bool) -> None:
    """Read-only arrays all the way, and a user's writeable arrays come back bit for bit."""
    source, truth = ub.datasets.monotone(S=60, rng=0)
    assert source.F is not None
    assert source.J is not None
    locked = ub.Problem(read_only(source.X), read_only(source.F) if values else None, read_only(source.J))
    init = ub.decouple(locked, rank=3, method=QUICK, constraint=constraint, starts=2, rng=0).model
    ub.decouple(locked, rank=3, method=QUICK, constraint=constraint, init=init, rng=0)
    X, F, J = source.X.copy(), source.F.copy(), source.J.copy()
    fit = ub.decouple(ub.Problem(X, F if values else None, J), rank=3, method=method, constraint=constraint, starts=1)
    fit.model(X)
    fit.model.jacobian(X)
    for ours, before in ((X, source.X), (F, source.F), (J, source.J)):
        np.testing.assert_array_equal(ours, before)
    assert truth(read_only(X)).shape == (60, 3)


# Refusals.


def refused(*arrays: Any, says: str) -> str:
    with pytest.raises(ub.UnbraidError, match=says) as caught:
        ub.Problem(*arrays)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message


@pytest.mark.parametrize(("name", "position"), [("X", 0), ("F", 1), ("J", 2)])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_counted_and_located(name: str, position: int, bad: float) -> None:
    arrays = data()
    array = arrays[position]
    first = (7, *(size - 1 for size in array.shape[1:]))
    array[first] = bad
    where = rf"{name}\[{', '.join(map(str, first))}\]"
    refused(*arrays, says=rf"{name} has 1 entry that is NaN or infinite, the first at {where}")
    array[9:11] = bad
    count = 1 + 2 * array[0].size
    refused(*arrays, says=rf"{name} has {count} entries that are NaN or infinite, the first at {where}")


@given(
    X=hnp.arrays(np.float64, (4, 2), elements=st.floats(allow_nan=True, allow_infinity=True)),
)
def test_problems_hold_finite_numbers_only(X: Array) -> None:
    if np.isfinite(X).all():
        np.testing.assert_array_equal(ub.Problem(X, X).X, X)
    else:
        with pytest.raises(ub.UnbraidError, match=r"X has \d+ entr"):
            ub.Problem(X, X)


BAD: dict[str, tuple[Any, str]] = {
    "complex": (np.ones((S, 2), dtype=complex), r"must be real, got complex128: pass {name}\.real"),
    "strings": (np.full((S, 2), "a"), r"must be an array of real numbers, got dtype <U1"),
    "numbers as text": ([["1.0", "2.0"]] * S, r"must be an array of real numbers"),
    "bytes": (np.full((S, 2), b"a"), r"must be an array of real numbers, got dtype"),
    "dates": (np.full((S, 2), "2020-01-01", dtype="datetime64[D]"), r"must be an array of real numbers, got dtype"),
    "objects": (np.full((S, 2), object()), r"real numbers, got Python objects, of type object"),
    "text among objects": ([["1.0", 2.0]] * S, r"must be an array of real numbers"),
    "text as objects": (np.full((S, 2), "1.0", dtype=object), r"got Python objects, of type str"),
    "complex objects": (np.full((S, 2), 1j, dtype=object), r"must be"),
    "dictionary": ({"a": 1}, r"real numbers"),
    "empty": (np.empty((0, 2)), r"must not be empty, got shape \(0, 2\)"),
    "no columns": (np.empty((S, 0)), r"must not be empty, got shape \(20, 0\)"),
    "empty list": ([], r"must not be empty"),
    "ragged": ([[1.0, 2.0], [3.0]], r"equally long rows"),
    "scalar": (3.5, r"one row a sample, got the single number 3\.5"),
    "too many axes": (np.ones((S, 2, 2, 2)), r"must be \(S, .*got shape \(20, 2, 2, 2\)"),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize(("name", "position"), [("X", 0), ("F", 1), ("J", 2)])
def test_what_is_no_array_of_numbers_is_refused_by_name(name: str, position: int, kind: str) -> None:
    arrays: list[Any] = list(data())
    arrays[position], says = BAD[kind]
    message = refused(*arrays, says=says.format(name=name))
    assert message.startswith(name)


def test_a_missing_entry_counts_as_nan() -> None:
    X, F, J = data()
    rows = F.tolist()
    rows[3][1] = None
    refused(X, rows, J, says=r"F has 1 entry that is NaN or infinite, the first at F\[3, 1\]")
    refused(X, pd.DataFrame(rows), J, says=r"F has 1 entry that is NaN or infinite, the first at F\[3, 1\]")


def test_columns_of_text_are_refused() -> None:
    X, F, J = data()
    frame = pd.DataFrame(F).assign(unit="1.0")
    refused(X, frame, J, says=r"F\['unit'\] must be an array of real numbers.*: encode texts")


def test_neither_values_nor_jacobians_is_refused() -> None:
    refused(np.ones((S, M)), says="Neither F nor J was given: pass values F .* or both")


def test_a_missing_sample_is_refused() -> None:
    X, F, J = data()
    message = refused(X, F[:-1], J, says=r"F must have one row for each of the 20 samples of X, got shape \(19, 2\)")
    assert "layout" not in message
    refused(X, F, J[:-1], says=r"J must be \(S, n, m\) = \(20, 2, 3\), got \(19, 2, 3\)")
    refused(X[:-1], F, J, says=r"F must have one row for each of the 19 samples")
    refused(X[:-1], None, J, says=r"J must be \(S, n, m\) = \(19, 2, 3\), got \(20, 2, 3\)")


def test_jacobians_with_swapped_axes_get_a_hint() -> None:
    X, F, J = data()
    refused(X, F, J.transpose(0, 2, 1), says=r"got \(20, 3, 2\)\. Its last two axes look swapped\.")
    assert "swapped" not in refused(X, F, np.ones((S, N, M + 1)), says="J must be")


def test_jacobians_alone_with_swapped_axes_are_refused_where_it_shows() -> None:
    X, _, J = data()
    refused(X, None, J.transpose(0, 2, 1), says=r"J must be \(S, n, m\) = \(20, 3, 3\), got \(20, 3, 2\)")


def test_the_papers_layout_gets_a_hint() -> None:
    X, F, J = data()
    hint = r"looks like the paper's layout, samples last: use Problem\.from_paper_layout"
    refused(X.T, F.T, np.moveaxis(J, 0, -1), says=hint)
    refused(X.T, F.T, says=hint)
    refused(X.T, None, np.moveaxis(J, 0, -1), says=hint)


def test_a_missing_row_is_not_taken_for_the_papers_layout() -> None:
    """With as many outputs as inputs the other columns would fit; but nobody has fewer samples than inputs."""
    X, _, _ = data()
    said = refused(X, X[:-1], says=r"F must have one row for each of the 20 samples of X, got shape \(19, ")
    assert "layout" not in said


def test_a_jacobian_without_output_axis_is_refused_for_several_outputs() -> None:
    X, F, J = data()
    refused(X, F, J[:, 0], says=r"J must be \(S, n, m\), got shape \(20, 3\)")


# Refusals of the front door that concern the data.


def test_too_few_samples_are_refused_with_the_number_needed() -> None:
    X, F, J = data()
    few = ub.Problem(X[:12], F[:12], J[:12])
    with pytest.raises(ub.UnbraidError, match=r"12 samples are too few for BSpline\(df=12.*give at least 13 samples"):
        ub.decouple(few, rank=1, basis=ub.BSpline(df=12), method=QUICK, starts=1)
    ub.decouple(few, rank=1, basis=ub.BSpline(df=11), method=QUICK, starts=1, rng=0)


def test_too_few_samples_for_as_many_inputs_hint_at_the_layout() -> None:
    wide = ub.Problem(np.ones((3, 50)), F=np.ones((3, 1)), J=np.ones((3, 1, 50)))
    with pytest.raises(ub.UnbraidError, match=r"samples last, use Problem\.from_paper_layout"):
        ub.decouple(wide, rank=1, method=QUICK)


@pytest.mark.parametrize("rank", [0, -1, 1.5, "3", True, None])
def test_rank_must_be_a_whole_number(rank: Any) -> None:
    with pytest.raises(ub.UnbraidError, match="rank must be a whole number of at least 1"):
        ub.decouple(ub.Problem(*data()), rank)


def test_arrays_in_place_of_a_problem_are_refused() -> None:
    with pytest.raises(ub.UnbraidError, match=r"problem must be .*, got ndarray: use Problem\(X, F, J\)"):
        ub.decouple(data()[0], 2)  # type: ignore[arg-type]


def test_nonnegative_branches_need_values() -> None:
    X, _, J = data()
    with pytest.raises(ub.UnbraidError, match="NonNegative needs values F"):
        ub.decouple(ub.Problem(X, J=J), 2, constraint=ub.NonNegative(), method=QUICK)


def test_deliberate_errors_are_value_errors_too() -> None:
    """Code that expects NumPy's habits keeps working."""
    with pytest.raises(ValueError, match="Neither F nor J"):
        ub.Problem([[1.0]])


def test_arrays_with_samples_first_are_not_taken_for_the_papers_layout() -> None:
    X, F, J = np.ones((30, 3)), np.ones((30, 2)), np.ones((30, 2, 3))
    with pytest.raises(ub.UnbraidError, match=r"use Problem\(X, F, J\)"):
        ub.Problem.from_paper_layout(X, F, J)


def test_a_problem_cannot_be_changed() -> None:
    problem = ub.Problem(np.ones((5, 2)), np.ones((5, 1)))
    with pytest.raises(ub.UnbraidError, match="make a new one"):
        problem.X = np.zeros((5, 2))  # type: ignore[misc]


def test_none_and_masked_arrays_are_refused() -> None:
    with pytest.raises(ub.UnbraidError, match="X must be an array of numbers, got None"):
        ub.Problem(None, np.ones(5))  # type: ignore[arg-type]
    with pytest.raises(ub.UnbraidError, match="F has masked entries"):
        ub.Problem(np.ones((5, 2)), np.ma.masked_greater(np.arange(5.0), 3.0))
