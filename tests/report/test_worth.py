"""The page tells what to expect on new points, and whether what is left is noise."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import unbraid as ub
from report_pages import Page, written
from unbraid.report.subject import Subject
from unbraid.report.worth import expected_words, held_out_advice, noise_words
from unbraid.results.worth.held_out import HeldOut

pytestmark = pytest.mark.usefixtures("no_formulas")


@cache
def noisy() -> ub.Fit:
    problem, _ = ub.datasets.trig(S=120, rng=0)
    assert problem.F is not None
    F = problem.F + 0.15 * np.random.default_rng(0).standard_normal(problem.F.shape)
    return ub.decouple(ub.Problem(problem.X, F), 3, starts=4, rng=0)


def held(new: float, inside: float, outside: float) -> HeldOut:
    both = np.ones(2)
    return HeldOut(new * both, None, 0.04, inside * both, outside * both, 120)


def test_the_page_has_expected_errors_and_bands(tmp_path: Path) -> None:
    fit = noisy()
    assert fit.held_out is not None
    assert fit.held_out.output_errors is not None
    text = Page(written(fit, tmp_path)).text
    assert "On new points an error of" in text
    assert "95 % band" in text
    assert "Is what is left noise? By all signs" in text
    for error in fit.held_out.output_errors:
        assert f"{error:.2g} %" in text


def test_what_is_no_noise_has_no_bands(page: str) -> None:
    text = Page(page).text
    assert "95 % band" not in text
    assert "There are no bands around the curves" in text
    assert "Is what is left noise? No." in text


def test_other_samples_tell_nothing_of_this(tmp_path: Path) -> None:
    fit = noisy()
    assert fit.problem is not None
    for about in (fit, fit.model):
        text = Page(written(about, tmp_path, problem=fit.problem.take(slice(40)))).text
        assert "Is what is left noise?" not in text
        assert "On new points" not in text


def test_the_share_outside_is_told_with_its_error() -> None:
    words = expected_words(Subject.of(replace(noisy(), held_out=held(30.0, 20.0, 77.0)), None, None))
    assert words.replace("\N{NO-BREAK SPACE}", " ") == (
        "On new points an error of 30 % in the worst output is expected. About 4 % of them will lie outside the range "
        "seen, with an error of 77 % there."
    )


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        (held(1.1, 1.0, 2.0), None),
        (held(20.0, 1.2, 90.0), "new points outside the range seen make it so. Take samples from a wider range"),
        (held(20.0, 19.0, 21.0), "the model follows these too closely. Use fewer branches or more samples."),
        (held(20.0, 5.0, 90.0), "too closely, and new points outside the range seen add to it. Use fewer"),
    ],
    ids=["no larger", "outside", "inside", "both"],
)
def test_much_larger_errors_on_new_points_come_with_advice(expected: HeldOut, said: str | None) -> None:
    fit = replace(noisy(), output_errors=np.ones(2), held_out=expected)
    advice = held_out_advice(Subject.of(fit, None, None))
    assert advice is None if said is None else said in (advice or "")


def test_errors_that_are_tiny_are_not_worth_advice() -> None:
    fit = replace(noisy(), output_errors=np.full(2, 1e-4), held_out=held(0.1, 0.1, 0.1))
    assert held_out_advice(Subject.of(fit, None, None)) is None


def test_a_drift_in_the_order_given_is_told() -> None:
    """Noise that goes on from sample to sample, which no input tells."""
    rng = np.random.default_rng(0)
    problem, _ = ub.datasets.trig(S=200, rng=0)
    assert problem.F is not None
    drift = np.sin(np.arange(200) / 15.0)[:, None] + 0.2 * rng.standard_normal((200, 2))
    fit = ub.decouple(ub.Problem(problem.X, problem.F + drift), 3, starts=2, rng=0)
    assert any("in the order given" in one for one in noise_words(Subject.of(fit, None, None)))
