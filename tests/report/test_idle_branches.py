"""Pages about fits that chose their smoothing, and left branches out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import unbraid as ub
from idle_branches import KEPT, five_branches, noisy, three_branches
from report_pages import Page, written
from unbraid.report.steps import next_steps
from unbraid.report.subject import Subject
from unbraid.report.trust import residual_words, starts_answer

pytestmark = pytest.mark.usefixtures("no_formulas", "no_layout")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(five_branches(), tmp_path_factory.mktemp("idle"), truth=ub.datasets.trig(S=100, rng=1)[1])


def test_only_branches_that_carry_something_are_shown(text: str) -> None:
    page = Page(text)
    assert [one for one in page.having("id") if one.startswith("branch-")] == ["branch-1", "branch-3", "branch-5"]
    assert {int(one) for one in page.having("data-branch")} == set(KEPT)
    assert "Branches 2 and 4 carry nothing: the data support three of five branches." in page.text
    assert "Their directions in W0 mean nothing, and they are not shown." in page.text
    assert "Three branches" in page.text
    assert "branches 3 of 5" in page.text
    assert page.text.count("from the true direction") == 3


def test_what_was_chosen_stands_on_the_page(text: str) -> None:
    fit, words = five_branches(), Page(text).text
    assert fit.smoothing is not None
    for j in KEPT:
        assert f"Uses {fit.smoothing.freedom[j]:.1f} degrees of freedom, for its curve and its directions." in words
    assert f"λ, the weight of values beside slopes in balanced units, is {fit.smoothing.coupling:.3g}." in words
    assert fit.value_noise is not None
    first, second = (f"{one:.2g} % of f" for one in fit.value_noise)
    levels = f"{first}₁, {second}₂ and {fit.slope_noise:.2g} % of slopes."
    assert f"What is left, noise or what so many branches cannot follow, is {levels}" in words


def test_starts_are_not_accused_of_what_was_left_out(text: str) -> None:
    assert "finished starts agree" not in text
    assert starts_answer(Subject.of(five_branches(), None, None)).startswith(
        "Not known of the branches that are left: 3"
    )


def test_a_notebook_shows_what_was_chosen() -> None:
    view = five_branches()._repr_html_()
    assert view is not None
    assert "Branches 2 and 4 carry nothing" in view
    assert "What is left, noise or" in view


def test_a_page_about_a_fixed_basis_says_nothing_of_it(page: str) -> None:
    assert "degrees of freedom" not in page
    assert "carry nothing" not in page
    assert 'class="freedom"' not in page


def test_a_page_about_a_model_alone_leaves_idle_branches_out(tmp_path: Path) -> None:
    words = Page(written(five_branches().model, tmp_path, problem=noisy())).text
    assert "Branches 2 and 4 carry nothing. Their directions in W0 mean nothing, and they are not shown." in words


def test_no_step_asks_for_a_df_or_for_branches_that_data_do_not_support() -> None:
    errors = np.array([8.0, 8.0])
    idle, full = (
        Subject.of(replace(one, output_errors=errors), None, None) for one in (five_branches(), three_branches())
    )
    elsewhere = Subject.of(five_branches(), None, noisy(2))
    steps = {subject: " ".join(next_steps(subject)) for subject in (idle, full, elsewhere)}
    assert "The data support no further branch, so the fit takes it for noise." in steps[idle]
    assert "try rank 4" in steps[full]
    assert all("df" not in said for said in steps.values())
    assert "df" not in residual_words(idle) + residual_words(full)
