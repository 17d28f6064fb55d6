"""A fit's model with closed forms in place of its curves, all parameters re-optimised together on the data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unbraid.data.problem import Problem
from unbraid.errors import SettingError, shown
from unbraid.formulas.reoptimise import reoptimise
from unbraid.formulas.search import formulas
from unbraid.inference.neighbourhood import Neighbourhood
from unbraid.kernels.arrays import Array
from unbraid.results.branches.forms import D, Formula
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.fit import Fit, given_problem
from unbraid.results.model import DecoupledModel
from unbraid.results.worth.objective import Objective
from unbraid.runtime.process import single_blas_thread


def with_formulas(fit: Fit, threshold: float | None = None, problem: Problem | None = None) -> DecoupledModel:
    """The model of a fit with formulas for those branches that have one, re-optimised; the others stay curves."""
    if threshold is not None and not (isinstance(threshold, int | float) and 0.0 <= threshold < np.inf):
        raise SettingError(f"threshold must be a number of percents from 0, or None, got {shown(threshold)}.")
    given, found = given_problem(fit, problem), formulas(fit, problem)
    chosen = {one.branch: form.formula for one in found if (form := one.chosen(threshold)) is not None}
    model = found.model
    branches = [
        FormulaBranch(chosen[j], own.domain) if j in chosen and not isinstance(own, FormulaBranch) else own
        for j, own in enumerate(model.branches)
    ]
    with single_blas_thread(), np.errstate(all="ignore"):
        if any(new is not old for new, old in zip(branches, model.branches, strict=True)):
            model = reoptimised(model.changed(branches=branches), given, fit.minimised)
        return tidied(model, given.X)


def reoptimised(model: DecoupledModel, problem: Problem, minimised: Objective | None) -> DecoupledModel:
    """A model, all its parameters re-optimised on samples."""
    objective = Objective.default(problem) if minimised is None else minimised
    return reoptimise(Neighbourhood.of(model, problem, objective, ()), model).tangent.model


def tidied(model: DecoupledModel, X: Array) -> DecoupledModel:
    """The same function in numbers that are nicer to read.

    Constants of formulas go to the bias, angles of sines are between -π and π, and domains are those of the samples.
    """
    branches, bias = list(model.branches), model.bias.copy()
    for j, branch in enumerate(branches):
        if not isinstance(branch, FormulaBranch):
            continue
        formula, constant = without_constant(branch.formula)
        u = X @ model.W0[j]
        branches[j] = FormulaBranch(with_small_angle(formula), (float(u.min()), float(u.max())))
        bias += model.W1[:, j] * constant
    return model.changed(branches=branches, bias=bias)


def without_constant(formula: Formula) -> tuple[Formula, float]:
    """A formula without what is added to it, and that number."""
    place = D if formula.form.h is not None else 0
    parameters = list(formula.parameters)
    constant, parameters[place] = parameters[place], 0.0
    return replace(formula, parameters=tuple(parameters)), constant


def with_small_angle(formula: Formula) -> Formula:
    """A sine of positive frequency and an angle between -π and π; other formulas as they are."""
    if formula.form.shape != "sine":
        return formula
    a, b, c, *rest = formula.parameters
    a, b, c = (a, b, c) if b > 0.0 else (-a, -b, -c)
    angle = float(np.angle(np.exp(1j * c)))
    if abs(angle) > 0.5 * np.pi:
        a, angle = -a, angle - np.pi * np.sign(angle)
    return replace(formula, parameters=(a, b, angle, *rest))
