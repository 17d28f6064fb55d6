"""Formulas of a model in numbers that are nicer to read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unbraid.results.branch import Branch
from unbraid.results.branches.forms import Formula
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.model import DecoupledModel

ROUNDING = 1e-12
"""Share of others below which a number is nothing but rounding."""


def tidied(model: DecoupledModel) -> DecoupledModel:
    """The same function: constants of formulas go to the bias, angles of sines are small, what is rounding is zero."""
    branches, bias, W1 = list(model.branches), model.bias.copy(), model.W1.copy()
    for j, branch in enumerate(branches):
        if not isinstance(branch, FormulaBranch):
            continue
        formula, constant = without_constant(branch.formula)
        branches[j] = FormulaBranch(without_rounding(formula.without_turns(), branch.domain), branch.domain)
        bias += model.W1[:, j] * constant
    sizes = np.abs(W1) * [spread(branch) for branch in branches]
    largest = sizes.max(axis=1, initial=0.0)
    W1[sizes < ROUNDING * largest[:, None]] = 0.0
    bias[np.abs(bias) < ROUNDING * largest] = 0.0
    return model.changed(branches=branches, bias=bias, W1=W1)


def spread(branch: Branch) -> float:
    """The standard deviation of a branch over its domain; 1 where it has none."""
    if not np.isfinite(branch.domain).all():
        return 1.0
    found = float(np.std(branch(np.linspace(*branch.domain, 33))))
    return found if np.isfinite(found) and found > 0.0 else 1.0


def without_constant(formula: Formula) -> tuple[Formula, float]:
    """A formula without what is added to it, and that number."""
    place, parameters = formula.form.constant, list(formula.parameters)
    constant, parameters[place] = parameters[place], 0.0
    return replace(formula, parameters=tuple(parameters)), constant


def without_rounding(formula: Formula, domain: tuple[float, float]) -> Formula:
    """A formula without numbers that are nothing but rounding: shifts, lines, powers of u."""
    reach = float(np.abs(domain).max())
    if formula.form.h is None:
        sizes = np.abs(formula.parameters) * reach ** np.arange(formula.form.size)
        kept = np.where(sizes > ROUNDING * sizes.max(initial=0.0), formula.parameters, 0.0)
        return replace(formula, parameters=tuple(map(float, kept)))
    a, b, c, d, *line = formula.parameters
    shift = c if abs(c) > ROUNDING * max(abs(b) * reach, 1.0) else 0.0
    lines = [e if abs(e) * reach > ROUNDING * abs(a) else 0.0 for e in line]
    return replace(formula, parameters=(a, b, shift, d, *lines))
