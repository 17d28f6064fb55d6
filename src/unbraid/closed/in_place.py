"""A fit's model with closed forms in place of its curves, all parameters re-optimised together on the data."""

from __future__ import annotations

import numpy as np

from unbraid.closed.place import UNKNOWN
from unbraid.closed.search import formulas, in_place, with_domains
from unbraid.closed.tidy import tidied
from unbraid.data.problem import Problem
from unbraid.errors import SettingError, shown
from unbraid.inference.neighbourhood import Neighbourhood
from unbraid.kernels.arrays import Array
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.fit import Fit, errors_on, given_problem
from unbraid.results.model import DecoupledModel
from unbraid.results.worth.objective import Objective
from unbraid.runtime.process import single_blas_thread


def with_formulas(fit: Fit, threshold: float | None = None, problem: Problem | None = None) -> DecoupledModel:
    """The model of a fit with formulas for those branches that have one, re-optimised; the others stay curves."""
    number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    if threshold is not None and not (number and 0.0 <= threshold < np.inf):
        raise SettingError(f"threshold must be a number of percents from 0, or None, got {shown(threshold)}.")
    given, found = given_problem(fit, problem), formulas(fit, problem)
    model = found.model if found.from_data else fit.model
    near = {one.branch: form for one in found if (form := one.chosen(threshold)) is not None}
    near = {j: form for j, form in near.items() if not isinstance(model.branches[j], FormulaBranch)}
    with single_blas_thread(), np.errstate(all="ignore"):
        if near:
            most = errors_of(model, given) + max(threshold or 0.0, 100.0 * UNKNOWN)
            here = Neighbourhood.of(model, given, fit.minimised or Objective.default(given), ())
            model = in_place(
                lambda there: bool((errors_of(there.tangent.model, given) <= most).all()), here, near
            ).tangent.model
        return tidied(with_domains(model, given.X))


def errors_of(model: DecoupledModel, problem: Problem) -> Array:
    """The errors of a model's outputs and slopes on samples, as far as they are known, in %."""
    slopes, values = errors_on(problem, model)
    parts = [] if values is None else [values[~np.isnan(values)]]
    return np.concatenate([*parts, [] if slopes is None else [100.0 * np.sqrt(slopes)]])
