"""Badges are green only where all is well."""

from __future__ import annotations

from dataclasses import replace

import pytest

import unbraid as ub
from unbraid.judging.uniqueness import Flat
from unbraid.report.subject import Subject
from unbraid.report.verdict import agreement_kind, badges
from unbraid.results.fit import StartSummary
from unbraid.results.outcome import Status
from unbraid.results.worth.freedom import Freedom

pytestmark = pytest.mark.usefixtures("no_formulas")


@pytest.fixture(scope="module")
def fit() -> ub.Fit:
    problem, _ = ub.datasets.trig(S=60, rng=0)
    return ub.decouple(problem, 3, starts=2, rng=0)


def start(objective: float, angle: float, match: float) -> StartSummary:
    return StartSummary(objective, 10, Status.CONVERGED, angle, match)


SAME, ELSEWHERE, HIGHER = start(1.0, 0.1, 1.0), start(1.0, 40.0, 0.7), start(3.0, 40.0, 0.7)


@pytest.mark.parametrize(
    ("starts", "kind"),
    [
        ((SAME,) * 4, "good"),
        ((SAME, SAME, SAME, HIGHER), "good"),
        ((SAME, SAME, HIGHER, HIGHER), "plain"),
        ((SAME, SAME, ELSEWHERE, ELSEWHERE), "bad"),
        ((SAME, HIGHER, HIGHER, HIGHER), "bad"),
    ],
)
def test_two_of_four_starts_are_no_green_badge(fit: ub.Fit, starts: tuple[StartSummary, ...], kind: str) -> None:
    assert agreement_kind(replace(fit, starts=starts)) == kind


def test_unique_is_said_only_of_what_is(fit: ub.Fit) -> None:
    line, turning = Freedom("straight", (2,), 1, (60.0,), 0.3), Freedom("rotating", (0, 1), 1, (9.0, 9.0), 0.3)
    for flat, freedoms, straight, said in (
        (Flat(0, 0), (), (), ("good", "Locally unique")),
        (Flat(0, 0), (line,), (2,), ("plain", "Unique up to straight branches")),
        (Flat(1, 0), (turning, line), (2,), ("bad", "Not unique")),
        (Flat(1, 0), (), (), ("bad", "Not unique")),
    ):
        subject = Subject.of(fit, None, None)
        found = replace(subject.diagnostics, flat=flat, freedoms=freedoms, straight=straight)
        vars(subject)["diagnostics"] = found
        assert said in [tuple(badge) for badge in badges(subject)]
