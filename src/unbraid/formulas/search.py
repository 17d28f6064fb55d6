"""The search for closed forms of the branches of a fit, or of a model without data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import fdtrc

from unbraid.data.problem import Problem
from unbraid.errors import SettingError
from unbraid.formulas.reoptimise import reoptimise
from unbraid.formulas.replacing import Place
from unbraid.formulas.result import BranchFormulas, Candidate, Formulas
from unbraid.inference.importance.without import fewer_samples, held_out_error
from unbraid.inference.neighbourhood import Neighbourhood, neighbourhood_of
from unbraid.inference.tangent import count_unknowns
from unbraid.results.branches.forms import FORMS, Form, Formula
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.fit import Fit, given_problem
from unbraid.results.model import DecoupledModel
from unbraid.runtime.process import single_blas_thread

TRIED = tuple(form for name, form in FORMS.items() if name != "logistic")
"""The forms that are tried; a logistic function is a tanh."""
MOST_UNKNOWNS = 1200
"""Unknowns of a fit beyond which its curves are judged without its data."""
CHANCE = 1e-3
"""The chance that a true form is taken for a false one, by an F test."""
FINALISTS = 10
"""Forms that are looked at more closely."""
LISTED, FARTHEST = 6, 20.0
"""Candidates of a branch that are kept, and the mean deviation in % up to which they are."""
FOLLOWING = 4
"""Steps in which a model follows a form that was put in place of a curve, before its held-out error is told."""
TOLD = 2
"""Candidates of a branch whose change of the held-out error is worked out."""


def formulas(subject: Fit | DecoupledModel, problem: Problem | None = None) -> Formulas:
    r"""Closed forms for the branches of a fit: those that describe each within its uncertainty, the best first.

    Tried are constants and lines, powers, polynomials of low degree, |u|, square root, 1/u, exp, log, sin, tanh (of
    which the logistic function is one), atan, Gaussian, softplus, rectifier, saturation and dead zone, each as
    a h(b u + c) + d, most of them also with a line beside. Data judge them: what is left of the samples with a form in
    place of the curve, all other unknowns following. Where no form is within the curve's uncertainty, it stays a curve.

    Parameters
    ----------
    subject
        A fit, or a model, whose curves are then all there is to judge by.
    problem
        What was fitted, where the fit does not remember it.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, truth = ub.datasets.trig(S=100, rng=0)
    >>> found = ub.formulas(ub.decouple(problem, rank=3, rng=0))
    >>> [one.best.formula.form.name for one in found]
    ['sine and line', 'sine', 'sine']
    """
    if not isinstance(subject, Fit | DecoupledModel):
        raise SettingError(f"formulas takes a fit or a model, got a {type(subject).__name__}.")
    around = None if isinstance(subject, DecoupledModel) else judged_by_data(subject, problem)
    model = subject.model if isinstance(subject, Fit) else subject
    with single_blas_thread(), np.errstate(all="ignore"):
        return Formulas(tuple(of_branch(model, j, around) for j in range(model.rank)), around is not None)


def judged_by_data(fit: Fit, problem: Problem | None) -> Neighbourhood | None:
    """The fit and its samples to second order; None where that is too large."""
    given = given_problem(fit, problem)
    if count_unknowns(fit.model, True) > MOST_UNKNOWNS:
        return None
    return neighbourhood_of(fit, given)


def of_branch(model: DecoupledModel, j: int, around: Neighbourhood | None) -> BranchFormulas:
    """The closed forms of branch j."""
    branch = model.branches[j]
    if isinstance(branch, FormulaBranch):
        return BranchFormulas(j, (Candidate(branch.formula, True, 0.0, 0.0, None, 0.0),))
    if not np.any(model.W1[:, j] != 0.0):
        return BranchFormulas(j, ())
    if around is None:
        return BranchFormulas(j, judged(Place.of_curve(branch)))
    k = next(k for k, one in enumerate(around.tangent.moves) if one.branch == j)
    candidates = judged(Place.of(around, k))
    told = [replace(one, held_out=change_held_out(around, j, one.formula)) for one in candidates[:TOLD]]
    return BranchFormulas(j, (*told, *candidates[TOLD:]))


def judged(place: Place) -> tuple[Candidate, ...]:
    """The forms that come near a branch, the best first."""
    roughly = [best for form in TRIED if (best := place.best(form)) is not None]
    roughly.sort(key=lambda one: place.score(one[1], one[0].form.size))
    found = [place.improve(formula) for formula, _ in roughly[:FINALISTS]]
    found.sort(key=lambda one: place.score(one[1], one[0].form.size))
    least, freedom = min([(place.left, place.freedom), *((left, one.form.size) for one, left in found)])
    noise = (least + place.floor) / place.spare
    result: list[Candidate] = []
    for formula, left in found:
        more = max(max(freedom, place.freedom) - formula.form.size, 1.0)
        within = float(fdtrc(more, place.spare, (left - least) / more / noise)) > CHANCE
        formula = place.levelled(formula)
        mean, largest = place.deviations(formula)
        if (within or mean <= FARTHEST) and not any(contains(formula.form, one.formula.form) for one in result):
            result.append(Candidate(formula, within, largest, mean, None, place.score(left, formula.form.size)))
    return tuple(result[:LISTED])


def contains(form: Form, simpler: Form) -> bool:
    """Whether a form has a simpler one among its special cases: polynomials of lower degree, shapes without a line."""
    if form.h is None:
        return simpler.h is None or simpler.shape in ("square", "cube", "fourth power")
    return form.has_line and simpler.shape in (form.shape, "line", "constant")


def change_held_out(around: Neighbourhood, j: int, formula: Formula) -> float | None:
    """By how many percentage points the held-out error of the worst output changes with a formula for branch j."""
    some = fewer_samples(around)
    model = around.tangent.model
    branches = list(model.branches)
    branches[j] = FormulaBranch(formula, model.branches[j].domain)
    before = held_out_error(some)
    there = reoptimise(some, model.changed(branches=branches), FOLLOWING)
    if not np.isfinite(there.data_matrix).all():
        return None
    after = held_out_error(there)
    change = float(np.max(after) - np.max(before))
    return change if np.isfinite(change) else None
