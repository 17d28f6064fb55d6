"""A learning curve, and whether more samples would gain anything: held-out errors of fits to more and more samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log
from typing import NamedTuple

import numpy as np

from unbraid.data.checks import counted
from unbraid.data.problem import Problem
from unbraid.kernels.arrays import Array
from unbraid.metrics import percents_of_spread
from unbraid.results.fit import Fit

FALLING = 0.8
"""With twice as many samples an error that still falls is at most this share of what it was."""
PATIENCE = 2
"""An error has stopped falling where it did not fall for so many times, one after another."""
LEARNT = 50.0
"""An error in % above which a model has learnt little: that it does not fall may only say that samples are too few."""
NO_BETTER = 0.5
"""A model whose error on its own samples is at least this share of that on fresh ones does not want for samples."""
TRUSTED = 32
"""Fresh samples from which on an error is believed: few may be all in easy places."""
EXACT = 1e-3
"""A held-out error in % below which nobody wants more samples, unless asked for."""
LEAST = 1e-12
"""A target in % that is as good as 0."""
FAR = 20
"""Doublings beyond which nobody says how many samples would be enough."""


@dataclass(frozen=True)
class CurvePoint:
    """One point of a learning curve: a fit to some samples, and its errors on fresh ones.

    Attributes
    ----------
    samples
        How many samples the fit knew.
    fresh
        On how many others, which it did not know, it was judged.
    errors
        Its errors on those, in % of each output's standard deviation, (n,).
    fitted
        Its error on its own samples, in %, of the worst output.
    rank
        The rank of the fit.
    """

    samples: int
    fresh: int
    errors: Array
    fitted: float
    rank: int

    @property
    def error(self) -> float:
        """The error of the worst output, in %."""
        return float(np.max(self.errors))


class Ending(NamedTuple):
    """Whether there are enough samples, and why no more are taken."""

    enough: bool
    reason: str


def judge(fit: Fit, problem: Problem, fresh: Problem, outputs: Array) -> CurvePoint:
    """How a fit to a problem does on fresh samples; `outputs` are all values, for their spread."""
    powers = -np.frexp(np.abs(outputs).max(axis=0))[1]  # without which squares of huge or tiny outputs are none
    scaled = np.ldexp(outputs, powers)

    def errors_on(samples: Problem) -> Array:
        assert samples.F is not None
        residual = np.mean(np.square(np.ldexp(samples.F - fit.model(samples.X), powers)), axis=0)
        return percents_of_spread(residual, np.var(scaled, axis=0), np.mean(scaled, axis=0))

    return CurvePoint(problem.S, fresh.S, errors_on(fresh), float(errors_on(problem).max()), fit.model.rank)


def ending_of(curve: Sequence[CurvePoint], target: float | None, left: int) -> Ending | None:
    """Whether a learning curve is at its end, with so many samples left to take; None: it goes on."""
    if not curve:
        return None if left else Ending(False, NOT_JUDGED)
    if curve[-1].fresh < TRUSTED:
        few, samples = counted(curve[-1].fresh, "fresh point"), counted(curve[-1].samples, "sample")
        said = f"only {few} judged the fit to {samples}, and {TRUSTED} are needed. Give a larger budget."
        return None if left else Ending(False, f"The budget is spent. The error is not known yet: {said}")
    error = curve[-1].error
    if target is not None and error <= target:
        return Ending(True, f"The held-out error of {error:.2g} % is within the target of {target:g} %.")
    if target is None and error <= EXACT:
        return Ending(True, f"The held-out error of {error:.2g} % is as good as none.")
    if has_stopped_falling(curve):
        last = curve[-1 - PATIENCE :]
        errors = ", ".join(f"{one.error:.2g}" for one in last)
        sizes = ", ".join(str(one.samples) for one in last)
        return Ending(
            True,
            f"The held-out error has stopped falling: {errors} % with {sizes} samples. More of them will hardly help: "
            "what is left is noise, or wants another rank or basis.",
        )
    return None if left else Ending(False, in_want(curve, target))


def has_stopped_falling(curve: Sequence[CurvePoint]) -> bool:
    """Whether an error has not fallen for some doublings of the samples, although something has been learnt."""
    errors, last = [one.error for one in curve], curve[-1]
    learnt = last.error < LEARNT or last.fitted >= NO_BETTER * last.error
    return len(curve) > PATIENCE and learnt and min(errors[-PATIENCE:]) > FALLING * min(errors[:-PATIENCE])


def in_want(curve: Sequence[CurvePoint], target: float | None) -> str:
    """What to say where no samples are left: how the error falls, and how many would be enough if it went on so."""
    last, before = curve[-1], curve[-2] if len(curve) > 1 else None
    said = f"The budget is spent. The held-out error of {last.error:.2g} % with {counted(last.samples, 'sample')}"
    if before is None:
        return f"{said} is the only one: give a larger budget to see whether it falls."
    share = last.error / before.error
    if share > FALLING:
        less = "hardly less" if share < 1.0 else "no less"
        return (
            f"{said} is {less} than the {before.error:.2g} % with {before.samples}: another doubling would tell more."
        )
    said = f"{said} still falls, from {before.error:.2g} % with {before.samples}: more would help"
    if target is None:
        return f"{said}."
    doublings = log(max(target, LEAST) / last.error) / log(share)
    if doublings > FAR:
        return f"{said}, but the target of {target:g} % is far."
    return (
        f"{said}; about {last.samples * 2 ** ceil(doublings)} would reach the target of {target:g} %, if it goes on so."
    )


NOT_JUDGED = "The budget is spent on the first fit, and no points are left to judge it by: give a larger one."
INTERRUPTED = "Ctrl-C ended it; this is what there was by then."
