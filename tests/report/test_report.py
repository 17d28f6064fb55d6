"""A report says what it should, escapes what it is given, and needs nothing from elsewhere."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

import unbraid as ub
from report_pages import HOSTILE, Page, hostile_fit, written
from unbraid.report.cards import branch_cards, output_rows
from unbraid.report.diagram import WIDE_SCREEN, lay_out
from unbraid.report.figures import branch_figures, residual_figure
from unbraid.report.repeat import settings
from unbraid.report.subject import Subject
from unbraid.report.svg import tidy_tag
from unbraid.report.verdict import verdict

pytestmark = pytest.mark.usefixtures("no_formulas", "no_layout")


def test_tags_are_closed_and_ids_are_unique(page: str) -> None:
    ids = Page(page).having("id")
    assert len(ids) == len(set(ids))


def test_every_reference_inside_the_page_exists(page: str) -> None:
    ids = set(Page(page).having("id"))
    used = set(re.findall(r"url\(#([^)]+)\)", page)) | set(re.findall(r'href="#([^"]+)"', page))
    assert used
    assert used <= ids


def test_nothing_is_loaded_from_elsewhere_and_the_page_is_small(page: str) -> None:
    for _, attributes in Page(page).tags:
        for name in ("src", "href", "xlink:href", "srcset", "data", "action"):
            assert (attributes.get(name) or "#").startswith(("#", "data:image/png;base64,")), attributes
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    assert len(page.encode()) < 250_000


def test_the_page_says_what_was_found_in_order(page: str) -> None:
    text = Page(page).text
    places = [
        text.index(word)
        for word in (
            "Three branches reproduce both outputs to",
            "The model",
            "Branch 3",
            "Errors",
            "How it was found",
            "Can it be trusted?",
            "What to try next",
            "To repeat it",
        )
    ]
    assert places == sorted(places)
    assert "The search ended by itself" in text


def test_names_are_text_and_never_markup(tmp_path: Path) -> None:
    fit = hostile_fit()
    for page in (Page(written(fit, tmp_path)), Page(cast(str, fit._repr_html_()))):
        assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
        assert not [tag for tag, _ in page.tags if tag == "script"][1:]
        for name in HOSTILE:
            assert " ".join(name.split())[:10] in page.text


def test_errors_are_in_words_and_numbers(found: tuple[ub.Fit, ub.DecoupledModel], page: str) -> None:
    errors = found[0].output_errors
    assert errors is not None
    for error in errors:
        assert f"{error:.2g} %" in Page(page).text
    assert "very small" in Page(page).text


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        ([1e-9, 1e-10], "Three branches reproduce both outputs exactly, up to rounding."),
        ([0.1, 0.04], "Three branches reproduce both outputs to 0.1 % or better."),
        ([12.0, 3.0], "Three branches follow both outputs, with an error of 12 % in the worst."),
        ([30.0, 3.0], "Three branches follow both outputs roughly, with an error of 30 % in the worst."),
        ([63.0, 3.0], "Three branches leave 40 % of f₁ unexplained: an error of 63 %."),
        ([80.0, 60.0], "Three branches leave up to 64 % of f₁ and f₂ unexplained: an error of 80 %."),
        ([120.0, 3.0], "Three branches follow f₁ no better than its mean in the worst case: an error of 120 %."),
    ],
)
def test_the_verdict_fits_the_error(found: tuple[ub.Fit, ub.DecoupledModel], errors: list[float], said: str) -> None:
    fit = replace(found[0], output_errors=np.array(errors))
    assert " ".join(verdict(Subject.of(fit, None, None)).split()) == said


def test_a_model_and_samples_make_a_page_without_a_course(
    found: tuple[ub.Fit, ub.DecoupledModel], tmp_path: Path
) -> None:
    text = Page(written(found[0].model, tmp_path, problem=found[0].problem)).text
    assert "does not tell how the model was found" in text
    assert "Three branches reproduce both outputs" in text
    assert "What to try next" in text


def test_a_callback_is_told_of_every_figure(found: tuple[ub.Fit, ub.DecoupledModel], tmp_path: Path) -> None:
    told: list[ub.Progress] = []
    written(found[0], tmp_path, callback=told.append)
    assert [(one.phase, one.done, one.total) for one in told] == [("draw", j, 3) for j in (1, 2, 3)]


def test_jacobians_alone_make_a_page(found: tuple[ub.Fit, ub.DecoupledModel], tmp_path: Path) -> None:
    problem = cast(ub.Problem, found[0].problem)
    fit = ub.decouple(ub.Problem(problem.X, J=problem.J), 3, starts=4, rng=0)
    assert "branches reproduce the Jacobians to" in Page(written(fit, tmp_path)).text


def test_values_alone_with_gaps_and_weights_make_a_page(
    found: tuple[ub.Fit, ub.DecoupledModel], tmp_path: Path
) -> None:
    problem = cast(ub.Problem, found[0].problem)
    F = np.array(problem.F)
    F[::7, 0] = np.nan
    gappy = ub.Problem(problem.X, F, weights=np.linspace(0.5, 1.5, problem.S), missing="mask")
    text = Page(written(ub.decouple(gappy, 2, starts=2, rng=0), tmp_path)).text
    assert "nan" not in text.lower()


def test_one_branch_one_input_one_output_make_a_page(tmp_path: Path) -> None:
    X = np.linspace(-1.0, 1.0, 40)[:, None]
    fit = ub.decouple(ub.Problem(X, np.tanh(X), 1.0 - np.tanh(X) ** 2), 1, starts=1, rng=0)
    assert "One branch reproduces the output exactly, up to rounding." in Page(written(fit, tmp_path)).text


def test_a_constant_output_does_not_spoil_the_verdict(tmp_path: Path) -> None:
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (60, 2))
    F = np.stack([np.tanh(X[:, 0]), np.full(60, 0.1)], axis=1)
    fit = ub.decouple(ub.Problem(X, F), 1, starts=2, rng=0)
    text = Page(written(replace(fit, output_errors=np.array([0.2, np.inf])), tmp_path)).text
    assert "One branch reproduces the output that varies to 0.2 %." in text
    assert "it does not vary" in text


def test_a_hundred_branches_make_a_page_below_a_megabyte(tmp_path: Path) -> None:
    problem, _ = ub.datasets.random_system(n=4, m=4, r=1, S=60, kind="sine", rng=0)
    branch = ub.decouple(problem, 1, basis=ub.BSpline(12), starts=1, rng=0).model.branches[0]
    rng = np.random.default_rng(0)
    model = ub.DecoupledModel(rng.normal(size=(100, 30)), rng.normal(size=(30, 100)), [branch] * 100)
    X = rng.uniform(-1.0, 1.0, (50, 30))
    page = written(model, tmp_path, problem=ub.Problem(X, model(X)))
    assert "The 30 branches that matter most have figures" in page
    assert page.count('<article class="card"') == 100
    assert len(page.encode()) < 1_000_000


def test_certificates_are_on_the_page(tmp_path: Path) -> None:
    problem, _ = ub.datasets.monotone(S=60, rng=0)
    fit = ub.decouple(problem, 3, basis=ub.BSpline(df=10), constraint=ub.Increasing(), starts=2, rng=0)
    text = Page(written(fit, tmp_path)).text
    assert text.count("Certified increasing on its whole range") == 3
    assert "each certified to be increasing" in text


def test_numbers_and_names_in_figures_are_left_as_they_are() -> None:
    assert tidy_tag('<path d="M 1.23456 2.3" id="a"/>', "p") == '<path d="M 1.23 2.3" id="p-a"/>'
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.005, 0.005, (60, 2))
    F = np.stack([np.sin(300.0 * X[:, 0]), np.cos(300.0 * X[:, 1])], axis=-1)
    problem = ub.Problem(X, F, output_names=("flow_1.23456", "h at 0.98765 m"))
    fit = ub.decouple(problem, 2, starts=2, rng=0)
    figure = str(residual_figure(Subject.of(fit, None, None)))
    assert "flow_1.23456" in figure
    assert "h at 0.98765 m" in figure
    drawn = "".join(str(one) for one in branch_figures(Subject.of(fit, None, None)))
    assert re.search(r">[^<]*0\.00[1-9]", drawn), "ticks of small inputs have their digits"


def test_sample_numbers_and_shapes_are_those_of_the_samples_given(tmp_path: Path) -> None:
    """Also where the first ones have no weight, and the largest misses."""
    problem, _ = ub.datasets.trig(S=100, rng=1)
    F, weights = np.array(problem.F), np.ones(100)
    F[:20], weights[:20] = 50.0, 0.0
    F[90] += 10.0
    fit = ub.decouple(ub.Problem(problem.X, F, problem.J, weights=weights), 2, starts=2, rng=0)
    text = Page(written(fit, tmp_path)).text
    assert text.count("at sample 90") == 2
    assert "X (100, 2), F (100, 2), J (100, 2, 2)" in text


def test_an_output_without_values_has_no_misses() -> None:
    problem, truth = ub.datasets.trig(S=30, rng=0)
    values = np.where([False, True], np.nan, np.asarray(problem.F))
    rows = output_rows(Subject.of(truth, None, ub.Problem(problem.X, values, problem.J, missing="mask")))
    assert (rows[1].absolute, rows[1].worst) == ("–", "–")


@pytest.fixture(scope="module")
def mixed() -> ub.Fit:
    problem, _ = ub.datasets.monotone(S=60, rng=0)
    shapes = [ub.Increasing(), None, ub.Increasing()]
    return ub.decouple(problem, 3, basis=ub.BSpline(df=10), constraint=shapes, starts=2, rng=0)


def test_shapes_asked_for_are_listed_branch_by_branch(mixed: ub.Fit) -> None:
    assert dict(settings(Subject.of(mixed, None, None)))["shape asked for"] == "increasing, none, increasing"
    alike = replace(mixed, constraints=(None, None, None))
    assert dict(settings(Subject.of(alike, None, None)))["shape asked for"] == "none"


def test_mixed_shapes_that_hold_are_a_badge(mixed: ub.Fit, tmp_path: Path) -> None:
    said = "Every shape asked for is certified"
    assert said in Page(written(mixed, tmp_path)).text
    assert said in Page(cast(str, mixed._repr_html_())).text
    failed = replace(mixed, constraints=(ub.Decreasing(), None, ub.Increasing()))
    assert said not in Page(written(failed, tmp_path)).text


def test_shares_in_the_diagram_are_those_of_the_cards_and_bars_are_as_long(
    found: tuple[ub.Fit, ub.DecoupledModel], page: str
) -> None:
    subject = Subject.of(found[0], None, None)
    drawn = lay_out(WIDE_SCREEN, subject, subject.shares)
    shares = subject.diagnostics.importance
    for box, card, share in zip(drawn.boxes, branch_cards(subject), shares, strict=True):
        assert card.importance.startswith(f"{box.share} of the outputs’ variance and ")
        assert box.bar == pytest.approx((WIDE_SCREEN.box - 24.0) * min(1.0, share))
    assert "is the share of the branch in the outputs’ variance; a full bar is 100 % or more." in Page(page).text
