"""Models survive the way through a file bit by bit, and a file is written whole or not at all."""

from __future__ import annotations

import json
import os
import stat
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from model_files import a_model, contents
from unbraid.bases import Basis
from unbraid.errors import ModelFileError
from unbraid.results.branch import FittedBranch

bases = st.one_of(
    st.builds(
        lambda degree, more, of: ub.BSpline(degree + more, degree, of),
        st.integers(1, 5),
        st.integers(0, 12),
        st.sampled_from(["value", "slope"]),
    ),
    st.builds(ub.PiecewiseLinear, st.integers(1, 12)),
    st.builds(ub.NaturalCubic, st.integers(1, 12)),
    st.builds(ub.Polynomial, st.integers(1, 8)),
)


@given(
    chosen=st.lists(bases, min_size=1, max_size=4), m=st.integers(1, 3), n=st.integers(1, 3), seed=st.integers(0, 99)
)
def test_a_round_trip_changes_no_bit(
    tmp_path_factory: pytest.TempPathFactory, chosen: list[Basis], m: int, n: int, seed: int
) -> None:
    model = a_model(chosen, m, n, seed, scale=10.0 ** (seed % 7 - 3))
    path = tmp_path_factory.getbasetemp() / "round_trip.npz"
    model.save(path)
    loaded = ub.DecoupledModel.load(path)
    X = np.random.default_rng(seed + 1).standard_normal((20, m)) * 3.0
    for before, after in [
        (model.W0, loaded.W0),
        (model.W1, loaded.W1),
        (model.bias, loaded.bias),
        (model(X), loaded(X)),
        (model.jacobian(X), loaded.jacobian(X)),
    ]:
        assert before.tobytes() == after.tobytes()
    assert [b.basis for b in loaded.branches if isinstance(b, FittedBranch)] == chosen
    assert [b.domain for b in loaded.branches] == [b.domain for b in model.branches]


def test_a_fitted_model_survives(tmp_path: Path) -> None:
    problem, _ = ub.datasets.trig(S=60, rng=0)
    fit = ub.decouple(problem, 3, starts=2, rng=0)
    fit.model.save(tmp_path / "fit.npz")
    loaded = ub.DecoupledModel.load(str(tmp_path / "fit.npz"))
    assert np.array_equal(loaded(problem.X), fit.model(problem.X))
    assert np.array_equal(loaded.jacobian(problem.X), fit.model.jacobian(problem.X))


def test_settings_may_be_numpy_integers(tmp_path: Path) -> None:
    model = a_model([ub.BSpline(np.int64(5), np.int32(2))])  # type: ignore[arg-type]
    model.save(tmp_path / "model.npz")
    assert repr(ub.DecoupledModel.load(tmp_path / "model.npz").branches[0]).startswith("FittedBranch(BSpline(df=5")


def test_the_file_has_exactly_the_given_name(tmp_path: Path, model: ub.DecoupledModel) -> None:
    model.save(tmp_path / "model")
    assert [one.name for one in tmp_path.iterdir()] == ["model"]
    assert ub.DecoupledModel.load(tmp_path / "model").rank == 3


def test_the_file_needs_no_pickle_and_names_its_schema(path: Path) -> None:
    metadata = json.loads(str(contents(path)["metadata"]))
    assert metadata["format"] == "unbraid-model"
    assert metadata["schema"] == 1
    assert metadata["unbraid"] == ub.__version__
    assert metadata["branches"][0] == {"basis": "BSpline", "settings": {"df": 6, "degree": 3, "of": "value"}}


def test_the_same_model_gives_the_same_bytes(path: Path, model: ub.DecoupledModel) -> None:
    before = path.read_bytes()
    model.save(path)
    assert path.read_bytes() == before


def test_a_compressed_copy_is_read_as_well(path: Path) -> None:
    arrays = contents(path)
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)
    assert ub.DecoupledModel.load(path).rank == 3


def test_unicode_and_brackets_in_names_are_no_trouble(tmp_path: Path, model: ub.DecoupledModel) -> None:
    model.save(tmp_path / "modèle [1] λ.npz")
    assert ub.DecoupledModel.load(tmp_path / "modèle [1] λ.npz").rank == 3


# Writing: whole or not at all.


@pytest.mark.parametrize("interruption", [OSError(28, "No space left on device"), KeyboardInterrupt(), SystemExit(1)])
def test_a_write_that_fails_half_way_leaves_the_old_file_and_no_other(
    path: Path, monkeypatch: pytest.MonkeyPatch, interruption: BaseException
) -> None:
    before = path.read_bytes()
    genuine, calls = np.lib.format.write_array, []

    def failing(stream: Any, array: Any, **settings: Any) -> None:
        calls.append(array)
        if len(calls) == 4:
            raise interruption
        genuine(stream, array, **settings)

    monkeypatch.setattr(np.lib.format, "write_array", failing)
    with pytest.raises(ModelFileError if isinstance(interruption, OSError) else type(interruption)):
        a_model([ub.Polynomial(2)] * 3).save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_failing_rename_leaves_the_old_file_and_no_other(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()

    def failing(self: Path, target: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(ModelFileError, match=r"model\.npz cannot be written: permission denied\."):
        a_model([ub.Polynomial(2)]).save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_the_new_file_is_whole_on_disk_before_it_gets_the_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that dies between the two steps keeps one whole file: fsync comes before the rename."""
    steps: list[str] = []
    sync, replace = os.fsync, Path.replace

    def noted_sync(handle: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        sync(handle)

    def noted_replace(self: Path, target: Path) -> Path:
        steps.append("rename")
        zipfile.ZipFile(self).close()
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    a_model([ub.Polynomial(2)]).save(path)
    assert steps == ["file", "rename", "folder"]


@pytest.mark.skipif(os.name != "posix", reason="file modes and links are POSIX's")
def test_a_replaced_file_keeps_its_mode_and_a_link_stays_a_link(path: Path, model: ub.DecoupledModel) -> None:
    path.chmod(0o640)
    link = path.with_name("link.npz")
    link.symlink_to(path.name)
    model.save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_unwritable_places_are_refused(tmp_path: Path, model: ub.DecoupledModel) -> None:
    with pytest.raises(ModelFileError, match="it is a folder"):
        model.save(tmp_path)
    with pytest.raises(ModelFileError, match="its folder does not exist"):
        model.save(tmp_path / "no" / "model.npz")
    with pytest.raises(ModelFileError, match="a device or a pipe"):
        model.save(os.devnull)
    assert list(tmp_path.iterdir()) == []


def test_formulas_cannot_be_saved(tmp_path: Path) -> None:
    _, truth = ub.datasets.trig(S=5, rng=0)
    with pytest.raises(ModelFileError, match=r"branch 1 is FunctionBranch\(sin u \+ 2\), and a file holds coeff"):
        truth.save(tmp_path / "truth.npz")
    assert list(tmp_path.iterdir()) == []


def test_unregistered_bases_cannot_be_saved(tmp_path: Path) -> None:
    class Mine(ub.Polynomial):
        pass

    with pytest.raises(ModelFileError, match=r"not in unbraid\.bases\.BASES"):
        a_model([Mine(2)]).save(tmp_path / "mine.npz")


def test_coefficients_that_are_not_finite_cannot_be_saved(tmp_path: Path) -> None:
    basis = ub.Polynomial(1)
    branch = FittedBranch(basis, basis.place(np.array([0.0, 1.0])), np.array([1.0, np.nan]))
    with pytest.raises(ModelFileError, match="NaN or infinite"):
        ub.DecoupledModel([[1.0]], [[1.0]], [branch]).save(tmp_path / "nan.npz")
