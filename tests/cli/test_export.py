"""`unbraid export`: which files it writes, and what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from exported_models import MODELS
from unbraid.cli import app


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with model.npz, and the place to run in."""
    monkeypatch.chdir(tmp_path)
    next(iter(MODELS.values())).save("model.npz")
    return tmp_path


def run(line: str) -> Result:
    return CliRunner().invoke(app, line.split())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("q.c", "Wrote q.c and q.h.\n"),
        ("q.h", "Wrote q.c and q.h.\n"),
        ("q.py", "Wrote q.py.\n"),
        ("q.m", "Wrote q.m.\n"),
        ("q.mat", "Wrote q.mat.\n"),
    ],
)
def test_the_ending_says_the_language(folder: Path, name: str, said: str) -> None:
    result = run(f"export model.npz -o {name}")
    assert (result.exit_code, result.stdout, result.stderr) == (0, said, "")
    assert (folder / name).exists()


def test_the_module_computes_what_the_model_does(folder: Path) -> None:
    assert run("export model.npz -o q.py").exit_code == 0
    names: dict[str, object] = {}
    exec((folder / "q.py").read_text(encoding="ascii"), names)
    X = np.random.default_rng(0).standard_normal((50, 3))
    values = names["values"]
    assert callable(values)
    np.testing.assert_allclose(values(X), next(iter(MODELS.values()))(X), rtol=1e-12)


def test_name_and_type(folder: Path) -> None:
    assert run("export model.npz -o q.c --name plant --dtype float32").exit_code == 0
    header = (folder / "q.h").read_text(encoding="ascii")
    assert "void plant_values(const float x[3], float f[2]);" in header


def test_programs_are_told_the_files(folder: Path) -> None:
    result = run("export model.npz -o q.c --json")
    document = json.loads(result.stdout)
    assert document["files"] == ["q.c", "q.h"]
    assert document["dtype"] == "float64"
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("-o q.txt", "The ending of 'q.txt' must be one of .c, .h"),
        ("-o q", "The ending of 'q' must be one of"),
        ("-o q.c --name 1st", "name must begin with a letter"),
        ("-o end.m", "'end' cannot be the name of an exported function"),
        ("-o none/q.c", "its folder does not exist"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence_and_leaves_no_file(folder: Path, options: str, said: str) -> None:
    result = run(f"export model.npz {options}")
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert [path.name for path in folder.iterdir()] == ["model.npz"]


@pytest.mark.parametrize("ending", ["c", "tex"])
def test_names_that_a_terminal_lacks_letters_for_are_no_reason_to_fail(folder: Path, ending: str) -> None:
    model = MODELS["SciPy 1"].changed(input_names=["Höhe", "力", "ω"], output_names=["é", "b"])
    model.save("Modell ü.npz")
    own = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "unbraid", "export", "Modell ü.npz", "-o", f"Ausgabe é.{ending}"]
    done = subprocess.run(command, capture_output=True, env=own, timeout=600)
    assert (done.returncode, done.stderr) == (0, b"")
    assert Path(f"Ausgabe é.{ending}").exists()
