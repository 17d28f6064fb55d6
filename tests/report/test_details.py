"""Details of a page: what is negligible is not listed, names are whole or shortened, and code keeps them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import unbraid as ub
from report_pages import Page, written
from unbraid.report.cards import direction_formula
from unbraid.report.diagram import NARROW_SCREEN, WIDE_SCREEN, Proportions, lay_out, shorten_names, text_width
from unbraid.report.figures import course_figures, is_flat
from unbraid.report.repeat import python_code
from unbraid.report.steps import next_steps
from unbraid.report.subject import Subject
from unbraid.report.trust import course_words, residual_words

pytestmark = pytest.mark.usefixtures("no_formulas")

LONG = ("Wave height MAXIMUM, Main Mast", "MWMWMWMWMWMWMWMWMWMWMWMWMWMW", "风速风速风速风速风速风速风速风速", "x")


@cache
def values_alone() -> ub.Fit:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (200, 3))
    F = np.stack([np.sin(2.0 * X[:, 0] + X[:, 1]), np.exp(X[:, 0]) + 2.0 * X[:, 2]], axis=1)
    F += 0.01 * rng.standard_normal(F.shape)
    problem = ub.Problem(X, F, input_names=LONG[:3], output_names=["load [N]", 'a "quoted" name, y'])
    return ub.decouple(problem, 3, rng=0)


def test_negligible_terms_of_a_direction_are_not_listed() -> None:
    problem, _ = ub.datasets.trig(S=60, rng=0)
    fit = ub.decouple(problem, 3, starts=1, rng=0)
    W0 = np.array([[1.0, 5e-7], [0.5, -0.5], [0.0, -1.0]])
    model = ub.DecoupledModel(W0, fit.model.W1, fit.model.branches, fit.model.bias)
    subject = Subject.of(model, None, problem)
    told = [direction_formula(subject, j, subject.weights[0][j]) for j in range(3)]
    assert told == ["u₁ = 1 x₁", "u₂ = 0.5 x₁ − 0.5 x₂", "u₃ = −1 x₂"]


@pytest.mark.parametrize("form", [WIDE_SCREEN, NARROW_SCREEN], ids=["wide", "narrow"])
def test_names_have_room_for_every_letter_in_the_diagram(form: Proportions) -> None:
    drawn = lay_out(form, Subject.of(values_alone(), None, None), None)
    for node in drawn.inputs:
        assert node.x - 12.0 - text_width(node.label) >= 0.0
    for node in drawn.outputs:
        assert node.x + 12.0 + text_width(node.label) <= form.width


def test_long_names_are_shortened_so_that_they_differ() -> None:
    short = shorten_names(
        ["x", "pressure of the large cylinder", *(f"temperature of bearing {k}" for k in range(3))], 165.0
    )
    assert len(set(short)) == 5
    assert all(text_width(one) <= 165.0 for one in short)
    assert short[0] == "x"
    assert short[1].startswith("pressure of the")
    assert [one[-1] for one in short[1:]] == ["…", "0", "1", "2"]


def test_the_code_to_repeat_a_fit_keeps_the_names() -> None:
    fit = values_alone()
    code = python_code(Subject.of(fit, None, None))
    assert fit.problem is not None
    seen: dict[str, object] = {"X": fit.problem.X, "F": fit.problem.F}
    exec(code[: code.index("fit = ")], seen)  # as a user would
    again = seen["problem"]
    assert isinstance(again, ub.Problem)
    assert (again.input_names, again.output_names) == (fit.problem.input_names, fit.problem.output_names)


def test_names_that_are_many_are_a_variable_in_the_code() -> None:
    problem, _ = ub.datasets.random_system(n=1, m=80, r=1, S=90, rng=0)
    named = ub.Problem(problem.X, problem.F, problem.J, input_names=[f"input {k}" for k in range(80)])
    assert "input_names=input_names" in python_code(Subject.of(ub.decouple(named, 1, starts=1, rng=0), None, None))


def test_a_course_without_any_change_is_not_drawn(tmp_path: Path) -> None:
    fit = values_alone()
    assert is_flat(fit.trace)
    assert [heading for heading, _ in course_figures(fit)] == ["How all starts ended"]
    assert "no course is drawn" in course_words(Subject.of(fit, None, None))
    assert "The course of the best start" not in Page(written(fit, tmp_path)).text
    problem, _ = ub.datasets.trig(S=60, rng=0)
    assert not is_flat(ub.decouple(problem, 3, starts=2, rng=0).trace)


def test_what_a_note_says_is_not_said_again_as_a_next_step() -> None:
    rng = np.random.default_rng(0)
    noise = ub.Problem(rng.uniform(-1, 1, (200, 3)), rng.standard_normal((200, 2)), rng.standard_normal((200, 2, 3)))
    fit = ub.decouple(noise, 4, basis=ub.BSpline(12), rng=0, starts=4)
    found = ub.diagnose(fit)
    [said] = [note for note in fit.notes if "finished starts found these directions" in note]
    assert said in found.advice
    assert said not in list(next_steps(Subject.of(fit, None, None)))


def test_no_larger_rank_is_advised_where_samples_are_too_few_as_it_is() -> None:
    problem, _ = ub.datasets.trig(S=30, rng=0)
    rough = ub.Problem(problem.X, problem.F + np.random.default_rng(0).standard_normal((30, 2)))  # type: ignore[operator]
    fit = ub.decouple(rough, 3, basis=ub.BSpline(12), starts=2, rng=0)
    assert any(
        "say little about new points: use a smaller df, fewer branches, or more samples" in one for one in fit.notes
    )
    missing = replace(fit, output_errors=np.array([30.0, 20.0]))
    told = " ".join(next_steps(Subject.of(missing, None, None)))
    assert "An error of 30" in told
    assert "rank 4" not in told
    assert "larger" not in told
    assert "a larger rank" not in residual_words(Subject.of(missing, None, None))
