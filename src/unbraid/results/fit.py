"""The result of a decoupling: a model with how it came about, how its starts ended, and its errors on samples."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from unbraid.data.checks import counted
from unbraid.data.problem import Problem
from unbraid.data.reductions import weighted_sums
from unbraid.errors import DataError, SettingError
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.metrics import percents_of_spread, ratio
from unbraid.results.carrying import left_out
from unbraid.results.model import DecoupledModel
from unbraid.results.outcome import Status, Trace
from unbraid.results.smoothing import Smoothing
from unbraid.results.worth.fresh import FreshError, block_spread, error_on
from unbraid.results.worth.held_out import HeldOut
from unbraid.results.worth.objective import Objective
from unbraid.results.worth.uncertainty import Drawing, Uncertainty
from unbraid.runtime.files import StrPath
from unbraid.runtime.progress import Callback

if TYPE_CHECKING:
    from unbraid.bases import Basis
    from unbraid.bases.constraints import Constraint
    from unbraid.fitting.request import Request

NOISELESS = 0.01
"""A level of noise in % below which what is left is the basis' own error as likely as noise."""
AGREEING = 5.0
"""Degrees within which all directions of a start must meet the best start's to count as the same solution."""


@dataclass(frozen=True, repr=False)
class StartSummary:
    """How one start ended.

    Attributes
    ----------
    objective
        Its best relative objective.
    sweeps
        How many sweeps it made.
    status
        How it ended.
    angle
        The largest angle, in degrees, between its directions (rows of W0) and the best start's, matched; those of
        straight branches, which mean nothing, do not count (`DecoupledModel.canonical`).
    match
        Its factor match score with the best start (`metrics.factor_match`), in the solver's units, of what is more than
        a straight line likewise.
    finished
        False if it was left after the search, because others were better, or enough had agreed.
    """

    objective: float
    sweeps: int
    status: Status
    angle: float
    match: float
    finished: bool = True

    def __repr__(self) -> str:
        ended = f"objective {self.objective:.3g} after {counted(self.sweeps, 'sweep')}"
        cut = self.status in (Status.INTERRUPTED, Status.OUT_OF_TIME)
        how = self.status.name if self.finished or cut else "left after the search"
        return f"StartSummary({ended}, {self.angle:.2g}° from the best, {how})"


@dataclass(frozen=True, repr=False)
class Fit:
    """A decoupled model, and how it came about.

    Attributes
    ----------
    model
        The `DecoupledModel`, in the user's units.
    status
        How the best start ended, or what cut the search short (Ctrl-C, the time limit); its text is advice.
    jacobian_error
        Error(J) of the paper on the samples, or None without Jacobians.
    output_errors
        e_i of the paper on the samples, in %, (n,), or None without values.
    objective
        ‖J - Ĵ‖² + λ ‖F - F̂‖² over ‖J‖², in the solver's units; with values alone ‖F - F̂‖² over ‖F - mean F‖².
    trace
        What happened in the best start, sweep by sweep.
    starts
        How every start ended, best first. With values alone: the first, coarse fit, from which only the best go on.
    seconds
        How long it took.
    method, basis, constraints
        What was used.
    notes
        Anything else worth knowing, in sentences.
    problem
        The samples as they were given, those of weight 0 among them, and with weight 0 those that ``loss="huber"`` left
        out; None where they were dropped, as by
        `without_problem`.
    asked
        The arguments of `decouple`, to repeat the fit; None where it came about in another way.
    smoothing
        What was chosen from the data: degrees of freedom of each branch, λ, what is left for noise. None where nothing
        was open, and where the fit is exact.
    minimised
        What was minimised: λ, in which units, and whether outputs had free constants. None where it is not known.
    held_out
        The errors that are expected on new points, and how many of these lie outside the range that was seen: from
        samples left out one at a time, without fitting again. None where it is not known.
    """

    model: DecoupledModel
    status: Status
    jacobian_error: float | None
    output_errors: Array | None
    objective: float
    trace: Trace
    starts: tuple[StartSummary, ...]
    seconds: float
    method: str
    basis: Basis
    constraints: tuple[Constraint | None, ...]
    notes: tuple[str, ...] = field(default=())
    problem: Problem | None = None
    asked: Request | None = None
    smoothing: Smoothing | None = None
    minimised: Objective | None = None
    held_out: HeldOut | None = None

    def rescaled(self, inputs: IndexArray, outputs: IndexArray) -> Fit:
        """The fit of 2^outputs · f(2^-inputs · x), for powers (m,) and (n,); its samples stay as they are."""
        minimised = None if self.minimised is None else self.minimised.rescaled(inputs, outputs)
        return replace(self, model=self.model.rescaled(inputs, outputs), minimised=minimised)

    def without_problem(self) -> Fit:
        """The fit without its samples, for where they are too large to keep."""
        return replace(self, problem=None)

    def report(self, path: StrPath, truth: DecoupledModel | None = None, problem: Problem | None = None) -> None:
        """Write a page about this fit: one HTML file that needs nothing else, for a browser, a phone or paper.

        Parameters
        ----------
        path
            Where it goes, `report.html`, say. It is written whole or not at all.
        truth
            A known model; its branches are drawn under those that were found.
        problem
            What was fitted, where the fit does not remember it.

        Raises
        ------
        UnbraidError
            Where matplotlib or jinja2 is missing, the file cannot be written, or the samples are not known.
        """
        from unbraid.report import write_report

        write_report(self, path, truth=truth, problem=problem)

    def _repr_html_(self) -> str | None:
        """What a notebook shows; None, so that it shows the text, where matplotlib or jinja2 is missing."""
        from unbraid.report import notebook_view

        return notebook_view(self)

    def uncertainty(
        self,
        method: Literal["linearised", "bootstrap"] = "linearised",
        *,
        problem: Problem | None = None,
        draws: int = 100,
        rng: np.random.Generator | int | None = None,
        jobs: int | None = None,
        callback: Callback | None = None,
    ) -> Uncertainty:
        """How far the fit can be trusted: noise, standard errors, bands of branches, intervals of predictions.

        Parameters
        ----------
        method
            "linearised": from the fit to first order, in a moment. "bootstrap": from fits to data drawn anew around
            this one, each begun at it.
        problem
            What was fitted, where the fit does not remember it.
        draws, rng, jobs, callback
            Of a bootstrap: how many fits, the seed, how many processes, and who is told of the progress.

        Examples
        --------
        >>> import numpy as np, unbraid as ub
        >>> problem, truth = ub.datasets.trig(S=100, rng=0)
        >>> noisy = ub.Problem(problem.X, problem.F + 0.01 * np.random.default_rng(0).standard_normal((100, 2)))
        >>> sure = ub.decouple(noisy, rank=3, rng=0).uncertainty()
        >>> bool((sure.noise < 0.03).all()), sure.values([[0.0, 0.5]]).std.shape, sure.branch(0).std.shape
        (True, (1, 2), (161,))
        """
        from unbraid.judging.uncertainty import uncertainty_of

        return uncertainty_of(self, problem, method, Drawing(draws, rng, jobs, callback))

    def error_on(self, problem: Problem) -> FreshError:
        """The errors of the model on other samples, those outside the range that was seen in training apart.

        Examples
        --------
        >>> import unbraid as ub
        >>> problem, truth = ub.datasets.trig(S=300, rng=0)
        >>> fit = ub.decouple(problem.take(slice(0, 100)), rank=3, rng=0)
        >>> found = fit.error_on(problem.take(slice(100, None)))
        >>> bool(found.inside < found.samples), found.output_errors.shape
        (True, (2,))
        """
        if not isinstance(problem, Problem):
            raise SettingError(f"error_on takes new samples as a ub.Problem(X, F), got a {type(problem).__name__}.")
        return error_on(self.model, given_problem(self, problem))

    def with_formulas(self, threshold: float | None = None, problem: Problem | None = None) -> DecoupledModel:
        """The model with closed forms in place of its curves, all parameters re-optimised together on the samples.

        Which branches have one is what `ub.formulas` finds; the others stay curves.

        Parameters
        ----------
        threshold
            None: forms that describe a branch within its uncertainty. A number: those, too, that are within so many
            percent of the spread of a curve, in the root mean square, and add no more to an error.
        problem
            What was fitted, where the fit does not remember it.

        Examples
        --------
        >>> import unbraid as ub
        >>> problem, truth = ub.datasets.trig(S=100, rng=0)
        >>> model = ub.decouple(problem, rank=3, rng=0).with_formulas()
        >>> bool(abs(model([[5.0, -4.0]]) - truth([[5.0, -4.0]])).max() < 1e-4)  # far outside of the samples
        True
        """
        from unbraid.closed import with_formulas

        return with_formulas(self, threshold, problem)

    @property
    def agreeing(self) -> int:
        """How many finished starts found the best start's directions, itself included: is the solution replicable."""
        return sum(start.finished and start.angle <= AGREEING for start in self.starts)

    @property
    def agreement(self) -> str:
        """How many starts there were, how many of them finished, and how many agree on the directions, in words.

        Starts are compared before branches that data do not support are left out.
        """
        finished, starts = sum(start.finished for start in self.starts), len(self.starts)
        if starts == 1:
            return "1"
        if finished == 0:
            return f"{starts}, none of them finished"
        some = f"{starts}" if finished == starts else f"{starts}, the best {finished} of them finished"
        if finished == 1:
            return some
        every = f"all {self.model.rank} directions, also those left out later"
        which = every if left_out(self.model, self.smoothing) else "the directions"
        return f"{some}: {self.agreeing} {'agrees' if self.agreeing == 1 else 'agree'} on {which}"

    @property
    def value_noise(self) -> Array | None:
        """The level of noise that the fit finds in each output, in % of its spread, (n,); None where that is open."""
        if self.smoothing is None or self.output_errors is None:
            return None
        return self.smoothing.noise(self.output_errors)

    @property
    def slope_noise(self) -> float | None:
        """The level of noise that the fit finds in Jacobians, in % of their size; None where that is open."""
        if self.smoothing is None or self.jacobian_error is None:
            return None
        return 100.0 * float(self.smoothing.noise(np.sqrt(self.jacobian_error)))

    @property
    def noise(self) -> str:
        """What the fit leaves of values and of slopes, in words: noise, or what so many branches cannot follow."""
        if self.smoothing is None:
            return "noise not estimated"
        levels = np.append([] if self.value_noise is None else self.value_noise, self.slope_noise or 0.0)
        if np.nanmax(levels, where=np.isfinite(levels), initial=0.0) < NOISELESS:
            return f"noise below {NOISELESS:g} %"
        found = []
        if self.value_noise is not None:
            several = ", ".join(in_percent(one) if np.isfinite(one) else "–" for one in self.value_noise[:6])
            found.append(f"{several}{', …' if len(self.value_noise) > 6 else ''} % of the spread of values")
        if self.slope_noise is not None:
            found.append(f"{in_percent(self.slope_noise)} % of the size of slopes")
        return f"noise or misfit {' and '.join(found)}"

    def __repr__(self) -> str:
        errors = []
        if self.jacobian_error is not None:
            errors.append(f"Error(J) {self.jacobian_error:.2e}")
        if self.output_errors is not None:
            listed = ", ".join(map(in_percent, self.output_errors[:6]))
            more = ", …" if len(self.output_errors) > 6 else ""
            errors.append(f"output errors {listed}{more} %")
        lines = [
            f"Fit of rank {self.model.rank}: {'; '.join(errors)}",
            *([] if self.held_out is None else [f"  new     {self.held_out.words}"]),
            f"  model   {self.model!r}",
            f"  method  {self.method}, {self.basis!r}",
            *([] if self.smoothing is None else [f"  chosen  {self.smoothing}; {self.noise}"]),
            f"  starts  {self.agreement}",
            f"  status  {self.status.name}: {self.status.advice}",
        ]
        return "\n".join(lines + [f"  note    {note}" for note in self.notes])


def given_problem(fit: Fit, problem: Problem | None = None) -> Problem:
    """The given problem if it can be the fit's, else the one that the fit remembers; a sentence where there is none."""
    problem = fit.problem if problem is None else problem
    if problem is None:
        raise DataError("This fit does not remember its samples: pass the problem that was fitted as `problem`.")
    if not isinstance(problem, Problem):
        raise SettingError(f"problem must be the ub.Problem that was fitted, got a {type(problem).__name__}.")
    if (problem.n, problem.m) != (fit.model.n, fit.model.m):
        raise DataError(f"problem must be the one that was fitted: {fit.model!r} does not belong to {problem!r}.")
    return problem


@np.errstate(over="ignore", invalid="ignore")  # of a model that has lost its way errors are infinite
def errors_on(problem: Problem, model: DecoupledModel) -> tuple[float | None, Array | None]:
    """Error(J) and the output errors of a model on samples, in blocks: no second J is ever built.

    Where the problem has weights or gaps, sums are weighted and over what is known.
    """
    outputs = None if problem.F is None else value_errors(problem, model)
    return None if problem.J is None else ratio(*problem.sum(block_slope_squares, model)), outputs


def block_slope_squares(block: Problem, model: DecoupledModel) -> tuple[float, float]:
    """Weighted sums over a block of the squares of J - Ĵ and of J, of what is known."""
    assert block.J is not None
    rows = np.ones(block.S) if block.weights is None else block.weights
    squares = np.square(block.J - model.jacobian(block.X)), np.square(block.J)
    residual, norm = (float(rows @ np.nansum(square, axis=(1, 2))) for square in squares)
    return residual, norm


def value_errors(problem: Problem, model: DecoupledModel) -> Array:
    """e_i of the paper, (n,), with weights, over the values that are known; NaN for an output without any."""
    count, residual, total = problem.sum(block_value_squares, model)
    center = total / np.maximum(count, np.finfo(float).tiny)
    spread = problem.sum(block_spread, center)
    return np.where(count > 0.0, percents_of_spread(residual, spread, center * np.sqrt(count)), np.nan)


def block_value_squares(block: Problem, model: DecoupledModel) -> tuple[Array, Array, Array]:
    """Weighted sums over a block of 1, of the squares of F - F̂, and of F, of what is known: (n,) each."""
    assert block.F is not None
    count, total = weighted_sums(block.F, block.weights)
    return count, weighted_sums(np.square(block.F - model(block.X)), block.weights)[1], total


def in_percent(share: float) -> str:
    """A number of percents with two digits, and no power of ten where it is large."""
    return f"{share:.2g}" if share < 99.5 else f"{share:.0f}"
