"""What is held out, and what is worth a further branch or state."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import unbraid as ub
from simulated_candidates import FORMS, random_candidate, random_courses
from unbraid.dynamics.identifying.choosing import (
    LOST,
    STRENGTHS,
    HeldOutError,
    Split,
    blocks_of,
    joined,
    ladder,
    some_stretches,
)
from unbraid.dynamics.identifying.climbing import Climb, Level, Size
from unbraid.dynamics.identifying.request import Request
from unbraid.dynamics.identifying.search import Fitting
from unbraid.dynamics.identifying.stages import ALL_DIVERGED, UNSTEADY, Fitted, Identification
from unbraid.fitting.session import Session
from unbraid.results.outcome import Status

FORM = FORMS["three states, two by two"]


def error_of_size(size: float, parts: int = 8) -> HeldOutError:
    return HeldOutError((size**2 * 100.0,) * parts, (100.0,) * parts)


# What is held out


@pytest.mark.parametrize("number", range(4))
def test_every_sample_counts_once(number: int) -> None:
    """Either while models are fitted or when they are judged, and never where it is not known."""
    courses = random_courses(FORM, (200, 33, 7))
    found = [*Split.inside(courses), Split.beyond(courses)][number]
    for before, after, held in zip(courses, found.courses, found.held, strict=True):
        assert after.weight.shape == held.shape == before.weight.shape
        np.testing.assert_array_equal(after.weight + held, before.weight)
        assert not np.any(after.weight * held)
        np.testing.assert_array_equal(after.y, before.y)
    kept, held_out = sum(one.weight.sum() for one in found.courses), sum(one.sum() for one in found.held)
    assert 0 < held_out < kept


def test_inside_of_short_records_each_quarter_but_the_first_is_held_out_in_turn() -> None:
    courses = random_courses(FORM, (200, 40), gaps=False)
    for k, found in enumerate(Split.inside(courses), 1):
        for course, held in zip(courses, found.held, strict=True):
            some = np.flatnonzero(held.all(axis=1))
            assert (some[0], some[-1]) == (k * len(course) // 4, (k + 1) * len(course) // 4 - 1)


def test_inside_of_long_records_the_last_quarter_is_held_out() -> None:
    (found,) = Split.inside(random_courses(FORM, (2000, 400), gaps=False))
    assert [int(held.all(axis=1).sum()) for held in found.held] == [500, 100]
    assert all(held[-1].all() for held in found.held)


def test_beyond_the_largest_outputs_are_held_out() -> None:
    courses = random_courses(FORM, (320, 160), gaps=False)
    courses[1].y[77] = 50.0
    found = Split.beyond(courses)
    assert found.held[1][77].all()
    seen = max(np.abs(one.y * one.weight).max() for one in found.courses)
    assert seen <= max(np.abs(one.y * held).max() for one, held in zip(courses, found.held, strict=True))


def test_blocks_cover_all_samples_once() -> None:
    courses = random_courses(FORM, (100, 3, 41))
    counts = [np.zeros(len(course)) for course in courses]
    for k, some in blocks_of(courses):
        counts[k][some] += 1
    assert all((count == 1).all() for count in counts)


def test_the_error_is_that_of_what_is_held_out() -> None:
    courses = random_courses(FORM, (120, 40))
    split = Split.inside(courses)[-1]
    model = random_candidate(FORM, courses, ub.BSpline(5))
    trajectories = Fitting(FORM.feedback, (None, None)).solver(courses, ub.BSpline(5), 2).simulate(model)
    assert trajectories is not None
    triples = zip(courses, trajectories, split.held, strict=True)
    off = [held * (one.values.f[:, -2:] - course.y) for course, one, held in triples]
    expected = np.sqrt(sum(np.sum(one**2) for one in off) / sum(one.sum() for one in split.held))
    assert split.error(trajectories, FORM.feedback).size == pytest.approx(expected)
    assert split.error(None, FORM.feedback) is LOST


def test_the_error_over_several_splits_is_that_over_all_their_parts() -> None:
    both = joined([error_of_size(1.0), error_of_size(2.0)])
    assert both.size == pytest.approx(np.sqrt(2.5))
    assert joined([error_of_size(1.0), LOST]).size == np.inf


def test_nothing_that_is_held_out_weighs_in_the_fit() -> None:
    """Whatever is measured there, the equations are the same."""
    courses = random_courses(FORM, (80,))
    split = Split.inside(courses)[-1]
    model = random_candidate(FORM, courses, ub.BSpline(5))
    fitting = Fitting(FORM.feedback, (None, None))
    first = fitting.solver(split.courses, ub.BSpline(5), 2).point(model)
    split.courses[0].y[-20:] = 1e3
    second = fitting.solver(split.courses, ub.BSpline(5), 2).point(model)
    assert first is not None
    assert second is not None
    assert first.objective == second.objective
    np.testing.assert_array_equal(first.equations.descent, second.equations.descent)


# What is better


def test_better_is_smaller_by_enough() -> None:
    assert error_of_size(0.5).is_better(error_of_size(1.0))
    assert not error_of_size(1.0).is_better(error_of_size(0.5))
    assert not error_of_size(0.99).is_better(error_of_size(1.0))
    assert not error_of_size(1.0).is_better(error_of_size(1.0))


def test_better_is_so_in_most_parts() -> None:
    """One part out of eight that won much, by luck, does not decide."""
    before = HeldOutError((100.0,) * 8, (100.0,) * 8)
    lucky = HeldOutError((10.0, *(105.0,) * 7), (100.0,) * 8)
    everywhere = HeldOutError((90.0,) * 8, (100.0,) * 8)
    assert lucky.size < 0.97 * before.size
    assert not lucky.is_better(before)
    assert everywhere.is_better(before)


def test_what_was_cut_short_can_be_compared() -> None:
    """It has fewer parts."""
    assert error_of_size(0.5, parts=3).is_better(error_of_size(1.0))
    assert not error_of_size(1.0).is_better(error_of_size(0.99, parts=3))


def test_what_was_lost_is_never_better() -> None:
    assert not LOST.is_better(LOST)
    assert not LOST.is_better(error_of_size(1e9))
    assert error_of_size(1e9).is_better(LOST)


def test_what_was_lost_is_said_to_have_diverged() -> None:
    assert (str(LOST), str(error_of_size(0.0104))) == ("diverged", "1.04 %")
    climb = Climb(cast("Any", None), 2, 1)
    climb.tried[2, 1] = Fitted(cast("Any", None), None, LOST)
    assert "are diverged for 1 branch" in climb.told((2, 1), False)


@pytest.mark.parametrize(("errors", "accepted"), [((np.inf, np.inf, np.inf), [0]), ((np.inf, 0.5, 0.501), [1, 2])])
def test_where_every_basis_diverges_the_simplest_stays(
    errors: tuple[float, ...], accepted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Infinity is not as good as infinity."""
    bases, point = [ub.Polynomial(degree) for degree in (3, 5, 7)], cast("Any", None)
    found = {basis: LOST if np.isinf(e) else error_of_size(e) for basis, e in zip(bases, errors, strict=True)}
    monkeypatch.setattr(
        Identification, "judged", lambda self, session, point, basis: Fitted(point, basis, found[basis])
    )
    monkeypatch.setattr(Identification, "best_beyond", lambda self, session, among: among)
    work = Identification(cast("Any", None), Request(1, None, None, "auto", 1, None))
    among = cast("Any", work.choose_basis(Session(), point, bases, None))
    assert [one.basis for one in among] == [bases[k] for k in accepted]
    lost = Fitted(cast("Any", SimpleNamespace(model=SimpleNamespace(rank=1))), bases[0], LOST)
    assert work.told(lost) == (ALL_DIVERGED,)
    assert work.told(lost._replace(beyond=0.2)) == (ALL_DIVERGED,)
    assert work.told(lost._replace(basis=None, steady=False)) == (UNSTEADY,)


# What there is to choose from


def test_a_basis_that_was_given_is_the_only_one() -> None:
    assert ladder(ub.BSpline(7), (None,)) == (ub.BSpline(7),)
    assert ladder(ub.SmoothingSpline(smoothing=0.1), (None,)) == (ub.SmoothingSpline(smoothing=0.1),)


def test_where_the_basis_is_open_it_carries_the_constraints() -> None:
    assert any(isinstance(basis, ub.Polynomial) for basis in ladder(None, (None, None)))
    assert all(basis.refusal() is None for basis in ladder(None, (None, ub.Convex())))


def test_an_open_smoothing_is_tried_from_strong_to_weak() -> None:
    tried = [cast("ub.SmoothingSpline", basis) for basis in ladder(ub.SmoothingSpline(df=15), (None,))]
    assert [one.smoothing for one in tried] == sorted(STRENGTHS, reverse=True)
    assert all(one.df == 15 for one in tried)


# Where to begin


def test_few_samples_are_all_taken() -> None:
    lengths = [30, 50]
    assert some_stretches(lengths, [np.ones(T) for T in lengths], 80) == [(0, slice(0, 30)), (1, slice(0, 50))]


def test_of_many_samples_those_about_the_largest_outputs_are_taken() -> None:
    lengths = [5000, 300, 8000]
    peaks = [np.ones(T) for T in lengths]
    peaks[2][6000], peaks[0][10] = 9.0, 5.0
    chosen = some_stretches(lengths, peaks, 2000)
    assert sum(len(range(*some.indices(lengths[k]))) for k, some in chosen) <= 2000
    assert any(k == 2 and some.start <= 6000 < some.stop for k, some in chosen)
    assert any(k == 0 and some.start <= 10 < some.stop for k, some in chosen)
    many = some_stretches([1000] * 40, [np.full(1000, float(k)) for k in range(40)], 2000)
    assert [k for k, _ in many] == [36, 37, 38, 39]


# How many branches and states


class FakeLevels:
    """Levels whose errors are given by order and rank; what is not given cannot be fitted."""

    def __init__(self, sizes: dict[Size, float], cut_at: Size | None = None) -> None:
        self.sizes, self.cut_at = sizes, cut_at
        self.asked: list[Size] = []

    def __call__(self, order: int) -> Level:
        def found(rank: int) -> Any:
            self.asked.append((order, rank))
            size = self.sizes.get((order, rank))
            cut = Status.INTERRUPTED if (order, rank) == self.cut_at else None
            point: Any = SimpleNamespace(model=(order, rank))
            return None if size is None else Fitted(point, None, error_of_size(size), cut=cut)

        fake = SimpleNamespace(
            linear=lambda _: found(0),
            fit_branches=lambda session, linear, rank, bases, fewer=None: found(rank),
        )
        return cast("Level", (fake, None))


def climbed(levels: FakeLevels, orders: int, ranks: int, begin: Size) -> tuple[Size, Climb]:
    climb = Climb(levels, orders, ranks)
    return climb.run(Session(), begin), climb


def test_branches_are_added_as_long_as_they_are_worth_it() -> None:
    levels = FakeLevels({(2, 0): 1.0, (2, 1): 0.5, (2, 2): 0.3, (2, 3): 0.299, (2, 4): 0.01})
    size, climb = climbed(levels, 2, 5, (2, 0))
    assert size == (2, 2)
    assert levels.asked.count((2, 1)) == 1
    assert (2, 4) not in levels.asked
    assert climb.told(size, False).startswith("2 branches: errors on held-out stretches, in % of the spread, are 100 %")


def test_a_linear_system_gets_no_branches() -> None:
    size, climb = climbed(FakeLevels({(1, 0): 0.1, (1, 1): 0.0999, (1, 2): 0.1}), 1, 5, (1, 0))
    assert size == (1, 0)
    assert climb.told(size, False).startswith("No branches")


def test_two_branches_that_only_help_together_are_found() -> None:
    assert climbed(FakeLevels({(1, 0): 1.0, (1, 1): 0.99, (1, 2): 0.1, (1, 3): 0.1}), 1, 5, (1, 0))[0] == (1, 2)


def test_states_are_added_beside_branches() -> None:
    sizes = {(1, 0): 1.0, (1, 1): 0.9, (1, 2): 0.9, (2, 1): 0.2, (2, 2): 0.2, (3, 1): 0.2}
    size, climb = climbed(FakeLevels(sizes), 6, 5, (1, 0))
    assert size == (2, 1)
    assert climb.told(size, True).startswith("Order 2 and 1 branch:")


def test_neither_orders_nor_ranks_go_beyond_what_may_be_tried() -> None:
    endless = {(order, rank): 0.5 ** (order + rank) for order in range(20) for rank in range(20)}
    assert climbed(FakeLevels(endless), 3, 2, (1, 0))[0] == (3, 2)
    assert climbed(FakeLevels(endless), 3, 0, (1, 0))[0] == (3, 0)


def test_what_cannot_be_fitted_is_told_and_left_out() -> None:
    size, climb = climbed(FakeLevels({(1, 0): 1.0, (1, 2): 0.2}), 1, 3, (1, 0))
    assert size == (1, 2)
    assert "nothing for 1 branch" in climb.told(size, False)


def test_a_cut_ends_the_way_with_the_best_so_far() -> None:
    """Which tells of the cut, also where it is not what was cut."""
    for error, best in ((0.5, (1, 1)), (2.0, (1, 0))):
        levels = FakeLevels({(1, 0): 1.0, (1, 1): error, (1, 2): 0.4, (1, 3): 0.1}, cut_at=(1, 1))
        size, climb = climbed(levels, 1, 5, (1, 0))
        assert size == best
        assert levels.asked == [(1, 0), (1, 1)]
        found = climb.tried[size]
        assert found is not None
        assert found.cut is Status.INTERRUPTED
