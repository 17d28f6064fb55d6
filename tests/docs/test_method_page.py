"""The page on the method says what the code does: numbers in it are the constants of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from unbraid.bases.smoothing import CONSTRAINED_DF, SEARCHED_DF, SmoothingSpline
from unbraid.fitting.continuation import DOUBT, GAPS_BEYOND, REACH, RISK
from unbraid.fitting.from_values import LADDER, NEIGHBOURS_PER_UNKNOWN
from unbraid.fitting.polish import (
    AGREEMENT,
    AS_GOOD,
    AS_GOOD_ROUGHLY,
    EXACT_OBJECTIVE,
    SAME_ANGLE,
    SAME_OBJECTIVE,
    SETTLING_STEPS,
)
from unbraid.fitting.smoothing import CROWDED, FOLLOWED, GAMMA, LOOSE, PLENTY, TWINS
from unbraid.methods.alternating import SEARCH_SWEEPS
from unbraid.solvers.gauss_newton import PLACE_KNOTS_AT
from unbraid.solvers.loop import (
    CATCHING_UP,
    JOINED_ANGLE,
    JOINED_OBJECTIVE,
    LAP,
    MAY_BE_EXACT,
    PATIENCE,
    ROUGHLY,
    TO_THE_END,
)

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "method.md").read_text(encoding="utf-8").split())
*FIRST_PLACES, LAST_PLACE = sorted(PLACE_KNOTS_AT)


@pytest.mark.parametrize(
    "said",
    [
        f"Every {LAP} steps a start leaves that would need more than {CATCHING_UP * LAP} further steps",
        f"at its pace of the last {LAP}, to catch up",
        f"up to {CATCHING_UP * LAP * PATIENCE:.0f}, the more the further the relative objective of that one is below "
        f"{MAY_BE_EXACT:g}",
        f"within {100 * JOINED_OBJECTIVE:g} % of the objective of the better one of its pair and within "
        f"{JOINED_ANGLE:g} degrees",
        f"gained less than {100 * TO_THE_END.flat:g} % in the last {TO_THE_END.laps * LAP} steps",
        f"ends where {ROUGHLY.laps * LAP} steps gain less than {100 * ROUGHLY.flat:g} %",
        f"starts within {100 * AS_GOOD_ROUGHLY:g} % agree",
        f"relative objective below {EXACT_OBJECTIVE:g}",
        f"to {100 * AGREEMENT:g} % in the objective, to {100 * SAME_OBJECTIVE:g} % and to {SAME_ANGLE:g} degrees in "
        f"all directions, or, in flat valleys, to {100 * AS_GOOD:g} %",
        f"up to {SETTLING_STEPS} more steps",
        f"before Gauss–Newton steps {', '.join(map(str, FIRST_PLACES))} and {LAST_PLACE}",
        f"the ends of {SEARCH_SWEEPS} sweeps",
        f"the nearest {NEIGHBOURS_PER_UNKNOWN}(m + 1) samples",
        f"df = {LADDER[0].size - 1}, at least eight of them polished",
        f"Search and polish are made in `BSpline({SEARCHED_DF})`, where branches are constrained in "
        f"`BSpline({CONSTRAINED_DF})`",
        f"many knots ({SmoothingSpline().df} degrees of freedom",
        f"less than {CROWDED:g} for each, or less than {LOOSE:g}",
        f"with γ = {GAMMA:g}. Where less than 10⁻⁸ of the variance",
        f"differ by less than {TWINS:g} degrees",
        "Where numbers are four times as many as unknowns",
        "for at most an eighth of its range",
        f"known to {100 * RISK[0]:g} % of the heights that the branch covers inside; for bases without a penalty "
        f"{100 * DOUBT[1]:g} % and {100 * RISK[1]:g} %",
        "at four mean distances of samples",
    ],
)
def test_the_page_has_the_numbers_of_the_code(said: str) -> None:
    assert said in PAGE


def test_numbers_that_the_page_writes_as_words_are_those_of_the_code() -> None:
    assert (FOLLOWED, 1.0 / (1.0 - PLENTY), REACH, DOUBT[0], GAPS_BEYOND) == (1e-8, 4.0, 1.0 / 8.0, 0.5, 4.0)
