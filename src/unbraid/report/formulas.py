"""The model as ordinary mathematics: which of its curves are closed forms, and the formulas that they make."""

from __future__ import annotations

from dataclasses import dataclass

from unbraid.closed import BranchFormulas, formulas
from unbraid.report.subject import Subject
from unbraid.report.words import listed_words
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.branches.words import formula_lines
from unbraid.results.model import DecoupledModel

MOST_BRANCHES, MOST_SAMPLES, MOST_LINES = 6, 20_000, 12
"""So many branches, samples and outputs a page looks for formulas of; a function does where there are more."""


@dataclass(frozen=True)
class InFormulas:
    """What the page says: a paragraph, and the formulas, a line each."""

    words: str
    lines: tuple[str, ...]


def in_formulas(subject: Subject) -> InFormulas | None:
    """The formulas of the model, where it has any, or of its fit, where these are found; None where that takes long."""
    if any(isinstance(branch, FormulaBranch) for branch in subject.model.branches):
        lines = named_lines(subject, subject.model)[:MOST_LINES]
        return InFormulas("Branches of this model are closed forms.", tuple(lines))
    fit = subject.fit
    few = len(subject.carrying) <= MOST_BRANCHES and subject.model.n <= MOST_LINES and subject.whole.S <= MOST_SAMPLES
    if fit is None or not subject.own or not few:
        return None
    found = formulas(fit, subject.whole)
    if all(one.best is None for one in found):
        return InFormulas("No branch is one of the closed forms that are tried, within what the data leave open.", ())
    return InFormulas(form_words(found.branches), tuple(named_lines(subject, found.model)))


def named_lines(subject: Subject, model: DecoupledModel) -> list[str]:
    """The formulas of a model with the names that the samples have, inputs that add nothing left out."""
    samples = subject.problem
    named = model.changed(input_names=samples.input_names, output_names=samples.output_names, encoding=None)
    return formula_lines(named, 3, samples.X.std(axis=0))


def form_words(found: tuple[BranchFormulas, ...]) -> str:
    """Which branches are closed forms within what the data leave open, and which stay curves."""
    named = [f"branch {one.branch + 1} ({one.best.formula.form.name})" for one in found if one.best is not None]
    curves = [f"branch {one.branch + 1}" for one in found if one.unseen is None and one.best is None]
    others = [f"branch {one.branch + 1}" for one in found if sum(form.within for form in one.candidates) > 1]
    are = "is a closed form" if len(named) == 1 else "are closed forms"
    said = f"Within what the data leave open {listed_words(named, MOST_BRANCHES)} {are}"
    if curves:
        said += f", and {listed_words(curves, MOST_BRANCHES)} {'stays a curve' if len(curves) == 1 else 'stay curves'}"
    if others:
        said += f". For {listed_words(others, MOST_BRANCHES)} other forms would do as well: see `ub.formulas(fit)`"
    return f"{said}. With all parameters re-optimised together (`fit.with_formulas()`):"
