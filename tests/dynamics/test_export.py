"""Dynamic models in C and in Octave go the way that they go here, step by step."""

from __future__ import annotations

import ctypes
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from scipy.io import loadmat, savemat

import unbraid as ub
from dynamic_models import MODELS, inputs_of, random_narx, random_state_space
from exported_models import difference
from hostile_names import HOSTILE, with_numbered
from outside_programs import C99, CPP11, needs_compilers, needs_octave, octave, run
from unbraid.cli import app
from unbraid.errors import SettingError
from unbraid.kernels.arrays import Array

STEPS, SINGLE_STEPS, OCTAVE_STEPS = 2000, 200, 400  # Octave takes a millisecond a step
TOLERANCE, SINGLE_TOLERANCE = 1e-12, 1e-4
DRIVER = Template("""
#include "$name.h"
void ${name}_run(int T, const $real *u, $real *y)
{
    $real x[${NAME}_STATES];
    int t;
    ${name}_reset(x);
    for (t = 0; t < T; t++)
        ${name}_step(x, u + t * ${NAME}_INPUTS, y + t * ${NAME}_OUTPUTS);
}
""")
"""A whole record in one call."""
NAMES = {f"{name}_{dtype}": (name, dtype) for dtype in ("float64", "float32") for name in MODELS}
"""The models of the folder, in both types, by the names of their functions."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all models in both types, and a program that runs each."""
    folder = tmp_path_factory.mktemp("c")
    driver = []
    for called, (name, dtype) in NAMES.items():
        MODELS[name].export(folder / f"{called}.c", dtype=dtype)  # type: ignore[arg-type]
        real = "double" if dtype == "float64" else "float"
        driver.append(DRIVER.substitute(name=called, NAME=called.upper(), real=real))
    (folder / "driver.c").write_text("".join(driver))
    return folder


def simulated(library: ctypes.CDLL, called: str, u: Array) -> Array:
    """The outputs that C gives."""
    name, dtype = NAMES[called]
    given, y = np.ascontiguousarray(u, dtype=dtype), np.full((len(u), MODELS[name].ny), 7.0, dtype)
    pointers: list[Any] = [ctypes.c_void_p(array.ctypes.data) for array in (given, y)]
    library[f"{called}_run"](ctypes.c_int(len(u)), *pointers)
    return y.astype(np.float64)


@needs_compilers
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_steps_in_c_are_the_simulation(folder: Path, compiler: str) -> None:
    """All models in one test a compiler: tests may be spread over processes, and each would compile."""
    files = [f"{called}.c" for called in NAMES]
    run([compiler, *C99, "-O1", "-shared", "-fPIC", "-o", f"{compiler}.so", "driver.c", *files, "-lm"], folder)
    library = ctypes.CDLL(str(folder / f"{compiler}.so"))
    for called, (name, dtype) in NAMES.items():
        steps, tolerance = (STEPS, TOLERANCE) if dtype == "float64" else (SINGLE_STEPS, SINGLE_TOLERANCE)
        u = inputs_of(name, steps)
        assert difference(simulated(library, called, u), MODELS[name].run(u).y) <= tolerance, called


@needs_compilers
def test_it_is_cpp_as_well_and_its_header_stands_alone(folder: Path) -> None:
    run(["g++", *CPP11, "-fsyntax-only", *(f"{called}.c" for called in NAMES)], folder)
    (folder / "headers.c").write_text("".join(f'#include "{called}.h"\n' * 2 for called in NAMES))
    run(["gcc", *C99, "-fsyntax-only", "headers.c"], folder)
    run(["g++", *CPP11, "-fsyntax-only", "headers.c"], folder)


@needs_compilers
def test_a_program_finds_sizes_in_the_header(tmp_path: Path) -> None:
    random_narx((0, 2), (1, 3), nu=2, ny=1, r=1).export(tmp_path / "plant.c")
    program = """
        #include <stdio.h>
        #include "plant.h"
        int main(void)
        {
            printf("%d %d %d", PLANT_STATES, PLANT_INPUTS, PLANT_OUTPUTS);
            return 0;
        }"""
    (tmp_path / "program.c").write_text(program)
    run(["gcc", *C99, "program.c", "plant.c", "-o", "program"], tmp_path)
    assert run(["./program"], tmp_path).split() == ["7", "2", "1"]  # three y, two times two u


def test_nothing_can_be_written_to_and_nothing_is_allocated(folder: Path) -> None:
    for called in NAMES:
        source = (folder / f"{called}.c").read_text(encoding="ascii")
        assert "alloc(" not in source
        assert "slope" not in source
        tables = [line for line in source.splitlines() if line.strip().startswith("static") and "=" in line]
        assert all(line.strip().startswith("static const ") for line in tables)


IN_OCTAVE = """
names = strsplit('{names}', ' ');
for k = 1:numel(names)
    u = load('inputs.mat').(names{{k}});
    [y, x] = feval(names{{k}}, u);
    [first, between] = feval(names{{k}}, u(1:40, :));
    assert(isequal([first; feval(names{{k}}, u(41:60, :), between.')], y(1:60, :)));
    save('-v6', [names{{k}} '_results.mat'], 'y', 'x');
end
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All models, and what Octave computes of them, which it starts for once."""
    folder = tmp_path_factory.mktemp("octave")
    for name, model in MODELS.items():
        model.export(folder / f"{name}.m")
    savemat(folder / "inputs.mat", {name: inputs_of(name, OCTAVE_STEPS) for name in MODELS})
    octave(IN_OCTAVE.format(names=" ".join(MODELS)), folder)
    return folder


@needs_octave
def test_octave_simulates_the_same(results: Path) -> None:
    for name, model in MODELS.items():
        expected = model.run(inputs_of(name, OCTAVE_STEPS))
        assert difference(loadmat(results / f"{name}_results.mat")["y"], expected.y) <= TOLERANCE, name


@needs_octave
def test_octave_has_the_state_behind_the_last_moment(results: Path) -> None:
    model = MODELS["narx"]
    u = inputs_of("narx", OCTAVE_STEPS)
    y = model.run(u).y
    expected = np.concatenate([y[-1], y[-2], y[-3], u[-1], u[-2]])
    assert difference(loadmat(results / "narx_results.mat")["x"][:, 0], expected) <= TOLERANCE


@needs_octave
def test_octave_takes_a_single_input_as_a_row_as_well_and_no_moment(tmp_path: Path) -> None:
    MODELS["duffing"].export(tmp_path / "plant.m")
    script = "u = sin(1:50); assert(isequal(plant(u), plant(u.'))); disp(size(plant(u))), disp(size(plant([])))"
    assert octave(script, tmp_path).split() == ["50", "1", "0", "1"]


@pytest.mark.parametrize("name", ["x", "u", "y", "phi", "zeros", "g1", "piecewise", "end"])
def test_names_with_another_meaning_in_matlab_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="has another meaning there"):
        MODELS["duffing"].export(tmp_path / f"{name}.m")
    assert not list(tmp_path.iterdir())


# What is refused


@pytest.mark.parametrize("file", ["q.onnx", "q.py", "q.mat", "q.json", "q.tex", "q"])
def test_other_endings_are_refused(file: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"The ending of 'q.*' must be one of \.c, \.h, \.m: it says the language\."):
        MODELS["narx"].export(tmp_path / file)


def test_other_types_and_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="dtype must be 'float64' or 'float32', got 'float16'"):
        MODELS["narx"].export(tmp_path / "q.c", dtype="float16")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="name must begin with a letter"):
        MODELS["narx"].export(tmp_path / "q.c", name="2nd")


@pytest.mark.parametrize("file", ["q.c", "q.m"])
def test_branches_that_are_functions_of_python_are_refused(file: str, tmp_path: Path) -> None:
    _, truth = ub.dynamics.systems.duffing(T=20, rng=0)
    with pytest.raises(SettingError, match=r"Branch 1, FunctionBranch\(.*cannot be exported"):
        truth.export(tmp_path / file)
    assert not list(tmp_path.iterdir())


# Names


def named(model: ub.dynamics.NarxModel, name: str) -> ub.dynamics.NarxModel:
    """A model of two inputs and two outputs of hostile names."""
    return ub.dynamics.NarxModel(
        model.L,
        model.nonlinearity,
        input_lags=model.input_lags,
        output_lags=model.output_lags,
        nu=2,
        input_names=with_numbered([name, name]),
        output_names=with_numbered([name, name]),
    )


@needs_compilers
def test_compilers_take_hostile_names_without_a_warning(tmp_path: Path) -> None:
    files: list[Path] = []
    for k, name in enumerate(HOSTILE):
        files += named(random_narx(), name).export(tmp_path / f"hostile_{k}.c")
    sources = [path.name for path in files if path.suffix == ".c"]
    (tmp_path / "headers.c").write_text("".join(f'#include "{path.name}"\n' for path in files if path.suffix == ".h"))
    for command in (["gcc", *C99], ["clang", *C99], ["g++", *CPP11]):
        run([*command, "-fsyntax-only", *sources, "headers.c"], tmp_path)


@needs_octave
def test_octave_takes_hostile_names(tmp_path: Path) -> None:
    script = ["u = [0.5, 0.25; -0.5, 1];"]
    for k, name in enumerate(HOSTILE):
        named(random_narx(), name).export(tmp_path / f"hostile_{k}.m")
        script.append(f"printf('%.17g ', hostile_{k}(u).');")
    found = np.array(octave("\n".join(script), tmp_path).split(), dtype=np.float64).reshape(-1, 2, 2)
    expected = random_narx().simulate([[0.5, 0.25], [-0.5, 1.0]])
    np.testing.assert_allclose(found, np.tile(expected, (len(HOSTILE), 1, 1)), rtol=1e-12)


def test_names_are_in_comments(tmp_path: Path) -> None:
    model = named(random_narx(), "speed [m/s] ")
    _, header = model.export(tmp_path / "plant.c")
    (function,) = model.export(tmp_path / "plant.m")
    assert " *   y[1]  speed [m/s] 1\n" in header.read_text(encoding="ascii")
    assert "%   u(.,2)  speed [m/s] 1\n" in function.read_text(encoding="ascii")


# The command line


def command(line: str) -> Result:
    return CliRunner().invoke(app, line.split())


def test_the_command_line_exports_both_kinds_of_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    random_state_space().save("plant.npz")
    random_narx().save("narx.npz")
    result = command("export plant.npz -o plant.c --dtype float32")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "Wrote plant.c and plant.h.\n", "")
    assert "void plant_reset(float x[PLANT_STATES]);" in Path("plant.h").read_text(encoding="ascii")
    assert command("export narx.npz -o narx.m").exit_code == 0
    refused = command("export narx.npz -o narx.onnx")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "The ending of 'narx.onnx' must be one of .c, .h, .m" in refused.stderr
