"""A report says what it can know, and its advice does not contradict itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import unbraid as ub
from unbraid.fitting.request import Request
from unbraid.judging.diagnostics import BranchShares, ParallelPair
from unbraid.judging.uniqueness import Flat
from unbraid.report.cards import certified_words, matters
from unbraid.report.steps import next_steps
from unbraid.report.subject import Subject
from unbraid.report.trust import bias_words, samples_words
from unbraid.report.verdict import badges, grade, verdict
from unbraid.report.words import share_of, short_share
from unbraid.results.wild import WILD

pytestmark = pytest.mark.usefixtures("no_formulas", "no_layout")


@pytest.fixture(scope="module")
def fit() -> ub.Fit:
    problem, _ = ub.datasets.trig(S=100, rng=0)
    return ub.decouple(problem, 3, basis=ub.BSpline(df=16), starts=4, rng=0)


def few(fit: ub.Fit, stretch: float = 0.8) -> ub.Problem:
    problem, truth = ub.datasets.trig(S=12, rng=7)
    X = stretch * problem.X
    return ub.Problem(X, truth(X), truth.jacobian(X))


def steps(fit: ub.Fit | ub.DecoupledModel, problem: ub.Problem | None = None) -> str:
    return " ".join(next_steps(Subject.of(fit, None, problem)))


def missing(fit: ub.Fit, error: float, **changes: Any) -> ub.Fit:
    """The fit as if it had an error."""
    return replace(fit, output_errors=np.array([error, 1.0]), **changes)


def page(about: ub.Fit | ub.DecoupledModel, folder: Path, problem: ub.Problem | None = None) -> str:
    from unbraid.report import write_report

    write_report(about, folder / "page.html", problem=problem)
    return (folder / "page.html").read_text(encoding="utf-8")


# Samples that are not the fit's.


def test_only_the_samples_of_the_fit_are_called_so(fit: ub.Fit) -> None:
    assert "samples left out one at a time" in steps(fit)
    assert "are on the samples of the fit" in steps(replace(fit, held_out=None))
    for about in (fit, fit.model, fit.without_problem()):
        told = steps(about, few(fit))
        assert "are on the samples given" in told
        assert "it has not seen" not in told


def test_samples_of_the_fit_that_are_given_again_are_recognised(fit: ub.Fit) -> None:
    problem = cast(ub.Problem, fit.problem)
    again = ub.Problem(problem.X.copy(), problem.F, problem.J)
    assert Subject.of(fit, None, again).own
    assert Subject.of(fit.without_problem(), None, again).own
    assert not Subject.of(fit.model, None, again).own


def test_few_other_samples_say_nothing_of_uniqueness(fit: ub.Fit, tmp_path: Path) -> None:
    for about in (fit, fit.model):
        text = page(about, tmp_path, few(fit))
        assert "Is the decoupling unique?" not in text
        assert "nique</li>" not in text
        assert "smaller rank" not in text
        assert "is a question about the samples it was fitted to" in text
    assert "Is the decoupling unique?" in page(fit, tmp_path)


def test_what_was_asked_for_is_not_known_of_a_model_alone() -> None:
    problem, _ = ub.datasets.monotone(S=60, rng=0)
    fit = ub.decouple(problem, 3, basis=ub.BSpline(df=10), constraint=ub.Increasing(), starts=1, rng=0)
    told = certified_words(Subject.of(fit.model, None, problem), 0)
    assert "show it to be increasing" in told
    assert "asked" not in told


def test_the_call_that_repeats_the_fit_has_the_shapes_of_its_samples(fit: ub.Fit, tmp_path: Path) -> None:
    assert "X (100, 2)" in page(fit, tmp_path, few(fit))


def test_samples_outside_the_training_range_are_counted(fit: ub.Fit) -> None:
    far = Subject.of(fit.model, None, few(fit, 3.0))
    u = far.problem.X @ fit.model.W0.T
    low, high = np.array([branch.domain for branch in fit.model.branches]).T
    expected = int(((u < low) | (u > high)).any(axis=1).sum())
    assert expected > 1
    assert f"{expected} of 12 samples lie outside the training range" in samples_words(far)
    assert "outside" not in samples_words(Subject.of(fit.model, None, few(fit, 0.5)))
    assert samples_words(Subject.of(fit, None, None)) == ""


# Jacobians alone.


def test_constants_that_are_open_are_to_be_set_before_values_are_compared(fit: ub.Fit) -> None:
    problem = cast(ub.Problem, fit.problem)
    alone = ub.decouple(ub.Problem(problem.X, J=problem.J), 3, starts=2, rng=0)
    told = steps(alone)
    assert "output_errors(F_new, fit.model" not in told
    assert "fit.model.through(X, F)" in told
    assert "The bias is open" in bias_words(Subject.of(alone, None, None))


def test_a_model_of_jacobians_alone_is_not_condemned_by_values_for_its_constants(fit: ub.Fit) -> None:
    problem = cast(ub.Problem, fit.problem)
    alone = ub.decouple(ub.Problem(problem.X, J=problem.J), 3, starts=2, rng=0)
    subject = Subject.of(alone, None, problem)
    assert "reproduce both outputs to" in verdict(subject)
    assert "with constants set from these samples" in verdict(subject)
    assert "set from the samples of this page" in bias_words(subject)
    assert "constants" not in verdict(Subject.of(fit, None, None))


# Words and errors.


def test_words_match_the_unexplained_share() -> None:
    assert [grade(error) for error in (30.0, 63.0, 80.0, 120.0)] == [
        "large",
        "large",
        "mostly unexplained",
        "not explained",
    ]


def test_shares_of_branches_that_cancel_have_no_number() -> None:
    assert share_of(1.5, "it", True) == "150\N{NO-BREAK SPACE}% of it"
    assert share_of(1.2e7, "it", True) == "more than twice it, as branches cancel"
    assert share_of(1.2e7, "it", False) == "more than twice it"
    assert short_share(1.2e7).split() == [">", "200", "%"]


def test_a_card_of_a_branch_that_cancels_says_so(fit: ub.Fit) -> None:
    subject = Subject.of(fit, None, None)
    subject.__dict__["both_shares"] = BranchShares(np.array([1e9, 0.5, 0.5]), None, np.ones(3))
    assert matters(subject, 0) == "more than twice the outputs’ variance, as branches cancel"


# Advice.


def with_pair(fit: ub.Fit, pair: ParallelPair) -> Subject:
    subject = Subject.of(fit, None, None)
    subject.__dict__["diagnostics"] = replace(subject.diagnostics, parallel=(pair,))
    return subject


@pytest.mark.parametrize("cancelling", [True, False])
def test_no_smaller_rank_is_advised_while_an_error_is_left(fit: ub.Fit, cancelling: bool) -> None:
    pair = ParallelPair(0, 1, 0.1, cancelling, not cancelling)
    told = " ".join(next_steps(with_pair(missing(fit, 30.0), pair)))
    assert "rank 4" in told
    assert "rank 2" not in told
    assert "smaller" not in told
    assert "as a sum" in told
    assert "rank 2" in " ".join(next_steps(with_pair(fit, pair)))


def test_no_smaller_rank_or_df_is_advised_where_the_model_is_not_unique_and_misses_much(fit: ub.Fit) -> None:
    found = Subject.of(missing(fit, 30.0), None, None).diagnostics
    assert "smaller" not in " ".join(replace(found, flat=Flat(3, 0)).advice)
    assert "a smaller rank" in " ".join(replace(found, flat=Flat(3, 0), explained=True).advice)


def test_of_a_unique_model_no_other_mixes_do_as_well(fit: ub.Fit) -> None:
    subject = with_pair(fit, ParallelPair(0, 1, 0.1, False, False))
    assert "Locally unique" in [badge.text for badge in badges(subject)]
    assert "other mixes" not in " ".join(next_steps(subject))
    assert "other mixes" in " ".join(replace(subject.diagnostics, flat=Flat(1, 0)).advice)


def test_a_shape_is_suspected_where_much_is_missed(fit: ub.Fit) -> None:
    shaped = (ub.Increasing(),) * 3
    assert "fit without `constraint`" in steps(missing(fit, 40.0, constraints=shaped))
    assert "fit without `constraint`" not in steps(missing(fit, 40.0))
    assert "fit without `constraint`" not in steps(missing(fit, 4.0, constraints=shaped))


def test_advice_that_was_followed_is_not_given_again(fit: ub.Fit) -> None:
    plain = steps(missing(fit, 30.0))
    assert "ub.select" in plain
    assert "SmoothingSpline" in plain
    auto = replace(cast(Request, fit.asked), rank="auto")
    chosen = steps(missing(fit, 30.0, asked=auto))
    assert "rank 4" not in chosen
    assert "ub.select" not in chosen
    smooth = steps(missing(fit, 30.0, basis=ub.SmoothingSpline()))
    assert "SmoothingSpline" not in smooth
    assert "`df`" not in smooth
    both = steps(missing(fit, 30.0, basis=ub.SmoothingSpline(), asked=auto))
    assert "Where the samples are noisy, that may be the noise" in both
    assert "try" not in both


def test_wild_samples_are_what_to_look_at_first(fit: ub.Fit) -> None:
    wild = f"{WILD}F: 1 of 100 samples (sample 3, counted from 0; output 1) is far from what the others make likely."
    told = steps(missing(fit, 30.0, notes=(wild,)))
    assert told.startswith(wild)
    assert "rank 4" not in told
