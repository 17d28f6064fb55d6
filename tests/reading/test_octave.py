"""Files go from Octave to unbraid and back: what Octave saves is read, and predictions are read by Octave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import unbraid as ub
from outside_programs import needs_octave, octave
from sample_files import samples_last
from unbraid.cli import app
from unbraid.kernels.arrays import Array
from unbraid.reading import read_problem

pytestmark = needs_octave
EXACT = 1e-15
FORMATS = {"text.mat": "-text", "text.txt": "-text", "seven.mat": "-v7", "six.mat": "-v6", "five.h5": "-hdf5"}
SAMPLES = """
S = 40;
t = linspace(-1, 1, S);
X = [t; sin(3 * t) / 3; t .^ 2 / 7];
F = [sum(X); exp(X(1, :))];
J = zeros(2, 3, S);
for s = 1:S
    J(:, :, s) = [1 1 1; exp(X(1, s)) 0 0];
end
data.train.X = X; data.train.F = F; data.train.J = J;
data.note = 'a text'; data.all = {X, 'cell'}; data.f = @(x) x + S;
"""
"""X (3, S), F (2, S) and J (2, 3, S), and the same in a struct."""


def numbers_in_octave(file: str, name: str, folder: Path) -> Array:
    """An array of a file that Octave loads, in the digits that Octave prints."""
    script = f"load('{file}'); printf('%d ', size({name})); printf('\\n'); printf('%.17g ', {name});"
    shape, numbers = octave(script, folder).splitlines()
    return np.array(numbers.split(), dtype=np.float64).reshape([int(one) for one in shape.split()], order="F")


def expected() -> dict[str, Any]:
    """The samples of the script, up to how two programs compute sines and exponentials."""
    t = np.linspace(-1, 1, 40)
    X = np.stack([t, np.sin(3 * t) / 3, t**2 / 7], axis=1)
    e, zero = np.exp(X[:, 0]), np.zeros(40)
    J = np.stack([np.ones((40, 3)), np.stack([e, zero, zero], axis=1)], axis=1)
    return {"X": X, "F": np.stack([X.sum(1), e], axis=1), "J": J}


@pytest.mark.parametrize(("name", "option"), FORMATS.items(), ids=FORMATS)
def test_what_octave_saves_is_read(tmp_path: Path, name: str, option: str) -> None:
    handle = "" if option in ("-text", "-hdf5") else "data = rmfield(data, 'f');"  # which MATLAB's formats cannot hold
    octave(f"{SAMPLES} {handle} save('{option}', '{name}', 'X', 'F', 'J', 'data');", tmp_path)
    alone = read_problem(tmp_path / name)
    inside = read_problem(tmp_path / name, "data.train.X")
    assert alone.taken == inside.taken == "samples last"
    for letter, wanted in expected().items():
        np.testing.assert_allclose(getattr(alone.problem, letter), wanted, rtol=1e-14, atol=1e-14)
        assert np.array_equal(getattr(alone.problem, letter), getattr(inside.problem, letter))
        shown = numbers_in_octave(name, letter, tmp_path)
        assert np.array_equal(np.moveaxis(shown, -1, 0), getattr(alone.problem, letter)), "to the last bit"


def test_octave_reads_predictions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Laid out as the points were, and equal to what the model says in Python."""
    monkeypatch.chdir(tmp_path)
    octave(f"{SAMPLES} save('-v7', 'samples.mat', 'X', 'F', 'J'); save('points.mat', 'X');", tmp_path)
    fit = "fit samples.mat --rank 2 --starts 1 --max-sweeps 20 -o model.npz"
    for line in (fit, "predict model.npz points.mat -o values.mat", "predict model.npz points.mat -o values.csv"):
        result = CliRunner().invoke(app, line.split())
        assert result.exit_code == 0, result.output
    model, X = ub.DecoupledModel.load("model.npz"), read_problem("samples.mat").problem.X
    values = {"F": model(X), "J": model.jacobian(X)}
    for name, wanted in samples_last(values).items():
        np.testing.assert_allclose(numbers_in_octave("values.mat", name, tmp_path), wanted, rtol=EXACT, atol=EXACT)
    table = octave("A = dlmread('values.csv', ',', 1, 0); printf('%.17g ', A);", tmp_path)
    read = np.array(table.split(), dtype=np.float64).reshape(40, 5, order="F")
    np.testing.assert_allclose(read, np.hstack([X, values["F"]]), rtol=EXACT, atol=EXACT)


def test_a_single_prediction_is_a_matrix_in_octave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    problem, _ = ub.datasets.trig(S=40, rng=0)
    ub.decouple(problem, 1, starts=1, rng=0).model.save("model.npz")
    octave("X = [0.5; 0.25]; save('-v7', 'points.mat', 'X');", tmp_path)
    line = "predict model.npz points.mat --layout samples-last -o values.mat"
    result = CliRunner().invoke(app, line.split())
    assert "Wrote F (2, 1) and J (2, 2, 1) to values.mat.\n" in result.stdout
    assert numbers_in_octave("values.mat", "F", tmp_path).shape == (2, 1)
    assert numbers_in_octave("values.mat", "J", tmp_path).shape == (2, 2)
