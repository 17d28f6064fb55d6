"""Races of starts: who ends early, and that the best one never does."""

from __future__ import annotations

import numpy as np

import unbraid as ub
from draws import few_or_many
from unbraid.kernels.arrays import Array
from unbraid.results.outcome import Status
from unbraid.solvers.iterates import Measure
from unbraid.solvers.loop import CATCHING_UP, HEADING_FOR_ZERO, LAP, ROUGHLY, TO_THE_END, Loop, Race, Stopping

APART = np.stack([np.eye(2), np.array([[1.0, 1.0], [1.0, -1.0]]), np.array([[3.0, 1.0], [-1.0, 3.0]])])
"""Directions of three starts, far from each other."""


def looked(laps: Array, W0: Array) -> dict[Status, list[bool]]:
    """How the last of some looks at objectives (laps, starts) ends starts."""
    race = Race.first(laps.shape[1])
    with np.errstate(all="ignore"):
        for objective in laps:
            endings = race.endings(TO_THE_END, np.arange(laps.shape[1]), objective, W0)
    return {status: list(map(bool, ended)) for status, ended in endings.items()}


def test_a_start_too_slow_to_catch_up_is_out() -> None:
    slow, fast = 3.0 * np.exp(-0.5 * np.log(3.0) / CATCHING_UP), 3.0 * np.exp(-2.0 * np.log(3.0) / CATCHING_UP)
    ended = looked(np.array([[2.0, 3.0, 3.0], [1.0, slow, fast]]), APART)
    assert ended[Status.OUTRUN] == [False, True, False]


def test_a_start_beside_a_better_one_has_joined_it() -> None:
    W0 = np.stack([APART[0], APART[0] + 1e-3, APART[1]])
    ended = looked(np.array([[2.0, 2.0, 2.0], [1.0, 1.001, 1.002]]), W0)
    assert ended[Status.JOINED] == [False, True, False]


def test_starts_that_are_as_good_as_each_other_and_slow_need_not_all_go_on() -> None:
    ended = looked(np.array([[1.001, 1.002, 1.003], [1.0, 1.0015, 1.0025]]), APART)
    assert ended[Status.JOINED] == [False, True, True]


def test_a_valley_is_flat_after_several_laps_without_gain() -> None:
    one = np.array([[1.0]])
    for laps in range(1, TO_THE_END.laps + 2):
        objectives = np.concatenate([2.0 * one, *(one * (1.0 - 0.5 * TO_THE_END.flat) ** k for k in range(laps))])
        assert looked(objectives, APART[:1])[Status.FLAT] == [laps > TO_THE_END.laps]


def test_what_may_be_heading_for_an_exact_solution_is_left_in_peace() -> None:
    assert looked(np.full((TO_THE_END.laps + 2, 1), 1e-12), APART[:1])[Status.FLAT] == [False]


def resting(objectives: Array) -> list[bool]:
    """Which starts of a rough race rest after its first lap of objectives (sweeps, starts)."""
    starts = objectives.shape[1]
    loop = Loop.begin(None, starts, Stopping(race=ROUGHLY), 0.0)
    loop.record.history = [(np.arange(starts), Measure(one, one)) for one in objectives]
    return list(map(bool, loop.rests_early(objectives[-1], ROUGHLY)))


def test_who_rests_from_the_middle_of_the_first_lap_on_has_come_to_a_valley() -> None:
    falling = np.geomspace(2.0, 1.0, LAP)
    soon = np.concatenate([np.geomspace(2.0, 1.0, 3), np.full(LAP - 3, 1.0)])
    slowly = 1.0 - 1.2 * ROUGHLY.flat * np.arange(LAP) / LAP  # as much in a lap as counts
    exact = np.full(LAP, HEADING_FOR_ZERO / 2.0)
    assert resting(np.stack([falling, soon, slowly, exact], axis=1)) == [False, True, False, False]


@few_or_many(6, 20)
def test_the_best_start_of_a_fit_is_neither_joined_nor_outrun(draws: int) -> None:
    seen = set()
    for seed in range(draws):
        problem, _ = ub.datasets.trig(S=60, rng=seed)
        fit = ub.decouple(problem, 3, basis=ub.BSpline(12), starts=6, rng=0)
        assert fit.starts[0].status not in (Status.JOINED, Status.OUTRUN)
        assert fit.objective == min(start.objective for start in fit.starts)
        seen |= {start.status for start in fit.starts}
    assert seen & {Status.JOINED, Status.OUTRUN}
