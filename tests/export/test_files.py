"""Which file is written by whom, under which name, and what is refused before anything is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import unbraid as ub
from exported_models import MODELS
from outside_programs import C99, needs_compilers, run
from unbraid.errors import FileError, SettingError
from unbraid.export.files import function_name
from unbraid.export.numerals import double, row_text, single
from unbraid.results.branches.forms import Formula
from unbraid.results.branches.formula import FormulaBranch

MODEL = MODELS["SciPy 1"]
TEXTS = ("q.c", "q.h", "q.py", "q.m", "q.mat")


@pytest.mark.parametrize("file", TEXTS)
def test_branches_that_are_functions_of_python_are_refused(file: str, tmp_path: Path) -> None:
    _, truth = ub.datasets.trig(S=5, rng=0)
    with pytest.raises(SettingError, match=r"Branch 1, FunctionBranch\(.*cannot be exported"):
        truth.export(tmp_path / file)
    assert not list(tmp_path.iterdir())


def test_other_endings_and_types_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"The ending of 'q.exe' must be one of \.c, \.h"):
        MODEL.export(tmp_path / "q.exe")
    with pytest.raises(SettingError, match="dtype must be 'float64' or 'float32', got 'float16'"):
        MODEL.export(tmp_path / "q.c", dtype="float16")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("plant.c", "plant"),
        ("my model-2.c", "my_model_2"),
        ("2nd.c", "model_2nd"),
        ("ü.c", "model"),
        ("x" * 99, "x" * 63),
    ],
)
def test_functions_are_called_after_the_file(file: str, name: str) -> None:
    assert function_name(Path(file), None) == name


@pytest.mark.parametrize("name", ["", "2nd", "a b", "a;b", "x" * 64, "naïve", "_hidden"])
def test_names_that_languages_do_not_take_are_refused(name: str) -> None:
    with pytest.raises(SettingError, match="name must begin with a letter"):
        function_name(Path("q.c"), name)


def test_digits_are_read_back_as_the_same_numbers() -> None:
    numbers = np.random.default_rng(0).standard_normal(500) * 10.0 ** np.arange(-250.0, 250.0)
    text = row_text(numbers, double, "\n")
    assert np.array_equal(np.array(text.replace("\n", " ").split(", "), dtype=np.float64), numbers)
    some = numbers[220:280].astype(np.float32)
    assert np.array_equal(np.array([single(float(one)) for one in some], dtype=np.float32), some)


@needs_compilers
def test_a_wide_model_compiles_and_lists_some_of_its_names(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    wide = ub.DecoupledModel(rng.standard_normal((3, 1000)), rng.standard_normal((300, 3)), MODEL.branches)
    _, header = wide.export(tmp_path / "wide.c")
    run(["gcc", *C99, "-fsyntax-only", "wide.c"], tmp_path)
    assert "   and 900 more\n" in header.read_text(encoding="ascii")


def test_a_file_beside_it_that_unbraid_did_not_write_is_left_alone(tmp_path: Path) -> None:
    static, dynamic = MODELS["SciPy 1"], ub.dynamics.systems.duffing(T=50, rng=0)[1]
    spring = dynamic.nonlinearity.changed(branches=[FormulaBranch(Formula.of("cube", (1.0, 1.0, 0.0, 0.0)))])
    exports = (static.export, dynamic.changed(nonlinearity=spring).export)
    for k, export in enumerate(exports):
        for named, beside in ((".c", ".h"), (".h", ".c")):
            own = tmp_path / f"own{k}{beside}"
            own.write_text("/* mine */")
            with pytest.raises(FileError, match="was not written by unbraid"):
                export(own.with_suffix(named))
            assert own.read_text() == "/* mine */"
            assert not own.with_suffix(named).exists()
            own.unlink()
        for _ in range(2):  # its own files are replaced
            export(tmp_path / f"model{k}.c")
        (tmp_path / f"model{k}.c").write_text("/* named by the user */")
        (tmp_path / f"model{k}.h").unlink()
        export(tmp_path / f"model{k}.c")
