"""What a report is about: a model, the samples, and how it came about where that is known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from unbraid.data.magnitudes import Magnitudes
from unbraid.data.problem import Problem
from unbraid.errors import DataError, SettingError, shown
from unbraid.judging.diagnostics import FOLLOWS, BranchShares, Diagnostics, branch_shares, examined, worst_error
from unbraid.judging.glance import Glance, glance_at
from unbraid.judging.importance import needs_of
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.plots.labels import indexed
from unbraid.plots.weights import standardised
from unbraid.results.advice import FEW_NUMBERS
from unbraid.results.alignment import AlignedBranch, lay_truth
from unbraid.results.branch import FunctionBranch
from unbraid.results.carrying import carrying, chooses_smoothing, superfluous
from unbraid.results.fit import Fit, errors_on, given_problem
from unbraid.results.model import DecoupledModel
from unbraid.results.worth.fresh import beyond_training
from unbraid.results.worth.held_out import HeldOut
from unbraid.runtime.text import clean_name

NEGLIGIBLE_WEIGHT = 0.01
"""A share of the largest weight below which a weight is neither named nor drawn."""
MOST_NAMED = 4
"""How many inputs and outputs of a branch are named."""


@dataclass(frozen=True, eq=False)
class Subject:
    """What a report is about: a model and the samples it is held against.

    Attributes
    ----------
    model
        The model; where its fit had Jacobians alone and the samples have values, with constants set from these.
    whole
        The samples, as they were given: their numbers are the user's.
    problem
        The same in memory; of very many, some.
    numbers
        Those that the samples of `problem` have in `whole`.
    fit
        How it came about; None for a model from a file.
    own
        Whether the samples are those of the fit; False where that cannot be known.
    truth
        A known model in the gauge of the found one, or None.
    angles
        Between found and true directions, in degrees, by the number of the found branch, or None.
    jacobian_error, output_errors
        On the samples.
    inputs, outputs
        Names, fit to be shown; x₁, x₂, … and f₁, f₂, … where the samples have none.
    """

    model: DecoupledModel
    whole: Problem
    problem: Problem
    numbers: IndexArray
    fit: Fit | None
    own: bool
    truth: DecoupledModel | None
    angles: dict[int, float] | None
    jacobian_error: float | None
    output_errors: Array | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @classmethod
    def of(cls, about: Fit | DecoupledModel, truth: DecoupledModel | None, problem: Problem | None) -> Subject:
        """Gather what a report is about; the samples are those the fit remembers unless others are given."""
        about, truth, problem = in_ordinary_sizes(about, truth, problem)
        fit = about if isinstance(about, Fit) else None
        model = about.model if isinstance(about, Fit) else about
        if not isinstance(model, DecoupledModel):
            raise SettingError(f"A report is about a Fit or a DecoupledModel, got a {type(model).__name__}.")
        whole = samples_for(about, problem)
        index = whole.thinning()
        samples = whole if index is None else whole.take(index)
        if fit is not None and fit.output_errors is None and samples.F is not None:
            model = model.through(samples.X, samples.F)
        check_truth(model, truth)
        laid = None if truth is None else lay_truth(model, truth)
        remembered = fit is not None and whole is fit.problem
        errors = (fit.jacobian_error, fit.output_errors) if fit and remembered else errors_on(whole, model)
        own = remembered or (fit is not None and same_samples(fit, whole, *errors))
        return cls(
            model,
            whole,
            samples,
            np.arange(whole.S) if index is None else index,
            fit,
            own,
            None if laid is None else in_gauge_of(model, laid),
            None if laid is None else {j: one.angle for j, one in laid.items()},
            *errors,
            shown_names(samples.input_names, "x", samples.m),
            shown_names(samples.output_names, "f", samples.n),
        )

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """What `diagnose` finds: on the samples of the fit, for few others would not determine the model."""
        assert self.fit is not None
        assert self.own
        return examined(self.model, self.problem.counting(), self.fit, self.jacobian_error, self.output_errors)

    @cached_property
    def glance(self) -> Glance | None:
        """What is known of bands and residuals; None where that would take long, or samples are not the fit's."""
        return None if self.fit is None or not self.own else glance_at(self.fit, self.problem, self.numbers)

    @property
    def banded(self) -> bool:
        """Whether branches have bands: where what is left may be noise."""
        return self.glance is not None and self.glance.uncertainty.reliable

    @property
    def held_out(self) -> HeldOut | None:
        """The errors expected on new points; None where they are not known, or samples are not the fit's."""
        return None if self.fit is None or not self.own else self.fit.held_out

    @cached_property
    def both_shares(self) -> BranchShares:
        """The shares of branches in the variance of the outputs, and in the size of the Jacobians."""
        return branch_shares(self.model, self.problem.counting())

    @property
    def shares(self) -> Array:
        """The shares of branches in the variance of the outputs, (r,)."""
        return self.both_shares.values

    @cached_property
    def outside(self) -> int:
        """How many samples lie outside the range of a branch seen in training."""
        return self.whole.sum(how_many_beyond, self.model)

    @property
    def thinned(self) -> bool:
        """Whether the page looks at some of the samples only."""
        return self.problem.S < self.whole.S

    @property
    def worst(self) -> float:
        """The largest error on the samples, in %."""
        return worst_error(self.jacobian_error, self.output_errors)

    @property
    def follows(self) -> bool:
        """Whether the model follows the samples at all: if so, a branch much larger than they are is cancelled."""
        return self.worst < FOLLOWS

    @property
    def few_numbers(self) -> bool:
        """Whether the fit notes that there are too few numbers for its unknowns."""
        return self.fit is not None and any(FEW_NUMBERS in note for note in self.fit.notes)

    @property
    def may_have_more(self) -> bool:
        """Whether more branches may be advised: not where the data chose their number, or are too few as it is."""
        chosen = self.fit is not None and self.fit.asked is not None and self.fit.asked.rank == "auto"
        return not (chosen or self.few_numbers or self.superfluous)

    @property
    def open_constants(self) -> bool:
        """Whether the fit had Jacobians alone, and nothing has set the model's bias since."""
        return self.fit is not None and self.fit.output_errors is None and self.output_errors is None

    @property
    def constants_set(self) -> bool:
        """Whether constants that the fit left open were set from these samples."""
        return self.fit is not None and self.fit.output_errors is None and self.output_errors is not None

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """Which inputs and branches are needed, in sentences; none where that is not known."""
        return () if self.fit is None or not self.own else needs_of(self.fit, self.problem)

    @cached_property
    def weights(self) -> tuple[Array, Array]:
        """W0 (r, m) and W1ᵀ (r, n) in standard deviations of inputs, branches and outputs: what is comparable."""
        return standardised(self.model, self.problem)

    @property
    def rank(self) -> int:
        """How many branches the model has."""
        return self.model.rank

    @cached_property
    def carrying(self) -> IndexArray:
        """The branches, from 0, that the page shows: those that carry something."""
        return carrying(self.model)

    @property
    def superfluous(self) -> list[int]:
        """The branches, from 0, that carry nothing."""
        return superfluous(self.model)

    @property
    def smooth(self) -> bool:
        """Whether the branches chose their smoothing themselves, so that no df is to be advised."""
        return chooses_smoothing(self.model)


def how_many_beyond(block: Problem, model: DecoupledModel) -> int:
    """How many samples of a block lie outside the range of a branch seen in training."""
    return int(np.count_nonzero(beyond_training(model, block.X)))


def same_samples(fit: Fit, samples: Problem, jacobian_error: float | None, output_errors: Array | None) -> bool:
    """Whether samples that were given are the fit's; where either are not in memory, the errors on them tell."""
    known = fit.problem
    if known is not None and known.in_memory and samples.in_memory:
        pairs = [(getattr(known, name), getattr(samples, name)) for name in ("X", "F", "J", "weights")]
        return all(same_or_absent(*pair, 0.0) for pair in pairs)
    pairs = [(fit.jacobian_error, jacobian_error), (fit.output_errors, output_errors)]
    return all(same_or_absent(*pair, 1e-6) for pair in pairs)


def same_or_absent(one: Array | float | None, other: Array | float | None, rtol: float) -> bool:
    """Whether two arrays or numbers are the same, or both are not there."""
    if one is None or other is None:
        return one is None and other is None
    return np.shape(one) == np.shape(other) and bool(np.allclose(one, other, rtol=rtol, atol=0.0, equal_nan=True))


def shown_names(names: tuple[str, ...] | None, letter: str, count: int) -> tuple[str, ...]:
    """The names, fit to be shown, or letters with subscripts."""
    given = names or ("",) * count
    return tuple(clean_name(name).strip() or indexed(letter, i + 1) for i, name in enumerate(given))


def in_ordinary_sizes(
    about: Fit | DecoupledModel, truth: DecoupledModel | None, problem: Problem | None
) -> tuple[Fit | DecoupledModel, DecoupledModel | None, Problem | None]:
    """The same with numbers that can be squared and drawn, where those of the samples are too large or small for it."""
    given = about.problem if isinstance(about, Fit) and problem is None else problem
    if not isinstance(given, Problem) or not isinstance(about, Fit | DecoupledModel):
        return about, truth, problem
    sizes = Magnitudes.of(given)
    if sizes.ordinary:
        return about, truth, problem
    inputs, outputs = -sizes.x, -sizes.f
    truth = truth.rescaled(inputs, outputs) if isinstance(truth, DecoupledModel) else truth
    samples = sizes.problem(given)
    if isinstance(about, DecoupledModel):
        return about.rescaled(inputs, outputs), truth, samples
    note = "Numbers beyond 1e60, or all below 1e-60, cannot be drawn: this page shows them divided by powers of two."
    own = samples if given is about.problem else about.problem
    shown = replace(about.rescaled(inputs, outputs), problem=own, notes=(note, *about.notes))
    return shown, truth, None if given is about.problem else samples


def samples_for(about: Fit | DecoupledModel, problem: Problem | None) -> Problem:
    """The samples given, or those that the fit remembers; refused where they cannot belong to the model."""
    if isinstance(about, Fit):
        return given_problem(about, problem)
    if not isinstance(problem, Problem):
        raise SettingError(f"A report about a model needs samples: pass a ub.Problem, got a {type(problem).__name__}.")
    if (problem.n, problem.m) != (about.n, about.m):
        raise DataError(
            f"The samples must be those of the model's inputs and outputs: {about!r}, got {shown(problem)}."
        )
    return problem


def check_truth(model: DecoupledModel, truth: DecoupledModel | None) -> None:
    """Refuse a true model that cannot be laid under the found one."""
    if truth is None:
        return
    if not isinstance(truth, DecoupledModel):
        raise SettingError(f"truth must be a DecoupledModel, got a {type(truth).__name__}.")
    if truth.m != model.m or truth.rank not in (model.rank, len(carrying(model))):
        raise DataError(f"truth must have as many branches and inputs as the model: {model!r}, got {shown(truth)}.")


def in_gauge_of(model: DecoupledModel, laid: dict[int, AlignedBranch]) -> DecoupledModel:
    """The true branches laid on the found ones, as a model, so that all of a page has one gauge."""
    branches = list(model.branches)
    for j, one in laid.items():
        branches[j] = FunctionBranch(one, one.derivative, f"true branch {one.found + 1}", model.branches[j].domain)
    return model.changed(branches=branches)
