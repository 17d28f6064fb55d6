"""Records, of which checkpoints are made: exact, and unable to do anything but be read, whatever a file says."""

from __future__ import annotations

import io
import json
import os
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from interrupted_fits import finished_file, killed, undisturbed
from killed_fits import bits, fitted
from unbraid.data.in_memory import Samples
from unbraid.errors import FileError, SettingError, UnbraidError
from unbraid.fitting.checkpoints.checkpoint import digest_parts
from unbraid.fitting.checkpoints.records import ObjectRecord, RecordError, read_record, write_record
from unbraid.results.outcome import Status
from unbraid.runtime.npz import write_npz
from unbraid.solvers.iterates import Measure

pytestmark = pytest.mark.usefixtures("written_after_each_sweep")

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
    again = read_record(write_record(array))
    assert type(again) is type(array)
    assert again.dtype == array.dtype
    assert np.array_equal(again, array)
    assert again.strides == array.strides or not array.size


@given(st.integers(0, 2**32), st.integers(0, 5))
def test_generators_come_back_with_their_children(seed: int, draws: int) -> None:
    rng = np.random.default_rng(seed)
    rng.random(draws)
    rng.spawn(draws)
    again = read_record(write_record(rng))
    assert np.array_equal(again.random(3), rng.random(3))
    assert np.array_equal(again.spawn(1)[0].random(3), rng.spawn(1)[0].random(3))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner),
        max_leaves=20,
    )
)
def test_plain_values_come_back(value: Any) -> None:
    again = read_record(write_record(value))
    assert again == value
    assert repr(again) == repr(value)


def test_objects_come_back() -> None:
    model = fitted("dejonghe2025").model
    for thing in (
        ub.BSpline(df=7),
        ub.Increasing(),
        Status.CONVERGED,
        Measure(np.ones(2), np.zeros(2)),
        [float("nan"), float("-inf"), np.float64(0.1), np.int32(-3), np.True_],
    ):
        assert repr(read_record(write_record(thing))) == repr(thing)
    again = read_record(write_record(model))
    assert isinstance(again, ub.DecoupledModel)
    assert np.array_equal(again(np.ones((3, 2))), model(np.ones((3, 2))))


def test_an_array_is_written_once_and_views_of_large_ones_are_copied() -> None:
    array = np.arange(1000.0)
    assert len(write_record([array, array]).arrays) == array.nbytes
    column = np.zeros((4, 10**6))[:, 0]
    assert np.array_equal(read_record(write_record(column)), column)


# %% What may come from anywhere


@pytest.mark.parametrize("thing", [print, os.getcwd, np.load, ub.Problem, Samples, ub.decouple, object, pickle.loads])
def test_functions_samples_and_classes_are_not_written(thing: Any) -> None:
    with pytest.raises(SettingError, match="cannot keep a part of this fit"):
        write_record([thing])
    with pytest.raises(SettingError):
        write_record({"here": ub.datasets.trig(S=5, rng=0)[0]})


FORGED: dict[str, Any] = {
    "a class of others": {"object": ["subprocess.Popen", {"args": "true"}]},
    "a function": {"object": ["os.system", {}]},
    "what a module of ours has imported": {"object": ["unbraid.errors.os.system", {}]},
    "an imported class": {"object": ["unbraid.fitting.checkpoints.records.Path", {}]},
    "samples": {"object": ["unbraid.data.problem.Problem", {}]},
    "a module that is not imported": {"object": ["antigravity.Fly", {}]},
    "a class as a value": {"class": "unbraid.bases.Basis"},
    "no kind": {},
    "two kinds": {"tuple": [], "dict": []},
    "a field that there is not": {"object": ["unbraid.bases.splines.BSpline", {"df": 5, "degree": 3, "place": 1}]},
    "another class": {"object": ["unbraid.bases.splines.BSpline", {"__class__": 1}]},
    "a method": {"object": ["unbraid.results.model.DecoupledModel", {"save": 1}]},
    "a private attribute": {"object": ["unbraid.results.model.DecoupledModel", {"__dict__": {"dict": []}}]},
    "fields that are missing": {"object": ["unbraid.solvers.iterates.Iterates", {}]},
    "an enumeration as an object": {"object": ["unbraid.results.outcome.Status", {"_value_": 1}]},
    "no member": {"member": ["unbraid.results.outcome.Status", "GOOD"]},
    "a member of what is none": {"member": ["unbraid.bases.splines.BSpline", "df"]},
    "Python objects": {"array": [0, "|O", [1], [8]]},
    "fields of an array": {"array": [0, "f8,f8", [1], [16]]},
    "an array beyond the bytes": {"array": [0, "<f8", [10**12], [8]]},
    "an array before the bytes": {"array": [-8, "<f8", [1], [8]]},
    "an array of all memory": {"array": [0, "<f8", [2, 2], [10**15, 8]]},
    "a negative length": {"array": [0, "<f8", [-1, -1], [8, 8]]},
    "no shape": {"array": [0, "<f8", 4, 8]},
    "no number": {"number": ["|O", "00"]},
    "a pool of all memory": {"generator": ["PCG64", {"dict": []}, {"dict": [["pool_size", 10**12], ["entropy", 1]]}]},
    "another generator": {"generator": ["Generator", {"dict": []}, {"dict": [["pool_size", 4]]}]},
    "what nobody knows": {"known": "secrets"},
    "an unhashable key": {"dict": [[[1], 2]]},
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_records_are_refused(name: str) -> None:
    with pytest.raises(RecordError):
        read_record(ObjectRecord(json.dumps([FORGED[name]]).encode(), bytes(64)))


def test_a_text_that_goes_deeper_than_python_can_is_refused() -> None:
    with pytest.raises(RecordError):
        read_record(ObjectRecord(b"[" * 100_000 + b"]" * 100_000, b""))


def parts_of(content: bytes) -> dict[str, bytes]:
    with np.load(io.BytesIO(content)) as arrays:
        return {name: arrays[name].tobytes() for name in arrays.files}


def forged(path: Path, parts: dict[str, bytes]) -> Path:
    """A file of these parts that says of itself that it is whole."""
    parts.pop("digest", None)
    with path.open("wb") as file:
        whole = {**parts, "digest": digest_parts(parts)}
        write_npz(file, {name: np.frombuffer(part, np.uint8) for name, part in whole.items()})
    return path


def test_a_file_that_is_forged_well_goes_through(tmp_path: Path) -> None:
    """So that the others here are refused for what they say."""
    path = forged(tmp_path / "fit.checkpoint", parts_of(finished_file()))
    assert bits(fitted("dejonghe2025", path)) == undisturbed("dejonghe2025")


class Hostile:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.folder / "made"),)


@pytest.mark.parametrize("place", ["old", "text", "arrays", "member"])
def test_no_pickle_is_read(place: str, tmp_path: Path) -> None:
    path, hostile = tmp_path / "fit.checkpoint", pickle.dumps(Hostile(tmp_path))
    if place == "old":
        path.write_bytes(b"unbraid checkpoint 2\n" + b"0" * 64 + b"\n{}\n" + hostile)
    elif place == "member":
        np.savez(path, checkpoint=np.array([Hostile(tmp_path)]), digest=np.zeros(32, np.uint8))
        path = path.with_suffix(".checkpoint.npz").replace(path)
    else:
        parts = parts_of(finished_file())
        longest = max((one for one in parts if one.endswith(place)), key=lambda one: len(parts[one]))
        forged(path, parts | {longest: hostile})
    with pytest.raises(FileError, match=r"older version|damaged"):
        fitted("dejonghe2025", path)
    assert not (tmp_path / "made").exists()


def test_classes_cannot_be_made_to_accept_others(tmp_path: Path) -> None:
    """What pickle's BUILD could do: set attributes of a permitted class, after which all classes are permitted."""
    before = dict(vars(ub.bases.Basis))
    for name in ("__subclasscheck__", "__subclasses__", "__defaults__", "__init__", "place"):
        told = {"object": ["unbraid.bases.Basis", {name: {"object": ["os.system", {}]}}]}
        path = forged(tmp_path / name, parts_of(finished_file()) | {"unit_0.text": json.dumps(told).encode()})
        with pytest.raises(FileError, match="damaged"):
            fitted("dejonghe2025", path)
    assert dict(vars(ub.bases.Basis)) == before


@pytest.mark.parametrize("seed", range(40))
def test_whatever_a_whole_file_says_ends_in_a_fit_or_a_sentence(seed: int, tmp_path: Path) -> None:
    path, chance = tmp_path / "fit.checkpoint", random.Random(seed)
    assert killed(lambda callback: fitted("default", path, callback), 4 + seed % 20)
    parts = parts_of(path.read_bytes())
    name = chance.choice([one for one in parts if one.endswith("text") or one == "checkpoint"])
    parts[name] = json.dumps(changed(json.loads(parts[name]), chance)).encode()
    forged(path, parts)
    try:
        fit = fitted("default", path)
    except UnbraidError:
        pass
    else:
        assert np.isfinite(fit.model(np.zeros((1, 2)))).all()


def changed(tree: Any, chance: random.Random) -> Any:
    """A tree with another value somewhere."""
    branches = list(tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else [])
    if not branches or chance.random() < 0.1:
        return chance.choice(
            [None, True, -1, 0, 10**30, 1e300, "", "\x1b[2J", [], {}, [[]], {"tuple": []}, {"float": "nan"}]
        )
    key, value = chance.choice(branches)
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[key] = changed(value, chance)
    return copy
