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
from unbraid.fitting.robust import fit_with_loss, screened
from unbraid.fitting.session import CUTS, Session
from unbraid.results.fit import Fit

MOST_RANKS = 20
"""The largest rank that is tried."""
IN_VAIN = 2
"""So many ranks in a row that bring nothing end the search."""
EXACT = 1e-8
"""Relative squares of errors on the samples below which a fit is exact, as far as one can tell."""
WORTH = 0.01
"""By how much a branch has to lower the score, the logarithm of a variance, to be worth having."""


def fit_supported_rank(problem: Problem, request: Request, session: Session) -> Fit:
    """The fit of the rank that the data support; Ctrl-C leaves the best until then."""
    quick = replace(request, starts=max(1, request.starts // 2), loss="squared")
    seen = screened(problem) if request.loss == "huber" else problem
    best, in_vain, rank = None, 0, 0
    while in_vain < IN_VAIN and rank < most_branches(problem):
        rank += 1
        fit = fit_rank(seen, replace(quick, rank=rank), session.anew())
        if fit.status in CUTS:
            return concluded(fit if best is None else replace(best, status=fit.status), problem, request, session, rank)
        if best is None or score_of(fit) < score_of(best) - WORTH:
            best, in_vain = fit, 0
        else:
            in_vain += 1
        if score_of(fit) == -np.inf or (fit.smoothing is not None and fit.smoothing.supported < rank):
            break
    assert best is not None
    branches = best.model.rank if best.smoothing is None else best.smoothing.supported
    final = replace(request, rank=branches)
    check_fit(problem, final)
    fit = fit_with_loss(problem, final, session.anew())
    return concluded(fit, problem, request, session, rank)


def concluded(fit: Fit, problem: Problem, request: Request, session: Session, tried: int) -> Fit:
    """A fit of the rank that was found, with the reason first among its notes."""
    rank = fit.model.rank
    if fit.status in CUTS:
        reason = f"Cut short while rank {tried} was tried, so rank {rank} is the best until then."
    elif score_of(fit) == -np.inf:
        reason = f"Rank {rank} fits the samples to 0.01 % or better, so no further branch is needed."
    else:
        reason = f"Rank {rank}: ranks 1 to {tried} were fitted, and the data do not support more branches."
    return replace(fit, notes=(reason, *fit.notes), problem=problem, asked=request, seconds=session.seconds())


def score_of(fit: Fit) -> float:
    """The score of a fit; fits that are exact, as far as one can tell, have the lowest."""
    values = 0.0 if fit.output_errors is None else float(np.nanmax(fit.output_errors)) / 100.0
    slopes = 0.0 if fit.jacobian_error is None else fit.jacobian_error
    exact = fit.smoothing is None or max(values**2, slopes) < EXACT
    return -np.inf if exact or fit.smoothing is None else fit.smoothing.score


def most_branches(problem: Problem) -> int:
    """The largest rank to try: with straight branches it still has half as many unknowns as there are numbers."""
    return max(1, min(MOST_RANKS, problem.known.entries // (2 * (problem.n + problem.m))))
