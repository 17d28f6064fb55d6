"""What a fit is worth, in words: the verdict, and what its status means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from unbraid.judging.diagnostics import EXPLAINED
from unbraid.report.subject import Subject
from unbraid.report.words import ROUNDING_ERROR, count_word, in_percent, listed_words
from unbraid.results.advice import SAME, ending_as_low, match_of
from unbraid.results.fit import Fit
from unbraid.results.notes import UNEXPLAINED
from unbraid.results.outcome import Status

MISSED, FAIR, GOOD = 50.0, 20.0, EXPLAINED
"""Errors in %: from the first on a model misses a quarter of an output; below the others it follows it fairly, well."""
MOST_STARTS = 0.75
"""The share of the finished starts from which on it is good that so many agree."""
MEANINGS = {
    Status.RUNNING: "The search had not ended.",
    Status.CONVERGED: "The search ended by itself: more steps would change next to nothing.",
    Status.UP_TO_CONSTANTS: "The search ended by itself: more steps would change next to nothing.",
    Status.TARGET_REACHED: "The search ended because the error was as small as had been asked for.",
    Status.FLAT: "The search ended by itself: more steps would change the model a little, and its errors hardly.",
    Status.JOINED: "The search ended early, on its way to where a better start was.",
    Status.OUTRUN: "The search ended early, too far behind a better start to catch up with it.",
    Status.OUT_OF_SWEEPS: "The search used up its budget while it was still getting better. The model can be used, and "
    "is likely not the best there is.",
    Status.OUT_OF_TIME: "The search ran into its time limit. The model is the best that was found until then.",
    Status.INTERRUPTED: "The search was interrupted. The model is the best that was found until then.",
    Status.NOT_FINITE: "The numbers of the search got out of hand, and it was given up at the best model before that.",
}


class Badge(NamedTuple):
    """A fact at a glance; `kind` is good, bad or plain."""

    kind: str
    text: str


def verdict(subject: Subject) -> str:
    """What a fit is worth, in one sentence."""
    count = len(subject.carrying)
    branches, s = ("branch", "s") if count == 1 else ("branches", "")
    who = f"{count_word(count).capitalize()} {branches}{shapes_words(subject)}"
    if subject.output_errors is None:
        assert subject.jacobian_error is not None
        error = 100.0 * float(np.sqrt(subject.jacobian_error))
        return f"{who} {reproduce(error, s)} the Jacobians{how_well(error, True)}."
    known = subject.output_errors[np.isfinite(subject.output_errors)]
    if not len(known):
        return f"{who} for outputs that do not vary, so that there is nothing to explain."
    worst, what = float(known.max()), outputs_words(len(known), len(subject.output_errors))
    if worst >= MISSED:
        pairs = zip(subject.outputs, subject.output_errors, strict=True)
        missed = [name for name, error in pairs if MISSED <= error < np.inf]
        return f"{who} {missing_words(worst, s, missed)}: an error of {in_percent(worst)}{constants_words(subject)}."
    return f"{who} {reproduce(worst, s)} {what}{how_well(worst, len(known) == 1)}{constants_words(subject)}."


def missing_words(worst: float, s: str, missed: list[str]) -> str:
    """How much of outputs is missed, 'leave 40 % of f₁ unexplained': of the variance, which is the error's square."""
    which = listed_words(missed, 4)
    if worst >= 100.0:
        return f"follow{s} {which} no better than {'its mean' if len(missed) == 1 else 'their means'} in the worst case"
    share = in_percent(worst**2 / 100.0)
    return f"leave{s} {'' if len(missed) == 1 else 'up to '}{share} of {which} unexplained"


def constants_words(subject: Subject) -> str:
    """', with constants set from these samples' where the fit had no values to tell them from; else nothing."""
    return ", with constants set from these samples" if subject.constants_set else ""


def shapes_words(subject: Subject) -> str:
    """', each certified to be increasing,' where that was asked of all branches and holds; else nothing."""
    constraints = [] if subject.fit is None else list(subject.fit.constraints)
    if not constraints or any(one is None or one != constraints[0] for one in constraints):
        return ""
    first = constraints[0]
    if first is None or not all(subject.model.branches[j].certified(first) for j in subject.carrying):
        return ""
    return f", {'each ' if len(subject.carrying) > 1 else ''}certified to be {first.means},"


def reproduce(error: float, s: str) -> str:
    """The verb for a model of that error, with the ending s where branches are one: 'reproduce', 'follows'."""
    return f"reproduce{s}" if error < GOOD else f"follow{s}"


def how_well(error: float, single: bool) -> str:
    """How near a model of that error comes, 'to 0.1 % or better'."""
    if error < ROUNDING_ERROR:
        return " exactly, up to rounding"
    if error < GOOD:
        return f" to {in_percent(error)}" + ("" if single else " or better")
    rough = " roughly" if error >= FAIR else ""
    return f"{rough}, with an error of {in_percent(error)}" + ("" if single else " in the worst")


def outputs_words(varying: int, count: int) -> str:
    """The outputs in words: 'the output', 'both outputs', 'all five outputs', 'the four outputs that vary'."""
    if varying < count:
        return f"the {'output that varies' if varying == 1 else f'{count_word(varying)} outputs that vary'}"
    return "the output" if count == 1 else "both outputs" if count == 2 else f"all {count_word(count)} outputs"


def grade(error: float) -> str:
    """An error in %, in words: 'very small', 'visible', 'large'."""
    if not np.isfinite(error):
        return "no value known" if np.isnan(error) else "it does not vary"
    for limit, word in (
        (ROUNDING_ERROR, "exact, up to rounding"),
        (1.0, "very small"),
        (GOOD, "small"),
        (FAIR, "visible"),
    ):
        if error < limit:
            return word
    return "large" if error < UNEXPLAINED else "mostly unexplained" if error < 100.0 else "not explained"


def agreement_kind(fit: Fit) -> str:
    """How good it is that so many starts agree: good where nearly all do, bad where hardly any does, or others differ.

    Others that ended as low, that is: those that ended higher say how hard the search is, and nothing of the model.
    """
    finished, low = sum(start.finished for start in fit.starts), ending_as_low(fit.starts)
    match = match_of(low)
    if fit.agreeing <= max(1, finished // 4) or (match is not None and match < SAME):
        return "bad"
    return "good" if fit.agreeing >= MOST_STARTS * finished else "plain"


def badges(subject: Subject) -> Iterator[Badge]:
    """Facts about the fit at a glance: how it ended, whether starts agree, whether it is unique."""
    fit = subject.fit
    if fit is not None:
        ended = fit.status.name.replace("_", " ").lower()
        yield Badge("good" if fit.status.converged else "bad", ended.capitalize())
        finished = sum(start.finished for start in fit.starts)
        if finished > 1 and not subject.superfluous:  # starts are compared with what was left out later
            yield Badge(agreement_kind(fit), f"{fit.agreeing} of {finished} finished starts agree")
    if subject.own:
        found = subject.diagnostics
        if found.unique:
            yield Badge("good", "Locally unique")
        elif found.unique_canonical:
            lines = found.straight and any(one.kind == "straight" for one in found.freedoms)
            yield Badge("plain", f"Unique up to straight {'branches' if lines else 'lines'}")
        elif found.unique is False:
            yield Badge("bad", "Not unique")
        if found.parallel:
            yield Badge("bad", "Branches nearly parallel")
    if subject.superfluous:
        yield Badge("plain", f"{len(subject.superfluous)} of {subject.rank} branches left out")
    if shapes_words(subject):
        yield Badge("good", shapes_words(subject).strip(", ").capitalize())
