"""What a fit is worth beyond its samples, in words: errors on new points, and whether what is left is noise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unbraid.data.checks import counted
from unbraid.inference.patterns import FEWEST as FEWEST_OF_PATTERNS
from unbraid.inference.patterns import PLAIN
from unbraid.judging.glance import Glance
from unbraid.kernels.arrays import Array
from unbraid.plots.diagnostics import standing_out
from unbraid.report.subject import Subject
from unbraid.report.words import ROUNDING_ERROR, in_percent, listed_words, share_percent
from unbraid.results.advice import largest_of, on_held_out

PLAINLY, HINTED = 5.0, 4.0
"""Standard deviations from which on something is plainly no accident, and from which on it may be none."""
INFLUENTIAL = 0.5
"""Cook's distance from which on a sample moves the fit by about as much as noise does."""
FAR = 4.0
"""Residuals of more standard deviations are far out."""


def expected_words(subject: Subject) -> str:
    """Which error is expected on new points, in a sentence or two; nothing where that is not known."""
    held = subject.held_out
    if held is None or held.worst is None or not np.isfinite(held.worst):
        return ""
    if held.output_errors is None:
        said = f"On new points slopes are expected to be off by {in_percent(held.worst)} of their size."
    elif held.worst < ROUNDING_ERROR:
        said = "On new points nothing but rounding is expected as well."
    else:
        which = "" if subject.model.n == 1 else " in the worst output"
        said = f"On new points an error of {in_percent(held.worst)}{which} is expected."
    return f"{said}{outside_words(subject)}"


def outside_words(subject: Subject) -> str:
    """' Of these 4 % lie outside the range seen, with an error of 11 % there'; nothing where none do."""
    held = subject.held_out
    if held is None or not held.outside > 0.0:
        return ""
    said = f" About {share_percent(held.outside)} of them will lie outside the range seen"
    if held.outside_errors is None or not np.isfinite(held.outside_errors).any():
        return f"{said}."
    return f"{said}, with an error of {in_percent(largest_of(held.outside_errors))} there."


def held_out_advice(subject: Subject) -> str | None:
    """What to do where much larger errors are expected on new points; None where they are not."""
    return None if subject.fit is None or not subject.own else on_held_out(subject.fit)


# Is what is left noise?


def noise_words(subject: Subject) -> list[str]:
    """Whether what is left of the samples is noise, and which of them the fit hangs on, in paragraphs."""
    glance = subject.glance
    if glance is None or subject.worst < ROUNDING_ERROR:
        return []
    return [shape_words(glance), *order_words(subject, glance)]


def shape_words(glance: Glance) -> str:
    """Whether residuals show a pattern."""
    doubt, found = glance.uncertainty.doubt, glance.residuals.pattern
    if doubt is not None:
        return f"No. {doubt}"
    if glance.around.problem.S < FEWEST_OF_PATTERNS:
        return "There are too few samples to tell."
    if found.z > HINTED:
        return (
            f"Perhaps not all of it: residuals are a little alike {found.along} (z = {found.z:.1f}, where chance "
            f"seldom comes to {HINTED:g}, and {PLAIN:g} would be plain)."
        )
    used, left = glance.uncertainty.freedom, glance.uncertainty.left
    few = (
        ""
        if used < left
        else f"; but with {used:.0f} degrees of freedom for {used + left:.0f} numbers little would show"
    )
    return f"By all signs: no residual knows of its neighbours’, along any branch, input or output{few}."


def order_words(subject: Subject, glance: Glance) -> Iterator[str]:
    """What else residuals tell: their order, their distribution, and the samples that the fit hangs on."""
    found = glance.residuals
    z, k = largest(np.maximum(found.lag_one_z, found.runs_z))
    if z > HINTED:
        yield (
            f"Residuals of {number_name(subject, k)} are like those of the next sample in the order given (correlation "
            f"{found.lag_one[k]:.2f}, z = {z:.1f}): where samples were taken one after another, something drifts that "
            "no input tells, and bands and expected errors are too small."
        )
    z, k = largest(found.normality_z)
    far = int(np.count_nonzero(np.abs(found.residuals[:, k]) > FAR))
    if z > PLAINLY and found.normality[k] < 0.99:
        what = f", with {far} beyond {FAR:g} standard deviations" if far else ""
        huber = '; `loss="huber"` leaves wild samples aside' if far else ""
        yield (
            f"Residuals of {number_name(subject, k)} are not distributed as normal noise is{what}: intervals of new "
            f"observations are rough there{huber}."
        )
    yield influence_words(glance)


def influence_words(glance: Glance) -> str:
    """Which samples the fit hangs on."""
    found, out = glance.residuals, standing_out(glance)
    if not out:
        return "No single sample moves the fit much more than others."
    which = listed_words([str(glance.samples[s]) for s in out], len(out))
    sample, distance = "sample" if len(out) == 1 else "samples", f"Cook’s distance {found.cook[out[0]]:.2g}"
    if found.cook[out[0]] < INFLUENTIAL:
        return f"No single sample moves the fit by much; {sample} {which} do{'es' * (len(out) == 1)} most ({distance})."
    it = "it" if len(out) == 1 else "the first"
    return (
        f"The fit hangs on {sample} {which}: without {it} it would move by about as much as the noise makes uncertain, "
        f"or more ({distance}). Make sure that {'it is' if len(out) == 1 else 'they are'} right."
    )


def figure_words(subject: Subject) -> str:
    """What the figures of residuals show."""
    glance = subject.glance
    assert glance is not None
    some = "" if len(glance.samples) == subject.whole.S else f", of {counted(len(glance.samples), 'sample')}"
    return (
        f"Residuals over their standard deviations{some}; a line is the mean of neighbours, which of noise stays near "
        "zero. Against normal noise they follow the straight line if they are that. Leverage is how much of itself a "
        "sample determines; numbers are those of samples, from 0."
    )


def largest(z: Array) -> tuple[float, int]:
    """The largest of z (q,), and where it is."""
    known = np.where(np.isfinite(z), z, -np.inf)
    return float(known.max()), int(np.argmax(known))


def number_name(subject: Subject, k: int) -> str:
    """The name of the k-th number of a sample: of an output, or of its slope along an input."""
    n, m = subject.model.n, subject.model.m
    values = n if subject.problem.F is not None else 0
    if k < values:
        return subject.outputs[k]
    i, j = divmod(k - values, m)
    return f"the slope of {subject.outputs[i]} along {subject.inputs[j]}"
