"""The share that a callback is told of: it only goes forward in one fit, however many phases and ranks that has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unbraid as ub
from unbraid.runtime.progress import Forward, Progress, share_done

QUICK = ub.methods.default(max_sweeps=20, max_steps=20)
"""What a callback is told of does not hang on how long it goes on."""


def noisy(values_alone: bool) -> ub.Problem:
    problem, _ = ub.datasets.trig(S=60, rng=0)
    assert problem.F is not None
    F = problem.F + 0.01 * np.random.default_rng(1).standard_normal(problem.F.shape)
    return ub.Problem(problem.X, F, None if values_alone else problem.J)


def told_by(problem: ub.Problem, rank: Any, **settings: Any) -> list[Progress]:
    told: list[Progress] = []
    ub.decouple(problem, rank, rng=0, callback=told.append, **settings)
    return told


def assert_forward(told: list[Progress]) -> None:
    shares = np.array([one.share for one in told])
    assert len(shares) > 3
    assert np.all(np.diff(shares) >= 0.0)
    assert 0.0 <= shares[0] < shares[-1] == 1.0


@pytest.mark.parametrize("values_alone", [False, True], ids=["jacobians", "values"])
@pytest.mark.parametrize("rank", [3, "auto"])
def test_the_share_never_falls(rank: object, values_alone: bool) -> None:
    told = told_by(noisy(values_alone), rank, method=QUICK, starts=2, jobs=1)
    assert_forward(told)
    assert [one.rank for one in told if one.rank] == sorted(one.rank for one in told if one.rank)
    assert any(one.rank == 2 for one in told) == (rank == "auto")


def test_the_share_never_falls_with_helpers() -> None:
    for rank in (3, "auto"):
        assert_forward(told_by(noisy(False), rank, method=QUICK, starts=4, jobs=2))


@pytest.mark.parametrize(
    "settings",
    [
        {"basis": ub.BSpline(6)},
        {"method": ub.methods.dejonghe2025(max_sweeps=20)},
        {"loss": "huber", "basis": ub.SmoothingSpline(8)},
        {"rank": "auto", "basis": ub.BSpline(4), "method": QUICK},
    ],
    ids=["splines", "no polish", "huber", "selection"],
)
def test_the_share_never_falls_whatever_is_asked_for(settings: dict[str, Any]) -> None:
    assert_forward(told_by(noisy(False), settings.pop("rank", 2), starts=2, jobs=1, **settings))


def test_a_method_without_a_polish_fills_the_whole_share() -> None:
    told = told_by(noisy(False), 2, starts=1, jobs=1, method=ub.methods.dejonghe2025(max_sweeps=9, tolerance=0.0))
    assert told[-1].share == 1.0


def test_a_phase_that_comes_back_leaves_the_share_where_it_was() -> None:
    told: list[Progress] = []
    forward = Forward(told.append)
    for phase, done in (("search", 5), ("polish", 5), ("search", 1), ("polish", 9)):
        forward(Progress(phase, done, 10))
    assert [one.share for one in told] == pytest.approx([0.2, 0.55, 0.55, 0.67])
    assert [one.done for one in told] == [5, 5, 1, 9]
    assert share_done(Progress("select", 1, 4)) == 0.25
