"""The uncertainty of a fit, from the fit to first order or from further fits."""

from __future__ import annotations

from unbraid.data.problem import Problem
from unbraid.errors import SettingError, shown
from unbraid.inference.linearised import linearised_uncertainty
from unbraid.inference.neighbourhood import neighbourhood_of
from unbraid.judging.bootstrap import bootstrap_uncertainty
from unbraid.results.fit import Fit, given_problem
from unbraid.results.worth.uncertainty import Drawing, Uncertainty
from unbraid.runtime.process import single_blas_thread


def uncertainty_of(fit: Fit, problem: Problem | None, method: str, drawing: Drawing) -> Uncertainty:
    """What `fit.uncertainty` gives."""
    samples = given_problem(fit, problem)
    if method == "linearised":
        with single_blas_thread():
            return linearised_uncertainty(neighbourhood_of(fit, samples))
    if method == "bootstrap":
        with single_blas_thread():
            linear = linearised_uncertainty(neighbourhood_of(fit, samples))
        return bootstrap_uncertainty(fit, linear, drawing)
    raise SettingError(f"method must be 'linearised' or 'bootstrap', got {shown(method)}.")
