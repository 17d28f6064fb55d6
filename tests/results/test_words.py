"""Formulas of models as people write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from scipy.interpolate import CubicSpline

import unbraid as ub
from model_files import a_model, a_model_of_formulas
from random_models import random_models
from unbraid.errors import SettingError
from unbraid.export.latex import latex_text
from unbraid.results.branches.forms import FORMS, Formula
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.branches.words import SUBSCRIPTS, SUPERSCRIPTS, Notation, form_text, formula_lines, formula_text


def a_formula(
    form: str,
    parameters: Sequence[float],
    direction: Sequence[float] = (1.0, 2.0),
    weight: float = 1.0,
    bias: float = 0.0,
    domain: tuple[float, float] = (-2.0, 3.0),
) -> ub.DecoupledModel:
    """A model of one branch."""
    branch = FormulaBranch(Formula.of(form, parameters), domain)
    return ub.DecoupledModel([list(direction)], [[weight]], [branch], [bias])


def line_of(model: ub.DecoupledModel, **settings: Any) -> str:
    """The right side of the only line about a model."""
    (line,) = formula_lines(model, **settings)
    return line.removeprefix("f₁ = ")


@pytest.mark.parametrize(
    ("form", "parameters", "text"),
    [
        ("constant", (2.5,), "2.5"),
        ("line", (2.5, 3.0), "3 x₁ + 6 x₂ + 2.5"),
        ("square", (0.5, 1.0, 1.0, 0.0), "0.5 (x₁ + 2 x₂ + 1)²"),
        ("square", (0.5, -1.0, 1.0, 0.0), "0.5 (x₁ + 2 x₂ − 1)²"),
        ("cube", (0.5, -1.0, 1.0, 0.0), "−0.5 (x₁ + 2 x₂ − 1)³"),
        ("fourth power", (-1.0, 1.0, 0.0, 2.0), "−(x₁ + 2 x₂)⁴ + 2"),
        ("absolute value", (2.0, -1.0, 0.5, 0.0), "2 |x₁ + 2 x₂ − 0.5|"),
        ("rectifier", (2.0, -1.0, 0.5, 0.0), "2 max(0, −x₁ − 2 x₂ + 0.5)"),
        ("square root", (1.0, 1.0, 5.0, 0.0), "sqrt(x₁ + 2 x₂ + 5)"),
        ("reciprocal", (-2.0, 1.0, 5.0, 0.0), "−2 / (x₁ + 2 x₂ + 5)"),
        ("logarithm", (1.0, 1.0, 5.0, 0.0), "log(x₁ + 2 x₂ + 5)"),
        ("exponential", (3.0, -0.5, 0.0, 1.0), "3 exp(−0.5 x₁ − x₂) + 1"),
        ("sine", (0.64, 2.0, 0.3, 0.1), "0.64 sin(2 x₁ + 4 x₂ + 0.3) + 0.1"),
        ("sine", (0.64, 2.0, 0.3 + 20.0 * np.pi, 0.0), "0.64 sin(2 x₁ + 4 x₂ + 0.3)"),
        ("tanh", (1.0, -1.0, 0.3, 0.0), "−tanh(x₁ + 2 x₂ − 0.3)"),
        ("logistic", (1.0, -1.0, 0.0, 0.0), "logistic(−x₁ − 2 x₂)"),
        ("arctangent", (1.0, -1.0, 0.0, 0.0), "−atan(x₁ + 2 x₂)"),
        ("Gaussian", (1.0, -1.0, 0.5, 0.0), "exp(−(x₁ + 2 x₂ − 0.5)²)"),
        ("softplus", (1.0, 1.0, 0.0, 0.0), "softplus(x₁ + 2 x₂)"),
        ("saturation", (1.0, -1.0, 0.0, 0.0), "−clip(x₁ + 2 x₂, −1, 1)"),
        ("dead zone", (1.0, -1.0, 0.0, 0.0), "−deadzone(x₁ + 2 x₂)"),
        ("cubic polynomial", (0.0, -1.1, 0.3, 0.0), "0.3 (x₁ + 2 x₂)² − 1.1 (x₁ + 2 x₂)"),
        ("quintic polynomial", (7.0, 0.0, 0.0, 0.0, 0.0, 1.0), "(x₁ + 2 x₂)⁵ + 7"),
    ],
)
def test_every_form_reads_as_people_write_it(form: str, parameters: tuple[float, ...], text: str) -> None:
    assert line_of(a_formula(form, parameters)) == text


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_a_text_with_its_parameters(form: str) -> None:
    letters = re.findall(r"\b[abcdef]\b", form_text(form))
    assert letters == list("abcdef"[: FORMS[form].count])


@pytest.mark.parametrize(
    ("form", "parameters", "text"),
    [
        ("square", (0.5, 2.0, 0.0, 0.0), "18 x₂²"),
        ("cube", (-1.0, 1.0, 0.0, 0.0), "27 x₂³"),
        ("reciprocal", (1.0, 1.0, 0.0, 0.0), "−0.333 / x₂"),
        ("Gaussian", (1.0, 1.0, 0.0, 0.0), "exp(−(3 x₂)²)"),
        ("cubic polynomial", (0.0, 1.0, 0.0, 1.0), "−27 x₂³ − 3 x₂"),
    ],
)
def test_a_power_of_one_input_is_its_own(form: str, parameters: tuple[float, ...], text: str) -> None:
    assert line_of(a_formula(form, parameters, (0.0, -3.0))) == text


def test_what_belongs_to_one_number_is_folded() -> None:
    model = a_formula("sine", (0.32, 2.0, 0.3, 0.05), (1.0, 0.15), weight=2.0, bias=-0.2)
    assert line_of(model) == "0.64 sin(2 x₁ + 0.3 x₂ + 0.3) − 0.1"


def test_the_lines_of_all_outputs_and_curves() -> None:
    model = a_model_of_formulas()
    assert formula_lines(model) == [
        'force = 0.64 sin(2 speed + 0.3 "fuel=diesel" + 0.3) + 0.3 (speed + 2 "fuel=diesel")² − 1.1 (speed + 2 '
        '"fuel=diesel") + 1.2 g₃(0.5 speed − "fuel=diesel") + 0.1 g₄(speed + "fuel=diesel") + 0.3',
        'heat = 0.3 (speed + 2 "fuel=diesel")² − 1.1 (speed + 2 "fuel=diesel") + 0.5 g₄(speed + "fuel=diesel") + 0.1',
        "g₃: a curve on [−1.2, 3.4]",
        *formula_lines(model)[-1:],
    ]
    assert formula_lines(model)[-1].startswith("g₄: a curve on [")


def test_a_model_with_formulas_prints_them_and_its_repr_stays() -> None:
    model = a_model_of_formulas()
    assert repr(model) == "DecoupledModel(m=2 inputs, r=4 branches, n=2 outputs)"
    assert str(model).splitlines() == [repr(model), *formula_lines(model)]
    other = a_model([ub.BSpline(5)])
    assert str(other).splitlines() == [repr(other), "All branches are curves, none is a formula."]


def test_formulas_of_data_sets_are_told() -> None:
    _, truth = ub.datasets.trig(S=5, rng=0)
    assert formula_lines(truth)[2] == "g₁: sin u + 2"


def test_what_is_nothing_at_the_digits_shown_is_left_out() -> None:
    branches = [
        FormulaBranch(Formula.of("sine", (1.0, 1.0, 1e-5, 0.0)), (-2.0, 2.0)),
        FormulaBranch(Formula.of("tanh", (1e-5, 1.0, 0.0, 1e-6)), (-2.0, 2.0)),
        FormulaBranch(Formula.of("line", (0.0, 1e-9)), (-2.0, 2.0)),
    ]
    model = ub.DecoupledModel([[1.0, 1e-9], [0.0, 1.0], [1.0, 1.0]], [[1.0, 1.0, 1.0]], branches, [1e-7])
    assert line_of(model) == "sin(x₁)"
    assert line_of(model, digits=12) != "sin(x₁)"


def test_the_level_of_what_is_left_out_stays() -> None:
    branches = [
        FormulaBranch(Formula.of("sine", (1.0, 1.0, 0.0, 0.0)), (-2.0, 2.0)),
        FormulaBranch(Formula.of("tanh", (1000.0, 1.0, 50.0, 7.0)), (-2.0, 2.0)),
    ]
    assert line_of(ub.DecoupledModel([[1.0], [1.0]], [[1.0, 1.0]], branches), digits=4) == "sin(x₁) + 1007"


def test_small_coefficients_stay_unless_sizes_of_inputs_are_known() -> None:
    """A speed in turns a minute has small coefficients and large values."""
    model = a_formula("sine", (1.0, 1.0, 0.0, 0.0), (1.0, 2e-4), domain=(-2.0, 2.0))
    assert line_of(model) == "sin(x₁ + 2·10⁻⁴ x₂)"
    assert line_of(model, sizes=[1.0, 3000.0]) == "sin(x₁ + 2·10⁻⁴ x₂)"
    assert line_of(model, sizes=[1.0, 1.0]) == "sin(x₁)"
    assert line_of(model, sizes=[1e-8, 3000.0]) == "sin(2·10⁻⁴ x₂)"


def test_branches_without_weight_or_limits() -> None:
    branch = FormulaBranch(Formula.of("sine", (1.0, 1.0, 0.0, 0.0)))
    model = ub.DecoupledModel([[1.0], [2.0]], [[0.0, 1e-9], [0.0, 0.0]], [branch, branch])
    assert formula_lines(model) == ["f₁ = 10⁻⁹ sin(2 x₁)".replace("= ", "= 1·"), "f₂ = 0"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (-0.25, "−0.25"),
        (123456.0, "123000"),
        (1234567.0, "1.23·10⁶"),
        (0.00123456, "0.00123"),
        (0.000123456, "1.23·10⁻⁴"),
        (9.9999, "10"),
        (1e300, "1·10³⁰⁰"),
        (-1e-300, "−1·10⁻³⁰⁰"),
    ],
)
def test_numbers_have_few_digits(value: float, text: str) -> None:
    assert Notation().number(value) == text


def test_digits_must_be_a_whole_number() -> None:
    for digits in (0, 1.5, "3"):
        with pytest.raises(SettingError, match="digits"):
            formula_lines(a_model_of_formulas(), digits=digits)  # type: ignore[arg-type]


def test_names_of_strangers_do_not_steer_the_terminal() -> None:
    model = a_model_of_formulas().changed(
        input_names=("\x1b[2J\n", "x" * 500), output_names=("a\u202eb", ""), encoding=None
    )
    for line in formula_lines(model):
        assert line.isprintable()
        assert "x" * 50 not in line


TEXTS: dict[str, Any] = {
    "tanh": np.tanh,
    "sin": np.sin,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "atan": np.arctan,
    "max": np.maximum,
}
TEXTS |= {
    "clip": np.clip,
    "deadzone": lambda t: t - np.clip(t, -1.0, 1.0),
    "logistic": lambda t: 1.0 / (1.0 + np.exp(-t)),
    "softplus": lambda t: np.log1p(np.exp(t)),
}


def evaluated(text: str, X: np.ndarray[Any, Any]) -> Any:
    """What a text says, read by Python."""
    text = re.sub(r"\|([^|]*)\|", r"abs(\1)", text).replace("−", "-")
    text = re.sub(r"·10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda found: "*10.0**" + plain_digits(found[1]), text)
    text = re.sub(r"([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda found: "**" + plain_digits(found[1]), text)
    text = re.sub(r"x([₀-₉]+)", lambda found: f"X[:, {int(plain_digits(found[1])) - 1}]", text)
    text = re.sub(r"(\d) (?=[a-zX(])", r"\1 * ", text)
    return eval(text, {"X": X, "abs": np.abs, **TEXTS})


def plain_digits(digits: str) -> str:
    return digits.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉", "-01234567890123456789"))


@given(model=random_models)
def test_a_line_means_what_the_model_does(model: ub.DecoupledModel) -> None:
    """With many digits, and weights of one size, a line read by Python is the output."""
    branches = [branch for branch in model.branches if isinstance(branch, FormulaBranch)]
    kept = [j for j, branch in enumerate(model.branches) if isinstance(branch, FormulaBranch)]
    if not kept:
        return
    endless = [FormulaBranch(branch.formula) for branch in branches]
    W1 = np.sign(model.W1[:, kept])
    plain = ub.DecoupledModel(model.W0[kept], W1, endless, model.bias)
    X = np.random.default_rng(0).standard_normal((30, model.m))
    F = plain(X)
    for i, line in enumerate(formula_lines(plain, digits=15)):
        with np.errstate(all="ignore"):
            told = np.broadcast_to(evaluated(line.partition(" = ")[2], X), len(X))
        known = np.isfinite(F[:, i])
        np.testing.assert_allclose(
            told[known], F[known, i], rtol=1e-8, atol=1e-8 * np.abs(F[known, i]).max(initial=1.0)
        )


def scaled_quartic(offset: float) -> tuple[Formula, tuple[float, float]]:
    """Z⁴ - z² with z = (u - offset) / 1000, and its domain."""
    return Formula.of("quartic polynomial", (0.0, 0.0, -1e-6, 0.0, 1e-12)).shifted(offset), (
        offset - 1500,
        offset + 1500,
    )


WHOLE: dict[str, tuple[list[list[float]], list[float], list[tuple[Formula, tuple[float, float]]]]] = {
    f"quartic from {offset:g}": (
        [[1.0, 1e-15], [0.0, 1.0]],
        [1.0, 1.0],
        [scaled_quartic(offset), (Formula.of("square", (1.0, 1.0, 0.0, 0.0)), (-1.0, 1.0))],
    )
    for offset in (0.0, 1000.0, 3000.0, 1e5)
}
WHOLE |= {
    "product": (
        [[1.0, 1.0], [1.0, -1.0]],
        [0.25, -0.25],
        [
            (Formula.of("square", (1.0, 1.0, 0.0, 0.0)), (8000.0, 12000.0)),
            (Formula.of("square", (1.0, 1.0, 0.0, 0.0)), (-2000.0, 2000.0)),
        ],
    ),
    "very different sizes": (
        [[1.0, 0.0], [0.0, 1.0]],
        [1e4, 1.0],
        [
            (Formula.of("sine", (1.0, 2.0, 0.1, 0.0)), (-1.0, 1.0)),
            (Formula.of("quintic polynomial", (1e-3, 0.5, 0.1, 2.0, 0.3, 1.0)), (-1.0, 1.0)),
        ],
    ),
    "a step of two kinks": (
        [[1.0, 5.71e-4], [1.0, -0.0115]],
        [41.3456, -41.3412],
        [
            (Formula.of("absolute value", (1.0, 1.0, -0.00151, 0.0)), (-1.0, 1.0)),
            (Formula.of("absolute value", (1.0, 1.0, -0.00152, 0.0)), (-1.0, 1.0)),
        ],
    ),
    "angles far from zero": (
        [[0.8, 0.6], [0.6, -0.8]],
        [1.0, 0.3],
        [
            (Formula.of("sine and line", (1.2345, 2.3456, 0.3, 0.2, 0.1234)), (1000.0, 1002.0)),
            (Formula.of("exponential", (1e-9, 0.1, 0.0, 0.0)), (200.0, 202.0)),
        ],
    ),
}


def read_latex(text: str) -> str:
    """The right side of the only line about a model, in LaTeX, as plain text."""
    text = text.partition("&= ")[2].partition("\n\\end{align*}")[0]
    for old, new in {" \\\\\n  &\\quad {}": "", r"\left|": "|", r"\right|": "|", r"\left": "", r"\right": ""}.items():
        text = text.replace(old, new)
    text = text.replace(r" \cdot 10^", "·10^").replace(r"\,", " ").replace("-", "−").replace("\\", "")
    text = re.sub(r"_{(\d)}", lambda found: found[1].translate(SUBSCRIPTS), text)
    return re.sub(r"\^{(−?\d+)}", lambda found: found[1].replace("−", "-").translate(SUPERSCRIPTS), text)


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_printed_is_the_model_within_a_hundredth_of_the_spread(name: str) -> None:
    W0, weights, formulas = WHOLE[name]
    branches = [FormulaBranch(formula, domain) for formula, domain in formulas]
    model = ub.DecoupledModel(W0, [weights], branches, [-0.0137])
    low, high = np.array([domain for _, domain in formulas]).T
    X = np.random.default_rng(0).uniform(low, high, (200, 2)) @ np.linalg.inv(np.array(W0)).T
    F = model(X)[:, 0]
    for text in (line_of(model), read_latex(latex_text(model, 4))):
        assert np.sqrt(np.mean((evaluated(text, X) - F) ** 2)) < 0.012 * F.std(), text


def test_a_polynomial_whose_powers_cancel_is_written_about_another_point() -> None:
    formula, domain = scaled_quartic(4500.0)
    model = ub.DecoupledModel([[1.0]], [[1.0]], [FormulaBranch(formula, domain)])
    assert line_of(model) == "1·10⁻¹² (x₁ − 4500)⁴ − 1·10⁻⁶ (x₁ − 4500)²"
    assert formula_text(formula, domain=domain) == "1·10⁻¹² (u − 4500)⁴ − 1·10⁻⁶ (u − 4500)²"


def test_splines_are_curves() -> None:
    u = np.linspace(0.0, 1.0, 5)
    model = ub.DecoupledModel.from_parts([[1.0]], [[2.0]], None, [CubicSpline(u, u)])
    assert formula_lines(model) == ["f₁ = 2 g₁(x₁)", "g₁: a curve on [0, 1]"]


@pytest.mark.parametrize("form", FORMS)
def test_a_model_whose_numbers_are_nonsense_is_still_printed(form: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for size in (1e308, 5e-324, 1e160):
        parameters = (rng.choice([-1.0, 1.0, 0.0], FORMS[form].count) * size).tolist()
        branch = FormulaBranch(Formula.of(form, parameters), (-1e300, 1e300))
        model = ub.DecoupledModel([[size, 0.0], [-size, 1.0]], [[1.0, -size]], [branch, branch], [size])
        model.save(tmp_path / "model.json")
        read = ub.DecoupledModel.load(tmp_path / "model.json")
        assert "f₁ = " in str(read)
        assert repr(read) == repr(model)
        read.export(tmp_path / "model.tex")
