"""What a fit chose, on the command line: in words, and in documents."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import unbraid as ub
from idle_branches import five_branches, noisy
from unbraid.cli import app
from unbraid.cli.output import as_json, fit_quality


def output_of(line: str) -> str:
    result = CliRunner().invoke(app, line.split())
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result.stdout


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder to run in with noisy.npz and idle.npz, a model of which two branches carry nothing."""
    monkeypatch.chdir(tmp_path)
    problem = noisy()
    assert problem.F is not None
    assert problem.J is not None
    np.savez("noisy.npz", X=problem.X, F=problem.F, J=problem.J)
    five_branches().model.save("idle.npz")


@pytest.mark.usefixtures("here")
def test_a_fit_prints_what_it_chose() -> None:
    fit = ub.decouple(noisy(), 3, starts=2, rng=0)
    line = "fit noisy.npz --rank 3 --starts 2 -o model.npz"
    assert f"Chosen: {fit.smoothing}; {fit.noise}.\n" in output_of(line)
    assert "Chosen:" not in output_of(f"{line} --basis spline")
    assert json.loads(output_of(f"{line} --basis spline --json"))["smoothing"] is None


def test_a_document_has_what_was_chosen() -> None:
    fit = five_branches()
    assert fit.smoothing is not None
    assert fit.value_noise is not None
    assert as_json(fit_quality(fit)["smoothing"]) == {
        "degrees_of_freedom": fit.smoothing.freedom.tolist(),
        "supported": 3,
        "coupling": fit.smoothing.coupling,
        "noise_percent": fit.value_noise.tolist(),
        "slope_noise_percent": fit.slope_noise,
    }


@pytest.mark.usefixtures("here")
def test_inspect_says_which_branches_carry_nothing() -> None:
    said = output_of("inspect idle.npz")
    assert said.count("carries nothing") == 2
    assert said.endswith("Branches 2 and 4 carry nothing, and their directions mean nothing.\n")
    branches = json.loads(output_of("inspect idle.npz --json"))["branches"]
    assert [one["carries"] for one in branches] == [True, False, True, False, True]
    assert branches[1]["certified"] == []


@pytest.mark.usefixtures("here")
def test_points_are_not_outside_the_range_of_a_branch_that_carries_nothing() -> None:
    assert json.loads(output_of("predict idle.npz noisy.npz --json"))["outside"] == 0
