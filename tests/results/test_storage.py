"""Models survive the way through a file bit by bit, and nothing else gets in."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from unbraid.bases import Basis
from unbraid.errors import ModelFileError
from unbraid.results import model_file as storage
from unbraid.results.branch import FittedBranch
from unbraid.runtime import npz

Arrays = dict[str, Any]

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


def a_model(bases: list[Basis], m: int = 2, n: int = 3, seed: int = 0, scale: float = 1.0) -> ub.DecoupledModel:
    rng = np.random.default_rng(seed)
    branches = [
        FittedBranch(basis, basis.place(scale * rng.standard_normal(40)), scale * rng.standard_normal(basis.size))
        for basis in bases
    ]
    r = len(bases)
    return ub.DecoupledModel(
        rng.standard_normal((r, m)), rng.standard_normal((n, r)), branches, rng.standard_normal(n) / 3
    )


@pytest.fixture
def model() -> ub.DecoupledModel:
    return a_model([ub.BSpline(6), ub.PiecewiseLinear(4), ub.Polynomial(3)])


@pytest.fixture
def path(tmp_path: Path, model: ub.DecoupledModel) -> Path:
    model.save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


def contents(path: Path) -> Arrays:
    with np.load(path) as file:
        return dict(file)


def rewritten(path: Path, change: Callable[[Arrays], object]) -> Path:
    arrays = contents(path)
    change(arrays)
    with path.open("wb") as file:
        np.savez(file, **arrays)
    return path


def with_metadata(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    def edit(arrays: Arrays) -> None:
        metadata = json.loads(str(arrays["metadata"]))
        change(metadata)
        arrays["metadata"] = np.array(json.dumps(metadata))

    return rewritten(path, edit)


def refusal(path: Path) -> str:
    """The one sentence with which a file is refused; it names the file."""
    with pytest.raises(ModelFileError) as caught:
        ub.DecoupledModel.load(path)
    text = str(caught.value)
    assert path.name in text
    assert text.endswith(".")
    assert "\n" not in text
    return text


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
    with pytest.raises(ModelFileError, match=r"branch 0 is FunctionBranch\(sin u \+ 2\), and a file holds coeff"):
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


# Reading: nothing but models gets in.


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.npz").endswith("none.npz does not exist.")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert "is a folder" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (b"", "is empty"),
        (b"hello, world", "is not an .npz file"),
        (pickle.dumps({"W0": 1}), "pickle"),
        (b"MATLAB 5.0 MAT-file", "MATLAB"),
        (b"\x93NUMPY\x01\x00", "a single .npy array"),
    ],
)
def test_a_file_that_is_no_npz_is_refused(tmp_path: Path, start: bytes, said: str) -> None:
    (tmp_path / "odd.npz").write_bytes(start)
    assert said in refusal(tmp_path / "odd.npz")


def test_a_truncated_file_is_refused_wherever_it_ends(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(4, len(whole), 37):
        path.write_bytes(whole[:length])
        assert "truncated or damaged" in refusal(path)


def test_a_flipped_byte_is_refused_or_harmless(path: Path, model: ub.DecoupledModel) -> None:
    whole = path.read_bytes()
    X = np.ones((1, 2))
    expected = model(X).tobytes()
    for position in range(0, len(whole), 7):
        flipped = bytearray(whole)
        flipped[position] ^= 0x55
        path.write_bytes(flipped)
        with contextlib.suppress(ModelFileError):
            assert ub.DecoupledModel.load(path)(X).tobytes() == expected, f"byte {position}"


def test_pickled_objects_are_refused_and_never_run(path: Path) -> None:
    touched = path.with_name("touched")

    class Trap:
        def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
            return (os.mkdir, (str(touched),))

    trap = np.array([Trap()], dtype=object)
    arrays = contents(path)
    for name in ("metadata", "W0", "branch_0.coordinates"):
        np.savez(path, **{**arrays, name: trap})
        assert "pickled Python objects, which are never loaded" in refusal(path)
    assert not touched.exists()


def test_another_npz_is_refused_with_what_it_holds(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", X=np.ones(3), F=np.ones(3))
    assert refusal(tmp_path / "data.npz").endswith("is not an unbraid model: it holds the arrays X, F.")
    np.savez(tmp_path / "empty.npz")
    assert refusal(tmp_path / "empty.npz").endswith("it holds no arrays.")


@pytest.mark.parametrize("text", ["{", "3", "{}", "[]", '{"format": "other"}', "[" * 100_000, '{"format": NaN}'])
def test_foreign_metadata_are_refused(path: Path, text: str) -> None:
    rewritten(path, lambda arrays: arrays.update(metadata=np.array(text)))
    assert "its metadata are not this library's" in refusal(path)


def test_a_future_schema_is_refused_with_advice(path: Path) -> None:
    with_metadata(path, lambda metadata: metadata.update(schema=7, unbraid="9.1.0"))
    text = refusal(path)
    assert "was written by unbraid 9.1.0 in schema 7" in text
    assert "reads up to schema 1: upgrade unbraid." in text


@pytest.mark.parametrize("schema", [0, -1, "1", 1.0, True, None])
def test_a_schema_that_never_was_is_refused(path: Path, schema: object) -> None:
    with_metadata(path, lambda metadata: metadata.update(schema=schema))
    assert "its schema number is" in refusal(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda a: a.pop("W1"), "the array W1 is missing"),
        (lambda a: a.pop("branch_1.breakpoints"), "the array branch_1.breakpoints is missing"),
        (lambda a: a.update(W0=np.ones((2, 2))), "W0 has shape (2, 2), not (3, any)"),
        (lambda a: a.update(W1=np.ones((3, 2))), "W1 has shape (3, 2), not (any, 3)"),
        (lambda a: a.update(W1=np.ones((0, 3))), "W1 has shape (0, 3)"),
        (lambda a: a.update(bias=np.ones(4)), "bias has shape (4,), not (3)"),
        (lambda a: a.update(W0=np.ones((3, 2), dtype=int)), "W0 has dtype int64, not float64"),
        (lambda a: a.update(W0=np.ones((3, 2), dtype=complex)), "W0 has dtype complex128"),
        (lambda a: a.update(W0=np.full((3, 2), np.nan)), "W0 has entries that are NaN or infinite"),
        (lambda a: a.update(bias=np.full(3, np.inf)), "bias has entries that are NaN or infinite"),
        (lambda a: a.update({"branch_0.coordinates": np.ones(5)}), "branch_0.coordinates has shape (5,), not (7)"),
        (lambda a: a.update({"branch_0.coordinates": np.full(7, np.nan)}), "branch_0.coordinates has entries"),
        (lambda a: a.update({"branch_0.breakpoints": np.arange(4.0)}), "branch_0.breakpoints has shape (4,), not (5)"),
        (lambda a: a.update({"branch_0.breakpoints": np.array([0.0, 1, 1, 2, 3])}), "is not strictly increasing"),
        (lambda a: a.update({"branch_2.range": np.array([1.0, -1.0])}), "branch_2.range is not strictly increasing"),
        (lambda a: a.update({"branch_2.range": np.array([0.0, np.inf])}), "branch_2.range has entries"),
    ],
)
def test_arrays_that_contradict_the_model_are_refused(
    path: Path, change: Callable[[Arrays], object], said: str
) -> None:
    assert said in refusal(rewritten(path, change))


@pytest.mark.parametrize(
    ("branch", "said"),
    [
        ({"basis": "Wavelet", "settings": {}}, "has the basis 'Wavelet', and this version knows BSpline"),
        ({"basis": "__import__", "settings": {}}, "has the basis '__import__'"),
        ({"basis": "BSpline", "settings": {"df": 6}}, "the settings of branch 0 are not those of BSpline"),
        ({"basis": "BSpline", "settings": {"df": 2, "degree": 3, "of": "value"}}, "df must be at least the degree"),
        ({"basis": "BSpline", "settings": {"df": "6", "degree": 3, "of": "value"}}, "must be a whole number"),
        ({"basis": "BSpline", "settings": {"df": 6, "degree": 3, "of": []}}, "must be 'value' or 'slope'"),
        ({"basis": "BSpline", "settings": {"df": 10**12, "degree": 3, "of": "value"}}, "has shape (7,)"),
        ({"basis": "BSpline"}, "has no basis"),
        (3, "has no basis"),
    ],
)
def test_descriptions_that_make_no_basis_are_refused(path: Path, branch: object, said: str) -> None:
    assert said in refusal(with_metadata(path, lambda metadata: metadata["branches"].__setitem__(0, branch)))


@pytest.mark.parametrize("branches", [[], None, {}, "abc"])
def test_a_model_without_branches_is_refused(path: Path, branches: object) -> None:
    with_metadata(path, lambda metadata: metadata.update(branches=branches))
    assert "describe no branches" in refusal(path)


# Traps: files that claim to be larger than they are.


def added(path: Path, name: str, data: bytes) -> Path:
    with zipfile.ZipFile(path) as old:
        members = {one.filename: old.read(one) for one in old.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for one, content in {**members, name: data}.items():
            new.writestr(one, content)
    return path


def test_a_zip_bomb_is_refused_before_it_is_unpacked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MOST_BYTES", 1 << 20)
    added(path, "bomb.npy", bytes(2 << 20))
    assert path.stat().st_size < 20_000
    assert "unpacks to 2 MiB, more than the 1 accepted" in refusal(path)


def test_a_header_that_declares_more_than_follows_is_refused_without_memory(path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (3, 10**14)})
    added(path, "W0.npy", header.getvalue() + bytes(48))
    assert "W0 declares shape (3, 100000000000000), which is not what follows" in refusal(path)


def test_a_member_that_claims_an_impossible_size_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npz, "BEST_DEFLATE", 0)
    assert "claims to unpack to" in refusal(path)


def test_unicode_and_brackets_in_names_are_no_trouble(tmp_path: Path, model: ub.DecoupledModel) -> None:
    model.save(tmp_path / "modèle [1] λ.npz")
    assert ub.DecoupledModel.load(tmp_path / "modèle [1] λ.npz").rank == 3
