"""What a user should know about a fit beside its status, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from unbraid.data.looking.look import look_at_columns
from unbraid.data.problem import Problem
from unbraid.data.reductions import extremes, inputs
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.results.advice import (
    on_copies,
    on_few_numbers,
    on_left_out,
    on_nothing_left,
    on_shape,
    on_starts,
    what_may_explain,
)
from unbraid.results.carrying import chooses_smoothing, left_out
from unbraid.results.contradictions import describe_contradiction, puts_all_in_doubt
from unbraid.results.fit import StartSummary
from unbraid.results.model import DecoupledModel
from unbraid.results.outcome import Status
from unbraid.results.smoothing import Smoothing
from unbraid.results.wild import MOST_SAMPLES, describe_wild, find_wild, kinds_of
from unbraid.results.worth.held_out import tells_noise
from unbraid.runtime.text import clean_name

UNEXPLAINED = 100.0 * 0.5**0.5
"""An output error, in %, above which a model explains less than half of the output's variance: R² below 0.5."""
CONTRADICTED = 130.0
"""An output error, in %, above which a model that was fitted to Jacobians as well is worse than the output's mean."""
GOOD_SLOPES, BAD_VALUES = 0.02, 20.0
"""An Error(J) below and an output error in % above these do not go together."""
AXES = "the order of the axes of J, J[s, i, k] = ∂f_i/∂x_k at sample s"
"""What to check where Jacobians do not go with values."""


class Shown(NamedTuple):
    """A model and its errors, Error(J) and (n,) output errors in %, and what was chosen from the data.

    `searched`: how many unknowns the search for it had.
    """

    model: DecoupledModel
    jacobian_error: float | None
    output_errors: Array | None
    smoothing: Smoothing | None = None
    constrained: bool = False
    searched: int = 0

    @property
    def superfluous(self) -> list[int]:
        """The branches that carry nothing, because data do not support them."""
        return left_out(self.model, self.smoothing)


def notes_on(
    problem: Problem,
    coefficients: int,
    starts: Sequence[StartSummary],
    status: Status,
    shown: Shown,
) -> tuple[str, ...]:
    """All notes on a fit; `coefficients` is how many unknowns the model has beside its bias, or how many it uses."""
    causes = notes_on_causes(problem, shown.model)
    unknowns = list(notes_on_unknowns(problem, coefficients, shown))
    errors = notes_on_errors(problem, shown, few=bool(unknowns))
    return tuple(
        note
        for notes in (
            causes,
            notes_on_columns(problem),
            notes_on_data(problem, status),
            unknowns,
            [] if causes else errors,
            [] if causes else notes_on_shape(shown),
            notes_on_branches(shown) if shown.superfluous else [] if causes else notes_on_starts(starts, status),
        )
        for note in notes
    )


def blames_samples(note: str) -> bool:
    """Whether a note has the samples themselves in doubt, so that nothing else is to be made of what a model leaves."""
    return puts_all_in_doubt(note) or AXES in note


def notes_on_causes(problem: Problem, model: DecoupledModel) -> list[str]:
    """Notes on what puts all else in doubt: wild samples, and F and J that contradict each other in the others."""
    wild, others, notes = find_wild(problem, model), problem, []
    if wild.samples.size:
        notes.append(describe_wild(problem, wild, name_outputs(problem, kinds_of(problem, wild.columns)[1])))
        others = problem.take(np.delete(np.arange(problem.S), wild.samples)) if problem.in_memory else problem
    contradiction = describe_contradiction(others, model)
    return notes if contradiction is None else [*notes, contradiction]


def notes_on_columns(problem: Problem) -> list[str]:
    """Notes on inputs and outputs that a look at the samples finds odd, where that has an influence on the fit."""
    return [] if is_one_point(problem) else [str(one) for one in look_at_columns(problem) if one.matters]


def is_one_point(problem: Problem) -> bool:
    """Whether all samples are at one point."""
    return not np.ptp(extremes(problem, inputs), axis=0).any()


def notes_on_copies(problem: Problem) -> list[str]:
    """A note where samples are exact copies of others, and on what became of them; in files some are looked at."""
    some = problem if problem.in_memory else problem.thinned(MOST_SAMPLES)
    return [on_copies(some.copies, some.S, merged=problem.in_memory)] if some.copies else []


def notes_on_data(problem: Problem, status: Status) -> Iterator[str]:
    """Notes on what the samples leave open: distinct points, values, constants, Jacobians."""
    if is_one_point(problem):
        yield "All points in X are the same: nothing can be learned from them but a value, or a slope."
    if problem.F is None and status is not Status.UP_TO_CONSTANTS:
        yield (
            "Jacobians alone do not determine constants: values of the model are known up to one constant per output, "
            "which fit.model.through(X, F) sets from values."
        )
    if problem.known.values is not None:
        open_constants = np.flatnonzero(problem.known.values == 0)
        if open_constants.size:
            yield (
                f"No value of {name_outputs(problem, open_constants)} is known: Jacobians leave its "
                "constant open, which fit.model.through(X, F) sets from values."
            )
    if problem.J is None:
        yield (
            "Values alone: the search began with rough Jacobians from neighbouring samples, the fit is to the values. "
            "Jacobians, where they can be had, make it easier and better."
        )


def notes_on_unknowns(problem: Problem, coefficients: int, shown: Shown) -> Iterator[str]:
    """A note where there are too few numbers for as many unknowns, or for the degrees of freedom that are used."""
    numbers = problem.known.entries
    if not tells_noise(numbers, shown.searched):
        yield on_nothing_left(shown.searched, numbers, chooses_smoothing(shown.model))
    elif coefficients > numbers / 2:
        yield on_few_numbers(coefficients, numbers, shown.smoothing is not None, chooses_smoothing(shown.model))


def notes_on_shape(shown: Shown) -> Iterator[str]:
    """A note where a shape was asked for, and much is left unexplained: it may be the shape that the data lack."""
    worst = 0.0 if shown.output_errors is None else float(np.nanmax(shown.output_errors, initial=0.0))
    advice = on_shape(worst) if shown.constrained else None
    if advice is not None:
        yield advice


def notes_on_branches(shown: Shown) -> Iterator[str]:
    """A note where data do not support all branches."""
    yield on_left_out(shown.superfluous, shown.model.rank)


def notes_on_errors(problem: Problem, shown: Shown, few: bool = False) -> Iterator[str]:
    """A note where the errors show that the model does not explain the data; `few`: which are too few as it is."""
    jacobian_error, output_errors = shown.jacobian_error, shown.output_errors
    if output_errors is None or is_one_point(problem):  # whose values differ by noise alone, or not at all
        return
    worst = float(np.nanmax(output_errors, initial=0.0))
    if jacobian_error is not None and jacobian_error < GOOD_SLOPES and worst > BAD_VALUES:
        yield (
            "Jacobians are fitted well and values are not: F and J do not seem to belong together. Check the units "
            f"and {AXES}."
        )
    elif jacobian_error is not None and worst > CONTRADICTED:
        yield (
            "The values are predicted worse than by their mean, so F and J seem to contradict each other: check the "
            f"units and {AXES}."
        )
    elif worst > UNEXPLAINED:
        which = name_outputs(problem, np.flatnonzero(output_errors > UNEXPLAINED))
        helps = what_may_explain(bool(shown.superfluous), few, chooses_smoothing(shown.model))
        yield f"The model explains little of {which}: {helps}"


def name_outputs(problem: Problem, which: IndexArray) -> str:
    """The first few of some outputs, by number, 'output 1, 2', or by their names."""
    names = problem.output_names
    if names is None:
        return f"output {', '.join(str(i + 1) for i in which[:6])}"
    return ", ".join(clean_name(names[i]).strip() or f"output {i + 1}" for i in which[:6])


def notes_on_starts(starts: Sequence[StartSummary], status: Status) -> Iterator[str]:
    """A note where starts did not find the same; none where the search was cut short."""
    advice = None if status in (Status.INTERRUPTED, Status.OUT_OF_TIME) else on_starts(starts)
    if advice is not None:
        yield advice
