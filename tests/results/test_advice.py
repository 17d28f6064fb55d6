"""Advice comes from one place, and no two pieces of it contradict each other."""

from __future__ import annotations

import numpy as np
import pytest

import unbraid as ub
from unbraid.results.advice import on_shape, on_starts, what_may_explain, with_chosen_rank
from unbraid.results.fit import StartSummary
from unbraid.results.outcome import Event, EventKind, Status


def start(objective: float, angle: float = 0.0, match: float = 1.0) -> StartSummary:
    return StartSummary(objective, 10, Status.CONVERGED, angle, match)


def test_starts_that_found_the_same_need_no_advice() -> None:
    assert on_starts([start(1.0), start(1.0), start(1.01)]) is None
    assert on_starts([start(1.0)]) is None
    assert on_starts([]) is None


def test_starts_that_ended_as_low_elsewhere_put_branches_in_doubt() -> None:
    told = on_starts([start(1.0), *(start(1.0, 40.0, 0.7) for _ in range(7))])
    assert told == (
        "Only 1 of 8 finished starts found these directions. 8 starts ended equally low and differ in what they found "
        "(factor match score 0.70): do not read much into single branches."
    )


def test_starts_that_ended_higher_do_not_put_branches_in_doubt() -> None:
    told = on_starts([start(1.0), *(start(3.0, 40.0, 0.7) for _ in range(7))])
    assert told is not None
    assert "more starts may find a better model" in told
    assert "single branches" not in told


@pytest.mark.parametrize("smooth", [True, False])
def test_no_larger_rank_where_data_do_not_support_it_or_are_few(smooth: bool) -> None:
    assert "larger rank" in what_may_explain(False, False, smooth)
    assert "larger" not in what_may_explain(True, False, smooth)
    assert "larger" not in what_may_explain(False, True, smooth)
    assert "rank" not in with_chosen_rank(what_may_explain(False, False, smooth))


def test_a_rank_that_was_chosen_from_the_data_is_not_advised_against() -> None:
    rng = np.random.default_rng(0)
    fit = ub.decouple(ub.Problem(rng.uniform(-1, 1, (80, 3)), rng.standard_normal((80, 2))), "auto", starts=4, rng=0)
    reason, *others = fit.notes
    assert reason.startswith("Rank ")
    assert any("explains little" in note for note in others)
    assert not any("larger rank" in note or "fewer branches" in note for note in others)


def test_notes_and_diagnose_say_the_same_of_starts() -> None:
    rng = np.random.default_rng(0)
    noise = ub.Problem(rng.uniform(-1, 1, (200, 3)), rng.standard_normal((200, 2)), rng.standard_normal((200, 2, 3)))
    fit = ub.decouple(noise, 4, basis=ub.BSpline(12), rng=0, starts=4)
    told = on_starts(fit.starts)
    assert told in fit.notes
    assert told in ub.diagnose(fit).advice


def test_a_shape_is_suspected_from_the_same_error_on_everywhere() -> None:
    assert on_shape(9.0) is None
    told = on_shape(12.0)
    assert told is not None
    assert told.startswith("A shape was asked for, and an error of 12 % is left: fit without `constraint`")


def test_branches_are_counted_from_one_for_people() -> None:
    assert str(Event(3, EventKind.REVIVED, 0)).startswith("sweep 3, branch 1:")
