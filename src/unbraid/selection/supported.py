"""The fit whose rank is to be found, where smoothing is open: as many branches as the data support.

Smoothing that counts the freedom of all unknowns makes fits of different ranks comparable by their score
(`results.smoothing`), without holding samples out: one fit a rank, from one branch upwards, until further ones bring
nothing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from unbraid.data.problem import Problem
from unbraid.fitting.fit_rank import check_fit, fit_rank, fit_unless_interrupted
from unbraid.fitting.request import Request
from unbraid.fitting.robust import fit_with_loss, screened
from unbraid.fitting.session import CUTS, Session
from unbraid.results.contradictions import with_contradiction_first
from unbraid.results.fit import Fit
from unbraid.results.outcome import Status
from unbraid.selection.rule import EXACT

MOST_RANKS = 20
"""The largest rank that is tried."""
IN_VAIN = 2
"""So many ranks in a row that bring nothing end the search."""
WORTH = 0.01
"""By how much a branch has to lower the score, the logarithm of a variance, to be worth having."""
LEFT = 0.2
"""Share of the numbers that have to be left over by the freedom of a fit that is called exact."""


def fit_supported_rank(problem: Problem, request: Request, session: Session) -> Fit:
    """The fit of the rank that the data support; Ctrl-C leaves the best until then."""
    quick = replace(request, starts=max(1, request.starts // 2), loss="squared")
    seen = screened(problem) if request.loss == "huber" else problem
    best: Fit | None = None
    in_vain, rank = 0, 0
    while in_vain < IN_VAIN and rank < most_branches(problem):
        rank += 1
        fit = fit_unless_interrupted(
            partial(fit_rank, seen, replace(quick, rank=rank), session.anew(), fewer=False), best
        )
        if fit.status in CUTS:
            best = fit if best is None else replace(best, status=fit.status)
            break
        if best is None or score_of(fit) < score_of(best) - WORTH:
            best, in_vain = fit, 0
        else:
            in_vain += 1
        if score_of(fit) == -np.inf:
            break
    assert best is not None
    branches = 0
    while best.status not in CUTS and branches != max(supported_rank(best), 1):  # a better search may support fewer
        branches = max(supported_rank(best), 1)
        final = replace(request, rank=branches)
        check_fit(problem, final)
        best = fit_unless_interrupted(partial(fit_with_loss, problem, final, session.anew()), best)
    notes = with_contradiction_first((reason_for(best, rank, rank == most_branches(problem)), *best.notes))
    return replace(best, notes=notes, problem=problem, asked=request, seconds=session.seconds())


def supported_rank(fit: Fit) -> int:
    """How many branches of a fit the data support: all of them where nothing was chosen."""
    return fit.model.rank if fit.smoothing is None else fit.smoothing.supported


def reason_for(fit: Fit, tried: int, all_tried: bool) -> str:
    """Why the rank of a fit is what it is, after so many were tried, or all that so many samples allow."""
    rank = supported_rank(fit)
    if fit.status in CUTS:
        how = "Interrupted" if fit.status is Status.INTERRUPTED else "Out of time"
        return f"{how} while rank {tried} was tried: rank {rank} is the best until then."
    if score_of(fit) == -np.inf:
        return f"Rank {rank} fits the samples to 0.01 % or better, so no further branch is needed."
    several = f"ranks 1 to {tried} were fitted" if tried > 1 else "rank 1 was fitted"
    if score_of(fit) == np.inf:
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
    return max(1, min(MOST_RANKS, problem.known.entries // (2 * (problem.n + problem.m))))
