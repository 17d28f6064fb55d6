"""Models with random coefficients, and their files, changed by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from unbraid.bases import Basis
from unbraid.errors import ModelFileError
from unbraid.results.branch import FittedBranch

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
