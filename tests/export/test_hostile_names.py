"""Whatever inputs and outputs are called, exported programs are what they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from exported_models import MODELS
from hostile_names import HOSTILE, with_numbered
from outside_programs import C99, CPP11, needs_compilers, needs_octave, octave, run
from unbraid.export import c, matlab, matlab_struct, python_module
from unbraid.export.comments import safe_name
from unbraid.export.files import Options
from unbraid.runtime.text import LONGEST_NAME

PLAIN = MODELS["SciPy 1"]
WRITERS = {"c": c.write, "matlab": matlab.write, "python": python_module.write, "struct": matlab_struct.write}


def named(*names: str) -> ub.DecoupledModel:
    """A model of these names, of the inputs and of the outputs."""
    return PLAIN.changed(input_names=(names * 3)[:3], output_names=(names[::-1] * 2)[:2])


def code_of_c(text: bytes) -> list[str]:
    """The lines of C that begin no comment and are within none."""
    return [line for line in text.decode().splitlines() if not line.startswith(("/*", " *"))]


@given(st.lists(st.text(), min_size=3, max_size=3))
def test_names_change_comments_alone(names: list[str]) -> None:
    model = PLAIN.changed(input_names=with_numbered(names), output_names=with_numbered(names[:2]))
    for kind, ending in (("c", ".c"), ("c", ".h")):
        assert code_of_c(WRITERS[kind](model, Options("model"))[ending]) == code_of_c(
            WRITERS[kind](PLAIN, Options("model"))[ending]
        )
    own, plain = (WRITERS["matlab"](one, Options("model"))[".m"].decode().splitlines() for one in (model, PLAIN))
    assert len(own) == len(plain)
    assert all(a == b for a, b in zip(own, plain, strict=True) if not b.startswith("%"))
    assert all(a.startswith("%") for a, b in zip(own, plain, strict=True) if b.startswith("%"))
    values: dict[str, object] = {}
    code = compile(WRITERS["python"](model, Options("model"))[".py"], "exported.py", "exec")
    exec(code, values)
    assert np.array_equal(values["W0"], model.W0)  # type: ignore[arg-type]
    assert WRITERS["struct"](model, Options("model"))[".mat"]


@given(st.text())
def test_names_are_short_and_plain(name: str) -> None:
    safe = safe_name(name)
    assert len(safe) <= LONGEST_NAME
    assert safe.isascii()
    assert safe.isprintable()
    assert not set(safe) & set("\"'\\?*:`{}")


@needs_compilers
def test_compilers_take_hostile_names_without_a_warning(tmp_path: Path) -> None:
    files: list[Path] = []
    for k, name in enumerate(HOSTILE):
        files += named(*with_numbered([name, name, name])).export(tmp_path / f"hostile_{k}.c")
    sources = [path.name for path in files if path.suffix == ".c"]
    (tmp_path / "headers.c").write_text("".join(f'#include "{path.name}"\n' for path in files if path.suffix == ".h"))
    for command in (["gcc", *C99], ["clang", *C99], ["g++", *CPP11]):
        run([*command, "-fsyntax-only", *sources, "headers.c"], tmp_path)


@needs_octave
def test_octave_takes_hostile_names(tmp_path: Path) -> None:
    script = ["X = [0.5, 0.25, -0.5];"]
    for k, name in enumerate(HOSTILE):
        model = named(*with_numbered([name, name, name]))
        model.export(tmp_path / f"hostile_{k}.m")
        model.export(tmp_path / f"struct_{k}.mat")
        script.append(f"printf('%.17g ', hostile_{k}(X), load('struct_{k}.mat').struct_{k}.bias);")
    found = np.array(octave("\n".join(script), tmp_path).split(), dtype=np.float64).reshape(-1, 4)
    expected = [*PLAIN(np.array([0.5, 0.25, -0.5])), *PLAIN.bias]
    np.testing.assert_allclose(found, np.tile(expected, (len(HOSTILE), 1)), rtol=1e-13)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_python_takes_hostile_names(name: str) -> None:
    values: dict[str, object] = {}
    exec(compile(WRITERS["python"](named(*with_numbered([name] * 3)), Options("model"))[".py"], "m.py", "exec"), values)
    assert np.array_equal(values["BIAS"], PLAIN.bias)  # type: ignore[arg-type]
