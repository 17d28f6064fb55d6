"""Models as mathematics in LaTeX."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from matplotlib.mathtext import MathTextParser
from scipy.interpolate import CubicSpline

import unbraid as ub
from model_files import a_model, a_model_of_formulas
from random_models import random_models
from unbraid.errors import SettingError
from unbraid.export.latex import LatexNotation, latex_text
from unbraid.results.branches.forms import FORMS, Formula
from unbraid.results.branches.formula import FormulaBranch


def commands(text: str) -> set[str]:
    """The commands of a fragment; an escaped sign is none."""
    return set(re.findall(r"\\[a-zA-Z]+", text.replace(r"\\", " ")))


KNOWN = re.compile(
    r"\\(usepackage|begin|end|left|right|text|quad|cdot|frac|sqrt|exp|log|sin|tanh|arctan|max|min|le|operatorname"
    r"|textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar)"
)


def assert_sound(text: str) -> None:
    """Brackets and environments are closed, in their order, and nothing is a command but what this library writes."""
    assert all(map(KNOWN.fullmatch, commands(text)))
    bare = re.sub(r"\\[\\{}$&#%_,]", " ", text)
    assert bare.count("{") == bare.count("}")
    assert "$" not in bare
    assert "#" not in bare
    assert bare.count("%") == 1
    assert text.count(r"\left") == text.count(r"\right")
    stack = []
    for which, name in re.findall(r"\\(begin|end)\{([a-z*]+)\}", text):
        if which == "begin":
            stack.append(name)
        else:
            assert stack.pop() == name
    assert not stack
    assert all(line.isprintable() for line in text.splitlines())


def assert_parses(formula: str) -> None:
    """Matplotlib, which knows a part of LaTeX, can set a formula."""
    MathTextParser("path").parse(f"${formula}$")


def test_the_fragment_of_a_model(tmp_path: Path) -> None:
    (path,) = a_model_of_formulas().export(tmp_path / "model.tex")
    text = path.read_text(encoding="utf-8")
    assert_sound(text)
    lines = text.splitlines()
    assert lines[:4] == [
        r"% needs \usepackage{amsmath}",
        r"\begin{align*}",
        r"\text{force} &= 0.64\,\sin\left(2\,\text{speed} + 0.3\,\text{fuel=diesel} + 0.3\right) \\",
        r"  &\quad {} + 0.3\,\left(\text{speed} + 2\,\text{fuel=diesel}\right)^{2}"
        r" - 1.1\,\left(\text{speed} + 2\,\text{fuel=diesel}\right) \\",
    ]
    assert r"g_{3}(u) &= \begin{cases}" in text
    assert r"& -1.2 \le u < 0.3333 \\" in text
    assert lines[-1] == r"\end{align*}"


def test_without_names_inputs_are_letters() -> None:
    model = a_model_of_formulas().changed(input_names=None, output_names=None, encoding=None)
    assert r"f_{1}(x) &= 0.64\,\sin\left(2\,x_{1} + 0.3\,x_{2} + 0.3\right)" in latex_text(model, 4)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_sound(form: str) -> None:
    parameters = np.arange(1.0, 1.0 + FORMS[form].count).tolist()
    branch = FormulaBranch(Formula.of(form, parameters), (-1.0, 2.0))
    text = latex_text(ub.DecoupledModel([[1.0, -3e-5]], [[1e-7], [-2.0]], [branch], [0.0, -1.0]), 4)
    assert_sound(text)
    for line in text.splitlines()[2:-1]:
        assert_parses(line.removesuffix(r"\\").replace("&", ""))


@given(model=random_models)
def test_every_model_is_sound(model: ub.DecoupledModel) -> None:
    assert_sound(latex_text(model, 4))


HOSTILE = (r"\input{/etc/passwd}", r"}\end{align*}\write18{rm}", "$x$ % & # _ ~ ^ | < >", "^^5cinput", "a\nb\x1b[2J")


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_no_commands(name: str) -> None:
    model = a_model_of_formulas().changed(input_names=(name, name), output_names=(name, name), encoding=None)
    text = latex_text(model, 4)
    assert_sound(text)
    assert r"\input" not in text.replace(r"\textbackslash{}", "")
    assert "^^" not in text


def test_curves_are_what_the_branch_is() -> None:
    """The polynomials of a curve, read again, are the branch to the digits written."""
    u = np.linspace(-1.0, 2.0, 6)
    model = ub.DecoupledModel.from_parts([[1.0]], [[1.0]], None, [CubicSpline(u, np.sin(u))])
    text = latex_text(model, 9)
    rows = text[text.index(r"\begin{cases}") : text.index(r"\end{cases}")].splitlines()[1:]
    assert len(rows) == 7
    for row, point in zip(rows, [-1.3, *(0.5 * (u[1:] + u[:-1])), 2.2], strict=True):
        formula, where = row.removesuffix(r" \\").split(" & ")
        code = formula.replace(r"\,", "*").replace(r"\left", "").replace(r"\right", "").replace("^", "**")
        code = re.sub(r"\{(\d+)\}", r"\1", re.sub(r" \\cdot 10\*\*\{(-?\d+)\}", r"*10.0**(\1)", code))
        assert eval(code, {"u": point}) == pytest.approx(model([point])[0], abs=1e-7)
        assert eval(where.replace(r"\le", "<="), {"u": point})


def test_a_curve_about_zero_needs_no_brackets() -> None:
    u = np.array([0.0, 1.0, 2.0, 3.0])
    text = latex_text(ub.DecoupledModel.from_parts([[1.0]], [[1.0]], None, [CubicSpline(u, u)]), 4)
    assert "  u & u < 0" in text


def test_long_sums_go_on_in_the_next_line() -> None:
    text = latex_text(a_model([ub.Polynomial(2)] * 9, m=3), 4)
    assert_sound(text)
    longest = max(len(line) for line in text.splitlines() if r"\quad" in line)
    assert longest < 250
    assert re.search(r"\\\\\n  &\\quad \{\} [+-] ", text)


def test_what_is_no_formula_is_refused(tmp_path: Path) -> None:
    _, truth = ub.datasets.trig(S=5, rng=0)
    with pytest.raises(SettingError, match="cannot be exported"):
        truth.export(tmp_path / "truth.tex")
    assert list(tmp_path.iterdir()) == []


def test_numbers_are_those_of_mathematics() -> None:
    assert LatexNotation(digits=3).number(-1.5e-7) == r"-1.5 \cdot 10^{-7}"
    assert LatexNotation(digits=3).number(0.25) == "0.25"
