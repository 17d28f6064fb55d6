"""Models of every kind of branch come back from archives and from JSON texts to the last bit."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from model_files import a_model, a_model_of_formulas, contents
from random_models import KINDS, assert_same, random_branch, random_model
from unbraid.errors import ModelFileError, SettingError
from unbraid.kernels.pieces import Pieces
from unbraid.results.branches.expressions import U
from unbraid.results.branches.forms import Formula, shape
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.branches.piecewise import PiecewiseBranch

both = pytest.mark.parametrize("ending", [".npz", ".json"])


def there_and_back(model: ub.DecoupledModel, path: Path) -> None:
    with np.errstate(all="ignore"):
        model.save(path)
        assert_same(ub.DecoupledModel.load(path), model)


@both
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_kind_of_branch_comes_back(kind: object, ending: str, tmp_path: Path) -> None:
    branch = random_branch(kind, np.random.default_rng(1))
    there_and_back(ub.DecoupledModel([[1.0, -0.0]], [[0.1], [1e-300]], [branch]), tmp_path / f"model{ending}")


@both
@given(seed=st.integers(0, 2**32 - 1))
def test_a_round_trip_changes_no_bit(ending: str, tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    there_and_back(random_model(seed), tmp_path_factory.getbasetemp() / f"any{ending}")


@pytest.mark.verify
@pytest.mark.parametrize(("ending", "many"), [(".npz", 500), (".json", 2000)])
def test_thousands_of_models_come_back(ending: str, many: int, tmp_path: Path) -> None:
    for seed in range(many):
        there_and_back(random_model(seed), tmp_path / f"any{ending}")


def test_a_model_with_other_branches_is_of_schema_2(tmp_path: Path) -> None:
    a_model_of_formulas().save(tmp_path / "model.npz")
    metadata = json.loads(str(contents(tmp_path / "model.npz")["metadata"]))
    assert metadata["schema"] == 2
    assert metadata["branches"][0] == {"formula": "sine", "domain": [-2.0, 3.0]}
    assert metadata["branches"][1] == {"formula": "cubic polynomial", "domain": [None, None]}
    assert metadata["branches"][2] == {"pieces": 5, "domain": [-1.2, 3.4]}


@pytest.mark.parametrize("name", ["model.JSON", "model.json"])
def test_the_first_bytes_say_what_a_file_is(name: str, tmp_path: Path) -> None:
    model = a_model_of_formulas()
    model.save(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(b"{")
    (tmp_path / name).rename(tmp_path / "text.npz")
    assert_same(ub.DecoupledModel.load(tmp_path / "text.npz"), model)
    model.save(tmp_path / "archive")
    (tmp_path / "archive").rename(tmp_path / "archive.json")
    assert_same(ub.DecoupledModel.load(tmp_path / "archive.json"), model)


def test_a_text_may_begin_with_a_mark_and_blanks(tmp_path: Path) -> None:
    model, path = a_model_of_formulas(), tmp_path / "model"
    model.save(tmp_path / "model.json")
    path.write_bytes(b"\xef\xbb\xbf \r\n" + (tmp_path / "model.json").read_bytes())
    assert_same(ub.DecoupledModel.load(path), model)


def branch_of(pieces: Pieces, domain: tuple[float, float] = (0.0, 1.0)) -> PiecewiseBranch:
    return PiecewiseBranch(pieces, domain)


LINES = Pieces(np.array([0.0, 1.0]), np.zeros(3), np.ones(3), np.ones((2, 3)))


@pytest.mark.parametrize(
    ("branch", "said"),
    [
        (branch_of(dataclasses.replace(LINES, breaks=np.array([1.0, 0.0]))), "the breaks are not increasing"),
        (branch_of(dataclasses.replace(LINES, breaks=np.array([0.0, 1e70]))), "as far out as 1e\\+70"),
        (branch_of(dataclasses.replace(LINES, middle=np.zeros(2))), "do not make 2 pieces"),
        (branch_of(dataclasses.replace(LINES, powers=np.ones((200, 3)))), "the degree is 199"),
        (branch_of(dataclasses.replace(LINES, powers=np.full((2, 3), np.nan))), "NaN or infinite"),
        (branch_of(LINES, (1.0, 0.0)), r"the domain of branch 1 is \(1.0, 0.0\)"),
        (FormulaBranch(Formula(shape("mine", U**7), (1.0, 1.0, 0.0, 0.0))), "none of the known forms"),
        (FormulaBranch(Formula(shape("sine", U**7), (1.0, 1.0, 0.0, 0.0))), "none of the known forms"),
        (FormulaBranch(Formula.of("line", (1.0, 2.0)), (np.nan, 1.0)), "the domain of branch 1"),
    ],
)
@both
def test_what_could_not_be_read_is_not_written(
    branch: PiecewiseBranch | FormulaBranch, said: str, ending: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelFileError, match=said):
        ub.DecoupledModel([[1.0]], [[1.0]], [branch]).save(tmp_path / f"model{ending}")
    assert list(tmp_path.iterdir()) == []


def test_formulas_in_python_are_refused_as_json_too(tmp_path: Path) -> None:
    _, truth = ub.datasets.trig(S=5, rng=0)
    with pytest.raises(ModelFileError, match="a file holds coefficients"):
        truth.export(tmp_path / "truth.json")


def test_a_path_must_be_one() -> None:
    for act in (a_model([ub.Polynomial(2)]).save, ub.DecoupledModel.load):
        with pytest.raises(SettingError, match="path must be the path of a file"):
            act(3)  # type: ignore[arg-type]
