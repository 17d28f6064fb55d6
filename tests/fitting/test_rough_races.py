"""Races whose winner goes on in another basis: they end early, and what stays in theirs is polished to its end."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from draws import few_or_many
from unbraid.fitting import smoothing
from unbraid.fitting.case import Case
from unbraid.fitting.fit_rank import Setup
from unbraid.fitting.polish import ContinueBest, measure_run, on_fresh_knots
from unbraid.fitting.request import Request
from unbraid.fitting.session import Session
from unbraid.results.outcome import Status
from unbraid.results.smoothing import Smoothing
from unbraid.runtime.journal import NOTHING_KEPT
from unbraid.studies.comparison.cells import with_noise


def noisy(seed: int) -> ub.Problem:
    """f_trig with 1 % noise."""
    return with_noise(ub.datasets.trig(S=100, rng=seed)[0], 0.01, np.random.default_rng(seed))


def plain_is_best(*_: Any) -> Smoothing:
    """A score that no penalties reach."""
    return Smoothing(np.full(3, 12.0), 1.0, 0.9, -math.inf)


@few_or_many(2, 10)
def test_what_stays_without_penalties_is_polished_to_its_end(draws: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoothing, "without_smoothing", plain_is_best)
    for seed in range(draws):
        fit = ub.decouple(noisy(seed), 3, rng=0)
        wanted = ub.decouple(noisy(seed), 3, basis=ub.BSpline(12), rng=0)
        assert isinstance(fit.basis, ub.BSpline)
        assert fit.status.converged
        assert fit.objective == pytest.approx(wanted.objective, rel=1e-2)


def test_the_budget_of_steps_holds_in_rough_races_as_well() -> None:
    method = ub.methods.default(max_steps=5)
    fit = ub.decouple(noisy(0), 3, method=method, rng=0)
    for start in fit.starts:
        assert start.sweeps <= method.stopping.max_sweeps + 5


@few_or_many(3, 12)
def test_smoothed_fits_say_how_they_ended(draws: int) -> None:
    """Whatever ended the race of starts is no longer of interest when their best has gone on."""
    for seed in range(draws):
        fit = ub.decouple(noisy(seed), 3, rng=0)
        assert fit.smoothing is not None
        assert fit.status in (Status.CONVERGED, Status.FLAT, Status.OUT_OF_SWEEPS)


@few_or_many(2, 10)
def test_a_branch_left_out_in_vain_leaves_no_trace(draws: int) -> None:
    """Branches that are needed are all kept, and their fit is that of a model which never had one left out."""
    for seed in range(draws):
        fit = ub.decouple(noisy(seed), 3, rng=0)
        assert fit.smoothing is not None
        assert fit.smoothing.supported == 3
        assert fit.status is not Status.OUTRUN


@few_or_many(2, 10)
def test_the_winner_of_a_rough_race_goes_on_within_its_budget(draws: int) -> None:
    for seed in range(draws):
        problem = noisy(seed)
        case = Case.of(problem, Request(rank=3).for_problem(problem))
        setup = Setup.of(case)
        with Session.open(NOTHING_KEPT, 0) as session:
            *stages, further = setup.stages(session)[:4]
            assert isinstance(further, ContinueBest)
            found = session.run_all(stages)
            after = session.run(further, found)
        steps = after.best.trace.sweeps - (after.best.trace.search or 0)
        assert after.best.objective <= found.best.objective
        assert after.every_start == found.every_start
        assert steps <= further.stopping.max_sweeps
        spent = replace(further, stopping=replace(further.stopping, max_sweeps=1))
        assert spent(session, found) is found, "nothing is left of the budget"


def test_the_winner_of_a_rough_race_that_another_start_agrees_with_does_not_go_on() -> None:
    """The default fit of a decoupled system: starts meet in one minimum, and further steps would gain nothing."""
    problem = noisy(0)
    setup = Setup.of(Case.of(problem, Request(rank=3).for_problem(problem)))
    with Session.open(NOTHING_KEPT, 0) as session:
        *stages, further = setup.stages(session)[:4]
        assert isinstance(further, ContinueBest)
        found = session.run_all(stages)
        off = replace(found.best.best, a=1.01 * found.best.best.a)  # so that there is something to be gained
        best = replace(measure_run(further.solver, replace(found.best, best=off)), status=Status.FLAT, finished=True)
        twin = replace(best, objective=1.01 * best.objective)
        met = replace(found, runs=(best, twin))
        assert further(session, met) is met
        alone = further(session, replace(found, runs=(best, replace(twin, finished=False))))
    assert alone.best.objective < best.objective


@pytest.mark.parametrize("size", [1e200, np.inf, np.nan])
def test_a_start_that_has_lost_its_way_is_measured_as_infinitely_bad(size: float) -> None:
    problem = noisy(0)
    setup = Setup.of(Case.of(problem, Request(rank=3, starts=2).for_problem(problem)))
    with Session.open(NOTHING_KEPT, 0) as session:
        *stages, further = setup.stages(session)[:4]
        assert isinstance(further, ContinueBest)
        best = session.run_all(stages).best
        lost = replace(best, best=replace(best.best, a=size * best.best.a))
        assert measure_run(further.solver, lost).objective == np.inf
        assert not on_fresh_knots(further.solver, lost).objective < best.objective
