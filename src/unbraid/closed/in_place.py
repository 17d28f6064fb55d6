"""A fit's model with closed forms in place of its curves, all parameters re-optimised together on the data."""

from __future__ import annotations

import numpy as np

from unbraid.closed.reoptimise import reoptimise
from unbraid.closed.search import formulas, with_domains
from unbraid.closed.tidy import tidied
from unbraid.data.problem import Problem
from unbraid.errors import SettingError, shown
from unbraid.inference.neighbourhood import Neighbourhood
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.fit import Fit, given_problem
from unbraid.results.model import DecoupledModel
from unbraid.results.worth.objective import Objective
from unbraid.runtime.process import single_blas_thread


def with_formulas(fit: Fit, threshold: float | None = None, problem: Problem | None = None) -> DecoupledModel:
    """The model of a fit with formulas for those branches that have one, re-optimised; the others stay curves."""
    number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    if threshold is not None and not (number and 0.0 <= threshold < np.inf):
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
        return tidied(with_domains(model, given.X))


def reoptimised(model: DecoupledModel, problem: Problem, minimised: Objective | None) -> DecoupledModel:
    """A model, all its parameters re-optimised on samples."""
    objective = Objective.default(problem) if minimised is None else minimised
    return reoptimise(Neighbourhood.of(model, problem, objective, ()), model).tangent.model
