"""How an identification is run: progress, Ctrl-C, time limits, and checkpoints."""

from __future__ import annotations

import signal
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from clocks import Clock
from interrupted_fits import Counting, CtrlC, killed
from simulated_candidates import duffing_records
from unbraid.data.fingerprint import marks_of
from unbraid.dynamics import DynamicFit, Record
from unbraid.dynamics.identifying import stages
from unbraid.errors import SettingError
from unbraid.fitting.checkpoints import checkpoint
from unbraid.results.outcome import Status
from unbraid.runtime.progress import Progress

RECORD = duffing_records((120,))[0]
FITS: dict[str, dict[str, Any]] = {
    "state space": {"order": 2, "rank": 1},
    "NARX": {"input_lags": (0, 1), "output_lags": (1, 2), "rank": 1},
    "state space, rank open": {"order": 2, "rank": "auto"},
}
every_kind = pytest.mark.parametrize("name", FITS)


def fitted(name: str, record: Record = RECORD, **settings: Any) -> DynamicFit:
    identify: Any = ub.dynamics.narx if "input_lags" in FITS[name] else ub.dynamics.state_space
    given = {"basis": ub.BSpline(3), "continuation": "linear", "starts": 2, **FITS[name], **settings}
    return identify(record, **given)  # type: ignore[no-any-return]


def bits(fit: DynamicFit) -> dict[str, str]:
    """Everything about a fit but how long it took."""
    return dict(marks_of("fit", replace(fit, seconds=0.0)))


@cache
def undisturbed(name: str) -> tuple[dict[str, str], int]:
    """What comes out where nothing happens, and how often progress is told of."""
    whole = Counting()
    return bits(fitted(name, callback=whole)), whole.calls


@pytest.fixture
def written_after_each_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints are written whenever they could be."""
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", float("inf"))


# Progress


@every_kind
def test_the_share_that_is_done_grows_to_one(name: str) -> None:
    told: list[Progress] = []
    fitted(name, callback=told.append)
    shares = [one.share for one in told]
    assert all(before <= after for before, after in pairwise(shares))
    assert shares[0] < 0.1
    assert shares[-1] == 1.0
    assert sum(0.1 < share < 0.9 for share in shares) > len(shares) // 4
    assert {"linear", "search", "polish", "all samples"} == {one.phase for one in told}


# Ctrl-C and time


class CtrlCAt:
    """Ctrl-C once, at the first call of a phase from a share of the whole on."""

    def __init__(self, phase: str, share: float = 0.0) -> None:
        self.phase, self.share, self.waiting = phase, share, True

    def __call__(self, progress: Progress) -> None:
        if self.waiting and progress.phase == self.phase and progress.share >= self.share and progress.running:
            self.waiting = False
            raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["state space", "NARX"])
@pytest.mark.parametrize("phase", ["search", "polish", "all samples"])
def test_ctrl_c_returns_the_best_so_far(name: str, phase: str) -> None:
    fit = fitted(name, callback=CtrlCAt(phase))
    assert fit.status is Status.INTERRUPTED
    assert np.isfinite(fit.simulation_error.rmse).all()
    assert "INTERRUPTED" in repr(fit)


@pytest.mark.parametrize("phase", ["search", "polish"])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_ctrl_c_ends_the_search_for_a_rank(phase: str, share: float) -> None:
    fit = fitted("state space, rank open", callback=CtrlCAt(phase, share))
    assert fit.status is Status.INTERRUPTED
    assert np.isfinite(fit.simulation_error.rmse).all()


@pytest.mark.parametrize("between", ["is_steady", "follow_courses", "scaled_states", "find_gain"])
def test_ctrl_c_between_steps_returns_the_best_so_far(between: str, monkeypatch: pytest.MonkeyPatch) -> None:
    work, waiting = getattr(stages, between), [True]

    def interrupted(*arguments: Any) -> Any:
        if waiting:
            waiting.pop()
            signal.raise_signal(signal.SIGINT)
        return work(*arguments)

    monkeypatch.setattr(stages, between, interrupted)
    fit = fitted("state space")
    assert fit.status is Status.INTERRUPTED
    assert np.isfinite(fit.simulation_error.rmse).all()


@every_kind
def test_ctrl_c_while_nothing_is_found_is_passed_on(name: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        fitted(name, callback=CtrlCAt("linear"))


@pytest.mark.parametrize("name", ["state space", "NARX"])
@pytest.mark.parametrize("limit", [0.5, 20.5])
def test_a_time_limit_ends_the_search(name: str, limit: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step takes a second by the clock of this test."""
    clock = Clock(monkeypatch)
    told: list[Progress] = []

    def slow(progress: Progress) -> None:
        told.append(progress)
        clock.advance(1.0)

    fit = fitted(name, callback=slow, max_seconds=limit)
    assert fit.status is Status.OUT_OF_TIME
    assert np.isfinite(fit.simulation_error.rmse).all()
    assert len(told) <= limit + 12


# Checkpoints


@pytest.mark.parametrize(
    ("name", "share"),
    [
        *(("state space", share) for share in (0.03, 0.3, 0.6, 0.97)),
        ("NARX", 0.5),
        ("state space, rank open", 0.2),
        pytest.param("state space, rank open", 0.7, marks=pytest.mark.verify),
    ],
)
@pytest.mark.usefixtures("written_after_each_sweep")
def test_a_killed_identification_goes_on_to_the_same_model(name: str, share: float, tmp_path: Path) -> None:
    """To the last bit, and without doing again what was done."""
    path, rest, (expected, calls) = tmp_path / "fit.checkpoint", Counting(), undisturbed(name)
    after = max(2, int(share * calls))
    assert killed(lambda callback: fitted(name, callback=callback, checkpoint=path), after)
    again = fitted(name, callback=rest, checkpoint=path)
    assert bits(again) == expected
    assert rest.calls <= calls - after + 3


@pytest.mark.usefixtures("written_after_each_sweep")
def test_after_ctrl_c_the_next_call_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    assert fitted("state space", callback=CtrlC(30), checkpoint=path).status is Status.INTERRUPTED
    assert bits(fitted("state space", checkpoint=path)) == undisturbed("state space")[0]


def test_a_checkpoint_of_another_identification_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    fitted("state space", checkpoint=path)
    gap, noisy = RECORD.y.copy(), RECORD.y.copy()
    gap[50] = np.nan
    noisy[50] += 1e-9
    others: dict[str, dict[str, Any]] = {
        "rank": {"rank": 2},
        "order": {"order": 3},
        "basis": {"basis": ub.BSpline(4)},
        "starts": {"starts": 3},
        "rng": {"rng": 5},
        "gaps": {"record": Record(RECORD.u, gap, RECORD.dt)},
        "burn_in": {"record": Record(RECORD.u, RECORD.y, RECORD.dt, burn_in=20)},
        "dt": {"record": Record(RECORD.u, RECORD.y)},
        "F holds other numbers": {"record": Record(RECORD.u, noisy, RECORD.dt)},
    }
    for words, settings in others.items():
        with pytest.raises(SettingError, match=f"is the checkpoint of another fit.*{words}"):
            fitted("state space", checkpoint=path, **settings)


def test_a_checkpoint_of_a_model_with_another_nonlinearity_is_refused(tmp_path: Path) -> None:
    path, truth = tmp_path / "fit.checkpoint", ub.dynamics.systems.duffing(T=300, rng=0)
    record, model = truth

    def cubic(size: float) -> Any:
        return lambda p: size * np.array([-0.01, -0.1, 0.0]) * np.atleast_2d(p)[:, :1] ** 3

    def run(size: float) -> Any:
        parts = model.A, model.B, model.C, model.D
        settings: dict[str, Any] = {"basis": ub.Polynomial(3), "starts": 2, "rng": 0, "checkpoint": path}
        return ub.dynamics.decouple(*parts, cubic(size), record, 1, **settings)

    assert bits(run(1.0)) == bits(run(1.0))
    with pytest.raises(SettingError, match="is the checkpoint of another fit"):
        run(1.1)
