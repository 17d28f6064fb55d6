"""A model, and the file of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import unbraid as ub
from model_files import a_model


@pytest.fixture
def model() -> ub.DecoupledModel:
    return a_model([ub.BSpline(6), ub.PiecewiseLinear(4), ub.Polynomial(3)])


@pytest.fixture
def path(tmp_path: Path, model: ub.DecoupledModel) -> Path:
    model.save(tmp_path / "model.npz")
    return tmp_path / "model.npz"
