"""Exported C compiles without a warning, as C99 and as C++, and computes what the model computes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from exported_models import MODELS, difference, inside, outside, special, within
from outside_programs import C99, CPP11, needs_compilers, run
from unbraid.errors import SettingError
from unbraid.export.c import write
from unbraid.export.files import Options
from unbraid.kernels.arrays import Array

TOLERANCE = 1e-14
SINGLE_TOLERANCE = 1e-5
POINTS = 100_000
DRIVER = Template("""
#include "$name.h"
void ${name}_many(int S, const $real *X, $real *F, $real *J)
{
    int s;
    for (s = 0; s < S; s++) {
        ${name}_values(X + $m * s, F + $n * s);
        ${name}_jacobian(X + $m * s, ($real (*)[$m])(J + $n * $m * s));
    }
}
""")
"""The model at many points: the only way to call a million C functions from Python in a test."""
NAMES = {f"{dtype}_{k}": (name, dtype) for dtype in ("float64", "float32") for k, name in enumerate(MODELS)}
"""The models of the folder, in both types, by the names of their functions."""
compiled_by = pytest.mark.parametrize("compiler", ["gcc", "clang"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all models in both types, and a program that calls each at many points."""
    folder = tmp_path_factory.mktemp("c")
    driver = []
    for called, (name, dtype) in NAMES.items():
        model = MODELS[name]
        model.export(folder / f"{called}.c", dtype=dtype)  # type: ignore[arg-type]
        real = "double" if dtype == "float64" else "float"
        driver.append(DRIVER.substitute(name=called, real=real, m=model.m, n=model.n))
    (folder / "driver.c").write_text("".join(driver))
    return folder


@pytest.fixture(scope="module")
def library(folder: Path) -> Callable[[str], ctypes.CDLL]:
    """All models in one library, by compiler, compiled once."""
    made: dict[str, ctypes.CDLL] = {}

    def library_of(compiler: str) -> ctypes.CDLL:
        if compiler not in made:
            files = [f"{called}.c" for called in NAMES]
            run([compiler, *C99, "-O1", "-shared", "-fPIC", "-o", f"{compiler}.so", "driver.c", *files, "-lm"], folder)
            made[compiler] = ctypes.CDLL(str(folder / f"{compiler}.so"))
        return made[compiler]

    return library_of


def called_at(library: ctypes.CDLL, called: str, X: Array) -> tuple[Array, Array]:
    """The values and Jacobians that C gives at points."""
    name, dtype = NAMES[called]
    model = MODELS[name]
    given = np.ascontiguousarray(X, dtype=dtype)
    F, J = np.full((len(X), model.n), 7.0, dtype), np.full((len(X), model.n, model.m), 7.0, dtype)
    pointers: list[Any] = [ctypes.c_void_p(array.ctypes.data) for array in (given, F, J)]
    library[f"{called}_many"](ctypes.c_int(len(X)), *pointers)
    return F.astype(np.float64), J.astype(np.float64)


@needs_compilers
@compiled_by
@pytest.mark.parametrize("points", [inside, outside], ids=["inside", "outside"])
def test_values_and_jacobians_are_the_models(
    library: Callable[[str], ctypes.CDLL], compiler: str, points: Callable[[ub.DecoupledModel, int], Array]
) -> None:
    """At so many points, in one test a compiler: tests may be spread over processes, and each would compile."""
    for called, (name, dtype) in NAMES.items():
        model = MODELS[name]
        X = points(model, POINTS if dtype == "float64" else 1000)
        allowed = within(TOLERANCE if dtype == "float64" else SINGLE_TOLERANCE, name)
        F, J = called_at(library(compiler), called, X)
        assert difference(F, model(X)) <= allowed, name
        assert difference(J, model.jacobian(X)) <= allowed, name


@needs_compilers
@compiled_by
def test_what_is_no_number_stays_none_and_infinity_is_infinite(
    library: Callable[[str], ctypes.CDLL], compiler: str
) -> None:
    X = special()
    for called, (name, dtype) in NAMES.items():
        if dtype == "float64":
            F, J = called_at(library(compiler), called, X)
            with np.errstate(all="ignore"):
                assert difference(F, MODELS[name](X)) <= TOLERANCE, name
                assert difference(J, MODELS[name].jacobian(X)) <= TOLERANCE, name


@needs_compilers
def test_it_is_cpp_as_well_and_its_header_stands_alone(folder: Path) -> None:
    run(["g++", *CPP11, "-fsyntax-only", *(f"{called}.c" for called in NAMES)], folder)
    (folder / "headers.c").write_text("".join(f'#include "{called}.h"\n' * 2 for called in NAMES))
    run(["gcc", *C99, "-fsyntax-only", "headers.c"], folder)
    run(["g++", *CPP11, "-fsyntax-only", "headers.c"], folder)


@needs_compilers
def test_a_program_in_cpp_calls_it(folder: Path) -> None:
    called = next(iter(NAMES))
    model = MODELS[NAMES[called][0]]
    program = f"""
        #include <cstdio>
        #include "{called}.h"
        int main() {{
            double x[3] = {{0.5, -0.25, 1.0}}, f[2], J[2][3];
            {called}_values(x, f); {called}_jacobian(x, J);
            std::printf("%.17g %.17g %.17g", f[0], f[1], J[1][2]);
        }}"""
    (folder / "program.cpp").write_text(program)
    run(["gcc", *C99, "-c", f"{called}.c"], folder)
    run(["g++", "program.cpp", f"{called}.o", "-o", "program"], folder)
    x = np.array([0.5, -0.25, 1.0])
    found = np.array(run(["./program"], folder).split(), dtype=np.float64)
    assert difference(found, np.array([*model(x), model.jacobian(x)[1, 2]])) <= TOLERANCE


@needs_compilers
def test_a_model_without_branches_is_a_constant(tmp_path: Path) -> None:
    ub.DecoupledModel(np.zeros((0, 2)), np.zeros((1, 0)), [], [0.5]).export(tmp_path / "constant.c")
    program = """
        #include <stdio.h>
        #include "constant.h"
        int main(void)
        {
            double x[2] = {1.0, 2.0}, f[1], J[1][2] = {{7.0, 7.0}};
            constant_values(x, f);
            constant_jacobian(x, J);
            printf("%g %g %g", f[0], J[0][0], J[0][1]);
            return 0;
        }"""
    (tmp_path / "program.c").write_text(program)
    run(["gcc", *C99, "program.c", "constant.c", "-o", "program"], tmp_path)
    assert run(["./program"], tmp_path) == "0.5 0 0"


def test_nothing_can_be_written_to_and_nothing_is_allocated() -> None:
    for name in MODELS:
        source = write(MODELS[name], Options("model"))[".c"].decode()
        assert "alloc(" not in source
        tables = [line for line in source.splitlines() if line.startswith("static") and "=" in line]
        assert all(line.startswith("static const ") for line in tables)


def test_the_same_model_is_the_same_text_whichever_ending_is_asked_for(tmp_path: Path) -> None:
    model = MODELS["SciPy 1"]
    first = model.export(tmp_path / "one.c", name="same")
    second = model.export(tmp_path / "two.h", name="same")
    assert [path.name for path in (*first, *second)] == ["one.c", "one.h", "two.c", "two.h"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_numbers_that_float_has_not_are_refused() -> None:
    model = MODELS["SciPy 1"]
    with pytest.raises(SettingError, match="numbers beyond float32"):
        write(model.changed(W1=1e60 * model.W1), Options("model", "float32"))
