"""Checkpoints: a fit that is killed at any moment goes on, and ends at the same bits as one that nobody disturbed."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dask.array as da
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import killed_fits
import unbraid as ub
from killed_fits import BOTH, FITS, bits, fitted
from unbraid.bases.projection import Projection
from unbraid.cli import app
from unbraid.data import blocks as sizes
from unbraid.data.in_memory import Samples
from unbraid.data.units import Units
from unbraid.errors import FileError, SettingError
from unbraid.fitting import checkpoint, levels
from unbraid.fitting import search as starts
from unbraid.fitting.checkpoint import MAGIC, Checkpoint
from unbraid.fitting.pickles import dumps, loads
from unbraid.results.outcome import Status
from unbraid.runtime.files import ABANDONED, temporary_prefix
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Iterates, Run
from unbraid.solvers.loop import Stopping, iterate


class KilledError(Exception):
    """Stands in for the end of a process: nothing is written on its way."""


@pytest.fixture(autouse=True)
def written_after_each_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "EVERY", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", float("inf"))


class Counting:
    """A callback that raises when it has been called so often; 0: never."""

    def __init__(self, last: int = 0, error: type[BaseException] = KilledError) -> None:
        self.last, self.error, self.calls = last, error, 0

    def __call__(self, progress: object, *_: object) -> None:
        self.calls += 1
        if self.calls == self.last:
            raise self.error


@cache
def undisturbed(name: str) -> dict[str, str]:
    return bits(fitted(name))


def killed(work: Callable[[Counting], Any], after: int) -> bool:
    """Whether the work was not over by then."""
    try:
        work(Counting(after))
    except KilledError:
        return True
    return False


# %% KilledError


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize("name", ["default", "values", "smoothing", "dejonghe2025", "limited"])
def test_a_process_killed_again_and_again_ends_at_the_same_bits(name: str, tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    words = [sys.executable, killed_fits.__file__, name, str(tmp_path / "fit.checkpoint"), str(told)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 2
    assert json.loads(told.read_text()) == undisturbed(name)


@pytest.mark.parametrize("name", FITS)
def test_killed_at_every_sweep_it_ends_at_the_same_bits(name: str, tmp_path: Path) -> None:
    """Each run makes one step more than the last: the first sweep of a smoothing round is its second call."""
    path, kills = tmp_path / "fit.checkpoint", 0
    while killed(lambda callback: fitted(name, path, callback), 3):
        kills += 1
        assert kills < 500
    assert kills > 2
    assert bits(fitted(name, path)) == undisturbed(name)


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
    monkeypatch.setattr(starts, "BATCH_ENTRIES", 1)
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
        journal = checkpoint.journal_at(path, BOTH, 0)
        return iterate(solver, lambda: solver.start(begin), 2, Stopping(max_sweeps=12), 0.0, observe, journal)

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
    monkeypatch.setattr(sizes, "IN_MEMORY_ENTRIES", 0)
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
    def work(callback: Counting | None, path: Path | None = None) -> ub.selection.Selection:
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
    path, plain = tmp_path / "fit.checkpoint", bits(ub.decouple(BOTH, "auto", starts=2, rng=0))
    for calls in range(1, 1000, 20):
        if not killed(
            lambda callback: ub.decouple(BOTH, "auto", starts=2, rng=0, callback=callback, checkpoint=path), calls
        ):
            break
    assert calls > 50
    assert bits(ub.decouple(BOTH, "auto", starts=2, rng=0, checkpoint=path)) == plain


# %% Random numbers


def test_without_a_seed_it_goes_on_with_the_random_numbers_that_it_drew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second and third start begin after the break, each time at the same point."""
    monkeypatch.setattr(starts, "BATCH_ENTRIES", 1)
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


def test_seconds_before_a_break_count(tmp_path: Path) -> None:
    """Each call takes 0.05 s at least, so that eight of them fit into 0.35 s."""
    path = tmp_path / "fit.checkpoint"
    method = replace(
        FITS["dejonghe2025"][1]["method"], stopping=Stopping(max_sweeps=100, tolerance=0.0, max_seconds=0.35)
    )

    class Slow(Counting):
        def __call__(self, progress: object, *_: object) -> None:
            time.sleep(0.05)
            super().__call__(progress)

    with pytest.raises(KilledError):
        fitted("dejonghe2025", path, Slow(5), method=method)
    callback = Slow()
    fit = fitted("dejonghe2025", path, callback, method=method)
    assert fit.status is Status.OUT_OF_TIME
    assert callback.calls <= 5
    assert fit.seconds > 0.35
    assert bits(fitted("dejonghe2025", path, method=method)) == bits(fit)


@pytest.mark.parametrize("name", ["default", "values", "smoothing", "dejonghe2025"])
@pytest.mark.parametrize("after", [5, 30, 45])
def test_ctrl_c_returns_the_best_so_far_and_the_next_run_goes_on(name: str, after: int, tmp_path: Path) -> None:
    path, rest, whole = tmp_path / "fit.checkpoint", Counting(), Counting()
    fitted(name, callback=whole)
    after = min(after, whole.calls - 2)
    fit = fitted(name, path, Counting(after, KeyboardInterrupt))
    assert fit.status is Status.INTERRUPTED
    assert bits(fitted(name, path, rest)) == undisturbed(name)
    assert rest.calls <= whole.calls - after + 2


# %% Other fits and other files


OTHERS: dict[str, dict[str, Any]] = {
    "rng is 1 and was 0": {"rng": 1},
    "rng is None and was 0": {"rng": None},
    "starts is 4 and was 3": {"starts": 4},
    "basis.df is 9 and was 12": {"basis": ub.BSpline(df=9)},
    "basis is NaturalCubic and was BSpline": {"basis": ub.NaturalCubic()},
    "constraint is Increasing and was None": {"constraint": ub.Increasing()},
    "init is DecoupledModel and was None": {"init": FITS["init"][1]["init"]},
    "method.stopping.max_sweeps is 40 and was 8": {"method": ub.methods.default(max_steps=8)},
    "method is FilteredMethod and was AlternatingMethod": {"method": ub.methods.decuyper2022()},
}


@pytest.mark.parametrize("said", OTHERS)
def test_another_fit_is_refused_by_what_differs(said: str, tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    fitted("default", path)
    before = path.read_bytes()
    with pytest.raises(SettingError, match=said) as refused:
        fitted("default", path, **OTHERS[said])
    assert "give checkpoint another path, or delete the file" in str(refused.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("changed", ["X", "F", "J", "weights"])
def test_other_samples_are_refused(changed: str, tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    arrays: dict[str, Any] = {name: np.array(getattr(BOTH, name)) for name in ("X", "F", "J")}
    weights = np.ones(BOTH.S)
    ub.decouple(ub.Problem(**arrays, weights=weights), 3, starts=1, rng=0, checkpoint=path)
    arrays["weights"] = weights
    arrays[changed].flat[17] += 1e-9
    with pytest.raises(SettingError, match=f"{changed} holds other numbers"):
        ub.decouple(ub.Problem(**arrays), 3, starts=1, rng=0, checkpoint=path)
    with pytest.raises(SettingError, match="weights is None and was an array"):
        ub.decouple(BOTH, 3, starts=1, rng=0, checkpoint=path)


@cache
def finished_file() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder, "fit.checkpoint")
        fitted("dejonghe2025", path)
        return path.read_bytes()


@given(st.data())
def test_a_damaged_file_is_refused(data: st.DataObject) -> None:
    content = bytearray(finished_file())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(1, len(content) - 1))]
    else:
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    with TemporaryDirectory() as folder:
        path = Path(folder, "fit.checkpoint")
        path.write_bytes(content)
        with pytest.raises(FileError, match=r"delete the file|move that file away"):
            fitted("dejonghe2025", path)
        assert path.read_bytes() == content


def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    fitted("dejonghe2025").model.save(path)
    before = path.read_bytes()
    with pytest.raises(FileError, match="no checkpoint"):
        fitted("dejonghe2025", path)
    assert path.read_bytes() == before


def test_an_empty_file_is_taken_for_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    path.touch()
    assert bits(fitted("dejonghe2025", path)) == undisturbed("dejonghe2025")
    assert path.stat().st_size


@pytest.mark.parametrize("path", ["nowhere/fit.checkpoint", "."])
def test_a_path_that_cannot_be_written_is_refused_before_any_work(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    callback = Counting()
    with pytest.raises(FileError, match="cannot be written"):
        fitted("default", Path(path), callback)
    assert callback.calls == 0


@pytest.mark.parametrize("given", [5, True, 1.5])
def test_what_is_no_path_is_refused(given: Any) -> None:
    with pytest.raises(SettingError, match="checkpoint must be the path of a file"):
        fitted("default", given)


def test_settings_that_are_refused_leave_no_file(tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    for wrong in ({"starts": 0}, {"basis": ub.BSpline}):
        with pytest.raises(SettingError):
            fitted("default", path, **wrong)
    assert not path.exists()


def test_temporary_files_of_killed_processes_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    old, recent, others = (tmp_path / f"{temporary_prefix(tmp_path / name)}{name}.tmp" for name in ("a", "b", "c"))
    old, recent = (path.with_name(f"{temporary_prefix(path)}{name}.tmp") for name in ("old", "recent"))
    for one in (old, recent, others):
        one.touch()
        os.utime(one, (time.time() - (0.0 if one is recent else 2.0 * ABANDONED),) * 2)
    fitted("dejonghe2025", path)
    assert set(tmp_path.iterdir()) == {path, recent, others}


def test_samples_are_not_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    for name in ("default", "zniyed2021", "dreesen2015"):
        path.unlink(missing_ok=True)
        assert killed(lambda callback: fitted(name, path, callback), 6)  # noqa: B023
        content = path.read_bytes()
        assert BOTH.J is not None
        assert BOTH.J[:5].tobytes() not in content
        assert b"Samples" not in content


# %% Reading what may come from anywhere


def test_a_file_cannot_call_what_it_likes(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "made"),)

    path = tmp_path / "fit.checkpoint"
    _, head, _ = finished_file()[len(MAGIC) :].split(b"\n", 2)
    hostile = pickle.dumps(Hostile())
    told = {**json.loads(head), "index": [[[0], len(hostile)]]}
    rest = json.dumps(told).encode() + b"\n" + hostile
    path.write_bytes(MAGIC + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest)
    with pytest.raises(FileError, match="damaged"):
        fitted("dejonghe2025", path)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("thing", [print, os.getcwd, np.load, ub.Problem, Samples, ub.decouple, object, pickle.loads])
def test_functions_samples_and_classes_of_others_are_neither_written_nor_read(thing: Any) -> None:
    with pytest.raises(SettingError):
        dumps(thing)
    with pytest.raises(pickle.UnpicklingError, match="no place in a checkpoint"):
        loads(pickle.dumps(thing))


layouts = st.sampled_from(
    [
        lambda a: a,
        lambda a: a.mT,
        lambda a: a.transpose(2, 0, 1),
        lambda a: a[:, ::2],
        lambda a: a[..., :2],
        lambda a: a[..., ::-1],
        lambda a: a[::-1, :, 1:].mT,
        lambda a: np.broadcast_to(a[:1], a.shape),
        lambda a: np.asfortranarray(a),
        lambda a: a[0, 0, 0],
        lambda a: a[:0],
    ]
)


@given(layouts, st.sampled_from([np.float64, np.int64, np.bool_]))
def test_arrays_come_back_laid_out_as_they_were(layout: Callable[[Any], Any], dtype: Any) -> None:
    array = layout((np.arange(60).reshape(3, 4, 5) % 7).astype(dtype))
    again = loads(dumps(array))
    assert type(again) is type(array)
    assert again.dtype == array.dtype
    assert np.array_equal(again, array)
    assert again.strides == array.strides or not array.size


@given(st.integers(0, 2**32), st.integers(0, 5))
def test_generators_come_back_with_their_children(seed: int, draws: int) -> None:
    rng = np.random.default_rng(seed)
    rng.random(draws)
    rng.spawn(draws)
    again = loads(dumps(rng))
    assert np.array_equal(again.random(3), rng.random(3))
    assert np.array_equal(again.spawn(1)[0].random(3), rng.spawn(1)[0].random(3))


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
