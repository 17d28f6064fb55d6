"""Samples of a function in a box, as many as are enough: chosen, fitted as they come, and judged by the next ones.

What calls functions is imported with the first call.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import nan
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint
from unbraid.data.checks import counted, numbers
from unbraid.data.problem import Problem
from unbraid.decouple import decouple
from unbraid.errors import DataError, UnbraidError, as_generator, check_number, check_whole
from unbraid.kernels.arrays import Array
from unbraid.results.fit import Fit
from unbraid.results.outcome import Status
from unbraid.runtime.files import StrPath
from unbraid.runtime.interrupts import attempt
from unbraid.runtime.progress import Callback
from unbraid.selection.learning import INTERRUPTED, CurvePoint, Ending, ending_of, judge

if TYPE_CHECKING:
    from unbraid.data.functions import Derivatives, Failures, Function

Box = npt.ArrayLike | Mapping[str, Sequence[float]]
Step = tuple[Problem, Fit, CurvePoint]
"""All samples, a fit to them, and how the fit before was judged by the latest."""
CUT_SHORT = "It ended early, and this is what there was by then."
LEAST_FIRST = 4
"""Points that a first fit has at least."""


@dataclass(frozen=True, repr=False, eq=False)
class Sampling:
    """What `sample` found.

    Attributes
    ----------
    fit
        The fit to all samples.
    problem
        All samples.
    curve
        The learning curve: for each number of samples the held-out error of a fit to them.
    enough
        Whether more samples would gain nothing.
    reason
        Why it ended, in words.
    notes
        What else there is to say, in words: of points at which f failed, which are left out, and of a full disk.
    """

    fit: Fit
    problem: Problem
    curve: tuple[CurvePoint, ...]
    enough: bool
    reason: str
    notes: tuple[str, ...] = ()

    @property
    def error(self) -> float:
        """The last held-out error in %, of the worst output; `fit` has had more samples since. NaN: there is none."""
        return self.curve[-1].error if self.curve else nan

    def __repr__(self) -> str:
        answer = "enough" if self.enough else "perhaps not enough"
        lines = [f"Sampling of {counted(self.problem.S, 'point')}: {answer}"]
        if self.curve:
            lines.append(f"{'samples':>9}  {'error on them':>14}  {'held-out error':>14}  {'rank':>4}")
        for one in self.curve:
            lines.append(f"{one.samples:>9}  {one.fitted:>12.3g} %  {one.error:>12.3g} %  {one.rank:>4}")
        return "\n".join([*lines, self.reason, *self.notes])


def sample(
    f: Function,
    box: Box,
    rank: int | Literal["auto"] = "auto",
    *,
    derivatives: Derivatives | None = "forward",
    step: float | None = None,
    budget: int = 512,
    target: float | None = None,
    first: int = 16,
    basis: Basis | None = None,
    constraint: Constraint | Sequence[Constraint | None] | None = None,
    starts: int = 16,
    rng: int | np.random.Generator | None = None,
    jobs: int = 1,
    cache: StrPath | None = None,
    callback: Callback | None = None,
    timeout: float | None = None,
) -> Sampling:
    """Choose points of a box, decouple f as its values come, and stop when more of them would gain nothing.

    Points are those of a scrambled Sobol sequence, and their number is doubled time after time. The new ones first
    judge the fit to those before, which does not know them: these held-out errors are the learning curve. It ends when
    the error is as small as asked for, or has stopped falling, or when the budget is spent.

    Parameters
    ----------
    f
        As for `Problem.from_function`: of a point (m,), or of a batch (S, m).
    box
        (m, 2), the lowest and the highest value of each input; or a dictionary of such pairs by the names of inputs.
    rank
        As for `decouple`; with "auto" it may grow with the samples.
    derivatives, step
        As for `Problem.from_function`. A point takes m + 1 calls with "forward", 2m + 1 with "central", one with None.
    budget
        How many points there may be.
    target
        A held-out error in %, of the worst output, that is good enough. None: as small as it gets.
    first
        How many points there are at first; rounded up to a power of two.
    basis, constraint, starts
        As for `decouple`.
    rng
        None, a seed or a NumPy generator: of the points, and of the fits. The same seed gives the same result.
    jobs, cache
        As for `Problem.from_function`: calls at the same time, and a file that keeps them. With a cache give a seed, so
        that the points are the same when it is called again.
    callback
        Called with a `Progress` while f is called, and while fits are made.
    timeout
        As for `Problem.from_function`: seconds that a call may take.

    Returns
    -------
    Sampling
        The fit to all samples, the samples, the learning curve, whether they are enough, and why. Points at which f
        fails are left out, and a note tells of them. Once there is a fit, Ctrl-C, or an error in calls or in a further
        fit, ends it with what there is by then.

    Examples
    --------
    >>> import numpy as np, unbraid as ub
    >>> box = {"speed": (0, 1), "load": (-1, 1)}
    >>> found = ub.sample(lambda x: np.tanh(x[0] + 2 * x[1]), box, rank=1, target=1.0, starts=4, rng=0)
    >>> found.enough, found.problem.input_names
    (True, ('speed', 'load'))
    """
    from unbraid.data.functions import SamplingSettings, calling, check_function, notes_on_calls, sample_function

    check_function("f", f)
    low, high, names = bounds_of(box)
    check_whole("first", first, 1)
    check_whole("budget", budget, 2)
    if target is not None:
        check_number("target", target, 0.0)
    settings = SamplingSettings(None, derivatives, step, None, jobs, callback, None, timeout)
    unknowns = len(low) + 2
    if derivatives is None and budget < unknowns:
        raise DataError(
            f"budget={budget} values are fewer than the {unknowns} unknowns of even one branch of {len(low)} inputs (a "
            "weight each, an output's weight and its constant): give derivatives, or a budget of more points."
        )
    generator = as_generator(rng)
    next_points = sobol_points(low, high, generator)
    seed = int(generator.integers(2**32))

    def fit_to(problem: Problem) -> Fit:
        return decouple(problem, rank, basis=basis, constraint=constraint, starts=starts, rng=seed, callback=callback)

    with calling(f, settings, cache, len(low)) as (called, asked, kept):

        def take(count: int, before: int) -> tuple[Problem, Failures]:
            found = sample_function(called, next_points(count), replace(asked, before=before), kept)
            return Problem(found.X, found.F, found.J, input_names=names), found.failures

        course = Course(take, fit_to, budget, target)
        found = course.run(max(LEAST_FIRST, 1 << (int(first) - 1).bit_length()))
    return replace(found, notes=notes_on_calls(course.failures, course.taken, kept))


@dataclass
class Course:
    """How samples are taken, fitted and judged: `take` gives those at so many points after so many, `fit_to` a fit.

    `taken` is how many points there were, and `failures` has those of them that are no samples, because f failed there.
    """

    take: Callable[[int, int], tuple[Problem, Failures]]
    fit_to: Callable[[Problem], Fit]
    budget: int
    target: float | None
    taken: int = 0
    failures: Failures = field(default_factory=dict)

    def run(self, first: int) -> Sampling:
        """Double the samples, from so many at first, until there are enough, or as many as there may be."""
        problem, curve = self.samples(first), list[CurvePoint]()
        fit = self.fit_to(problem)
        while True:
            left = self.budget - self.taken
            ending = Ending(False, INTERRUPTED) if was_interrupted(fit) else ending_of(curve, self.target, left)
            if ending is not None:
                return Sampling(fit, problem, tuple(curve), *ending)
            try:
                found = attempt(partial(self.further, problem, fit), list[Step], safe=True)
            except UnbraidError as error:
                return Sampling(fit, problem, tuple(curve), False, f"{CUT_SHORT} {error}")
            if not found:  # Ctrl-C, while f was called
                return Sampling(fit, problem, tuple(curve), False, INTERRUPTED)
            [(problem, fit, point)] = found
            curve.append(point)

    def samples(self, count: int) -> Problem:
        """Those at so many new points, or at as many as there may still be."""
        count = min(count, self.budget - self.taken)
        problem, failures = self.take(count, self.taken)
        self.failures |= {self.taken + row: said for row, said in failures.items()}
        self.taken += count
        return problem

    def further(self, problem: Problem, fit: Fit) -> list[Step]:
        """As many points once more, which judge the fit: all samples, a fit to them, and the point of the curve."""
        fresh = self.samples(self.taken)
        both = joined(problem, fresh)
        assert both.F is not None
        point = judge(fit, problem, fresh, both.F)
        return [(both, self.fit_to(both), point)]


def was_interrupted(fit: Fit) -> bool:
    """Whether Ctrl-C has ended the search of a fit."""
    return fit.status is Status.INTERRUPTED


def joined(some: Problem, others: Problem) -> Problem:
    """The samples of two problems of the same function."""
    pairs: dict[str, Any] = {name: (getattr(some, name), getattr(others, name)) for name in ("X", "F", "J")}
    arrays: dict[str, Any] = {name: np.concatenate(pair) for name, pair in pairs.items() if pair[0] is not None}
    return Problem(**arrays, input_names=some.input_names)


def sobol_points(low: Array, high: Array, rng: np.random.Generator) -> Callable[[int], Array]:
    """What gives the next so many points of a scrambled Sobol sequence in a box."""
    from scipy.stats import qmc

    if len(low) > qmc.Sobol.MAXDIM:
        raise DataError(
            f"box has {len(low)} inputs, and points can be chosen for {qmc.Sobol.MAXDIM} at most: choose them "
            "yourself, and use Problem.from_function and decouple."
        )
    sequence = qmc.Sobol(len(low), scramble=True, rng=rng)

    def next_points(count: int) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a budget may be no power of two
            return np.asarray(low + (high - low) * sequence.random(count))

    return next_points


def bounds_of(box: Box) -> tuple[Array, Array, tuple[str, ...] | None]:
    """The lowest and the highest value of each input, (m,), and the names of inputs, where they have any."""
    names = tuple(map(str, box)) if isinstance(box, Mapping) else None
    try:
        bounds = numbers("box", list(box.values()) if isinstance(box, Mapping) else box)
    except DataError as error:
        raise DataError(f"box must be (m, 2), the lowest and the highest value of each input. {error}") from error
    if bounds.ndim != 2 or bounds.shape[1] != 2 or not len(bounds):
        hint = " Its axes look swapped." if bounds.ndim == 2 and len(bounds) == 2 else ""
        raise DataError(
            f"box must be (m, 2), the lowest and the highest value of each input, got shape {bounds.shape}.{hint}"
        )
    low, high = bounds.T
    bad = np.flatnonzero(~(np.isfinite(bounds).all(axis=1) & (low < high)))
    if bad.size:
        name = repr(names[bad[0]]) if names else str(bad[0])
        raise DataError(
            f"box must have a lowest value below the highest, both finite: that of input {name} goes from "
            f"{low[bad[0]]:g} to {high[bad[0]]:g}."
        )
    return low, high, names
