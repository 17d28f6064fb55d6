"""Inputs that are infinite or no numbers: every kind of model says the same in every language, in both types."""

from __future__ import annotations

import ctypes
import itertools
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from scipy.io import loadmat, savemat

import unbraid as ub
from exported_models import MODELS, exported_models
from outside_programs import C99, needs_compilers, needs_octave, octave, run
from unbraid.kernels.arrays import Array

X = np.array(list(itertools.product([np.nan, np.inf, -np.inf, 0.5], repeat=3)))
"""Every input infinite, none, or a number, in every combination."""
TYPES = ("float64", "float32")
of_every_kind = pytest.mark.parametrize("name", MODELS)


def kinds(numbers: Array) -> Array:
    """NaN, an infinity, or zero for all that are finite."""
    return np.where(np.isfinite(numbers), 0.0, numbers)


def check(model: ub.DecoupledModel, F: Array, J: Array | None = None) -> None:
    """That what is not finite is where it is in the model."""
    np.testing.assert_array_equal(kinds(F), kinds(model(X)))
    if J is not None:
        np.testing.assert_array_equal(kinds(J), kinds(model.jacobian(X)))


@of_every_kind
def test_python_onnx_and_torch_say_what_the_model_says(name: str, tmp_path: Path) -> None:
    model = MODELS[name]
    check(model, np.stack([model(x) for x in X]), np.stack([model.jacobian(x) for x in X]))
    module = runpy.run_path(str(model.export(tmp_path / "model.py")[0]))
    check(model, module["values"](X), module["jacobian"](X))
    for dtype in TYPES:
        (path,) = model.export(tmp_path / f"{dtype}.onnx", dtype=dtype, jacobian=True)  # type: ignore[arg-type]
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        check(model, *session.run(None, {"X": X.astype(dtype)}))
        with torch.no_grad():
            given = torch.tensor(X.astype(dtype))
            check(model, ub.networks.module(model).to(given.dtype)(given).numpy())


@needs_compilers
def test_c_says_what_the_model_says(tmp_path: Path) -> None:
    models = list(exported_models().values())
    files: list[Path] = []
    for dtype in TYPES:
        for k, model in enumerate(models):
            files += model.export(tmp_path / f"{dtype}_{k}.c", dtype=dtype)[:1]  # type: ignore[arg-type]
    run(["gcc", *C99, "-O0", "-shared", "-fPIC", "-o", "all.so", *(file.name for file in files), "-lm"], tmp_path)
    library = ctypes.CDLL(str(tmp_path / "all.so"))
    for dtype in TYPES:
        for k, model in enumerate(models):
            check(model, *(in_c(library, f"{dtype}_{k}_{what}", dtype, shape) for what, shape in shapes(model)))


def shapes(model: ub.DecoupledModel) -> list[tuple[str, tuple[int, ...]]]:
    """The functions of a model in C, and what they make of a point."""
    return [("values", (model.n,)), ("jacobian", (model.n, model.m))]


def in_c(library: ctypes.CDLL, called: str, dtype: str, shape: tuple[int, ...]) -> Array:
    """A function of C at all points."""
    found = np.full((len(X), *shape), 7.0, dtype)
    given: Any = np.ascontiguousarray(X, dtype=dtype)
    for x, one in zip(given, found, strict=True):
        library[called](ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(one.ctypes.data))
    return found


@needs_octave
def test_octave_says_what_the_model_says(tmp_path: Path) -> None:
    savemat(tmp_path / "points.mat", {"X": X})
    for k, model in enumerate(MODELS.values()):
        model.export(tmp_path / f"model_{k}.m")
    octave(
        f"load('points.mat'); F = J = {{}};"
        f"for k = 1:{len(MODELS)}, [F{{k}}, J{{k}}] = feval(sprintf('model_%d', k - 1), X); end,"
        "save('-v6', 'results.mat', 'F', 'J');",
        tmp_path,
    )
    read = loadmat(tmp_path / "results.mat")
    for k, model in enumerate(MODELS.values()):
        check(model, read["F"][0, k], read["J"][0, k])


def test_at_infinity_a_branch_has_the_limit_of_its_last_piece() -> None:
    model = MODELS["flat ends, zeros in W0"]
    with np.errstate(all="ignore"):
        flat, spline, tanh = (branch(np.array([-np.inf, np.inf])) for branch in model.branches)
    np.testing.assert_array_equal(flat, [-2.0, 2.0])
    np.testing.assert_array_equal(np.isinf(spline), True)
    np.testing.assert_allclose(tanh, [-1.7, 0.9])
    assert np.isnan(model([np.inf, 0.0, 0.0])).all()  # zero times infinity, in W0 x
