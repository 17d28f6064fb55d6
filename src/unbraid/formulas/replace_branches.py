"""A fit's model with closed forms in place of its curves, all parameters re-optimised together on the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from unbraid.data.problem import Problem
from unbraid.errors import SettingError, shown
from unbraid.formulas.reoptimise import defined_objective, reoptimise
from unbraid.formulas.result import Candidate
from unbraid.formulas.search import formulas
from unbraid.inference.neighbourhood import Neighbourhood
from unbraid.kernels.arrays import Array
from unbraid.results.branches.forms import D, Formula
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.fit import Fit, given_problem
from unbraid.results.model import DecoupledModel
from unbraid.results.worth.objective import Objective
from unbraid.runtime.process import single_blas_thread

WORSE = 1.1
"""By so much what is left of the samples may grow when forms take the place of curves, beside what they were off by."""


def with_formulas(fit: Fit, threshold: float | None = None, problem: Problem | None = None) -> DecoupledModel:
    """The model of a fit with formulas for those branches that have one, re-optimised; the others stay curves."""
    if threshold is not None and not (isinstance(threshold, int | float) and 0.0 <= threshold < np.inf):
        raise SettingError(f"threshold must be a number of percents from 0, or None, got {shown(threshold)}.")
    given, found = given_problem(fit, problem), formulas(fit, problem)
    chosen = {one.branch: form for one in found if (form := one.chosen(threshold)) is not None}
    minimised = Objective.default(given) if fit.minimised is None else fit.minimised
    with single_blas_thread(), np.errstate(all="ignore"):
        before = defined_objective(Neighbourhood.of(fit.model, given, minimised, ()))
        while chosen:
            there = reoptimised(fit.model, chosen, given, minimised)
            allowed = sum((0.01 * form.mean) ** 2 for form in chosen.values()) * total_square(there)
            if defined_objective(there) <= WORSE * before + allowed:
                return tidied(there.tangent.model, there.problem.X)
            del chosen[max(chosen, key=lambda j: chosen[j].mean)]
    return fit.model


def reoptimised(
    model: DecoupledModel, chosen: Mapping[int, Candidate], problem: Problem, minimised: Objective
) -> Neighbourhood:
    """The model with the chosen forms, all its parameters re-optimised."""
    branches = list(model.branches)
    for j, form in chosen.items():
        branches[j] = FormulaBranch(form.formula, branches[j].domain)
    made = model.changed(branches=branches)
    around = Neighbourhood.of(made, problem, minimised, ())
    return reoptimise(around, made)


def total_square(around: Neighbourhood) -> float:
    """The weighted sum of squares of what the samples have, values about their means."""
    problem, parts = around.problem, []
    if problem.F is not None:
        parts.append(problem.F - np.nanmean(problem.F, axis=0))
    if problem.J is not None:
        parts.append(problem.J.reshape(problem.S, -1))
    rows = np.concatenate(parts, axis=1) * around.row_scales * np.sqrt(around.sample_weights)[:, None]
    return around.standing_for * float(np.nansum(rows**2))


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
