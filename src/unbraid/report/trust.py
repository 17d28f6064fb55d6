"""Whether a fit can be trusted, in words: how it was found, and what `diagnose` says of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unbraid.data.checks import counted
from unbraid.judging.findings import uniqueness_words, was
from unbraid.plots.residuals import FEW_OUTPUTS
from unbraid.report.figures import is_flat
from unbraid.report.subject import Subject
from unbraid.report.verdict import grade
from unbraid.report.words import count_word, in_percent, listed_words, plain_number, share_of, small
from unbraid.results.advice import SAME
from unbraid.results.carrying import name_superfluous


def jacobian_words(subject: Subject) -> str:
    """By how much slopes are off, in words: the root of Error(J), which is a square."""
    assert subject.jacobian_error is not None or subject.output_errors is not None
    error = subject.jacobian_error
    return "" if error is None else f"so slopes are off by {in_percent(100.0 * float(np.sqrt(error)))} of their size"


def bias_words(subject: Subject) -> str:
    """The bias of few outputs, in a sentence."""
    if len(subject.outputs) > FEW_OUTPUTS:
        return ""
    if subject.open_constants:
        return "The bias is open: Jacobians do not tell constants, which `fit.model.through(X, F)` sets from values."
    errors = None if subject.fit is None else subject.fit.output_errors
    unset = np.zeros(len(subject.outputs)) if errors is None else errors  # NaN: no value of the output was known
    parts = [
        f"{'open' if np.isnan(error) else plain_number(entry)} in {name}"
        for name, entry, error in zip(subject.outputs, subject.model.bias, unset, strict=True)
    ]
    how = ", set from the samples of this page," if subject.constants_set else ""
    return f"The bias{how} is {listed_words(parts, FEW_OUTPUTS)}."


def samples_words(subject: Subject) -> str:
    """Which samples these are, where they are not the fit's, and how many of them a branch has not seen the like of."""
    some = ""
    if subject.thinned:
        some = (
            f"Errors are of all {subject.whole.S:,} samples; figures, misses and shares are of {subject.problem.S:,} "
            "of them, spread evenly."
        )
    if subject.own:
        return some
    said = "These errors are on the samples given, "
    said += "not on those of the fit." if subject.fit is not None else "which may or may not be those of the fit."
    if subject.outside:
        lie = "lies" if subject.outside == 1 else "lie"
        said += (
            f" {subject.outside} of {counted(subject.whole.S, 'sample')} {lie} outside the training range of a "
            "branch, which is continued there."
        )
    return f"{said} {some}".rstrip()


def error_words(subject: Subject) -> str:
    """Which output has the largest error, in a sentence."""
    errors = subject.output_errors
    if errors is None or not np.isfinite(errors).any():
        return ""
    worst = int(np.argmax(np.where(np.isfinite(errors), errors, -1.0)))
    error = f"{in_percent(float(errors[worst]))}, {grade(float(errors[worst]))}"
    if len(errors) == 1:
        return f"The error of {subject.outputs[0]} is {error}."
    return f"The largest error is that of {subject.outputs[worst]}: {error}."


def residual_words(subject: Subject) -> str:
    """What to look for in the figure of residuals."""
    spread = "the output’s standard deviation" if subject.problem.F is not None else "the slopes’ root mean square"
    if subject.model.n <= FEW_OUTPUTS:
        larger = "a larger rank may" if subject.smooth else "a larger rank or df may"
        return (
            f"What the model misses, sample by sample, in % of {spread}. A cloud without shape is noise; a pattern is "
            f"something the branches cannot follow: "
            f"{larger if subject.may_have_more else 'more samples may tell it from noise'}."
        )
    return (
        f"What the model misses, a column an output, in % of {spread}. Points far from a narrow column are single "
        "samples, worth a look."
    )


def course_words(subject: Subject) -> str:
    """How the fit went, in a few sentences."""
    fit = subject.fit
    if fit is None:
        return ""
    sweeps = counted(fit.trace.sweeps, "sweep")
    if fit.trace.search is not None and 0 < fit.trace.search < fit.trace.sweeps:
        steps = fit.trace.sweeps - fit.trace.search
        sweeps = f"{counted(fit.trace.search, 'sweep')} and {counted(steps, 'Gauss–Newton step')}"
    said = f"Method {fit.method}, {fit.basis!r}. Starts: {fit.agreement}. The best one made {sweeps}"
    said += f" and ended at an objective of {small(fit.objective)}."
    events = len(fit.trace.events)
    if fit.trace.sweeps and is_flat(fit.trace):
        said += (
            " That is where these steps began, nearly: earlier, coarser fits had come as low, so no course is drawn."
        )
    elif events:
        said += f" {counted(events, 'unusual event')} on the way: see the marks."
    return said


def left_out_words(subject: Subject) -> str:
    """Which branches carry nothing, so that the page does not show them, in a few sentences; else nothing."""
    which = subject.superfluous
    if not which:
        return ""
    chosen = None if subject.fit is None else subject.fit.smoothing
    count = count_word(len(subject.carrying))
    why = "" if chosen is None else f": the data support {count} of {count_word(subject.rank)} branches"
    theirs, them = (
        ("Its direction in W0 means", "it is") if len(which) == 1 else ("Their directions in W0 mean", "they are")
    )
    return f"{name_superfluous(which)}{why}. {theirs} nothing, and {them} not shown."


def chosen_words(subject: Subject) -> str:
    """What the fit chose from the data, λ and what counts as noise, in a few sentences; nothing where it did not."""
    fit = subject.fit
    if fit is None or fit.smoothing is None:
        return ""
    chosen, levels = fit.smoothing, []
    if fit.value_noise is not None:
        pairs = zip(subject.outputs, fit.value_noise, strict=True)
        levels = [f"{in_percent(float(level))} of {name}" for name, level in pairs if np.isfinite(level)]
    if fit.slope_noise is not None:
        levels.append(f"{in_percent(fit.slope_noise)} of slopes")
    coupling = (
        ""
        if chosen.coupling is None
        else f" λ, the weight of values beside slopes in balanced units, is {small(chosen.coupling)}."
    )
    taken = (
        f" What is left, noise or what so many branches cannot follow, is {listed_words(levels, MOST_LEVELS)}."
        if levels
        else ""
    )
    if fit.noise.startswith("noise below"):
        taken = " Hardly anything is left that could be noise."
    return (
        f"The fit chose its smoothing from the data: branches use {float(chosen.freedom.sum()):.1f} degrees of freedom "
        f"together.{coupling}{taken}"
    )


MOST_LEVELS = 12
"""Levels of noise that are named one by one."""


def answers(subject: Subject) -> Iterator[tuple[str, str]]:
    """Questions about a fit, and their answers."""
    if subject.own:
        yield from answers_on_own_samples(subject)
    elif subject.fit is not None and len(subject.fit.starts) > 1 and not subject.superfluous:
        finished = counted(sum(start.finished for start in subject.fit.starts), "finished start")
        yield "Do starts agree?", f"{subject.fit.agreeing} of {finished} found these directions."
    order = subject.carrying[np.argsort(-subject.shares[subject.carrying], kind="stable")]
    idle = f" {name_superfluous(subject.superfluous)}." if subject.superfluous else ""
    if len(order) > 1:
        first, last = (
            f"branch {j + 1} ({share_of(float(subject.shares[j]), 'what there is to explain', subject.follows)})"
            for j in (order[0], order[-1])
        )
        yield "Does every branch matter?", f"Most: {first}; least: {last}.{idle}"
    elif idle:
        yield "Does every branch matter?", f"Branch {order[0] + 1} alone does.{idle}"


def answers_on_own_samples(subject: Subject) -> Iterator[tuple[str, str]]:
    """Questions and answers that need the samples of the fit."""
    found = subject.diagnostics
    yield "Is the decoupling unique?", uniqueness_answer(subject)
    yield "Do other starts find the same?", starts_answer(subject)
    if subject.needs:
        yield "Is all of it needed?", f"{'; '.join(subject.needs)}."
    if found.parallel:
        pairs = ", ".join(f"{pair.one + 1} and {pair.other + 1} ({pair.angle:.2g}°)" for pair in found.parallel)
        yield (
            "Are branches alike?",
            f"Nearly parallel: {pairs}. What follows from that stands under “What to try next”.",
        )
    elif len(subject.carrying) > 1:
        yield "Are branches alike?", "No two look along the same direction."


def uniqueness_answer(subject: Subject) -> str:
    """Whether the decoupling is unique: whether other models do as well."""
    found = subject.diagnostics
    if found.flat is None:
        return "Not tested: there are too many unknowns."
    if found.unique:
        said = "Yes, locally: any small change of directions or curves changes something at the samples."
    elif found.unique_canonical:
        said = f"Unique {uniqueness_words(found)}."
    elif found.freedoms:
        said = f"No: {uniqueness_words(found).removeprefix('no, ')}, while errors stay within the noise."
    else:
        said = f"No: there {'is' if found.flat.directions == 1 else 'are'} {counted(found.flat.directions, 'way')} to "
        said += "change the model and nothing at the samples."
    if found.generic and found.unique:
        said += " Jacobians of this size determine so many branches even without smooth curves."
    return said


def starts_answer(subject: Subject) -> str:
    """Whether other starts that ended as low found the same."""
    found = subject.diagnostics
    if found.match is None:
        return "Not known: no other start ended as low."
    if found.superfluous:
        return (
            f"Not known of the branches that are left: {counted(found.compared, 'start')} ended equally low, with "
            f"{found.rank} branches each (factor match score {found.match:.3f}), before "
            f"{count_word(len(found.superfluous))} of them {was(found)} left out. "
            f"A fit of rank {found.carrying} tells."
        )
    same = "they found the same" if found.match >= SAME else "and they differ"
    return (
        f"{counted(found.compared, 'start')} ended equally low, {same} (factor match score {found.match:.3f}, where 1 "
        "is the same decoupling)."
    )
