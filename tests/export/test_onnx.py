"""Models as graphs of ONNX, run by onnxruntime: the same numbers as the model's."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import unbraid as ub
from torch_models import BRANCHES, assert_near, every_branch, fitted, mixed_model, model_of, model_with, points
from unbraid.export.files import Options
from unbraid.export.onnx_graphs.expressions import OPERATORS, write_expression
from unbraid.export.onnx_graphs.graph import write
from unbraid.export.onnx_graphs.nodes import Graph
from unbraid.kernels.arrays import Array
from unbraid.results.branch import FunctionBranch
from unbraid.results.branches.expressions import FUNCTIONS, U, apply

DOUBLE, SINGLE = 1e-12, 1e-5
ROUNDING = {"sin": 1e-15, "cos": 1e-15, "logistic": 1e-15}
"""Errors of functions that are differences of larger numbers where they are small; all others have all digits."""


def contents(model: ub.DecoupledModel, dtype: Any = "float64", jacobian: bool = False) -> bytes:
    return write(model, Options("model", dtype, jacobian))[".onnx"]


def run(graph: bytes, X: Array) -> list[Array]:
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    found: list[Array] = session.run(None, {"X": X})
    return found


def check(model: ub.DecoupledModel, X: Array, dtype: Any = "float64") -> None:
    share, points_of_type = (DOUBLE if dtype == "float64" else SINGLE), X.astype(dtype)
    f, J = run(contents(model, dtype, jacobian=True), points_of_type)
    assert f.dtype == J.dtype == dtype
    assert_near(f, model(points_of_type), share)
    assert_near(J, model.jacobian(points_of_type), share)


@every_branch
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("far", [0.0, 2.0])
def test_every_kind_of_branch_has_its_values_and_slopes(name: str, dtype: str, far: float) -> None:
    model = model_with(name)
    check(model, points(model, far), dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_branches_of_all_kinds_in_one_model(dtype: str) -> None:
    model = mixed_model()
    check(model, points(model), dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_wide_model_of_many_branches(dtype: str) -> None:
    basis = ub.SmoothingSpline()
    model = model_of([fitted(basis, seed) for seed in range(50)], m=40, n=7)
    check(model, np.random.default_rng(0).uniform(-0.2, 0.2, (300, 40)), dtype)


def test_any_number_of_points(tmp_path: Path) -> None:
    model = mixed_model()
    (path,) = model.export(tmp_path / "model.onnx", jacobian=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for count in (0, 1, 7):
        f, J = session.run(None, {"X": np.ones((count, 3))})
        assert f.shape == (count, 2)
        assert J.shape == (count, 2, 3)
    (only,) = run(contents(model), np.ones((1, 3)))
    np.testing.assert_array_equal(only, f[:1])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_is_not_a_number_stays_none(dtype: str) -> None:
    for name in BRANCHES:
        X = np.array([[0.1, np.nan, 0.2], [0.1, 0.3, 0.2]], dtype)
        f, J = run(contents(model_with(name), dtype, True), X)
        assert np.isnan(f[0]).all()
        assert np.isnan(J[0]).all()
        assert not np.isnan(f[1]).any()


def test_inputs_far_from_zero_keep_their_digits_in_single_precision() -> None:
    """1000 ± 1 has four digits that say nothing: without the middle taken off, errors would be 1e-3 and more."""
    offset = np.array([1000.0, -300.0, 20.0])
    model = model_of([BRANCHES[name] for name in (repr(ub.BSpline(12)), "sine", "tanh", "cubic polynomial")])
    moved = [
        *(branch.shifted(by, branch.coordinates) for branch, by in [(model.branches[0], model.W0[0] @ offset)]),  # type: ignore[attr-defined]
        *(
            type(branch)(branch.formula.shifted(by), (branch.domain[0] + by, branch.domain[1] + by))  # type: ignore[attr-defined,call-arg]
            for branch, by in zip(model.branches[1:], model.W0[1:] @ offset, strict=True)
        ),
    ]
    there = model.changed(branches=moved, bias=model.bias + 100.0)
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (300, 3)) + offset
    (f,) = run(contents(there, "float32"), X.astype(np.float32))
    assert_near(f - 100.0, there(X.astype(np.float32)) - 100.0, SINGLE)


def test_every_elementary_function_is_written() -> None:
    assert list(OPERATORS) == list(FUNCTIONS)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_elementary_functions_have_all_digits_everywhere(function: str) -> None:
    sizes = 10.0 ** np.linspace(-30.0, 30.0, 241)
    t = np.concatenate([-sizes, [0.0], sizes, np.linspace(-800.0, 800.0, 1601)])[:, None]
    if function in ("sin", "cos", "exp"):
        t = t[np.abs(t) < 700.0][:, None]
    graph = Graph("float64")
    write_expression(graph, apply(function, U), "X")
    graph.rename_last("f")
    (found,) = run(graph.finished("f", {"X": ["S", 1]}, {"f": ["S", 1]}, {}).SerializeToString(), t)
    np.testing.assert_allclose(found, apply(function, U).evaluate(t), rtol=1e-14, atol=ROUNDING.get(function, 0.0))


def test_a_model_gives_the_same_bytes_again() -> None:
    assert contents(mixed_model(), "float32", True) == contents(mixed_model(), "float32", True)
    assert contents(mixed_model()) == contents(mixed_model())


def test_names_are_kept_and_do_no_harm(tmp_path: Path) -> None:
    hostile = ("x\0\n", 'a"b\\', "\ud800 ☃")
    model = mixed_model().changed(input_names=hostile, output_names=("f", "J"))
    (path,) = model.export(tmp_path / "named.onnx", name="named")
    read = onnx.load(path)
    onnx.checker.check_model(read, full_check=True)
    kept = {one.key: json.loads(one.value) for one in read.metadata_props}
    assert kept == {"input_names": list(hostile), "output_names": ["f", "J"]}
    assert read.graph.name == "named"
    assert [one.name for one in read.graph.input] == ["X"]
    np.testing.assert_array_equal(run(path.read_bytes(), np.ones((2, 3)))[0].shape, (2, 2))


def test_an_old_runtime_can_read_the_graphs() -> None:
    read = onnx.load_from_string(contents(mixed_model()))
    assert read.ir_version == 7
    assert [(one.domain, one.version) for one in read.opset_import] == [("", 13)]


def test_numbers_beyond_single_precision_are_refused() -> None:
    model = mixed_model()
    with pytest.raises(ub.UnbraidError, match="beyond single precision"):
        contents(model.changed(W1=1e60 * model.W1), "float32")


def test_a_branch_that_is_any_function_is_refused() -> None:
    model = ub.DecoupledModel([[1.0]], [[1.0]], [FunctionBranch(np.sin, np.cos, "sin u")])
    with pytest.raises(ub.UnbraidError, match="Branch 1"):
        contents(model)


def test_without_the_package_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ub.UnbraidError, match=r"\[onnx\]"):
        mixed_model().export(tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()
