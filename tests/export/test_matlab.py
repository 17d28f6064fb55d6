"""Exported functions and structs in Octave: what the model computes, without a warning."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat, savemat

import unbraid as ub
from exported_models import MODELS, difference, inside, outside, special
from outside_programs import needs_octave, octave
from unbraid.errors import SettingError
from unbraid.kernels.arrays import Array

TOLERANCE = 1e-13
NAMES = {f"model_{k}": name for k, name in enumerate(MODELS)}
IN_OCTAVE = """
names = strsplit('{names}', ' ');
for k = 1:numel(names)
    X = load('points.mat').(names{{k}});
    [F, J] = feval(names{{k}}, X);
    assert(isequaln(F, feval(names{{k}}, X)));
    save('-v6', [names{{k}} '_results.mat'], 'F', 'J');
end
"""


def points(model: ub.DecoupledModel) -> list[Array]:
    return [inside(model, 1000), outside(model, 1000), special()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All models, and what Octave computes of them, which it starts for once."""
    folder = tmp_path_factory.mktemp("octave")
    for called, name in NAMES.items():
        MODELS[name].export(folder / f"{called}.m")
    every = {called: np.concatenate(points(MODELS[name])) for called, name in NAMES.items()}
    savemat(folder / "points.mat", every)
    octave(IN_OCTAVE.format(names=" ".join(NAMES)), folder)
    return folder


@needs_octave
@pytest.mark.parametrize("called", NAMES)
def test_values_and_jacobians_are_the_models(folder: Path, called: str) -> None:
    model = MODELS[NAMES[called]]
    read = loadmat(folder / f"{called}_results.mat")
    start = 0
    for X in points(model):
        part = slice(start, start + len(X))
        start = part.stop
        with np.errstate(all="ignore"):
            assert difference(read["F"][part], model(X)) <= TOLERANCE
            assert difference(read["J"][part], model.jacobian(X)) <= TOLERANCE


@needs_octave
def test_a_single_point_and_no_point(tmp_path: Path) -> None:
    MODELS["SciPy 1"].export(tmp_path / "one.m")
    script = (
        "[f, J] = one([1, 2, 3]); disp(size(f)), disp(size(J)), [f, J] = one(zeros(0, 3)); disp(size(f)), disp(size(J))"
    )
    sizes = [line.split() for line in octave(script, tmp_path).splitlines()]
    assert sizes == [["1", "2"], ["1", "2", "3"], ["0", "2"], ["0", "2", "3"]]


@needs_octave
def test_a_model_without_branches_is_a_constant(tmp_path: Path) -> None:
    ub.DecoupledModel(np.zeros((0, 2)), np.zeros((1, 0)), [], [0.5]).export(tmp_path / "flat.m")
    assert octave("[f, J] = flat([1, 2; 3, 4]); disp(f.'), disp(J(:).')", tmp_path).split() == 2 * ["0.5000"] + 4 * [
        "0"
    ]


@pytest.mark.parametrize("name", ["end", "endif", "f", "zeros", "g1", "piecewise", "W0"])
def test_names_with_another_meaning_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="has another meaning there"):
        MODELS["SciPy 1"].export(tmp_path / f"{name}.m")
    assert not list(tmp_path.iterdir())


STRUCT_IN_OCTAVE = """
M = load('struct.mat').struct_of_model;
X = load('points.mat').X;
u = X * M.W0.';
g = zeros(size(u));
for j = 1:numel(M.branches)
    b = M.branches(j);
    piece = 1 + sum(u(:, j) >= b.breaks, 2);
    t = (u(:, j) - b.middle(piece).') .* b.rate(piece).';
    g(:, j) = sum(b.powers(:, piece).' .* t .^ (0:rows(b.powers) - 1), 2);
end
F = g * M.W1.' + M.bias.';
save('-v6', 'results.mat', 'F');
printf('%s ', M.input_names{:}, M.output_names{:}, b.form);
"""


@needs_octave
def test_the_struct_is_all_of_the_model(tmp_path: Path) -> None:
    model = MODELS["SciPy 1"].changed(input_names=["a", "b", "Höhe"], output_names=["p", "q"])
    model.export(tmp_path / "struct.mat", name="struct_of_model")
    X = np.concatenate([inside(model, 500), outside(model, 500)])
    savemat(tmp_path / "points.mat", {"X": X})
    assert octave(STRUCT_IN_OCTAVE, tmp_path).split() == ["a", "b", "Hohe", "p", "q", "piecewise", "polynomial"]
    assert difference(loadmat(tmp_path / "results.mat")["F"], model(X)) <= TOLERANCE


def test_the_struct_has_the_parameters_of_formulas(tmp_path: Path) -> None:
    name = next(name for name in MODELS if "exponential" in name)
    (path,) = MODELS[name].export(tmp_path / "formulas.mat")
    read = loadmat(path, simplify_cells=True)["formulas"]
    forms = [branch["form"] for branch in read["branches"]]
    assert forms == name.split(", ")
    exponential = read["branches"][forms.index("exponential")]
    np.testing.assert_array_equal(exponential["parameters"], [1.3, 0.8, 0.0, -0.4])
    np.testing.assert_array_equal(exponential["domain"], [-1.0, 1.0])
    assert exponential["breaks"].size == 0


def test_the_same_model_is_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (first,) = MODELS["SciPy 1"].export(tmp_path / "one.mat", name="same")
    monkeypatch.setattr("time.asctime", lambda *_: "another day")
    (second,) = MODELS["SciPy 1"].export(tmp_path / "two.mat", name="same")
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes().startswith(b"MATLAB 5.0 MAT-file, written by unbraid ")
