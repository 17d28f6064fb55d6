"""Dynamic models survive the way through a file bit by bit, and nothing else is taken for one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from dynamic_models import MODELS, inputs_of, random_narx, random_state_space
from model_files import Arrays, a_model, contents, rewritten, with_metadata
from unbraid.dynamics import DynamicModel, NarxModel, StateSpaceModel
from unbraid.errors import ModelFileError
from unbraid.results.files.model_file import is_dynamic

NAMES = {"input_names": ["speed [m/s]", "λ"], "output_names": ["", "*/ evil"]}


def state_space() -> StateSpaceModel:
    """A model with all that one can have."""
    return random_state_space(gain=0.2).changed(
        spread=[1.0, 2.0, 3.0], noise=[0.1, 0.2], rest_input=[0.5, -0.5], rest=[0.1, 0.2, 0.3], **NAMES
    )


def narx() -> NarxModel:
    """A model with all that one can have."""
    model = random_narx()
    return NarxModel(
        model.L,
        model.nonlinearity,
        input_lags=model.input_lags,
        output_lags=model.output_lags,
        nu=2,
        dt=0.1,
        spread=[2.0, 3.0],
        noise=[0.1, 0.2],
        rest_input=[0.5, -0.5],
        **NAMES,
    )


@pytest.fixture(params=[state_space, narx], ids=["state_space", "narx"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of a dynamic model, of either kind."""
    request.param().save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


@pytest.fixture
def narx_path(tmp_path: Path) -> Path:
    narx().save(tmp_path / "narx.npz")
    return tmp_path / "narx.npz"


@pytest.fixture
def state_space_path(tmp_path: Path) -> Path:
    state_space().save(tmp_path / "state_space.npz")
    return tmp_path / "state_space.npz"


def refusal(path: Path) -> str:
    """The one sentence with which a file is refused; it names the file."""
    with pytest.raises(ModelFileError) as caught:
        ub.dynamics.load(path)
    text = str(caught.value)
    assert path.name in text
    assert text.endswith(".")
    assert "\n" not in text
    return text


def parts_of(model: DynamicModel) -> dict[str, Any]:
    """Arrays and settings of a model, by name."""
    kind = ("A", "B", "C", "D", "K", "rest") if isinstance(model, StateSpaceModel) else ("L",)
    settings = () if isinstance(model, StateSpaceModel) else ("input_lags", "output_lags", "nu")
    common = ("dt", "input_names", "output_names", "rank")
    arrays = {name: getattr(model, name).tobytes() for name in (*kind, "spread", "noise", "rest_input")}
    return arrays | {name: getattr(model, name) for name in (*settings, *common)}


@pytest.mark.parametrize("name", [*MODELS, "state_space", "narx"])
def test_a_round_trip_changes_no_bit(name: str, tmp_path: Path) -> None:
    model = MODELS[name] if name in MODELS else state_space() if name == "state_space" else narx()
    model.save(tmp_path / "model.npz")
    loaded = ub.dynamics.load(tmp_path / "model.npz")
    assert type(loaded) is type(model)
    assert parts_of(loaded) == parts_of(model)
    u = inputs_of(name, 200) if name in MODELS else np.random.default_rng(0).standard_normal((200, 2))
    for before, after in [
        (model.simulate(u), loaded.simulate(u)),
        (model.predict(u, model.simulate(u)), loaded.predict(u, model.simulate(u))),
    ]:
        assert before.tobytes() == after.tobytes()
    loaded.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "model.npz").read_bytes()


def test_truths_made_of_functions_cannot_be_saved(tmp_path: Path) -> None:
    _, truth = ub.dynamics.systems.duffing(T=20, rng=0)
    with pytest.raises(ModelFileError, match=r"branch 1 is FunctionBranch\(u³\), and a file holds"):
        truth.save(tmp_path / "truth.npz")
    assert list(tmp_path.iterdir()) == []


def test_json_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="dynamic models are not saved as JSON"):
        narx().save(tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


# Files of one kind for the other


def test_a_static_model_is_refused_with_who_reads_it(tmp_path: Path) -> None:
    for file in ("static.npz", "static.json"):
        a_model([ub.BSpline(6)]).save(tmp_path / file)
        said = "of no dynamic system: read it with ub.DecoupledModel.load, or use `unbraid predict`."
        assert refusal(tmp_path / file).endswith(said)
        assert not is_dynamic(tmp_path / file)


def test_a_dynamic_model_is_no_static_one_and_it_says_who_reads_it(path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"holds a model of a dynamic system: read it with ub\.dynamics\.load"):
        ub.DecoupledModel.load(path)
    assert is_dynamic(path)


# Foreign and damaged files


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.npz").endswith("none.npz does not exist.")
    assert "is a folder" in refusal(tmp_path)
    (tmp_path / "text.npz").write_text("hello, world")
    assert "is not an .npz file" in refusal(tmp_path / "text.npz")
    np.savez(tmp_path / "data.npz", u=np.ones(3), y=np.ones(3))
    assert refusal(tmp_path / "data.npz").endswith("is not an unbraid model: it holds the arrays u, y.")
    with pytest.raises(ModelFileError, match="it holds the arrays u, y"):
        is_dynamic(tmp_path / "data.npz")


def test_a_truncated_file_is_refused_wherever_it_ends(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(4, len(whole), 97):
        path.write_bytes(whole[:length])
        assert "truncated or damaged" in refusal(path)


def test_a_flipped_byte_is_refused_or_harmless(path: Path) -> None:
    whole = path.read_bytes()
    u = np.random.default_rng(0).standard_normal((20, 2))
    expected = ub.dynamics.load(path).simulate(u).tobytes()
    for position in range(0, len(whole), 47):
        flipped = bytearray(whole)
        flipped[position] ^= 0x55
        path.write_bytes(flipped)
        with contextlib.suppress(ModelFileError):
            assert ub.dynamics.load(path).simulate(u).tobytes() == expected, f"byte {position}"


def test_a_future_schema_is_refused_with_advice(path: Path) -> None:
    with_metadata(path, lambda metadata: metadata.update(schema=7, unbraid="9.1.0"))
    assert "reads up to schema 3: upgrade unbraid." in refusal(path)


def test_pickled_objects_are_refused(path: Path) -> None:
    rewritten(path, lambda arrays: arrays.update(spread=np.array([object()], dtype=object)))
    assert "pickled Python objects, which are never loaded" in refusal(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda a: a.pop("A"), "the array A is missing"),
        (lambda a: a.pop("rest"), "the array rest is missing"),
        (lambda a: a.pop("W0"), "the array W0 is missing"),
        (lambda a: a.update(A=np.ones((2, 2))), "its parts do not fit together, B must be (2, 2), got shape (3, 2)"),
        (lambda a: a.update(A=np.ones((3, 2))), "A must be (3, 3), got shape (3, 2)"),
        (lambda a: a.update(A=np.ones(3)), "A has shape (3,), not (any, any)"),
        (lambda a: a.update(A=np.ones((0, 0))), "A has shape (0, 0)"),
        (lambda a: a.update(A=np.full((3, 3), np.nan)), "A has entries that are NaN or infinite"),
        (lambda a: a.update(B=np.ones((3, 2), dtype=int)), "B has dtype int64, not float64"),
        (lambda a: a.update(C=np.ones((2, 4))), "C must be (2, 3), got shape (2, 4)"),
        (lambda a: a.update(K=np.ones((2, 3))), "K must be (3, 2), got shape (2, 3)"),
        (lambda a: a.update(rest=np.ones(4)), "rest must be (3,), got shape (4,)"),
        (lambda a: a.update(rest=np.ones((3, 1))), "rest has shape (3, 1), not (any)"),
        (lambda a: a.update(spread=np.full(3, np.inf)), "spread has entries that are NaN or infinite"),
        (lambda a: a.update(noise=np.ones(3)), "noise must be (2,), got shape (3,)"),
        (lambda a: a.update(rest_input=np.ones(1)), "rest_input must be (2,), got shape (1,)"),
        (lambda a: a.update(W0=np.ones((2, 4))), "nonlinearity must be a DecoupledModel of [x; u] with 5 inputs"),
    ],
)
def test_arrays_that_contradict_a_state_space_model_are_refused(
    state_space_path: Path, change: Callable[[Arrays], object], said: str
) -> None:
    assert said in refusal(rewritten(state_space_path, change))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda a: a.pop("L"), "the array L is missing"),
        (lambda a: a.update(L=np.ones((2, 7))), "L must be (2, 8) for these lags and 2 inputs, got shape (2, 7)"),
        (lambda a: a.update(L=np.ones((3, 8))), "L must be (3, 10)"),
        (lambda a: a.update(spread=np.ones(3)), "spread must be (2,), got shape (3,)"),
        (lambda a: a.update(W0=np.ones((2, 4))), "nonlinearity must be a DecoupledModel with 8 inputs"),
    ],
)
def test_arrays_that_contradict_a_narx_model_are_refused(
    narx_path: Path, change: Callable[[Arrays], object], said: str
) -> None:
    assert said in refusal(rewritten(narx_path, change))


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"kind": "Volterra"}, "describe no kind of dynamic model that is known"),
        ({"kind": ["NARX"]}, "describe no kind of dynamic model that is known"),
        ({"kind": None}, "describe no kind of dynamic model that is known"),
        ({"dt": "0.1"}, "dt must be a finite number of at least 0, got '0.1'"),
        ({"dt": None}, "dt must be a finite number of at least 0, got None"),
        ({"dt": True}, "dt must be a finite number of at least 0, got True"),
        ({"dt": -1.0}, "dt must be a finite number of at least 0, got -1.0"),
        ({"dt": 0}, "dt must be above 0, got 0"),
        ({"dt": [0.1]}, "dt must be a finite number of at least 0, got [0.1]"),
        ({"input_names": "ab"}, "its input_names are not texts"),
        ({"input_names": ["a", 2]}, "its input_names are not texts"),
        ({"input_names": {"a": 1, "b": 2}}, "its input_names are not texts"),
        ({"input_names": 3}, "its input_names are not texts"),
        ({"output_names": ["a"]}, "output_names must be 2 names, one a column, got 1"),
        ({"output_names": ["a", "b" * 200_000]}, "its output_names are not texts of at most"),
    ],
)
def test_metadata_of_a_wrong_type_are_refused(path: Path, own: dict[str, Any], said: str) -> None:
    assert said in refusal(with_metadata(path, lambda metadata: metadata["dynamics"].update(own)))


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"input_lags": [0, 2.0]}, "its input_lags are not whole numbers"),
        ({"input_lags": [0, "2"]}, "its input_lags are not whole numbers"),
        ({"input_lags": [0, True]}, "its input_lags are not whole numbers"),
        ({"input_lags": [0, 10**12]}, "its input_lags are not whole numbers up to 1000000"),
        ({"input_lags": "02"}, "its input_lags are not whole numbers"),
        ({"input_lags": None}, "its input_lags are not whole numbers"),
        ({"input_lags": []}, "input_lags must be whole numbers of at least 0, each once"),
        ({"input_lags": [0, -1]}, "input_lags must be whole numbers of at least 0, each once"),
        ({"output_lags": [0, 1]}, "output_lags must be whole numbers of at least 1, each once"),
        ({"output_lags": [1, 1]}, "output_lags must be whole numbers of at least 1, each once"),
        ({"output_lags": [1]}, "L must be (2, 6) for these lags"),
        ({"inputs": 0}, "nu must be a whole number of at least 1, got 0"),
        ({"inputs": 2.0}, "nu must be a whole number of at least 1, got 2.0"),
        ({"inputs": "2"}, "nu must be a whole number of at least 1, got '2'"),
        ({"inputs": None}, "nu must be a whole number of at least 1, got None"),
        ({"inputs": 3}, "L must be (2, 10) for these lags and 3 inputs"),
    ],
)
def test_lags_and_sizes_of_a_wrong_type_are_refused(narx_path: Path, own: dict[str, Any], said: str) -> None:
    assert said in refusal(with_metadata(narx_path, lambda metadata: metadata["dynamics"].update(own)))


@pytest.mark.parametrize("dynamics", [None, 3, [], "NARX", {}])
def test_metadata_without_a_dynamic_model_are_refused(path: Path, dynamics: object) -> None:
    with_metadata(path, lambda metadata: metadata.update(dynamics=dynamics))
    assert "describe no kind of dynamic model that is known" in refusal(path)


@pytest.mark.parametrize("key", ["kind", "dt", "input_lags", "output_lags", "inputs"])
def test_missing_metadata_are_refused(narx_path: Path, key: str) -> None:
    refusal(with_metadata(narx_path, lambda metadata: metadata["dynamics"].pop(key)))


@pytest.mark.parametrize("branches", [None, {}, "abc", [3], [{"basis": "Wavelet", "settings": {}}]])
def test_branches_that_are_none_are_refused(path: Path, branches: object) -> None:
    refusal(with_metadata(path, lambda metadata: metadata.update(branches=branches)))


def test_branches_that_are_missing_are_refused(path: Path) -> None:
    assert "W0 has shape" in refusal(with_metadata(path, lambda metadata: metadata.update(branches=[])))


def test_models_without_branches_may_be_read(tmp_path: Path) -> None:
    MODELS["linear_narx"].save(tmp_path / "linear.npz")
    assert contents(tmp_path / "linear.npz")["W0"].shape == (0, 8)
    assert ub.dynamics.load(tmp_path / "linear.npz").rank == 0
