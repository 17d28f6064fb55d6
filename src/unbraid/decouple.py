"""The front door."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, Literal

import numpy as np

from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint, NonNegative, per_branch
from unbraid.bases.projection import Projection
from unbraid.data.problem import Problem
from unbraid.data.streamed import sample_set
from unbraid.data.units import Units
from unbraid.errors import DataError, SettingError, check_whole
from unbraid.fitting.checkpoint import journal_at
from unbraid.fitting.compression import sizes_kept
from unbraid.fitting.fit_rank import Work
from unbraid.fitting.levels import SEARCH_SAMPLES, Levels
from unbraid.fitting.memory_plan import Sizes, as_bytes, plan
from unbraid.methods import Method, default
from unbraid.methods.base import Polish
from unbraid.metrics import direction_angles, factor_match
from unbraid.results.asked import Asked
from unbraid.results.fit import Fit, StartSummary, errors_on
from unbraid.results.model import DecoupledModel
from unbraid.results.notes import notes_on
from unbraid.results.outcome import Status
from unbraid.runtime.files import StrPath
from unbraid.runtime.journal import Journal
from unbraid.runtime.process import single_blas_thread
from unbraid.runtime.progress import Callback
from unbraid.runtime.workers import on_cluster
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Run
from unbraid.solvers.translate import GivenModel, finished, solved_for


def decouple(
    problem: Problem,
    rank: int | Literal["auto"],
    *,
    basis: Basis | None = None,
    constraint: Constraint | Sequence[Constraint | None] | None = None,
    method: Method | None = None,
    polish: bool | None = None,
    starts: int = 16,
    init: DecoupledModel | None = None,
    rng: int | np.random.Generator | None = None,
    client: Any = None,
    callback: Callback | None = None,
    compress: bool | None = None,
    max_memory: int | float | str | None = None,
    checkpoint: StrPath | Journal | None = None,
) -> Fit:
    """Find f(x) ≈ W1 g(W0 x) + bias with `rank` univariate branches g.

    Parameters
    ----------
    problem
        The samples.
    rank
        r, how many branches. "auto": as many as `select` recommends with the same settings and half the starts; its
        reason is the first of the fit's notes.
    basis
        What the branches are made of; the method's own if None.
    constraint
        One for all branches, or a sequence with one (or None) per branch.
    method
        From `unbraid.methods`; the default solver if None.
    polish
        Whether Gauss–Newton steps follow the method's sweeps. None: yes for the default solver, no for the
        methods of papers.
    starts
        How many random starts; the best one counts.
    init
        A model to start from, instead of random starts.
    rng
        None, a seed or a NumPy generator. The same seed gives the same result.
    client
        A `distributed.Client`, or the address of its scheduler. Starts are spread over the workers of that cluster,
        with the same result. Samples in Dask arrays are held by the workers, and only sums over them travel.
    callback
        Called with a `Progress` after each sweep; with a client, as starts come back.
    compress
        Whether Jacobians are first reduced to their leading directions, twice as many as branches, which makes the
        fit of a function with many inputs or outputs much faster; a note says what that leaves out. None: where it
        makes them at least four times smaller.
    max_memory
        Bytes, or text such as "2 GB", that the fit may take beside the given arrays. It estimates what it needs before
        it starts, and refuses with advice where that is more. None: what the machine has available.
    checkpoint
        The path of a file to which the work is written every few seconds. Killed at any moment and called again with
        the same arguments, `decouple` goes on from there and ends at the same result, to the last bit on the same
        machine; called again when it is done, it returns the same fit at once. Time spent before a break counts. The
        file belongs to one fit, and another is refused; samples are not in it.

    Returns
    -------
    Fit
        The model and how it came about. Ctrl-C ends the search and returns the best so far; with a checkpoint the
        next call goes on with the search.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, truth = ub.datasets.trig(S=100, rng=1)
    >>> fit = ub.decouple(problem, rank=3, basis=ub.BSpline(df=20), rng=0)
    >>> bool(fit.output_errors.max() < 1.0)
    True
    """
    began = time.perf_counter()
    seed = int(rng) if isinstance(rng, Integral) else None
    asked = Asked(rank, basis, constraint, method, polish, starts, init is not None, seed)
    method = as_method(method, polish)
    compress = as_compress(compress, method, init)
    basis = method.basis if basis is None else basis
    settings = {"rank": rank, "basis": basis, "constraint": constraint, "method": method, "starts": starts}
    further = {"init": init, "compress": compress, "cluster": client is not None}
    open_journal = partial(journal_at, checkpoint, problem, rng, **settings, **further)
    if isinstance(rank, str):
        with open_journal() as journal:
            generator = journal.generator(rng)
            how = (generator, client, callback, journal, max_memory)
            fit = at_best_rank(problem, rank, basis, constraint, method, starts, init, *how)
        return replace(fit, asked=asked, problem=problem)
    constraints = check_settings(problem, rank, basis, constraint, starts, init, method)
    planned = plan(sizes_of(problem, rank, basis, starts, method, compress))
    planned.check(as_bytes(max_memory))
    given = problem
    with single_blas_thread(), on_cluster(client) as workers, open_journal() as journal:
        problem = problem.on(None if workers is None else workers.client).counting()
        units = Units.balanced(problem) if method.scaled else Units.as_given(problem)
        samples, projection = sample_set(problem, units), Projection.onto(solved_for(constraints, method.offset))
        search_basis = basis if method.polish is None else basis.untuned()
        coupling = method.coupling.final if problem.J is not None else 1.0
        solver = GaussNewton(samples, search_basis, projection, coupling, method.offset, method.evenness)
        began, generator = journal.began(began), journal.generator(rng)
        levels = Levels.of(problem, samples, units, rank, method.polish is not None, compress)
        work = Work(method, rank, basis, began, callback, journal, workers)
        start = None if init is None else GivenModel.of(init, units)
        found = work.searched(replace(solver, samples=levels.searched), starts, generator, start)
        best = work.finished(solver, levels, found)
        runs = [replace(run, best=levels.at_top(run.best)) for run in found.starts]
        fit = as_fit(problem, rank, method, basis, constraints, units, best, runs, found.cut, began)
        seconds, notes = journal.unit(lambda: fit.seconds), (*levels.told, *fit.notes)
        return replace(fit, asked=asked, problem=given, seconds=seconds, notes=notes)  # sample numbers are the user's


def at_best_rank(
    problem: Problem,
    rank: str,
    basis: Basis,
    constraint: Constraint | Sequence[Constraint | None] | None,
    method: Method,
    starts: int,
    init: DecoupledModel | None,
    rng: np.random.Generator,
    client: Any,
    callback: Callback | None,
    journal: Journal,
    max_memory: int | float | str | None,
) -> Fit:
    """The fit of the rank that `select` recommends; where Ctrl-C ends the selection, the quick fit it had made."""
    from unbraid.selection import select  # which decouples

    began = journal.began(time.perf_counter())
    if rank != "auto":
        raise SettingError(f"rank must be {RANKS}, got {rank!r}.")
    check_whole("starts", starts, 1)
    if init is not None:
        raise SettingError('init has a rank of its own: give that rank instead of rank="auto", or leave out init.')
    half = max(1, starts // 2)
    if isinstance(problem, Problem) and isinstance(basis, Basis):  # else refused below, with advice
        plan(sizes_of(problem, 1, basis, half, method, None)).check(as_bytes(max_memory))
    selection = select(
        problem,
        basis=basis,
        constraint=constraint,
        method=method,
        starts=half,
        rng=rng,
        client=client,
        callback=callback,
        checkpoint=journal,
    )
    if selection.interrupted:
        fit = replace(selection.chosen.fit, status=Status.INTERRUPTED)
        fit = replace(fit, notes=(selection.reason, *fit.notes))
    else:
        how = {"client": client, "callback": callback, "checkpoint": journal, "max_memory": max_memory}
        fit = selection.fit(starts=starts, rng=rng, **how)
    return replace(fit, seconds=journal.unit(lambda: time.perf_counter() - began))


RANKS = 'a whole number of at least 1, or "auto" to have it chosen'
"""What is accepted."""


def as_fit(
    problem: Problem,
    rank: int,
    method: Method,
    basis: Basis,
    constraints: tuple[Constraint | None, ...],
    units: Units,
    best: Run,
    runs: Sequence[Run],
    cut: Status | None,
    began: float,
) -> Fit:
    """The result of runs on one problem: the best of them, as it ended, as a model, and how all came about."""
    model = finished(problem, units, basis, best, constraints, method.offset)
    jacobian_error, output_errors = errors_on(problem, model)
    summaries = tuple(summary(run, runs[0], units) for run in runs)
    status = ending(problem, best.status if cut is None else cut)
    return Fit(
        model=model,
        status=status,
        jacobian_error=jacobian_error,
        output_errors=output_errors,
        objective=best.objective,
        trace=best.trace,
        starts=summaries,
        seconds=time.perf_counter() - began,
        method=method.name,
        basis=basis,
        constraints=constraints,
        notes=notes_on(problem, unknowns(problem, rank, basis), summaries, status, jacobian_error, output_errors),
        problem=problem,
    )


def unknowns(problem: Problem, rank: int, basis: Basis) -> int:
    """How many numbers a model has, beside its bias and what scaling leaves open."""
    return rank * (problem.n + problem.m - 1 + basis.size - 1)


def ending(problem: Problem, status: Status) -> Status:
    """How the fit ended, as a user has to know it: without values nothing converges but up to constants."""
    return Status.UP_TO_CONSTANTS if problem.F is None and status.converged else status


def as_method(method: Method | None, polish: bool | None) -> Method:
    """The method, or the default one, polished or not; anything else is refused."""
    if method is None:
        return default(polish=polish is not False)
    if not isinstance(method, Method):
        given = f"the function {method.__name__}: call it" if callable(method) else repr(method)
        raise SettingError(f"method must come from ub.methods, such as ub.methods.default(), got {given}.")
    return replace(method, polish=Polish()) if polish else method


def sizes_of(problem: Problem, rank: int, basis: Basis, starts: int, method: Method, compress: bool | None) -> Sizes:
    """What decides about the memory of a fit."""
    small = None
    if compress is not False and problem.J is not None and problem.complete:
        small = sizes_kept(problem.n, problem.m, problem.S, rank, compress is True)
    lengths = getattr(problem.home, "lengths", (0,))
    return Sizes(
        S=problem.S,
        n=problem.n,
        m=problem.m,
        rank=rank,
        size=basis.size,
        values=problem.F is not None,
        jacobians=problem.J is not None,
        kind="memory" if problem.in_memory else "memory map" if problem.home is None else "Dask",
        block=max(lengths),
        starts=starts,
        sweeps=method.sweeps,
        polished=0 if method.polish is None else method.polish.at_once,
        subsample=SEARCH_SAMPLES if method.polish is not None else None,
        compressed=None if small is None else (small[0][1], small[1][1]),
    )


def as_compress(compress: bool | None, method: Method, init: DecoupledModel | None) -> bool | None:
    """Whether to compress: not where the method or a given model does not go with it."""
    if compress is not None and not isinstance(compress, bool):
        raise SettingError(f"compress must be True, False or None, to compress where it pays, got {compress!r}.")
    if method.compressible and init is None:
        return compress
    if compress:
        cause = (
            "init is a model of all inputs and outputs" if method.compressible else f"{method.name} weighs entries of J"
        )
        raise SettingError(f"compress=True is not possible here, because {cause}: leave out compress.")
    return False


def check_settings(
    problem: Problem,
    rank: int,
    basis: Basis,
    constraint: Constraint | Sequence[Constraint | None] | None,
    starts: int,
    init: DecoupledModel | None,
    method: Method,
) -> tuple[Constraint | None, ...]:
    """Refuse what cannot work, with advice; the constraints, one per branch."""
    if not isinstance(problem, Problem):
        raise SettingError(f"problem must be an unbraid.Problem, got {type(problem).__name__}: use Problem(X, F, J).")
    if isinstance(rank, bool) or not isinstance(rank, Integral) or rank < 1:
        raise SettingError(f"rank must be {RANKS}, got {rank!r}.")
    check_whole("starts", starts, 1)
    if not isinstance(basis, Basis):
        given = f"the class {basis.__name__}: add parentheses" if isinstance(basis, type) else repr(basis)
        raise SettingError(f"basis must be a basis such as ub.BSpline(df=12), got {given}.")
    constraints = per_branch(constraint, rank, basis)
    if problem.J is None and method.polish is None:
        raise DataError(
            "This problem has values F only, and the sweeps of this method work on Jacobians: give J (S, n, m) as "
            "well, or let Problem.from_function(f, X) compute it, or fit the values with polish=True."
        )
    if method.polish is None and not (problem.complete and (problem.weights is None or method.weighted)):
        lacking = "gaps" if not problem.complete else "weights"
        raise DataError(
            f"This problem has {lacking}, which the sweeps of {method.name} do not know: add polish=True, whose "
            "Gauss–Newton steps do, or leave out the method."
        )
    if basis.size > problem.S:
        layout = " If X has its samples last, use Problem.from_paper_layout." if problem.m > problem.S else ""
        raise DataError(
            f"{problem.S} samples are too few for {basis!r}, which has {basis.size} coefficients per branch: "
            f"lower its size, or give at least {basis.size} samples.{layout}"
        )
    if problem.F is None and any(isinstance(one, NonNegative) for one in constraints):
        raise SettingError(
            "NonNegative needs values F: Jacobians alone leave the branches' constants open, "
            "so any branch can be made nonnegative by adding one."
        )
    if init is not None and not isinstance(init, DecoupledModel):
        raise SettingError(f"init must be a DecoupledModel, such as fit.model, got a {type(init).__name__}.")
    if init is not None and (init.rank, init.m, init.n) != (rank, problem.m, problem.n):
        raise SettingError(f"init must have rank {rank}, {problem.m} inputs and {problem.n} outputs, got {init!r}.")
    return constraints


def summary(run: Run, best: Run, units: Units) -> StartSummary:
    """How a start ended, beside the best one."""
    angle = float(direction_angles(best.best.W0[0] / units.x_scale, run.best.W0[0] / units.x_scale).max())
    match = factor_match(best.best.W0[0], best.best.W1[0], run.best.W0[0], run.best.W1[0])
    cut = run.status in (Status.INTERRUPTED, Status.OUT_OF_TIME)
    return StartSummary(run.objective, run.trace.sweeps, run.status, angle, match, run.finished and not cut)
