"""Runs that go on from a checkpoint: random numbers, time, Ctrl-C, and the command line."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from clocks import Clock
from interrupted_fits import Counting, CtrlC, KilledError, killed, undisturbed
from killed_fits import BOTH, FITS, bits, fitted
from unbraid.cli import app
from unbraid.errors import SettingError
from unbraid.fitting import search as starts
from unbraid.results.outcome import Status
from unbraid.solvers.loop import Stopping

pytestmark = pytest.mark.usefixtures("written_after_each_sweep")


def test_without_a_seed_it_goes_on_with_the_random_numbers_that_it_drew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second and third start begin after the break, each time at the same point."""
    monkeypatch.setattr(starts, "SEARCH_ENTRIES", 1)
    path, copy = tmp_path / "fit.checkpoint", tmp_path / "copy.checkpoint"
    assert killed(lambda callback: fitted("dejonghe2025", path, callback, rng=None), 5)
    shutil.copy(path, copy)
    assert bits(fitted("dejonghe2025", path, rng=None)) == bits(fitted("dejonghe2025", copy, rng=None))
    anew = bits(fitted("dejonghe2025", tmp_path / "anew.checkpoint", rng=None))
    assert anew["fit.model.W0"] != bits(fitted("dejonghe2025", path, rng=None))["fit.model.W0"]


@pytest.mark.parametrize("kind", ["PCG64", "MT19937", "Philox"])
def test_a_generator_in_the_same_state_is_the_same_argument(kind: str, tmp_path: Path) -> None:
    def fresh() -> np.random.Generator:
        return np.random.Generator(getattr(np.random, kind)(5))

    path = tmp_path / "fit.checkpoint"
    assert killed(lambda callback: fitted("init", path, callback, rng=fresh()), 5)
    assert bits(fitted("init", path, rng=fresh())) == bits(fitted("init", rng=fresh()))
    used = fresh()
    used.random()
    with pytest.raises(SettingError, match="rng is in another state"):
        fitted("init", path, rng=used)


# %% Time


def test_a_finished_fit_is_returned_at_once(tmp_path: Path) -> None:
    path, callback = tmp_path / "fit.checkpoint", Counting()
    first = fitted("smoothing", path)
    written = path.read_bytes()
    again = fitted("smoothing", path, callback)
    assert callback.calls == 0
    assert bits(again) == bits(first)
    assert again.seconds == first.seconds
    assert path.read_bytes() == written


def test_seconds_before_a_break_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sweep takes a second, so that eight of them are the first to take more than seven and a half."""
    path, clock = tmp_path / "fit.checkpoint", Clock(monkeypatch)
    method = replace(
        FITS["dejonghe2025"][1]["method"], stopping=Stopping(max_sweeps=100, tolerance=0.0, max_seconds=7.5)
    )

    class Slow(Counting):
        def __call__(self, progress: object, *_: object) -> None:
            clock.advance(1.0)
            super().__call__(progress)

    with pytest.raises(KilledError):
        fitted("dejonghe2025", path, Slow(5), method=method)
    callback = Slow()
    fit = fitted("dejonghe2025", path, callback, method=method)
    assert fit.status is Status.OUT_OF_TIME
    assert callback.calls <= 5
    assert 7.5 < fit.seconds < 10.0
    assert bits(fitted("dejonghe2025", path, method=method)) == bits(fit)


@pytest.mark.parametrize("name", ["default", "values", "smoothing", "dejonghe2025"])
@pytest.mark.parametrize("after", [5, 30, 45])
def test_ctrl_c_returns_the_best_so_far_and_the_next_run_goes_on(name: str, after: int, tmp_path: Path) -> None:
    path, rest, whole = tmp_path / "fit.checkpoint", Counting(), Counting()
    fitted(name, callback=whole)
    after = min(after, whole.calls - 2)
    pressed = CtrlC(after)
    fit = fitted(name, path, pressed)
    assert fit.status is Status.INTERRUPTED
    assert bits(fitted(name, path, rest)) == undisturbed(name)
    assert rest.calls <= whole.calls - pressed.calls + 2


@pytest.mark.parametrize("name", ["values", "smoothing"])
def test_ctrl_c_between_two_stages_is_heard(name: str) -> None:
    """Which call that is depends on rounding: the one after the last start of a stage has ended."""
    assert fitted(name, callback=CtrlC(1, at_work=False)).status is Status.INTERRUPTED


# %% The command line


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "samples.npz"
    assert BOTH.F is not None
    assert BOTH.J is not None
    np.savez(path, X=BOTH.X, F=BOTH.F, J=BOTH.J)
    return path


def typed(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_command_goes_on_from_its_checkpoint(data: Path, tmp_path: Path) -> None:
    path, model = tmp_path / "fit.checkpoint", tmp_path / "model.npz"
    line = ["fit", data, "--starts", 2, "--max-steps", 5, "-o", model, "--checkpoint", path]
    first = typed(*line, "--rank", 2)
    assert first.exit_code == 0, first.output
    before = model.read_bytes(), path.read_bytes()
    assert typed(*line, "--rank", 2).output == first.output
    assert (model.read_bytes(), path.read_bytes()) == before
    other = typed(*line, "--rank", 3)
    assert other.exit_code == 2
    assert "rank is 3 and was 2" in other.output
    assert "give --checkpoint another name" in other.output


@pytest.mark.parametrize("same", ["-o", "data", "--report"])
def test_the_checkpoint_is_a_file_of_its_own(same: str, data: Path, tmp_path: Path) -> None:
    model, page = tmp_path / "model.npz", tmp_path / "page.html"
    path = {"-o": model, "data": data, "--report": page}[same]
    before = data.read_bytes()
    done = typed("fit", data, "--rank", 2, "-o", model, "--report", page, "--checkpoint", path)
    assert done.exit_code == 2
    assert "cannot be both the checkpoint and another file" in done.output
    assert data.read_bytes() == before
