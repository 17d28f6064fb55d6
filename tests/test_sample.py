"""Samples of a box, as many as are enough."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from unbraid import plots
from unbraid.errors import DataError, FileError
from unbraid.kernels.arrays import Array
from unbraid.runtime.call_file import CallFile
from unbraid.runtime.progress import Progress
from unbraid.selection.learning import CurvePoint, ending_of

BOX = {"speed": (-1.0, 1.0), "load": (0.0, 2.0)}
QUICK: dict[str, Any] = {"starts": 4, "rng": 0}


def wave(x: Array) -> list[float]:
    return [float(np.tanh(x[0] + x[1])), float(np.sin(x[0] - x[1]))]


def curve(*errors: float, fitted: float = 0.0) -> list[CurvePoint]:
    """A made-up learning curve from 16 samples on."""
    return [CurvePoint(16 << k, 16 << k, np.array([error, 0.5 * error]), fitted, 2) for k, error in enumerate(errors)]


def test_it_ends_at_the_target_with_an_error_that_is_true() -> None:
    found = ub.sample(wave, BOX, 2, target=1.0, **QUICK)
    assert found.enough
    assert "within the target of 1 %" in found.reason
    assert found.error <= 1.0
    assert [one.samples for one in found.curve][-1] * 2 == found.problem.S
    assert found.problem.input_names == ("speed", "load")
    fresh = np.random.default_rng(0).uniform([-1.0, 0.0], [1.0, 2.0], (500, 2))
    errors = ub.metrics.output_errors([wave(x) for x in fresh], found.fit.model(fresh))
    assert errors.max() < 2.0


def test_noise_ends_it_when_the_error_has_stopped_falling() -> None:
    noise = np.random.default_rng(1)
    found = ub.sample(lambda x: wave(x) + 0.1 * noise.standard_normal(2), BOX, 2, derivatives=None, **QUICK)
    assert found.enough
    assert "has stopped falling" in found.reason
    assert found.problem.S <= 512


def test_it_ends_with_its_budget_and_says_so() -> None:
    found = ub.sample(wave, BOX, 2, derivatives=None, budget=40, target=1e-9, first=8, **QUICK)
    assert found.problem.S == 40
    assert not found.enough
    assert found.reason.startswith("The budget is spent.")
    assert [one.samples for one in found.curve] == [8, 16, 32]
    assert found.curve[-1].fresh == 8


def test_a_budget_for_one_fit_judges_nothing() -> None:
    found = ub.sample(wave, BOX, 1, derivatives=None, budget=10, **QUICK)
    assert found.curve == ()
    assert np.isnan(found.error)
    assert not found.enough
    assert "no points are left to judge it by" in repr(found)


def test_points_fill_the_box_and_the_same_seed_gives_the_same() -> None:
    one, two, other = (
        ub.sample(wave, BOX, 1, derivatives=None, budget=16, starts=2, rng=seed).problem.X for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)
    cells = {(int(8 * (x + 1.0)), int(8 * y)) for x, y in one}
    assert len({x for x, _ in cells}) == len({y for _, y in cells}) == 16  # one in each sixteenth, both ways


def test_a_cache_is_used_by_the_next_call(tmp_path: Path) -> None:
    calls = [0]

    def counted(x: Array) -> list[float]:
        calls[0] += 1
        return wave(x)

    settings: dict[str, Any] = {**QUICK, "budget": 32, "cache": tmp_path / "calls.npz"}
    one = ub.sample(counted, BOX, 2, **settings)
    before = calls[0]
    assert before <= 3 * one.problem.S + 10
    two = ub.sample(counted, BOX, 2, **settings)
    assert calls[0] == before
    np.testing.assert_array_equal(one.fit.model.W0, two.fit.model.W0)


def test_ctrl_c_keeps_what_there_is() -> None:
    def stop(progress: Progress) -> None:
        if progress.phase == "calls" and progress.total == 3 * 32:
            raise KeyboardInterrupt

    found = ub.sample(wave, BOX, 2, callback=stop, **QUICK)
    assert found.problem.S == 32
    assert not found.enough
    assert "Ctrl-C" in found.reason

    def stop_at_once(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ub.sample(wave, BOX, 2, callback=stop_at_once, **QUICK)


@pytest.mark.parametrize("budget", [17, 32, 47])
def test_a_few_fresh_points_are_never_enough(budget: int) -> None:
    found = ub.sample(wave, BOX, 2, budget=budget, target=50.0, **QUICK)
    assert budget == found.problem.S
    assert not found.enough
    assert f"only {found.curve[-1].fresh} fresh point" in found.reason
    assert "not known yet" in found.reason


def test_points_at_which_it_fails_are_left_out() -> None:
    def f(x: Array) -> list[float]:
        if x[0] < -0.5:
            raise RuntimeError("The solver diverged.")
        return wave(x) if x[1] < 1.5 else [np.nan, 0.0]

    found = ub.sample(f, BOX, 2, target=1.0, **QUICK)
    assert found.enough
    assert (found.problem.X[:, 0] >= -0.5).all()
    assert (found.problem.X[:, 1] < 1.5).all()
    [note] = found.notes
    assert " are left out, because f has no answer there: " in note
    assert note in repr(found)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_finished_rounds_are_kept(error: type[BaseException]) -> None:
    """Whatever ends a later one: an error at all of its points, or Ctrl-C in a call."""
    phases = set[str]()

    def f(x: Array) -> list[float]:
        if phases > {"calls"}:  # there was a fit
            raise error("no licence")
        return wave(x)

    found = ub.sample(f, BOX, 2, derivatives=None, callback=lambda progress: phases.add(progress.phase), **QUICK)
    assert found.problem.S == 16
    assert not found.enough
    assert found.reason.startswith("It ended early" if error is ValueError else "Ctrl-C")


def test_a_full_disk_is_told_of_and_work_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, after = CallFile.add_call, [20]

    def full(self: CallFile, point: Array, answer: Array) -> None:
        after[0] -= 1
        if after[0] == 0:
            os.close(self._journal.fileno())  # every write fails from here on
        real(self, point, answer)

    @contextmanager
    def refusing(path: Any) -> Iterator[Any]:
        raise FileError(f"{path} cannot be written: no space left.")
        yield

    monkeypatch.setattr(CallFile, "add_call", full)
    monkeypatch.setattr("unbraid.runtime.call_file.replacing", refusing)
    found = ub.sample(wave, BOX, 1, derivatives=None, budget=32, cache=tmp_path / "calls.npz", **QUICK)
    assert found.problem.S == 32
    [note] = found.notes
    assert note.startswith("Calls were not kept: ")
    assert "calls.npz cannot be written: no space left. " in note
    with pytest.warns(UserWarning, match="Calls were not kept"):
        assert ub.Problem.from_function(wave, found.problem.X, cache=tmp_path / "other.npz").S == 32


def test_what_a_full_disk_did_not_take_is_written_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CallFile, "_add", lambda self, kind, payload: setattr(self, "_full", True))
    found = ub.sample(wave, BOX, 1, derivatives=None, budget=16, cache=tmp_path / "calls.npz", **QUICK)
    assert found.notes == ()
    assert len(np.load(tmp_path / "calls.npz")["X"]) >= 16


def test_it_is_shown_with_its_learning_curve() -> None:
    nothing = cast(Any, None)
    problem = ub.Problem(np.ones((64, 2)), np.ones((64, 1)))
    shown = repr(ub.Sampling(nothing, problem, tuple(curve(12.0, 3.456)), True, "It is good."))
    assert shown.splitlines() == [
        "Sampling of 64 points: enough",
        "  samples   error on them  held-out error  rank",
        "       16             0 %            12 %     2",
        "       32             0 %          3.46 %     2",
        "It is good.",
    ]


# When it ends.


@pytest.mark.parametrize(
    ("errors", "target", "left", "enough", "says"),
    [
        ((10.0, 5.0), None, 64, None, ""),
        ((10.0, 9.0, 8.5), None, 64, True, "10, 9, 8.5 % with 16, 32, 64 samples"),
        ((10.0, 9.0, 8.5), 1.0, 64, True, "stopped falling"),
        ((10.0, 20.0, 1.0), None, 64, None, ""),
        ((10.0, 1.0), 2.0, 64, True, "within the target of 2 %"),
        ((1.0,), 2.0, 64, None, ""),  # sixteen fresh samples may be lucky
        ((1.0,), 2.0, 0, False, "only 16 fresh points judged the fit to 16 samples"),
        ((1e-5,), None, 64, None, ""),
        ((1e-5,), None, 0, False, "is not known yet"),
        ((10.0, 1e-4), None, 64, True, "as good as none"),
        ((80.0, 79.0, 78.0), None, 64, None, ""),
        ((8.0, 4.0), None, 0, False, "still falls, from 8 % with 16: more would help."),
        ((8.0, 4.0), 1.0, 0, False, "about 128 would reach the target of 1 %"),
        ((8.0, 6.0), 1e-3, 0, False, "the target of 0.001 % is far"),
        ((8.0, 7.9), None, 0, False, "hardly less than the 8 % with 16"),
        ((8.0, 9.0), None, 0, False, "no less than the 8 % with 16"),
        ((), None, 0, False, "no points are left"),
        ((), None, 16, None, ""),
    ],
)
def test_endings(errors: tuple[float, ...], target: float | None, left: int, enough: bool | None, says: str) -> None:
    ending = ending_of(curve(*errors), target, left)
    assert (None if ending is None else ending.enough) == enough
    assert ending is None or (says in ending.reason and ending.reason.endswith("."))


def test_a_model_that_does_no_better_on_its_own_samples_does_not_want_for_samples() -> None:
    ending = ending_of(curve(80.0, 79.0, 78.0, fitted=70.0), None, 64)
    assert ending is not None
    assert ending.enough


@given(
    errors=st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=8),
    target=st.none() | st.floats(1e-4, 10.0),
)
def test_without_samples_left_it_always_ends_with_a_sentence(errors: list[float], target: float | None) -> None:
    ending = ending_of(curve(*errors), target, 0)
    assert ending is not None
    assert ending.reason.endswith(".")


# What is refused.


@pytest.mark.parametrize(
    ("box", "says"),
    [
        ([0.0, 1.0], r"box must be \(m, 2\), .* got shape \(2,\)"),
        ([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], "Its axes look swapped"),
        ([[0.0, 1.0], [1.0, 1.0]], "that of input 1 goes from 1 to 1"),
        ({"speed": (0.0, np.inf)}, "that of input 'speed' goes from 0 to inf"),
        ({"speed": (0.0, "fast")}, r"box must be \(m, 2\)"),
        ({}, r"box must be \(m, 2\)"),
        (np.tile([[0.0, 1.0]], (25_000, 1)), "box has 25000 inputs, and points can be chosen for 21201 at most"),
    ],
)
def test_boxes_that_are_none_are_refused_with_a_sentence(box: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        ub.sample(wave, box)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"budget": 1}, "budget must be a whole number of at least 2"),
        ({"first": 0}, "first must be a whole number"),
        ({"target": -1.0}, "target must be a finite number"),
        ({"derivatives": "backward"}, "derivatives must be one of"),
        ({"jobs": 0}, "jobs must be"),
        ({"rng": "seed"}, "rng must be"),
        ({"callback": 3}, "callback must be"),
        ({"timeout": 0}, "timeout must be"),
        ({"budget": 3, "derivatives": None}, "budget=3 values are fewer than the 4 unknowns"),
    ],
)
def test_settings_are_refused_before_any_call(settings: dict[str, Any], says: str) -> None:
    def f(x: Array) -> Array:
        raise AssertionError

    with pytest.raises(ub.UnbraidError, match=says):
        ub.sample(f, BOX, **settings)


# The picture.


def test_a_learning_curve_has_a_line_for_the_worst_output() -> None:
    nothing = cast(Any, None)
    problem = ub.Problem(np.ones((64, 2)), np.ones((64, 1)))
    axes = plots.learning_curve(ub.Sampling(nothing, problem, tuple(curve(12.0, 3.0)), True, ""))
    [worst] = [line for line in axes.get_lines() if line.get_label() == "worst output"]
    np.testing.assert_allclose(np.asarray(worst.get_xydata()), [[16.0, 12.0], [32.0, 3.0]])
    assert axes.get_yscale() == "log"
    assert plots.learning_curve(ub.Sampling(nothing, problem, tuple(curve(12.0)), True, ""), axes) is axes


def test_only_samplings_with_a_curve_are_drawn() -> None:
    with pytest.raises(DataError, match=r"what ub\.sample returns, got a int"):
        plots.learning_curve(cast(Any, 3))
    problem = ub.Problem(np.ones((64, 2)), np.ones((64, 1)))
    with pytest.raises(DataError, match="nothing to draw"):
        plots.learning_curve(ub.Sampling(cast(Any, None), problem, (), False, ""))
