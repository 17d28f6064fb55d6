"""The search for closed forms of the branches of a fit, or of a model without data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from unbraid.closed.place import ROUGHLY, Place, looked_at
from unbraid.closed.reoptimise import CHANCE, Reference, reoptimise
from unbraid.closed.result import BranchFormulas, Candidate, Formulas
from unbraid.closed.starts import KINKED, POINTS, Curve, first_guesses
from unbraid.closed.tidy import tidied, without_rounding
from unbraid.data.problem import Problem
from unbraid.errors import DataError, SettingError, shown
from unbraid.inference.importance.without import held_out_error
from unbraid.inference.linearised import linearised_uncertainty
from unbraid.inference.neighbourhood import Neighbourhood, neighbourhood_of
from unbraid.inference.tangent import count_unknowns
from unbraid.kernels.arrays import Array
from unbraid.results.branches.forms import FORMS, B, Form, Formula
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.fit import Fit, errors_on, given_problem
from unbraid.results.model import DecoupledModel
from unbraid.results.worth.objective import Objective
from unbraid.runtime.process import single_blas_thread

TRIED = tuple(form for name, form in FORMS.items() if name != "logistic")
"""The forms that are tried; a logistic function is a tanh."""
MOST_UNKNOWNS = 1200
"""Unknowns of a fit beyond which its curves are judged without its data."""
FEWEST = 10
"""Samples below which no form is looked for."""
MUCH = 2.0
"""Errors of an output, in %, from which on it is told that forms describe a model that does not follow the samples."""
IDLE = "carries nothing"
"""Said of a branch that goes into no output."""
SIMPLEST = ("constant", "line")
"""Forms that are tried however far they are from the curve: it may follow nothing but noise."""
HOPELESS, GUESSES = 35.0, 40
"""Deviation from a curve, in %, beyond which a first guess is left, and how many are improved."""
FINALISTS = 8
"""Forms that are looked at more closely."""
LISTED, FARTHEST, NOWHERE = 6, 60.0, 300.0
"""Candidates of a branch that are kept; the mean deviation in % up to which they are, and beyond which none is."""
SHIFTS = (0.0, 0.005, -0.005, 0.015, -0.015, 0.04, -0.04)
"""Shares of the range by which kinks are moved in search of a better place."""
STEEP = 60.0
"""Steepness, in halves of the range, from which on a softplus is a rectifier, and a tanh a jump."""
ROUNDS = 3
"""Rounds in which branches are looked at, at most."""
Allows = Callable[[Neighbourhood], bool]
"""Whether a model with forms in place of curves is good enough."""


def formulas(subject: Fit | DecoupledModel, problem: Problem | None = None) -> Formulas:
    r"""Closed forms for the branches of a fit: those that describe each within its uncertainty, the best first.

    Tried are constants and lines, powers, polynomials of low degree, abs, square root, 1/u, exp, log, sin, tanh (of
    which the logistic function is one), atan, Gaussian, softplus, rectifier, saturation and dead zone, each as
    a h(b u + c) + d, most of them also with a line beside. Data judge them: what is left of the samples with a form in
    place of the curve, all other unknowns following. Where no form is within the curve's uncertainty, it stays a curve.

    Parameters
    ----------
    subject
        A fit, or a model; without samples its curves are all there is to judge by.
    problem
        Samples to judge a model by; of a fit, what was fitted, where it does not remember that.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, truth = ub.datasets.trig(S=100, rng=0)
    >>> found = ub.formulas(ub.decouple(problem, rank=3, rng=0))
    >>> sorted(one.best.formula.form.name for one in found)
    ['sine', 'sine', 'sine and line']
    """
    if not isinstance(subject, Fit | DecoupledModel):
        raise SettingError(f"formulas takes a fit or a model, got a {type(subject).__name__}.")
    with single_blas_thread(), np.errstate(all="ignore"):
        model = subject if isinstance(subject, DecoupledModel) else subject.model
        if (problem is None and model is subject) or count_unknowns(model, True) > MOST_UNKNOWNS:
            return by_curves(model)
        around = held_against(subject, problem)
        if around.problem.S < FEWEST:
            few = tuple(BranchFormulas(j, (), f"has fewer than {FEWEST} samples") for j in range(model.rank))
            return Formulas(few, True, model)
        try:
            return by_data(around, isinstance(subject, Fit))
        except np.linalg.LinAlgError:  # of numbers beyond floating point
            return by_curves(model)


def held_against(subject: Fit | DecoupledModel, problem: Problem | None) -> Neighbourhood:
    """A fit and its samples, or a model and samples, to second order."""
    if isinstance(subject, Fit):
        return neighbourhood_of(subject, given_problem(subject, problem))
    if not isinstance(problem, Problem) or (problem.n, problem.m) != (subject.n, subject.m):
        raise DataError(
            f"The samples must have the {subject.m} inputs and {subject.n} outputs of the model, as a ub.Problem, got "
            f"{shown(problem)}."
        )
    return Neighbourhood.of(subject, problem, Objective.default(problem), ())


def by_curves(model: DecoupledModel) -> Formulas:
    """Forms for the branches of a model, judged by its curves alone."""
    found = tuple(by_curve(model, j) for j in range(model.rank))
    best = {one.branch: one.best for one in found if one.best is not None}
    return Formulas(found, False, tidied(with_forms(model, best)))


def with_forms(model: DecoupledModel, best: Mapping[int, Candidate]) -> DecoupledModel:
    """A model with formulas in place of some curves."""
    branches = list(model.branches)
    for j, one in best.items():
        branches[j] = FormulaBranch(one.formula, branches[j].domain)
    return model.changed(branches=branches)


def by_curve(model: DecoupledModel, j: int) -> BranchFormulas:
    """Forms for a branch of a model, judged by its curve alone."""
    branch = model.branches[j]
    if isinstance(branch, FormulaBranch):
        return BranchFormulas(j, (as_it_is(branch),))
    if not np.any(model.W1[:, j] != 0.0):
        return BranchFormulas(j, (), IDLE)
    if not np.isfinite(branch.domain).all():
        return BranchFormulas(j, (), f"{branch!r} has no range to be seen on")
    curve = Curve.of(branch, np.linspace(*branch.domain, POINTS))
    place = Place.of_curve(curve, float(len(branch.knots) or POINTS))
    return BranchFormulas(j, listed(judged(place, guessed(place))))


def by_data(around: Neighbourhood, fitted: bool) -> Formulas:
    """Forms for the branches of a fit, or of a model that was not fitted here, judged by data, in rounds.

    Once forms are in place of curves and all is re-optimised, what is left is smaller, other branches are known better,
    and each is looked at again.
    """
    some, rank = Reference(looked_at(around), fitted), around.tangent.model.rank
    here, found, settled = some.around, [BranchFormulas(j, ()) for j in range(rank)], False
    for _ in range(ROUNDS + rank):
        forms = forms_of(here.tangent.model)
        found = [one if settled and one.branch not in forms else of_branch(some, here, one, settled) for one in found]
        best = {one.branch: one.best for one in found if one.best is not None}
        here = in_place(some.allows, here, best, fitted)
        if settled:
            break
        settled = forms_of(here.tangent.model) == forms
    if some.around is not around:
        some = Reference(around, fitted)
        here = accepted(some.allows, around, here.tangent.model, list(forms_of(here.tangent.model)), fitted)
    found = [as_in_model(some, here, one) for one in found]
    return Formulas(
        tuple(found), True, tidied(with_domains(here.tangent.model, around.problem.X)), plain_misfit(around)
    )


def forms_of(model: DecoupledModel) -> dict[int, Form]:
    """The forms of those branches that are formulas."""
    return {j: own.formula.form for j, own in enumerate(model.branches) if isinstance(own, FormulaBranch)}


def as_in_model(some: Reference, here: Neighbourhood, found: BranchFormulas) -> BranchFormulas:
    """What was found for a branch, the form that it has in a model first; none is within where it is a curve there."""
    own = with_domains(here.tangent.model, here.problem.X).branches[found.branch]
    if found.unseen is not None or isinstance(some.around.tangent.model.branches[found.branch], FormulaBranch):
        return found
    if not isinstance(own, FormulaBranch):
        return replace(found, candidates=tuple(replace(one, within=False) for one in found.candidates))
    others = [one for one in found.candidates if one.formula.form != own.formula.form]
    return replace(found, candidates=(measured(some, here, found.branch, own), *others))


def measured(some: Reference, there: Neighbourhood, j: int, own: FormulaBranch) -> Candidate:
    """The formula that branch j is in a model that is allowed: how far outputs are from the fit's, among others."""
    mean, largest = some.moved_by(there, j)
    held_out = float(np.max(held_out_error(there))) - some.held_out if some.fitted else None
    formula = without_rounding(own.formula.without_turns(), own.domain)
    return Candidate(formula, True, largest, mean, held_out, some.score(there, formula.form.size), own.domain)


def plain_misfit(around: Neighbourhood) -> str | None:
    """That the model leaves much of an output, and that this is no noise; None where it is not so."""
    errors = errors_on(around.problem, around.tangent.model)[1]
    worst = 0 if errors is None or np.isnan(errors).all() else int(np.nanargmax(errors))
    if errors is None or not errors[worst] > MUCH or linearised_uncertainty(around).doubt is None:
        return None
    return (
        f"the model leaves {errors[worst]:.2g} % of output {worst + 1}, which is no noise: more branches may be needed."
    )


def with_domains(model: DecoupledModel, X: Array) -> DecoupledModel:
    """A model whose formulas have the ranges of samples X (S, m) for domains."""
    u = X @ model.W0.T
    ends = [(float(one.min()), float(one.max())) for one in u.T]
    branches = [
        FormulaBranch(branch.formula, own) if isinstance(branch, FormulaBranch) else branch
        for branch, own in zip(model.branches, ends, strict=True)
    ]
    return model.changed(branches=branches)


def of_branch(some: Reference, here: Neighbourhood, found: BranchFormulas, every: bool) -> BranchFormulas:
    """Which forms come near a branch of the fit, in the model of this round: the best is measured, or every one.

    Where a formula is in place of the curve already, it and those that were found before are all that is tried.
    """
    around, model, j = some.around, here.tangent.model, found.branch
    places = {one.branch: k for k, one in enumerate(here.tangent.moves)}
    if j not in places or not np.any(around.tangent.model.W1[:, j] != 0.0):
        return BranchFormulas(j, (), IDLE)
    fitted, own = around.tangent.model.branches[j], model.branches[j]
    if isinstance(fitted, FormulaBranch):
        return BranchFormulas(j, (as_it_is(fitted),))
    place = Place.of(here, places[j])
    place = replace(place, floor=max(place.floor, some.floor))
    current = own if isinstance(own, FormulaBranch) else None
    known = [] if current is None else [current.formula, *(one.formula for one in found.candidates)]
    result: list[Candidate] = []
    for one in judged(place, known or guessed(place)):
        if current is not None and one.formula.form == current.formula.form:
            continue  # it is in the model that was re-optimised and allowed
        if one.within and (every or not any(other.within for other in result)):
            there = reoptimise(here, with_forms(model, {j: one}), *ROUGHLY, fitted=some.fitted)
            if some.allows(there):
                result.append(measured(some, there, j, FormulaBranch(one.formula, one.domain)))
                continue
        result.append(replace(one, within=False))
    if current is not None:
        result.append(measured(some, here, j, FormulaBranch(current.formula, place.range)))
    return BranchFormulas(j, listed(result))


def as_it_is(branch: FormulaBranch) -> Candidate:
    """The candidate of a branch that is a formula already."""
    return Candidate(branch.formula, True, 0.0, 0.0, None, 0.0, branch.domain)


def in_place(allows: Allows, here: Neighbourhood, best: Mapping[int, Candidate], fitted: bool = True) -> Neighbourhood:
    """The model of a round with forms in place of curves, re-optimised, as far as that is allowed."""
    return accepted(
        allows, here, with_forms(here.tangent.model, best), sorted(best, key=lambda j: best[j].mean), fitted
    )


def accepted(
    allows: Allows, here: Neighbourhood, wanted: DecoupledModel, order: Sequence[int], fitted: bool
) -> Neighbourhood:
    """A model, re-optimised, where it is allowed; else those of its branches, one after another, with which it is."""
    there = reoptimise(here, wanted, fitted=fitted)
    if allows(there):
        return there
    for j in order if len(order) > 1 else ():
        model = here.tangent.model
        W0, W1, branches = model.W0.copy(), model.W1.copy(), list(model.branches)
        W0[j], W1[:, j], branches[j] = wanted.W0[j], wanted.W1[:, j], wanted.branches[j]
        there = reoptimise(here, model.changed(W0=W0, W1=W1, branches=branches), fitted=fitted)
        if allows(there):
            here = there
    return here


def guessed(place: Place) -> list[Formula]:
    """First guesses of forms, those that are nearest to the curve, each after some steps towards it."""
    alone = Place.of_curve(place.curve, place.freedom)
    guesses = [(place.deviations(guess)[0], guess) for form in TRIED for guess in first_guesses(form, place.curve)]
    simplest = [guess for _, guess in guesses if guess.form.name in SIMPLEST]  # where noise is all there is
    near = sorted((one for one in guesses if one[0] <= HOPELESS), key=lambda one: one[0])
    others = [guess for _, guess in near[:GUESSES] if guess.form.name not in SIMPLEST]
    return [*simplest, *(replace(alone, floor=0.0).improve(guess, *ROUGHLY)[0] for guess in others)]


def judged(place: Place, guesses: Sequence[Formula]) -> list[Candidate]:
    """Which forms come near a branch, the best first."""
    from scipy.special import fdtrc

    roughly: dict[str, tuple[Formula, float]] = {}
    for guess in guesses:
        formula, left = place.improve(guess, *ROUGHLY)
        if left < roughly.get(guess.form.name, (guess, np.inf))[1]:
            roughly[guess.form.name] = formula, left
    best = sorted(roughly.values(), key=lambda one: place.score(one[1], one[0].form.size))
    finals: dict[str, tuple[Formula, float]] = {}
    for formula, _ in best[:FINALISTS] + [one for one in best[FINALISTS:] if one[0].form.name in SIMPLEST]:
        ended = to_the_end(place, formula)
        for one in (ended, *([place.improve(without_line(ended[0]))] if ended[0].form.has_line else [])):
            if one[1] < finals.get(one[0].form.name, (formula, np.inf))[1] and not jumps(one[0], place.curve):
                finals[one[0].form.name] = one
    found = sorted(finals.values(), key=lambda one: place.score(one[1], one[0].form.size))
    least, freedom = min([(place.left, place.freedom), *((left, one.form.size) for one, left in found)])
    noise = (least + place.floor) / place.spare
    result: list[Candidate] = []
    for formula, left in found:
        more = max(max(freedom, place.freedom) - formula.form.size, 1.0)
        formula = without_rounding(place.levelled(formula).without_turns(), place.range)
        mean, largest = place.deviations(formula)
        chance = float(fdtrc(more, place.spare, (left - least) / more / noise))
        within = chance > CHANCE and mean <= NOWHERE
        if within or mean <= FARTHEST:
            result.append(
                Candidate(formula, within, largest, mean, None, place.score(left, formula.form.size), place.range)
            )
    return result


def listed(found: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The best candidates, those that are within first, without those that have a simpler one for a special case."""
    result: list[Candidate] = []
    for one in sorted(found, key=lambda one: (not one.within, one.score)):
        if not any(contains(one.formula.form, other.formula.form) for other in result):
            result.append(one)
    return tuple(result[:LISTED])


def to_the_end(place: Place, formula: Formula) -> tuple[Formula, float]:
    """A formula after all its steps, and what it leaves; with kinks, the best of several that have them elsewhere.

    What is left falls by leaps when a kink passes a sample, and steps do not leap. A softplus that is as steep as a
    kink gives way to the rectifier that it is.
    """
    plain = as_rectifier(formula, place.curve)
    if plain.form.shape not in KINKED:
        return place.improve(plain)
    length = 2.0 * place.curve.frame[1] * abs(plain.parameters[B])
    tried = [place.improve(moved(plain, shift * length), *ROUGHLY) for shift in SHIFTS]
    return place.improve(min(tried, key=lambda one: one[1])[0])


def jumps(formula: Formula, curve: Curve) -> bool:
    """Whether a formula is so steep that it jumps from one sample to the next, which no sample tells."""
    smooth = formula.form.h is not None and B in formula.form.free and formula.form.shape not in ("sine", "exponential")
    return smooth and abs(formula.parameters[B]) * curve.frame[1] > STEEP


def as_rectifier(formula: Formula, curve: Curve) -> Formula:
    """A softplus whose bend lies between two samples as a rectifier, or |u| and a line; others as they are."""
    if formula.form.shape != "softplus" or abs(formula.parameters[B]) * curve.frame[1] < STEEP:
        return formula
    a, b, c, d, *line = formula.parameters
    size, sign = a * abs(b), float(np.sign(b))
    if not line:
        return Formula.of("rectifier", (size, sign, c / abs(b), d))
    return Formula.of("absolute value and line", (0.5 * size, 1.0, c / b, d + 0.5 * a * c, line[0] + 0.5 * a * b))


def without_line(formula: Formula) -> Formula:
    """The shape of a formula alone."""
    return Formula(FORMS[formula.form.shape], formula.parameters[:4])


def moved(formula: Formula, by: float) -> Formula:
    """A shape with another c."""
    a, b, c, *rest = formula.parameters
    return Formula(formula.form, (a, b, c + by, *rest))


def contains(form: Form, simpler: Form) -> bool:
    """Whether a form has a simpler one among its special cases: polynomials of lower degree, shapes without a line."""
    if form.h is None:
        return simpler.h is None or simpler.shape in ("square", "cube", "fourth power")
    return form.has_line and simpler.shape in (form.shape, "line", "constant")
