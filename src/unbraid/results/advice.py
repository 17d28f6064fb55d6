"""The advice that notes, `diagnose` and reports give: one sentence for one matter, and none against another.

Each function is about one matter, and says what to do about it, or nothing. Whoever shows advice takes it from here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unbraid.data.checks import counted
from unbraid.kernels.arrays import Array
from unbraid.results.carrying import chooses_smoothing, name_superfluous
from unbraid.results.fit import AGREEING, Fit, StartSummary
from unbraid.results.worth.freedom import Freedom

AS_LOW, ZERO = 1.05, 1e-20
"""Starts end as low as the best if their objective is at most this factor above, or below `ZERO`."""
SAME = 0.99
"""A factor match score from which on two starts have found the same decoupling."""
MUCH_LARGER, WORTH_A_WORD, ADDS = 2.0, 1.0, 1.5
"""Errors on new points are worth advice from so many times those on the samples on, and from so many % on; points
outside the range seen add to them if they are so many times those inside."""
LEFT_BY_SHAPE = 10.0
"""An error in % from which on a shape that was asked for is worth a second look."""
FEW_NUMBERS = "so small errors on the samples say little about new points"
"""What a note says where unknowns are many for the samples: no larger rank is advised then."""


# Starts.


def ending_as_low(starts: Sequence[StartSummary]) -> list[StartSummary]:
    """The finished starts that are as good as the best, which comes first."""
    return [start for start in starts if start.finished and start.objective <= max(AS_LOW * starts[0].objective, ZERO)]


def match_of(low: Sequence[StartSummary]) -> float | None:
    """The mean factor match score of starts that ended as low, the best one first, with that; None: it is alone."""
    return None if len(low) < 2 else float(np.mean([start.match for start in low[1:]]))


def on_starts(starts: Sequence[StartSummary]) -> str | None:
    """What to make of starts that did not find the same; None where they did, or where there is nothing to compare."""
    finished, low = [start for start in starts if start.finished], ending_as_low(starts)
    agreeing, match = sum(start.angle <= AGREEING for start in finished), match_of(low)
    few = len(finished) >= 2 and agreeing <= max(1, len(finished) // 4)
    only = f"Only {agreeing} of {len(finished)} finished starts found these directions"
    if match is not None and match < SAME:
        differ = (
            f"{len(low)} starts ended equally low and differ in what they found (factor match score {match:.2f}): do "
            "not read much into single branches."
        )
        return f"{only}. {differ}" if few else differ
    if not few:
        return None
    if match is None:
        return f"{only}, and no other ended as low: more starts may find a better model."
    return f"{only}, though {counted(len(low), 'start')} ended equally low: small branches may look elsewhere as well."


# What can move.


def on_freedom(freedom: Freedom, smaller: str) -> str:
    """What can move, how far, and what settles it; `smaller`: 'a smaller rank or ', where that may be advised."""
    cures = {
        "straight": "The canonical form (`diagnose(fit).canonical`) has its line in L, where nothing is open.",
        "lines": "The canonical form (`diagnose(fit).canonical`) has all lines in L, where nothing is open.",
        "parallel": "No samples tell them apart: read them as one branch, with the sum of their curves in each output.",
        "rotating": "Samples from a wider range, where the curves are no parabolas, or further outputs settle it; more "
        "samples of the same kind do not.",
        "open": f"Use {smaller}more samples.",
    }
    cure = cures[freedom.kind]
    if freedom.kind == "straight" and len(freedom.branches) > 1:
        cure = cure.replace("its line", "their lines")
    return f"{freedom.words} {cure}"


# Branches that carry nothing.


def on_left_out(which: Sequence[int], rank: int) -> str:
    """What a fit of a rank says of the branches, from 0, that it left out."""
    left = rank - len(which)
    others = "the other was" if len(which) == 1 else "the others were"
    return (
        f"{name_superfluous(which)}: the data support {left} of {rank} branches, and {others} left out. "
        f"rank={left} is enough."
    )


def on_idle(which: Sequence[int], rank: int) -> str:
    """What to make of the branches, from 0, of a model of a rank that carry nothing, whatever the reason is."""
    idle = "its direction means" if len(which) == 1 else "their directions mean"
    return f"{name_superfluous(which)}, and {idle} nothing: rank {rank - len(which)} is enough."


# Copies of samples.


def on_copies(copies: int, samples: int, merged: bool) -> str:
    """What to make of samples that are exact copies of others: whether a fit has `merged` them or takes all of them."""
    are = "is an exact copy" if copies == 1 else "are exact copies"
    told = (
        "Copies count as one sample with the sum of their weights."
        if merged
        else "In files and Dask arrays copies are not merged, and expected errors and intervals are too small: remove "
        "the copies, or load the samples into memory."
    )
    return f"{copies} of {samples} samples{'' if merged else ' looked at'} {are} of others. {told}"


# Errors that are left.


def on_misfit(along: str, z: float, larger: bool) -> str:
    """What to make of residuals of which neighbours `along` an order are alike, by z standard deviations of noise.

    `larger`: whether a larger rank may be advised.
    """
    return (
        f"What is left is plainly no noise: residuals are alike {along} (z = {z:.0f}), so something is there that "
        "these branches do not follow, and intervals are too narrow; "
        f"{'try a larger rank, or more starts.' if larger else 'try more samples or more starts.'}"
    )


def on_shape(error: float) -> str | None:
    """What to do about an error in % that is left where a shape was asked for; None where it is small."""
    if not error > LEFT_BY_SHAPE:
        return None
    return (
        f"A shape was asked for, and an error of {error:.2g} % is left: fit without `constraint` and compare. Where "
        "the error falls much, the samples contradict the shape."
    )


def on_few_numbers(unknowns: int, numbers: int, chosen: bool, smooth: bool) -> str:
    """What to do about too few numbers for so many unknowns, or degrees of freedom where smoothing was `chosen`.

    `smooth`: the basis chooses its smoothing itself, so that there is no df to be chosen.
    """
    used = "degrees of freedom in use" if chosen else "unknowns"
    return f"There are {unknowns} {used} for {numbers} numbers, {FEW_NUMBERS}: use {fewer(smooth)} or more samples."


def on_nothing_left(unknowns: int, numbers: int, smooth: bool) -> str:
    """Why no error on new points is given where a search had as many unknowns as there are numbers, or nearly."""
    return (
        f"The search had {unknowns} unknowns for {numbers} numbers, {FEW_NUMBERS}, and no error is given for these: "
        f"use {fewer(smooth)} or more samples."
    )


def fewer(smooth: bool) -> str:
    """What has fewer unknowns; `smooth`: the basis chooses its smoothing itself."""
    return "fewer branches" if smooth else "a smaller df, fewer branches,"


def on_held_out(fit: Fit) -> str | None:
    """What to do where errors on new points are expected to be much larger than on the samples; None elsewhere."""
    held = fit.held_out
    expected = None if held is None else held.worst
    if held is None or expected is None:
        return None
    if fit.output_errors is not None:
        error = largest_of(fit.output_errors)
    else:
        error = 0.0 if fit.jacobian_error is None else 100.0 * float(np.sqrt(fit.jacobian_error))
    if not expected > max(MUCH_LARGER * error, WORTH_A_WORD):
        return None
    inside = expected if held.inside_errors is None else largest_of(held.inside_errors)
    said = f"An error of {expected:.2g} % is expected on new points, where it is {error:.2g} % on the samples:"
    beyond = "new points outside the range seen"
    if inside <= MUCH_LARGER * error:
        return f"{said} {beyond} make it so. Take samples from a wider range, or use the model inside of it alone."
    also = f", and {beyond} add to it" if expected > ADDS * inside else ""
    chosen = fit.asked is not None and fit.asked.rank == "auto"
    smaller = [] if chooses_smoothing(fit.model) else ["a smaller `df`"]
    cures = [*smaller, *([] if chosen else ["fewer branches"]), "more samples"]
    return f"{said} the model follows these too closely{also}. Use {' or '.join(cures)}."


def largest_of(errors: Array) -> float:
    """The largest of errors that are numbers; an output that does not vary has none."""
    return float(np.max(errors, where=np.isfinite(errors), initial=0.0))


def what_may_explain(left_out: bool, few: bool, smooth: bool) -> str:
    """What may help a model that explains little.

    No larger rank where data did not support the one there was, or are too few as it is.
    """
    if left_out or few:
        return "where that is not noise, try more samples or more starts."
    return "where that is not noise, try a larger rank, or more starts." if smooth else LARGER_OR_DF


LARGER_OR_DF = "try a larger rank or df, or more starts."


def on_error_left(left: str, larger: Sequence[str], smooth: bool, compared: bool) -> str:
    """What to do about an error, which the sentence `left` tells; `larger` is what may lower it, if anything.

    `smooth`: the basis chooses its smoothing itself. `compared`: ranks may still be compared on held-out samples.
    """
    if not larger:
        return f"{left} Where the samples are noisy, that may be the noise; where they are exact, take more of them."
    held_out = " (`ub.select` compares ranks on held-out samples)" if compared else ""
    least = "" if smooth else ": `basis=ub.SmoothingSpline()` follows it least"
    return (
        f"{left} Where the samples are exact, try {' or '.join(larger)}{held_out}; where they are noisy, that may be "
        f"the noise{least}."
    )


def with_chosen_rank(note: str) -> str:
    """A note on a fit whose rank was chosen from the data: no other rank is advised in it.

    Examples
    --------
    >>> with_chosen_rank("The model explains little of y: where that is not noise, try a larger rank, or more starts.")
    'The model explains little of y: where that is not noise, try more samples or more starts.'
    """
    for said, instead in (
        ("try a larger rank, or more starts.", "try more samples or more starts."),
        (LARGER_OR_DF, "try a larger df, more samples or more starts."),
        ("use fewer branches or more samples.", "use more samples."),
        ("use a smaller df, fewer branches, or more samples.", "use a smaller df or more samples."),
    ):
        note = note.replace(said, instead)
    return note
