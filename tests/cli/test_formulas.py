"""`unbraid formulas`: closed forms of a model in a file, with samples and without."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import unbraid as ub
from command_lines import run
from unbraid.results.branches.formula import FormulaBranch


@cache
def fitted() -> ub.Fit:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (150, 2))
    F = np.stack([np.sin(2.0 * X[:, 0] + X[:, 1]), np.exp(X[:, 1] - 0.5 * X[:, 0])], axis=1)
    problem = ub.Problem(X, F, input_names=["speed", "load"], output_names=["power", "noise"])
    return ub.decouple(problem, 2, starts=4, rng=0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model and its samples, and the place to run in."""
    monkeypatch.chdir(tmp_path)
    fit = fitted()
    fit.model.save("model.npz")
    assert fit.problem is not None
    assert fit.problem.F is not None
    rows = np.concatenate([fit.problem.X, fit.problem.F], axis=1)
    np.savetxt("samples.csv", rows, delimiter=",", header="speed,load,power,noise", comments="", fmt="%.17g")
    return tmp_path


def test_samples_judge_and_the_formulas_are_printed_with_names(folder: Path) -> None:
    result = run("formulas model.npz samples.csv -o formulas.json")
    assert result.exit_code == 0, result.stderr
    assert "power = sin(2 speed + load)" in result.stdout
    assert "noise = exp(−0.5 speed + load)" in result.stdout
    model = ub.DecoupledModel.load(folder / "formulas.json")
    assert all(isinstance(branch, FormulaBranch) for branch in model.branches)
    far = np.array([[5.0, -4.0]])
    np.testing.assert_allclose(model(far), [[np.sin(6.0), np.exp(-6.5)]], atol=1e-6)


def test_without_samples_the_curves_judge(folder: Path) -> None:
    result = run("formulas model.npz")
    assert result.exit_code == 0, result.stderr
    assert "sine" in result.stdout
    assert "exponential" in result.stdout


def test_programs_get_the_forms_and_their_parameters(folder: Path) -> None:
    document = json.loads(run("formulas model.npz --json").stdout)
    assert document["judged_by_data"] is False
    assert document["output"] is None
    assert {branch[0]["form"] for branch in document["branches"]} == {"sine", "exponential"}
    assert len(document["formulas"]) == 2


def test_an_output_that_is_an_input_is_refused(folder: Path) -> None:
    result = run("formulas model.npz -o model.npz")
    assert result.exit_code == 2
    assert "is also an input of this command" in result.stderr
