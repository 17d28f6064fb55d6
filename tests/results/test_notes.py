"""Notes: said where they are true, and not where they are not."""

from __future__ import annotations

import numpy as np
import pytest

import unbraid as ub
from unbraid.results.notes import Shown, notes_on, notes_on_errors
from unbraid.results.outcome import Status
from unbraid.results.smoothing import Smoothing


def noted(fit: ub.Fit, words: str) -> bool:
    return any(words in note for note in fit.notes)


def test_a_good_fit_needs_no_notes() -> None:
    problem, _ = ub.datasets.trig(rng=0)
    assert ub.decouple(problem, 3, rng=0).notes == ()


def test_more_unknowns_than_data_are_noted() -> None:
    problem, _ = ub.datasets.random_system(2, 3, 3, 20, "sine", rng=0)
    fit = ub.decouple(ub.Problem(problem.X, problem.F), 3, basis=ub.BSpline(6), starts=2, rng=0)
    assert noted(fit, f"There are {3 * (2 + 2 + 6)} unknowns for 40 numbers")


def test_as_many_unknowns_as_data_are_noted_and_no_error_is_promised() -> None:
    problem, _ = ub.datasets.random_system(2, 3, 3, 20, "sine", rng=0)
    fit = ub.decouple(ub.Problem(problem.X, problem.F), 3, basis=ub.BSpline(12), starts=2, rng=0)
    assert noted(fit, f"The search had {3 * (2 + 1 + 12) + 2} unknowns for 40 numbers")
    assert fit.held_out is None


def test_jacobians_in_other_units_than_values_are_noted() -> None:
    problem, _ = ub.datasets.trig(rng=0)
    assert problem.J is not None
    assert noted(
        ub.decouple(ub.Problem(problem.X, problem.F, 2.0 * problem.J), 3, rng=0), "F and J contradict each other"
    )


def test_a_model_that_explains_nothing_is_noted() -> None:
    rng = np.random.default_rng(0)
    fit = ub.decouple(ub.Problem(rng.uniform(-1, 1, (300, 3)), rng.standard_normal((300, 2))), 1, rng=0)
    assert noted(fit, "explains little of output 1, 2")


def test_outputs_are_called_by_their_names_and_only_where_less_than_half_is_explained() -> None:
    X = np.arange(4.0)[:, None]
    problem = ub.Problem(X, np.zeros((4, 2)), output_names=["force", "torque"])
    model = ub.datasets.random_system(2, 1, 1, 4, rng=0)[1]
    assert list(notes_on_errors(problem, Shown(model, None, np.array([63.0, 70.0])))) == []
    [note] = notes_on_errors(problem, Shown(model, None, np.array([63.0, 72.0])))
    assert "explains little of torque:" in note


def test_values_at_one_point_are_not_blamed_on_the_jacobians() -> None:
    F = 0.3 + 1e-16 * np.arange(20.0)[:, None]
    fit = ub.decouple(ub.Problem(np.ones((20, 3)), F, np.ones((20, 1, 3))), 2, starts=2, rng=0)
    assert noted(fit, "points in X are the same")
    assert not noted(fit, "F and J")


def test_a_start_that_stands_alone_is_noted() -> None:
    rng = np.random.default_rng(0)
    noise = ub.Problem(rng.uniform(-1, 1, (200, 3)), rng.standard_normal((200, 2)), rng.standard_normal((200, 2, 3)))
    fit = ub.decouple(noise, 4, basis=ub.BSpline(12), rng=0, starts=4)
    assert fit.agreeing == 1
    assert noted(fit, "finished starts found these directions")


def test_a_search_cut_short_is_not_blamed_on_the_data() -> None:
    problem, _ = ub.datasets.trig(rng=0)
    fit = ub.decouple(problem, 3, rng=0, method=ub.methods.default(max_seconds=1e-6))
    assert fit.status is ub.Status.OUT_OF_TIME
    assert not noted(fit, "finished starts")
    assert repr(fit.starts[0]).endswith("OUT_OF_TIME)")


def test_the_trace_holds_every_step_and_ends_at_the_objective() -> None:
    problem, _ = ub.datasets.trig(rng=0)
    fit = ub.decouple(problem, 3, rng=0, method=ub.methods.default(max_steps=2))
    assert fit.trace.objective[-1] == pytest.approx(fit.objective)
    assert fit.trace.sweeps <= 40 + 2 + 40


def test_empty_branches_are_told_of_beside_wild_samples() -> None:
    problem, truth = ub.datasets.trig(rng=0)
    F = np.array(problem.F)
    F[7, 0] = 1e6
    empty = ub.DecoupledModel(truth.W0, truth.W1 * [1.0, 1.0, 0.0], truth.branches)
    shown = Shown(empty, None, np.array([5.0, 5.0]), Smoothing(np.array([5.0, 5.0, 0.0]), None, 0.9, 0.0))
    notes = notes_on(ub.Problem(problem.X, F), 10, [], Status.CONVERGED, shown)
    assert notes[0].startswith("Wild values in F")
    assert notes[-1].startswith("Branch 3 carries nothing")


def test_noise_of_a_hundred_percent_is_a_number_that_can_be_read() -> None:
    rng = np.random.default_rng(0)
    fit = ub.decouple(ub.Problem(rng.uniform(-1, 1, (300, 3)), rng.standard_normal((300, 1))), 1, starts=2, rng=0)
    assert "e+" not in str(fit)


def test_what_is_plainly_no_noise_has_a_note_and_noise_has_none() -> None:
    exact, _ = ub.datasets.trig(S=200, rng=0)
    assert exact.F is not None
    noisy = ub.Problem(exact.X, exact.F + 0.1 * np.random.default_rng(0).standard_normal(exact.F.shape))
    for problem, rank, told in ((exact, 3, False), (noisy, 3, False), (exact, 1, True), (noisy, 1, True)):
        fit = ub.decouple(problem, rank, starts=4, rng=0)
        notes = [note for note in fit.notes if "plainly no noise" in note]
        assert len(notes) == told, (rank, fit.notes)
        assert all("try a larger rank" in note for note in notes)
