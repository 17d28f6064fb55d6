"""The folder in which the commands of the tests run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import unbraid as ub


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data.npz (f_trig), paper.npz (the same, samples last) and points.npz, and the place to run in."""
    monkeypatch.chdir(tmp_path)
    problem, _ = ub.datasets.trig(S=60, rng=0)
    assert problem.F is not None
    assert problem.J is not None
    np.savez("data.npz", X=problem.X, F=problem.F, J=problem.J)
    np.savez("paper.npz", X=problem.X.T, F=problem.F.T, J=np.moveaxis(problem.J, 0, -1))
    np.savez("points.npz", X=problem.X[:7])
    return tmp_path
