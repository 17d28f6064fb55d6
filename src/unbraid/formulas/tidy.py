"""Formulas of a model in numbers that are nicer to read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unbraid.results.branches.forms import D, Formula
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.model import DecoupledModel


def tidied(model: DecoupledModel) -> DecoupledModel:
    """The same function: constants of formulas go to the bias, and angles of sines are between -π / 2 and π / 2."""
    branches, bias = list(model.branches), model.bias.copy()
    for j, branch in enumerate(branches):
        if not isinstance(branch, FormulaBranch):
            continue
        formula, constant = without_constant(branch.formula)
        branches[j] = FormulaBranch(with_small_angle(formula), branch.domain)
        bias += model.W1[:, j] * constant
    return model.changed(branches=branches, bias=bias)


def without_constant(formula: Formula) -> tuple[Formula, float]:
    """A formula without what is added to it, and that number."""
    place = D if formula.form.h is not None else 0
    parameters = list(formula.parameters)
    constant, parameters[place] = parameters[place], 0.0
    return replace(formula, parameters=tuple(parameters)), constant


def with_small_angle(formula: Formula) -> Formula:
    """A sine of positive frequency and a small angle; other formulas as they are."""
    if formula.form.shape != "sine":
        return formula
    a, b, c, *rest = formula.parameters
    a, b, c = (a, b, c) if b > 0.0 else (-a, -b, -c)
    angle = float(np.angle(np.exp(1j * c)))
    if abs(angle) > 0.5 * np.pi:
        a, angle = -a, angle - np.pi * np.sign(angle)
    return replace(formula, parameters=(a, b, angle, *rest))
