"""The fit whose rank is to be found, where smoothing is open: as many branches as the data support.

Smoothing that counts the freedom of all unknowns makes fits of different ranks comparable by their score
(`results.smoothing`), without holding samples out: one fit a rank, from one branch upwards, until further ones bring
nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from unbraid.data.problem import Problem
from unbraid.fitting.fit_rank import check_fit, fit_rank, fit_unless_interrupted
from unbraid.fitting.request import Request
from unbraid.fitting.robust import fit_with_loss, screened
from unbraid.fitting.session import CUTS, Session, session_elsewhere
from unbraid.results.advice import with_chosen_rank
from unbraid.results.contradictions import with_contradiction_first
from unbraid.results.fit import Fit
from unbraid.results.outcome import Status
from unbraid.runtime.helpers import Helpers
from unbraid.runtime.interrupts import attempt, passing_interrupts_on
from unbraid.runtime.process import single_blas_thread
from unbraid.runtime.workers import Shared
from unbraid.selection.rule import EXACT

MOST_RANKS = 20
"""The largest rank that is tried."""
IN_VAIN = 2
"""So many ranks in a row that bring nothing end the search."""
WORTH = 0.01
"""By how much a branch has to lower the score, the logarithm of a variance, to be worth having."""
AGREEING = 2
"""Starts that found the directions of the best fit of the path, from which on they are not searched for again."""
PATH_SHARE, SLOWER = 0.9, 0.7
"""The share of a fit that is told for the path of ranks; of what is left of it, each rank leaves this much."""
LEFT = 0.2
"""Share of the numbers that have to be left over by the freedom of a fit that is called exact."""


@dataclass
class Ladder:
    """The path of ranks: the best fit, how many in a row brought nothing, how many there were, and whether it ends."""

    best: Fit | None = None
    in_vain: int = 0
    rank: int = 0
    over: bool = False

    def climb(self, fit: Fit) -> bool:
        """One branch more; whether it goes on."""
        self.rank += 1
        if fit.status in CUTS:
            self.best = fit if self.best is None else replace(self.best, status=fit.status)
        elif self.best is None or score_of(fit) < score_of(self.best) - WORTH:
            self.best, self.in_vain = fit, 0
        else:
            self.in_vain += 1
        self.over = fit.status in CUTS or self.in_vain == IN_VAIN or score_of(fit) == -np.inf
        return not self.over


def fit_supported_rank(problem: Problem, request: Request, session: Session) -> Fit:
    """The fit of the rank that the data support; Ctrl-C leaves the best until then."""
    quick = replace(request, starts=max(1, request.starts // 2), loss="squared")
    seen = screened(problem) if request.loss == "huber" else problem
    rngs = session.rng.spawn(most_branches(problem))
    spread = isinstance(session.workers, Helpers) and problem.in_memory
    ladder = (climb_with_helpers if spread else climb)(seen, quick, rngs, session)
    best, rank = ladder.best, ladder.rank
    assert best is not None
    found = best.status.converged and best.agreeing >= AGREEING and request.loss == "squared"
    branches = supported_rank(best) if found else 0
    while best.status not in CUTS and branches != max(supported_rank(best), 1):  # a better search may support fewer
        branches = max(supported_rank(best), 1)
        final = replace(request, rank=branches)
        check_fit(problem, final)
        last = session.anew().part(PATH_SHARE, 1.0)
        best = fit_unless_interrupted(partial(fit_with_loss, problem, final, last), best)
    why = reason_for(best, rank, rank == most_branches(problem))
    notes = with_contradiction_first((why, *map(with_chosen_rank, best.notes)))
    weighted = best.problem if request.loss == "huber" else problem  # by the weights that samples got
    return replace(best, notes=notes, problem=weighted, asked=request, seconds=session.seconds())


def climb(problem: Problem, request: Request, rngs: Sequence[np.random.Generator], session: Session) -> Ladder:
    """Rank after rank, each with a generator of its own."""
    ladder = Ladder()
    for rank, rng in enumerate(rngs, 1):
        own = replace(session.anew(), rng=rng).part(*share_of_rank(rank), rank)
        fit = fit_unless_interrupted(
            partial(fit_rank, problem, replace(request, rank=rank), own, fewer=False), ladder.best
        )
        if not ladder.climb(fit):
            break
    return ladder


def climb_with_helpers(
    problem: Problem, request: Request, rngs: Sequence[np.random.Generator], session: Session
) -> Ladder:
    """The same, several ranks at a time: those that turn out not to be needed are laid down."""

    def climbed(fits: dict[int, Fit]) -> Ladder:
        ladder = Ladder()
        for k in range(len(rngs)):
            if ladder.over or k not in fits:
                break
            ladder.climb(fits[k])
        return ladder

    def enough(fits: dict[int, Fit]) -> bool:
        return climbed(fits).over

    pieces = [(replace(request, rank=rank), rng) for rank, rng in enumerate(rngs, 1)]
    share = partial(session.map_until_interrupted, fit_elsewhere, pieces, Shared(problem), enough=enough)
    ladder = climbed(session.journal.unit(partial(attempt, share, dict[int, Fit], safe=True)))
    if ladder.best is None:
        raise KeyboardInterrupt  # it came before the first rank had found anything
    if not ladder.over and ladder.rank < len(rngs):
        ladder.best = replace(ladder.best, status=Status.INTERRUPTED)
    return ladder


def fit_elsewhere(problem: Problem, request: Request, rng: np.random.Generator) -> Fit:
    """One rank of the path wherever there is a worker, which may be this process: both see a copy of the generator.

    The first rank, which is always fitted by this process, is kept as far as it has come by Ctrl-C.
    """
    rank = request.rank_used
    with single_blas_thread(), passing_interrupts_on(rank > 1):
        session = replace(session_elsewhere(time.time()), rng=deepcopy(rng)).part(*share_of_rank(rank), rank)
        return fit_rank(problem, request, session, fewer=False)


def share_of_rank(rank: int) -> tuple[float, float]:
    """From where to where a rank of the path takes the share that is told: nobody knows how many there will be."""
    low, high = (PATH_SHARE * (1.0 - SLOWER**passed) for passed in (rank - 1, rank))
    return low, high


def supported_rank(fit: Fit) -> int:
    """How many branches of a fit the data support: all of them where nothing was chosen."""
    return fit.model.rank if fit.smoothing is None else fit.smoothing.supported


def reason_for(fit: Fit, tried: int, all_tried: bool) -> str:
    """Why the rank of a fit is what it is, after so many were tried, or all that so many samples allow."""
    rank = supported_rank(fit)
    if fit.status in CUTS:
        how = "Interrupted" if fit.status is Status.INTERRUPTED else "Out of time"
        return f"{how} while rank {tried} was tried: rank {rank} is the best until then."
    several = f"ranks 1 to {tried} were fitted" if tried > 1 else "rank 1 was fitted"
    followed = all_tried and fit.held_out is None  # by a search with about as many unknowns as there are numbers
    if score_of(fit) == -np.inf and not followed:
        return f"Rank {rank} fits the samples to 0.01 % or better, so no further branch is needed."
    if score_of(fit) == np.inf or followed:
        return f"Rank {rank}: {several}, and so few samples do not tell whether more branches are needed."
    nothing = "with so few samples no more are tried" if all_tried else "more branches bring nothing"
    return f"Rank {rank} is what the data support: {several}, and {nothing}."


def score_of(fit: Fit) -> float:
    """The score of a fit: the lowest there is of one that is exact, as far as one can tell, the highest of one without.

    Those are fits to very few samples, to a single point, or to what is not finite.
    """
    values = 0.0 if fit.output_errors is None else float(np.nanmax(fit.output_errors, initial=0.0)) / 100.0
    slopes = 0.0 if fit.jacobian_error is None else fit.jacobian_error
    told = fit.smoothing is None or fit.smoothing.left > LEFT
    if max(values**2, slopes) < EXACT and told:
        return -np.inf
    return np.inf if fit.smoothing is None else fit.smoothing.score


def most_branches(problem: Problem) -> int:
    """The largest rank to try: with straight branches it has at most half as many unknowns as there are numbers."""
    return max(1, min(MOST_RANKS, problem.counting().known.entries // (2 * (problem.n + problem.m))))
