"""Models that earlier versions saved: they load, and predict what that version predicted.

Beside each model `saved/<version>-<name>.npz` lies `saved/<version>-<name>.expected.npz` with points X (S, m), and the
values F (S, n) and Jacobians J (S, n, m) which that version gave there. Every release adds at least two pairs, one of
the default basis and one of a smoothing spline.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from unbraid.results.branch import FittedBranch
from unbraid.results.files.kinds import fitted_arrays

SAVED = Path(__file__).with_name("saved")
EXPECTED = ".expected.npz"
MODELS = sorted(path for path in SAVED.glob("*.npz") if not path.name.endswith(EXPECTED))
ROUNDING = 1e-13
"""Relative to the largest entry: another BLAS may add in another order."""


def numbers(model: ub.DecoupledModel) -> dict[str, bytes]:
    """All that a model consists of, to the last bit."""
    arrays: dict[str, Any] = {"W0": model.W0, "W1": model.W1, "bias": model.bias}
    for j, branch in enumerate(model.branches):
        assert isinstance(branch, FittedBranch)
        arrays |= {f"{j}: {branch.basis!r}, {name}": array for name, array in fitted_arrays(branch).items()}
    return {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_a_saved_model_predicts_what_its_version_predicted(path: Path) -> None:
    model = ub.DecoupledModel.load(path)
    with np.load(path.with_name(path.stem + EXPECTED)) as expected:
        X, F, J = expected["X"], expected["F"], expected["J"]
    for now, then in ((model(X), F), (model.jacobian(X), J)):
        assert now.shape == then.shape
        assert np.abs(now - then).max() <= ROUNDING * np.abs(then).max()


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_a_saved_model_is_saved_again_bit_by_bit(path: Path, tmp_path: Path) -> None:
    model = ub.DecoupledModel.load(path)
    model.save(tmp_path / "again.npz")
    assert numbers(ub.DecoupledModel.load(tmp_path / "again.npz")) == numbers(model)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_what_is_loaded_is_what_the_file_holds_bit_by_bit(path: Path) -> None:
    model = ub.DecoupledModel.load(path)
    with np.load(path) as file:
        held = sorted(file[name].tobytes() for name in file.files if name != "metadata")
    assert sorted(numbers(model).values()) == held


def test_this_version_has_saved_at_least_two_models() -> None:
    own = [path for path in MODELS if path.name.startswith(f"{ub.__version__}-")]
    assert len(own) >= 2, f"save two models of {ub.__version__} in {SAVED.name}/, as CONTRIBUTING says"


def test_every_saved_model_has_its_predictions() -> None:
    beside = {path.name.removesuffix(EXPECTED) for path in SAVED.glob("*" + EXPECTED)}
    assert beside == {path.stem for path in MODELS}
