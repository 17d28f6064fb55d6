"""Models with random coefficients, and their files, changed by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import unbraid as ub
from unbraid.bases import Basis
from unbraid.data.encoding import EncodedColumn, Encoding
from unbraid.errors import ModelFileError
from unbraid.results.branch import FittedBranch
from unbraid.results.branches.forms import Formula
from unbraid.results.branches.formula import FormulaBranch

Arrays = dict[str, Any]


def a_model(bases: list[Basis], m: int = 2, n: int = 3, seed: int = 0, scale: float = 1.0) -> ub.DecoupledModel:
    rng = np.random.default_rng(seed)
    branches = [
        FittedBranch(basis, basis.place(scale * rng.standard_normal(40)), scale * rng.standard_normal(basis.size))
        for basis in bases
    ]
    r = len(bases)
    return ub.DecoupledModel(
        rng.standard_normal((r, m)), rng.standard_normal((n, r)), branches, rng.standard_normal(n) / 3
    )


def a_model_of_formulas() -> ub.DecoupledModel:
    """A sine, a polynomial, a spline and a fitted branch of two inputs, one of them the indicator of a text."""
    u = np.linspace(-1.2, 3.4, 4)
    fitted = a_model([ub.SmoothingSpline(df=6)]).branches[0]
    functions = [
        FormulaBranch(Formula.of("sine", (0.32, 2.0, 0.3, 0.05)), (-2.0, 3.0)),
        FormulaBranch(Formula.of("cubic polynomial", (0.1, -1.1, 0.3, 0.0))),
        CubicSpline(u, np.tanh(u)),
        fitted,
    ]
    W0, W1 = [[1.0, 0.15], [1.0, 2.0], [0.5, -1.0], [1.0, 1.0]], [[2.0, 1.0, 1.2, 0.1], [0.0, 1.0, 0.0, 0.5]]
    model = ub.DecoupledModel.from_parts(W0, W1, [0.1, 0.0], functions)
    encoding = Encoding((EncodedColumn("speed"), EncodedColumn("fuel", ("petrol", "diesel"))))
    return model.changed(input_names=("speed", "fuel=diesel"), output_names=("force", "heat"), encoding=encoding)


def contents(path: Path) -> Arrays:
    with np.load(path) as file:
        return dict(file)


def rewritten(path: Path, change: Callable[[Arrays], object]) -> Path:
    arrays = contents(path)
    change(arrays)
    with path.open("wb") as file:
        np.savez(file, **arrays)
    return path


def with_metadata(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    def edit(arrays: Arrays) -> None:
        metadata = json.loads(str(arrays["metadata"]))
        change(metadata)
        arrays["metadata"] = np.array(json.dumps(metadata))

    return rewritten(path, edit)


def refusal(path: Path) -> str:
    """The one sentence with which a file is refused; it names the file."""
    with pytest.raises(ModelFileError) as caught:
        ub.DecoupledModel.load(path)
    text = str(caught.value)
    assert path.name in text
    assert text.endswith(".")
    assert "\n" not in text
    return text
