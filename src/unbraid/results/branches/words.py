"""Formulas of one variable as text."""

from __future__ import annotations

from unbraid.results.branches.forms import Formula

WRAPPED = {
    "square": "({})²",
    "cube": "({})³",
    "fourth power": "({})⁴",
    "absolute value": "|{}|",
    "rectifier": "max(0, {})",
    "square root": "sqrt({})",
    "reciprocal": "1/({})",
    "logarithm": "log({})",
    "exponential": "exp({})",
    "sine": "sin({})",
    "tanh": "tanh({})",
    "logistic": "logistic({})",
    "arctangent": "atan({})",
    "Gaussian": "exp(-({})²)",
    "softplus": "softplus({})",
    "saturation": "clip({}, -1, 1)",
    "dead zone": "deadzone({})",
}


def formula_text(formula: Formula, digits: int = 4, variable: str = "u") -> str:
    """'1.43 sin(3.69 u + 1.57) + 0.2'."""
    if formula.form.h is None:
        marks = ["", f" {variable}", *(f" {variable}{mark}" for mark in "²³⁴⁵")]
        return joined([f"{c:.{digits}g}{mark}" for c, mark in zip(formula.parameters, marks, strict=False)][::-1])
    a, b, c, d, *line = formula.parameters
    slope = {1.0: variable, -1.0: f"-{variable}"}.get(b, f"{b:.{digits}g} {variable}")
    shape = WRAPPED[formula.form.shape].format(joined([slope, f"{c:.{digits}g}"]))
    lines = [f"{e:.{digits}g} {variable}" for e in line]
    return joined([f"{a:.{digits}g} {shape}", *lines, f"{d:.{digits}g}"])


def joined(terms: list[str]) -> str:
    """Terms with their signs between them; those that are zero left out."""
    kept = [term for term in terms if term not in ("0", "-0")] or ["0"]
    text = kept[0]
    for term in kept[1:]:
        text += f" - {term[1:]}" if term.startswith("-") else f" + {term}"
    return text
