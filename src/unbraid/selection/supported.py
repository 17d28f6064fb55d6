"""The fit whose rank is to be found, where smoothing is open: as many branches as the data support.

Smoothing that counts the freedom of all unknowns makes fits of different ranks comparable by their score
(`results.smoothing`), without holding samples out: one fit a rank, from one branch upwards, until further ones bring
nothing. What a fit leaves out itself, because data do not support it, ends the search at once.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unbraid.data.problem import Problem
from unbraid.fitting.fit_rank import check_fit, fit_rank
from unbraid.fitting.request import Request
from unbraid.fitting.session import CUTS, Session
from unbraid.results.fit import Fit

MOST_RANKS = 20
"""The largest rank that is tried."""
IN_VAIN = 2
"""So many ranks in a row that bring nothing end the search."""
WORTH = 0.01
"""By how much a branch has to lower the score, the logarithm of a variance, to be worth having."""


def fit_supported_rank(problem: Problem, request: Request, session: Session) -> Fit:
    """The fit of the rank that the data support; Ctrl-C leaves the best until then."""
    quick = replace(request, starts=max(1, request.starts // 2))
    best, in_vain, rank = None, 0, 0
    while in_vain < IN_VAIN and rank < most_branches(problem):
        rank += 1
        fit = fit_rank(problem, replace(quick, rank=rank), session.anew())
        if fit.status in CUTS:
            return concluded(fit if best is None else replace(best, status=fit.status), request, session, rank)
        if best is None or score_of(fit) < score_of(best) - WORTH:
            best, in_vain = fit, 0
        else:
            in_vain += 1
        if fit.smoothing is None or fit.smoothing.supported < rank:  # exact, or no more than so many
            break
    assert best is not None
    branches = best.model.rank if best.smoothing is None else best.smoothing.supported
    final = replace(request, rank=branches)
    check_fit(problem, final)
    fit = fit_rank(problem, final, session.anew())
    return concluded(fit, request, session, rank)


def concluded(fit: Fit, request: Request, session: Session, tried: int) -> Fit:
    """A fit of the rank that was found, with the reason first among its notes."""
    rank = fit.model.rank
    if fit.status in CUTS:
        reason = f"Cut short while rank {tried} was tried, so rank {rank} is the best until then."
    elif fit.smoothing is None:
        reason = f"Rank {rank} fits the samples exactly, so no further branch is needed."
    else:
        reason = f"Rank {rank}: ranks 1 to {tried} were fitted, and the data do not support more branches."
    return replace(fit, notes=(reason, *fit.notes), asked=request, seconds=session.seconds())


def score_of(fit: Fit) -> float:
    """The score of a fit; a fit that is exact has the lowest."""
    return -np.inf if fit.smoothing is None else fit.smoothing.score


def most_branches(problem: Problem) -> int:
    """The largest rank to try: with straight branches it still has half as many unknowns as there are numbers."""
    return max(1, min(MOST_RANKS, problem.known.entries // (2 * (problem.n + problem.m))))
