"""The pictures of how a fit came about: convergence of the best start, and where all starts ended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from pictures import line, trig
from unbraid import plots
from unbraid.errors import DataError
from unbraid.results.fit import StartSummary
from unbraid.results.outcome import Event, EventKind, Status, Trace


def of_trace(trace: Trace) -> Any:
    return plots.convergence(replace(trig()[0], trace=trace))


def test_objective_and_jacobian_error_are_drawn_sweep_by_sweep() -> None:
    fit, _ = trig()
    panel = plots.convergence(fit)
    sweeps, objective = line(panel, "objective")
    np.testing.assert_array_equal(sweeps, np.arange(1, fit.trace.sweeps + 1))
    np.testing.assert_array_equal(objective, fit.trace.objective)
    np.testing.assert_array_equal(line(panel, "Error(J)")[1], fit.trace.jacobian_error)
    assert panel.get_yscale() == "log"


def test_values_alone_have_no_jacobian_error_to_draw() -> None:
    x = np.linspace(-1.0, 1.0, 50)
    fit = ub.decouple(ub.Problem(x, np.tanh(3.0 * x)), 1, starts=1, rng=0)
    assert "Error(J)" not in [one.get_label() for one in plots.convergence(fit).get_lines()]


def test_a_trace_knows_where_the_search_ended() -> None:
    """Search and polish have budgets of their own; what has no polish is search throughout."""
    problem, _ = ub.datasets.trig(S=100, rng=1)
    fit = ub.decouple(problem, 3, method=ub.methods.default(max_sweeps=7), starts=2, rng=0)
    assert fit.trace.search == 7
    assert fit.trace.sweeps > 7
    assert ub.decouple(problem, 3, starts=1, rng=0, polish=False).trace.search is None
    assert ub.decouple(problem, 3, rng=0, init=fit.model).trace.search in (0, None)


def test_a_line_parts_the_search_from_gauss_newton_steps() -> None:
    fit, _ = trig()
    panel = plots.convergence(fit)
    assert fit.trace.search is not None
    at = fit.trace.search + 0.5
    [parting] = [one for one in panel.get_lines() if np.array_equal(np.asarray(one.get_xdata()), [at, at])]
    assert [text.get_text().strip() for text in panel.texts] == ["search", "Gauss–Newton"]
    assert parting.get_linestyle() == ":"
    assert len(of_trace(replace(fit.trace, search=None)).texts) == 0


@pytest.mark.parametrize(
    ("search", "said"), [(3, "sweeps, then Gauss–Newton steps"), (0, "Gauss–Newton step"), (None, "sweep")]
)
def test_the_axis_says_what_it_counts(search: int | None, said: str) -> None:
    assert of_trace(replace(trig()[0].trace, search=search)).get_xlabel() == said


def test_events_are_marked_where_they_happened() -> None:
    events = (
        Event(2, EventKind.COUPLING_RAISED, value=1.0),
        Event(4, EventKind.REPLACED, 0),
        Event(4, EventKind.REPLACED, 1),
    )
    objective = np.array([1.0, 0.5, 0.2, 0.1, 0.05])
    panel = of_trace(Trace(objective, objective, events))
    np.testing.assert_array_equal(np.transpose(line(panel, "λ raised")), [[2.0, 0.5]])
    np.testing.assert_array_equal(np.transpose(line(panel, "branch replaced")), [[4.0, 0.1]])


def test_exact_and_failed_sweeps_do_not_break_the_axis() -> None:
    objective = np.array([1.0, np.nan, np.inf, 0.0])
    panel = of_trace(Trace(objective, objective, (Event(3, EventKind.NOT_FINITE),)))
    low, high = panel.get_ylim()
    assert 0.0 < low < 1e-31
    assert 1.0 < high < 1e3


def test_a_fit_without_sweeps_has_nothing_to_show() -> None:
    with pytest.raises(DataError, match="made no sweeps"):
        of_trace(Trace(np.zeros(0), np.zeros(0), ()))


def start(objective: float, angle: float = 0.0, finished: bool = True) -> StartSummary:
    return StartSummary(objective, 10, Status.CONVERGED, angle, 1.0, finished)


def of_starts(*starts: StartSummary) -> Any:
    return plots.starts(replace(trig()[0], starts=starts))


def test_every_start_is_drawn_best_first_by_how_it_ended() -> None:
    finished = start(1e-6), start(2e-6, 4.9), start(1e-5, 5.1)
    panel = of_starts(*finished, start(1e-3, 0.1, False), start(1e-2, 60.0, False))
    drawn = {one.get_label(): np.asarray(one.get_xydata()).tolist() for one in panel.get_lines()}
    assert drawn == {
        "finished, agrees": [[1.0, 1e-6], [2.0, 2e-6]],
        "finished, differs": [[3.0, 1e-5]],
        "left after the search, agrees": [[4.0, 1e-3]],
        "left after the search, differs": [[5.0, 1e-2]],
    }
    assert len({(one.get_marker(), one.get_markerfacecolor()) for one in panel.get_lines()}) == 4


@pytest.mark.parametrize(
    ("starts", "words"),
    [
        ([start(1.0)], "1 start"),
        ([start(1.0, finished=False)], "1 start, not finished"),
        ([start(1.0), start(1.0, 90.0)], "2 starts finished, 1 agrees"),
        ([start(1.0), start(1.0), start(2.0, 0.0, False)], "2 of 3 starts finished, 2 agree"),
        ([start(1.0), start(2.0, 0.0, False)], "1 of 2 starts finished"),
        ([start(1.0), start(np.inf, 90.0)], "2 starts finished, 1 agrees"),
    ],
    ids=range(6),
)
def test_the_title_counts(starts: list[StartSummary], words: str) -> None:
    panel = of_starts(*starts)
    panel.get_figure().canvas.draw()
    assert panel.get_title() == words


def test_starts_that_ended_about_equally_low_look_so() -> None:
    """Logarithmic axes span a decade at least."""
    low, high = of_starts(start(2.25e-6), start(2.30e-6)).get_ylim()
    assert high / low >= 10.0


def test_a_start_that_is_exact_is_drawn() -> None:
    [drawn] = of_starts(start(0.0)).get_lines()
    assert drawn.get_ydata()[0] == 1e-32
