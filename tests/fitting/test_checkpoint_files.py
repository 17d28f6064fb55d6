"""Files of checkpoints: what is refused, what is left alone, and what may come from anywhere."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from interrupted_fits import Counting, finished_file, killed, undisturbed
from killed_fits import BOTH, FITS, bits, fitted
from unbraid.errors import FileError, SettingError
from unbraid.runtime.files import ABANDONED, THIS_RUN, short_hash, temporary_file, this_machine

pytestmark = pytest.mark.usefixtures("written_after_each_sweep")


OTHERS: dict[str, dict[str, Any]] = {
    "rng is 1 and was 0": {"rng": 1},
    "rng is None and was 0": {"rng": None},
    "starts is 4 and was 3": {"starts": 4},
    "basis.df is 9 and was 28": {"basis": ub.SmoothingSpline(df=9)},
    "basis is NaturalCubic and was SmoothingSpline": {"basis": ub.NaturalCubic()},
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
        said = told(path)
        if said is None:  # what was damaged says nothing, such as the date of a member
            assert bits(fitted("dejonghe2025", path)) == undisturbed("dejonghe2025")
        else:
            assert re.search("delete the file|move that file away", said)
            assert path.read_bytes() == content


def told(path: Path) -> str | None:
    """What is said when the file is refused."""
    try:
        fitted("dejonghe2025", path)
    except FileError as refused:
        return str(refused)
    return None


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


def full_disk(monkeypatch: pytest.MonkeyPatch, number: int) -> list[int]:
    """Let the system refuse to write anything to the disk; how often it has."""
    refused: list[int] = []

    def fsync(handle: int) -> None:
        refused.append(number)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)
    return refused


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
@pytest.mark.parametrize("name", ["default", "dejonghe2025"])
def test_a_fit_goes_on_where_its_disk_is_full_and_says_so(
    name: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "fit.checkpoint"
    with monkeypatch.context() as full:
        refused = full_disk(full, number)
        fit = fitted(name, path)
    said = os.strerror(number).lower()
    assert fit.notes[-1].startswith(f"{path} cannot be written: {said}. The fit went on without its checkpoint")
    assert bits(replace(fit, notes=fit.notes[:-1])) == undisturbed(name)
    assert len(refused) > 1
    assert not list(tmp_path.iterdir())


def test_a_disk_that_has_room_again_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "fit.checkpoint"

    class Emptied(Counting):
        """Room from the second call on."""

        def __call__(self, progress: object, *_: object) -> None:
            super().__call__(progress)
            if self.calls == 2:
                full.undo()

    with monkeypatch.context() as full:
        refused = full_disk(full, errno.ENOSPC)
        assert bits(fitted("default", path, Emptied())) == undisturbed("default")
    assert refused
    assert path.read_bytes()[:2] == b"PK"


def test_a_folder_that_goes_away_costs_the_checkpoint_and_not_the_fit(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()

    def remove(progress: object) -> None:
        shutil.rmtree(folder, ignore_errors=True)

    fit = fitted("dejonghe2025", folder / "fit.checkpoint", remove)
    assert "cannot be written: its folder does not exist" in fit.notes[-1]
    assert bits(replace(fit, notes=fit.notes[:-1])) == undisturbed("dejonghe2025")


def test_a_selection_and_an_identification_say_it_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record, _ = ub.dynamics.systems.duffing(T=200, rng=0)
    full_disk(monkeypatch, errno.ENOSPC)
    method = ub.methods.default(max_sweeps=3, polish=False)
    selection = ub.select(BOTH, ranks=[1], dfs=[6], method=method, starts=1, rng=0, checkpoint=tmp_path / "one")
    assert "no space left on device" in selection.reason
    dynamic = ub.dynamics.state_space(record, order=2, rank=0, rng=0, checkpoint=tmp_path / "two")
    assert "no space left on device" in dynamic.notes[-1]


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


def by_process(temporary: Path, number: int) -> Path:
    """The same name, as the process of that number would have made it."""
    return temporary.with_name(temporary.name.replace(f"-{os.getpid()}-", f"-{number}-"))


def test_temporary_files_of_killed_processes_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as alive:
        ours, other = temporary_file(path), temporary_file(tmp_path / "model.npz")
        earlier = ours.with_name(ours.name.replace(THIS_RUN, "0" * len(THIS_RUN)))  # a container's, of the same number
        elsewhere = ours.with_name(ours.name.replace(short_hash(this_machine()), "0" * 8))
        long_ago = elsewhere.with_name(elsewhere.name.replace(".tmp", "0.tmp"))
        dead = {by_process(ours, 2**22 + 1), by_process(other, 2**22 + 1), by_process(ours, 10**30), earlier, long_ago}
        living = {by_process(ours, alive.pid), by_process(other, alive.pid), elsewhere, ours}
        for one in dead | living:
            one.touch()
        os.utime(long_ago, (time.time() - 2.0 * ABANDONED,) * 2)
        fitted("dejonghe2025", path)
        assert set(tmp_path.iterdir()) == {path, *living}
        alive.communicate(b"\n")


def test_samples_are_not_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    for name in ("default", "zniyed2021", "dreesen2015"):
        path.unlink(missing_ok=True)
        assert killed(lambda callback: fitted(name, path, callback), 6)  # noqa: B023
        content = path.read_bytes()
        assert BOTH.J is not None
        assert BOTH.J[:5].tobytes() not in content
        assert b"Samples" not in content
