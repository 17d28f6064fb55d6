"""Checkpoints: a fit that is killed at any moment goes on, and ends at the same bits as one that nobody disturbed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import killed_fits
import unbraid as ub
from interrupted_fits import Counting, killed, undisturbed
from killed_fits import BOTH, FITS, bits, fitted
from unbraid.bases.projection import Projection
from unbraid.data.in_memory import Samples
from unbraid.data.units import Units
from unbraid.fitting import levels
from unbraid.fitting import search as starts
from unbraid.fitting.checkpoints import checkpoint
from unbraid.fitting.checkpoints.checkpoint import Checkpoint
from unbraid.fitting.session import ProgressSpan, Session
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Iterates, Run
from unbraid.solvers.loop import Stopping

pytestmark = pytest.mark.usefixtures("written_after_each_sweep")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_processes_killed_again_and_again_end_at_the_same_bits(tmp_path: Path) -> None:
    names = ["default", "smoothing", "limited"]
    words = [sys.executable, killed_fits.__file__, str(tmp_path), *names]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    for name, kills in zip(names, done.stdout.split(), strict=True):
        assert int(kills) > 2, name
        assert json.loads((tmp_path / f"{name}.json").read_text()) == undisturbed(name), name


@pytest.mark.parametrize("name", FITS)
def test_killed_at_every_sweep_it_ends_at_the_same_bits(name: str, tmp_path: Path) -> None:
    """Each run makes one step more than the last: the first sweep of a smoothing round is its second call."""
    path, kills = tmp_path / "fit.checkpoint", 0
    while killed(lambda callback: fitted(name, path, callback), 3):
        kills += 1
        assert kills < 500
    assert kills > 2
    assert bits(fitted(name, path)) == undisturbed(name)


@settings(max_examples=3)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.sampled_from(["default", "values", "smoothing"]))
def test_killed_anywhere_it_ends_at_the_same_bits(after: list[int], name: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "fit.checkpoint")
        for calls in after:
            killed(lambda callback: fitted(name, path, callback), calls)
        assert bits(fitted(name, path)) == undisturbed(name)


def test_written_now_and_then_only_it_ends_at_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, asked = tmp_path / "fit.checkpoint", Counting()

    def seldom(self: Checkpoint) -> bool:
        asked(None)
        return asked.calls % 7 == 0

    monkeypatch.setattr(Checkpoint, "due", seldom)
    for calls in (15, 15, 10):
        assert killed(lambda callback: fitted("default", path, callback), calls)
    assert bits(fitted("default", path)) == undisturbed("default")


def test_starts_that_follow_each_other_are_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts, "SEARCH_ENTRIES", 1)
    path, made, expected = tmp_path / "fit.checkpoint", Counting(), undisturbed("dejonghe2025")
    assert killed(lambda callback: fitted("dejonghe2025", path, callback), 20)  # in the third of three
    method = FITS["dejonghe2025"][1]["method"]
    solver = type(method.solver(Samples.of(BOTH, Units.balanced(BOTH)), ub.BSpline(), Projection.onto([None] * 3)))
    monkeypatch.setattr(solver, "random_start", made)
    assert bits(fitted("dejonghe2025", path)) == expected
    assert made.calls == 0


def test_steps_by_conjugate_gradients_go_on(tmp_path: Path) -> None:
    samples = Samples.of(BOTH, Units.balanced(BOTH))
    solver = GaussNewton(samples, ub.BSpline(df=6), Projection.onto([None] * 3), 0.1, offset=True, dense_limit=0)
    rng = np.random.default_rng(0)
    W0, W1, a = rng.standard_normal((2, 3, 2)), rng.standard_normal((2, 2, 3)), rng.standard_normal((2, 3, 7))
    placement = ub.BSpline(df=6).place(W0 @ samples.X.T)

    def runs(path: Path | None, observe: Counting | None = None) -> list[Run]:
        begin = Iterates(W0, W1, placement, a)
        session = Session(journal=checkpoint.journal_at(path, BOTH, 0, {}), callback=observe)
        place = ProgressSpan("polish", range(2), 2)
        return session.loop(solver, lambda: solver.start(begin), Stopping(max_sweeps=12), place)

    path = tmp_path / "loop.checkpoint"
    kills = 0
    while killed(lambda observe: runs(path, observe), 2):
        kills += 1
        assert kills < 50
    for one, other in zip(runs(path), runs(None), strict=True):
        assert np.array_equal(one.best.a, other.best.a)
        assert np.array_equal(one.trace.objective, other.trace.objective)


@pytest.mark.parametrize("settings", [{}, {"basis": ub.SmoothingSpline(df=10)}], ids=["default", "smoothing"])
def test_a_search_on_some_of_many_samples_goes_on(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On memory maps, whose samples are streamed: the search, then steps on all samples."""
    monkeypatch.setattr(levels, "SEARCH_SAMPLES", 40)
    monkeypatch.setattr("unbraid.data.streamed.IN_MEMORY_ENTRIES", 0)
    whole, _ = ub.datasets.trig(S=400, rng=0)
    for name in ("X", "F", "J"):
        np.save(tmp_path / f"{name}.npy", getattr(whole, name))
    problem = ub.Problem(*(np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("X", "F", "J")))
    method = FITS["default"][1]["method"]

    def work(callback: Counting | None, path: Path | None = None) -> ub.Fit:
        return ub.decouple(problem, 3, method=method, starts=3, rng=0, **settings, callback=callback, checkpoint=path)

    path, plain, kills = tmp_path / "fit.checkpoint", bits(work(None)), 0
    assert any("The search looked at 40 of 400 samples" in text for text in plain.values())
    while killed(lambda callback: work(callback, path), 4):
        kills += 1
        assert kills < 500
    assert kills > 10
    assert bits(work(None, path)) == plain


def test_dask_arrays_go_on(tmp_path: Path) -> None:
    arrays = [np.asarray(array) for array in (BOTH.X, BOTH.F, BOTH.J)]
    problem = ub.Problem(*(da.from_array(array, chunks=(20, -1, -1)[: array.ndim]) for array in arrays))
    path, settings = tmp_path / "fit.checkpoint", {"method": FITS["dejonghe2025"][1]["method"], "starts": 2, "rng": 0}
    assert killed(lambda callback: ub.decouple(problem, 3, **settings, callback=callback, checkpoint=path), 5)
    assert bits(ub.decouple(problem, 3, **settings, checkpoint=path)) == bits(ub.decouple(problem, 3, **settings))


def test_compressed_jacobians_go_on(tmp_path: Path) -> None:
    problem, _ = ub.datasets.random_system(n=12, m=15, r=2, S=50, kind="sine", rng=0)

    def work(callback: Counting | None, path: Path | None = None) -> ub.Fit:
        method = FITS["default"][1]["method"]
        return ub.decouple(
            problem, 2, method=method, starts=2, rng=0, compress=True, callback=callback, checkpoint=path
        )

    path, kills = tmp_path / "fit.checkpoint", 0
    while killed(lambda callback: work(callback, path), 4):
        kills += 1
        assert kills < 500
    assert kills > 5
    assert bits(work(None, path)) == bits(work(None))


def test_a_selection_goes_on(tmp_path: Path) -> None:
    def work(callback: Counting | None, path: Path | None = None) -> ub.Selection:
        settings: dict[str, Any] = {"method": FITS["default"][1]["method"], "folds": 2, "starts": 2, "rng": 0}
        return ub.select(BOTH, ranks=[1, 2], **settings, callback=callback, checkpoint=path)

    path, plain = tmp_path / "selection.checkpoint", work(None)
    for calls in range(2, 100):  # it tells of the fits that it need not make again
        if not killed(lambda callback: work(callback, path), calls):
            break
    again = work(None, path)
    assert calls > 5
    assert again.recommended == plain.recommended
    for one, other in zip(again.rows, plain.rows, strict=True):
        assert np.array_equal(one.squares, other.squares)
        assert bits(one.fit) == bits(other.fit)


def test_a_fit_whose_rank_is_to_be_found_goes_on(tmp_path: Path) -> None:
    problem, _ = ub.datasets.random_system(n=2, m=2, r=2, S=40, kind="cubic", rng=0)

    def work(callback: Counting | None, path: Path | None = None) -> ub.Fit:
        method = FITS["default"][1]["method"]
        return ub.decouple(problem, "auto", method=method, starts=2, rng=0, callback=callback, checkpoint=path)

    path, plain = tmp_path / "fit.checkpoint", bits(work(None))
    for calls in range(1, 1000, 10):
        if not killed(lambda callback: work(callback, path), calls):
            break
    assert calls > 30  # so that it was killed more than twice
    assert bits(work(None, path)) == plain
