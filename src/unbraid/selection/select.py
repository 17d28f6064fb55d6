"""`select`: which settings predict held-out samples best; and the fit whose rank is to be found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unbraid.bases import Basis
from unbraid.bases.constraints import Constraint
from unbraid.data.checks import counted
from unbraid.data.magnitudes import Magnitudes
from unbraid.data.problem import Problem
from unbraid.fitting.fit_rank import check_fit, samples_that_count
from unbraid.fitting.opening import RunSettings
from unbraid.fitting.request import Request
from unbraid.fitting.robust import screened
from unbraid.fitting.session import Session
from unbraid.kernels.arrays import IndexArray
from unbraid.methods import Method
from unbraid.results.advice import with_chosen_rank
from unbraid.results.fit import Fit
from unbraid.results.outcome import Status
from unbraid.runtime.files import StrPath
from unbraid.runtime.interrupts import attempt
from unbraid.runtime.progress import Callback
from unbraid.selection.answer import Selection
from unbraid.selection.path import Path
from unbraid.selection.question import Grid, Question
from unbraid.selection.rule import simplest
from unbraid.selection.validation import Validation
from unbraid.selection.words import reason
from unbraid.solvers.coupling import Coupling

SELECTING = 0.8
"""The share that is told of a fit, for the selection of its rank."""


def select(
    problem: Problem,
    ranks: Iterable[int] | None = None,
    dfs: Iterable[int] | None = None,
    degrees: Iterable[int] | None = None,
    couplings: Iterable[float | Coupling] | None = None,
    *,
    basis: Basis | None = None,
    constraint: Constraint | Sequence[Constraint | None] | None = None,
    method: Method | None = None,
    folds: int = 5,
    starts: int = 8,
    rng: int | np.random.Generator | None = None,
    jobs: int | None = None,
    client: Any = None,
    callback: Callback | None = None,
    checkpoint: StrPath | None = None,
) -> Selection:
    """Choose the rank, and df, degree and λ if asked to, by how well held-out samples are predicted.

    Parameters
    ----------
    problem
        The samples. Of more than 100,000 so many are looked at, spread evenly, and the reason says so.
    ranks
        Ranks to try. None: 1, 2, … until two in a row bring nothing, held-out samples are predicted exactly, or there
        are half as many unknowns as numbers to fit.
    dfs, degrees, couplings
        Values to try of the basis's df and degree, and of λ. None: those of the basis and the method.
    basis, constraint, method
        As in `decouple`.
    folds
        In how many parts samples are held out, each once.
    starts
        Random starts of each candidate.
    rng
        None, a seed or a NumPy generator. The same seed gives the same result, whatever `jobs` and `client` are.
    jobs
        How many processes of this machine work on it, as in `decouple`.
    client
        A `distributed.Client`, or the address of its scheduler: the fits are made by the workers of that cluster.
    callback
        Called with a `Progress`, whose phase is "select", after every fit. `done` and `total` count fits, as far as
        they can be foreseen; `best` is the least held-out error so far.
    checkpoint
        The path of a file to which finished fits are written, as in `decouple`: killed and called again with the same
        arguments, the selection goes on after the last of them.

    Returns
    -------
    Selection
        A table of candidates, a recommendation and its reason. Ctrl-C ends the search and returns what was found until
        then, if at least one candidate is complete.

    Notes
    -----
    The held-out error of a sample is relative and squared: that of its Jacobian or of its values, each output in units
    of its own size, or the mean of both. Samples beyond the range that a branch has seen in training do not count.

    One candidate is as good as another if its error is at most one standard error above, of the differences fold by
    fold, errors below 1e-8 counting as 1e-8. Ranks are gone through upwards. The best candidate of a rank takes the
    place of the one kept so far if that is not as good, and would not be as good in a finer basis either, with as many
    unknowns. Recommended is what has the fewest unknowns of all that are as good as the one kept at the end.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, truth = ub.datasets.random_system(n=2, m=3, r=2, S=100, rng=0)
    >>> selection = ub.select(problem, rng=0)
    >>> selection.recommended.rank
    2
    >>> selection.reason
    'Rank 2 predicts held-out samples to 0.01 % or better, so no further branch is needed.'
    """
    request = Request(rank="auto", basis=basis, constraint=constraint, method=method, starts=starts)
    question = Question.of(Grid(ranks, dfs, degrees, couplings), request, folds)
    question.check(problem)
    running = RunSettings(rng, jobs, client, callback, checkpoint)
    with running.open(problem, request, question.settings()) as session:
        selection = answer(question, problem, session)
        return replace(selection, reason=" ".join([selection.reason, *session.journal.unwritten()]))


def answer(question: Question, problem: Problem, session: Session) -> Selection:
    """Compare the settings in question on the samples of a problem, or on some of them where they are very many."""
    lost = session.lost()
    thin = Magnitudes.of(problem).problem(problem.thinned())
    samples = samples_that_count(thin, question.request)
    candidates = question.candidates(samples)
    fold = folds_of(samples, question.folds, session.rng)
    seed = int(session.rng.integers(2**62))
    validation = Validation(samples, question.request, fold, seed)
    path = Path(validation, candidates, question.ranks is None, session)
    complete = attempt(path.walk, lambda: False if path.rows else None)
    chosen = simplest(path.rows, path.best)
    why = reason(path.rows, chosen, path.finer, question.ranks is None and complete)
    if thin.S < problem.S:
        why = f"{why} This was found on {thin.S:,} of {problem.S:,} samples."
    why = " ".join([why, *session.told_of_losses(lost)])
    if session.listener.take():  # Ctrl-C since then
        complete = False
    if not complete:
        why = f"Interrupted, so this is of {counted(len(path.rows), 'candidate')} only. {why}"
    return Selection(
        rows=tuple(path.rows),
        recommended=chosen.settings,
        reason=why,
        finer=tuple(path.finer),
        interrupted=not complete,
        problem=problem,
        constraint=question.constraint,
        method=question.method,
    )


def folds_of(problem: Problem, folds: int, rng: np.random.Generator) -> IndexArray:
    """Which of the folds each sample is held out in, (S,): exact copies in the same one."""
    counted_as = np.arange(problem.S) if problem.counted_as is None else problem.counted_as
    distinct, which = np.unique(counted_as, return_inverse=True)
    return (rng.permutation(len(distinct)) % folds)[which]


def fit_best_rank(problem: Problem, request: Request, session: Session) -> Fit:
    """The fit of the rank that a selection recommends; where Ctrl-C ends the selection, the quick fit it had made.

    Where a robust fit was asked for, samples that are plainly wild take no part in the selection.
    """
    half = replace(request, starts=max(1, request.starts // 2))
    samples = screened(problem) if request.loss == "huber" else problem
    selection = replace(answer(Question.of(Grid(), half), samples, session.part(0.0, SELECTING)), problem=problem)
    quick = replace(selection.chosen.fit, status=Status.INTERRUPTED)
    quick = replace(quick, notes=(selection.reason, *map(with_chosen_rank, quick.notes)))
    if selection.interrupted:
        fit = quick
    else:
        best = selection.request(request)
        check_fit(problem, best)
        fit = attempt(lambda: selection.fit_in(session.anew().part(SELECTING, 1.0), best), lambda: quick)
    return replace(fit, asked=request, problem=problem, seconds=session.seconds())
