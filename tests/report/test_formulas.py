"""The page has formulas where branches are closed forms."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline

import unbraid as ub
from report_pages import Page, written
from unbraid.report.formulas import MOST_BRANCHES, in_formulas
from unbraid.report.subject import Subject


@cache
def fitted() -> ub.Fit:
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (120, 2))
    F = np.sin(2.0 * X[:, 0] + X[:, 1])
    return ub.decouple(ub.Problem(X, F, input_names=["<b>", "load"]), 1, starts=4, rng=0)


def test_a_fit_that_has_formulas_shows_them_with_names_as_text(tmp_path: Path) -> None:
    source = written(fitted(), tmp_path)
    text = Page(source).text
    assert "In formulas Within what the data leave open branch 1 (sine) is a closed form." in text
    assert "sin(2 &#34;&lt;b&gt;&#34; + load)" in source
    assert "<b>" not in source


def test_a_model_of_formulas_shows_them(tmp_path: Path) -> None:
    fit = fitted()
    text = Page(written(fit.with_formulas(), tmp_path, problem=fit.problem)).text
    assert "Branches of this model are closed forms." in text
    assert "f₁ = sin(2" in text


def test_a_fit_without_formulas_says_so() -> None:
    rng = np.random.default_rng(3)
    curve = CubicSpline(np.linspace(-1.5, 1.5, 9), rng.standard_normal(9))
    X = rng.uniform(-1.0, 1.0, (150, 2))
    fit = ub.decouple(ub.Problem(X, curve(X @ [0.8, 0.6])), 1, starts=4, rng=0)
    found = in_formulas(Subject.of(fit, None, None))
    assert found is not None
    assert found.words.startswith("No branch is one of the closed forms")
    assert not found.lines


def test_many_branches_are_left_to_the_function() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (200, 8))
    problem = ub.Problem(X, np.sin(3.0 * X))
    fit = ub.decouple(problem, MOST_BRANCHES + 1, basis=ub.BSpline(4), starts=1, rng=0)
    assert in_formulas(Subject.of(fit, None, None)) is None
