"""Closed formulas in PyTorch, differentiable by their free parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch

from unbraid.results.branches.expressions import NUMBER, POWER, PRODUCT, SUM, VARIABLE, Expression
from unbraid.results.branches.forms import Form, Formula

STRAIGHT = 40.0
"""exp(-40) is less than a last digit of 40."""


def evaluate_formula(formula: Formula, u: Any, free: Any) -> Any:
    """g(u), of the shape of u, with other ones of the formula's free parameters (size,)."""
    parameters = parameters_of(formula, free)
    if formula.form.h is None:
        return horner(formula.form, parameters, u)
    a, b, c, d, *line = parameters
    value = a * evaluate(formula.form.h, b * u + c) + d
    return value + line[0] * u if line else value


def parameters_of(formula: Formula, free: Any) -> list[Any]:
    """All parameters: those that are free as they are given, the others as they are in the formula."""
    parameters: list[Any] = list(formula.parameters)
    for place, value in zip(formula.form.free, free.unbind(), strict=True):
        parameters[place] = value
    return parameters


def horner(form: Form, parameters: Sequence[Any], u: Any) -> Any:
    """The polynomial of u with these coefficients; a constant is one also for u that are not numbers."""
    *lower, value = parameters
    if form.size == 1:
        return torch.where(torch.isnan(u), u, value)
    for parameter in reversed(lower):
        value = value * u + parameter
    return value


def evaluate(expression: Expression, t: Any) -> Any:
    """The expression at t, or a single number where it is constant."""
    if expression.kind == NUMBER:
        return expression.number
    if expression.kind == VARIABLE:
        return t
    parts = [evaluate(part, t) for part in expression.parts]
    if expression.kind == SUM:
        return parts[0] + parts[1]
    if expression.kind == PRODUCT:
        return parts[0] * parts[1]
    if expression.kind == POWER:
        exponent = int(expression.number)
        product = reduce(torch.mul, parts * abs(exponent))
        return product if exponent > 0 else 1.0 / product
    return FUNCTIONS[expression.kind](parts[0])


def softplus(t: Any) -> Any:
    """log(1 + exp t) with all its digits: torch's own is a line above 20, and above `STRAIGHT` it is one."""
    return torch.where(t > STRAIGHT, t, torch.log1p(torch.exp(t.clamp(max=STRAIGHT))))


def sign(t: Any) -> Any:
    """-1, 0 or 1; NaN stays NaN, of which torch's own makes 0."""
    return torch.where(torch.isnan(t), t, torch.sign(t))


def step(t: Any) -> Any:
    """1 where t > 0, else 0; NaN stays NaN."""
    return torch.where(torch.isnan(t), t, (t > 0.0).to(t.dtype))


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
    "atan": torch.atan,
    "logistic": torch.sigmoid,
    "softplus": softplus,
    "abs": torch.abs,
    "sign": sign,
    "step": step,
    "rectifier": torch.relu,
    "saturation": lambda t: torch.clamp(t, -1.0, 1.0),
}
"""The elementary functions, by name."""
