"""Models as JSON: what people see, what other programs compute, and what is refused."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbraid as ub
from command_lines import run
from model_files import a_model, a_model_of_formulas, refusal
from random_models import assert_same
from unbraid.errors import ModelFileError
from unbraid.results.branch import FittedBranch
from unbraid.results.branches.formula import FormulaBranch
from unbraid.results.files import json_text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    a_model_of_formulas().save(tmp_path / "model.json")
    return tmp_path / "model.json"


def changed(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_export_and_save_write_the_same(path: Path) -> None:
    (written,) = a_model_of_formulas().export(path.with_name("export.json"))
    assert written.read_bytes() == path.read_bytes()
    assert_same(ub.DecoupledModel.load(written), a_model_of_formulas())


def test_matrices_have_a_row_a_line_and_the_text_says_what_it_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert '  "W0": [\n    [1.0, 0.15],\n    [1.0, 2.0],' in text
    assert '"f(x) = W1 g(W0 x) + bias: entry j of W0 x is the input u of branch j' in text
    assert '      "reads": "a sin(b u + c) + d",\n      "parameters": [0.32, 2.0, 0.3, 0.05]' in text
    assert '"input_names": ["speed", "fuel=diesel"]' in text


def test_other_programs_can_evaluate_the_polynomials(tmp_path: Path) -> None:
    model = a_model([ub.BSpline(6), ub.SmoothingSpline(8), ub.NaturalCubic(4), ub.PiecewiseLinear(3), ub.Polynomial(5)])
    model.save(tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    for x in 3.0 * np.random.default_rng(0).standard_normal((20, 2)):
        values = []
        for u, branch in zip(np.array(document["W0"]) @ x, document["branches"], strict=True):
            told = branch["polynomials"]
            i = bisect_right(told["breaks"], u)
            t = (u - told["middle"][i]) * told["rate"][i]
            values.append(sum(row[i] * t**p for p, row in enumerate(told["powers"])))
        f = np.array(document["W1"]) @ values + document["bias"]
        np.testing.assert_allclose(f, model(x), rtol=1e-12, atol=1e-12)


def test_whole_numbers_and_unknown_keys_are_taken(path: Path) -> None:
    changed(path, lambda told: told.update(bias=[1, 2], mine={"deep": [1]}))
    np.testing.assert_array_equal(ub.DecoupledModel.load(path).bias, [1.0, 2.0])


def test_the_command_line_takes_texts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    assert "model.json: 2 inputs, 4 branches, 2 outputs." in run("inspect model.json").stdout
    Path("points.csv").write_text("speed,fuel\n1.0,diesel\n2.0,petrol\n", encoding="utf-8")
    done = run("predict model.json points.csv -o values.csv")
    assert done.exit_code == 0, done.output
    assert len(Path("values.csv").read_text(encoding="utf-8").splitlines()) == 3
    problem, _ = ub.datasets.trig(S=40, rng=0)
    assert problem.F is not None
    np.savez("samples.npz", X=problem.X, F=problem.F)
    assert run("fit samples.npz --rank 1 --starts 1 -o fitted.json").exit_code == 0
    assert ub.DecoupledModel.load("fitted.json").rank == 1


def test_models_of_formulas_have_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = a_model_of_formulas()
    X = np.random.default_rng(0).standard_normal((30, 2))
    np.savez("samples.npz", X=X, F=model(X), J=model.jacobian(X))
    endless = model.branches[1]
    assert isinstance(endless, FormulaBranch)
    model.save("endless.json")
    branches = [FormulaBranch(endless.formula, (-9.0, 9.0)) if one is endless else one for one in model.branches]
    model.changed(branches=branches).save("model.json")
    assert run("report model.json samples.npz -o report.html").exit_code == 0
    refused = run("report endless.json samples.npz -o report.html")
    assert refused.exit_code == 2
    assert "has no finite range to draw on" in refused.stderr


# Texts of strangers.


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty, not a JSON file"),
        (" \n", "is empty, not a JSON file"),
        ("{", "is not a JSON file, or is damaged: line 1, column 2: expecting property name"),
        ("[]", "not with this library's format"),
        ("3", "not with this library's format"),
        ("{}", "not with this library's format"),
        ('{"format": "other"}', "not with this library's format"),
        ('{"format": NaN}', "NaN is no number of JSON"),
        ('{"format": -Infinity}', "-Infinity is no number of JSON"),
        ('{"a": ' * 100_000, "it is nested too deeply"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "it is nested too deeply"),
        ('{"format": "unbraid-model", "format": "unbraid-model"}', "the key 'format' comes twice"),
        ('{"\\u001b[2J": 1, "\\u001b[2J": 2}', "the key '?[2J' comes twice"),
        ('{"format": "unbraid-model"}', "its schema number is None"),
        ('{"format": "unbraid-model", "schema": ' + "9" * 50_000 + "}", "its schema number is inf"),
        ('{"format": "unbraid-model", "schema": 1e400}', "its schema number is inf"),
        ('{"format": "unbraid-model", "schema": 7, "unbraid": "9.1"}', "by unbraid 9.1 in schema 7"),
        ('{"format": "unbraid-model", "schema": 2, "branches": []}', "describe no branches"),
        ('{"format": "unbraid-model", "schema": 2, "branches": [3]}', "the array W0 is missing"),
        ('{"format": "unbraid-model", "schema": ' + "[" * 900 + "]" * 900 + "}", "model"),
    ],
)
def test_texts_that_are_no_models_are_refused(text: str, said: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8")
    assert said in refusal(path)


def test_bytes_that_are_no_text_are_refused(path: Path) -> None:
    path.write_bytes(b'{"format": "\xff\xfe"}')
    assert "it is not UTF-8" in refusal(path)
    path.write_bytes('{"format": 1}'.encode("utf-16"))
    assert "it is not UTF-8" in refusal(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda told: told.pop("W1"), "the array W1 is missing"),
        (lambda told: told.update(W0="text"), "the array W0 is missing"),
        (lambda told: told.update(W0=[[1.0, 2.0]] * 3), "W0 has shape (3, 2), not (4, any)"),
        (lambda told: told.update(W0=[1.0, 2.0]), "W0 has shape (2,), not (4, any)"),
        (lambda told: told.update(W0=[[], [], [], []]), "W0 has shape (4, 0), not (4, any)"),
        (lambda told: told["W0"].__setitem__(1, [1.0]), "the rows of W0 are not of the same length"),
        (lambda told: told["W0"].__setitem__(1, 1.0), "the rows of W0 are not of the same length"),
        (lambda told: told["W0"].__setitem__(1, {"a": 1, "b": 2}), "the rows of W0 are not of the same length"),
        (lambda told: told.update(bias=[1.0, "2.0"]), "bias has entries that are no numbers"),
        (lambda told: told.update(bias=[1.0, None]), "bias has entries that are no numbers"),
        (lambda told: told.update(bias=[1.0, True]), "bias has entries that are no numbers"),
        (lambda told: told.update(bias=[1.0, [2.0]]), "bias has entries that are no numbers"),
        (lambda told: told.update(bias=[1.0, 10**400]), "bias has entries that are NaN or infinite"),
        (lambda told: told.update(input_names=["a"]), "its input_names are not 2 texts"),
        (lambda told: told.update(output_names=["a", "x" * 10**6]), "one of its names has 1000000 characters"),
        (lambda told: told["encoding"][1]["levels"].__setitem__(0, "x" * 10**6), "one of its names has 1000000"),
        (lambda told: told.update(encoding=3), "its encoding is none"),
        (lambda told: told["branches"][0].update(formula="Wavelet"), "has the formula 'Wavelet', and this version"),
        (lambda told: told["branches"][0].update(formula=["sine"]), "has the formula ['sine']"),
        (lambda told: told["branches"][0].update(parameters=[1.0]), "branch_0.parameters has shape (1,), not (4)"),
        (lambda told: told["branches"][0].update(domain=[1.0, 1.0]), "the domain of branch 1 is [1.0, 1.0]"),
        (lambda told: told["branches"][0].update(domain=["a", 1.0]), "the domain of branch 1 is ['a', 1.0]"),
        (lambda told: told["branches"][0].update(domain=[True, 2]), "the domain of branch 1 is [True, 2]"),
        (lambda told: told["branches"][0].pop("domain"), "the domain of branch 1 is None"),
        (lambda told: told["branches"][2].update(pieces=6), "branch_2.polynomials.breaks has shape (4,), not (5)"),
        (lambda told: told["branches"][2].update(pieces=1), "branch 3 has 1 pieces"),
        (lambda told: told["branches"][2].update(pieces=10**30), "pieces, and at least 2 are needed"),
        (lambda told: told["branches"][2].update(pieces=10**15), "branch_2.polynomials.breaks has shape (4,)"),
        (lambda told: told["branches"][2].update(polynomials=3), "branch_2.polynomials.breaks is missing"),
        (lambda told: told["branches"][2]["polynomials"]["breaks"].reverse(), "the breaks are not increasing"),
        (lambda told: told["branches"][2]["polynomials"]["middle"].__setitem__(0, 1e70), "as far out as 1e+70"),
        (lambda told: told["branches"][2]["polynomials"]["rate"].__setitem__(0, 1e70), "rates as large as 1e+70"),
        (lambda told: told["branches"][2]["polynomials"].update(powers=[[1.0] * 5]), "degrees from 1 to 100"),
        (lambda told: told["branches"][2]["polynomials"].update(powers=[[1.0] * 5] * 999), "degrees from 1 to 100"),
        (lambda told: told["branches"][3]["coordinates"].append(1.0), "branch_3.coordinates has shape"),
        (lambda told: told["branches"][3]["breakpoints"].reverse(), "branch_3.breakpoints is not strictly increasing"),
        (lambda told: told["branches"][3].update(basis="Wavelet"), "has the basis 'Wavelet'"),
        (lambda told: told["branches"].__setitem__(0, None), "the description of branch 1 has no basis"),
    ],
)
def test_texts_that_contradict_the_model_are_refused(
    change: Callable[[dict[str, Any]], object], said: str, path: Path
) -> None:
    text = refusal(changed(path, change))
    assert said in text
    assert text.isprintable()
    assert len(text) < 900


def test_a_text_of_an_older_unbraid_may_hold_fitted_branches_alone(tmp_path: Path) -> None:
    a_model([ub.BSpline(6)]).save(tmp_path / "model.json")
    assert json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))["schema"] == 1


def test_texts_that_are_too_large_are_refused_both_ways(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "MOST_LISTS", 10)
    assert "more than the 10 lists and objects" in refusal(path)
    monkeypatch.setattr(json_text, "MOST_BYTES", 1000)
    assert "has more than the 0 MiB accepted of a JSON text" in refusal(path)
    with pytest.raises(ModelFileError, match=r"cannot be saved as JSON: it would take .* save it as \.npz"):
        a_model_of_formulas().save(path)


def test_polynomials_beyond_floating_point_are_left_out(tmp_path: Path) -> None:
    basis = ub.BSpline(4)
    branch = FittedBranch(basis, basis.place(np.array([0.0, 1e-50])), np.full(basis.size, 1e300))
    model = ub.DecoupledModel([[1.0]], [[1.0]], [branch])
    with np.errstate(all="ignore"):
        model.save(tmp_path / "model.json")
        assert_same(ub.DecoupledModel.load(tmp_path / "model.json"), model)


WORDS = st.sampled_from(
    [
        "format",
        "schema",
        "branches",
        "W0",
        "W1",
        "bias",
        "formula",
        "pieces",
        "basis",
        "settings",
        "domain",
        "powers",
        "parameters",
        "polynomials",
        "breaks",
        "middle",
        "rate",
        "encoding",
        "input_names",
        "sine",
        "BSpline",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=8,
)


@given(data=st.data())
def test_whatever_stands_in_a_text_is_read_or_refused(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any value in any place, NaN and huge numbers among them."""
    path = tmp_path_factory.getbasetemp() / "odd.json"
    a_model_of_formulas().save(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    for _ in range(data.draw(st.integers(1, 3))):
        place: Any = document
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = data.draw(st.sampled_from(keys))
            if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
                break
            place = place[key]
        place[key] = data.draw(VALUES)
    path.write_text(json.dumps(document), encoding="utf-8")
    try:
        with np.errstate(all="ignore"):
            ub.DecoupledModel.load(path)(np.ones(ub.DecoupledModel.load(path).m))
    except ModelFileError as error:
        said = str(error)
        assert said.isprintable()
        assert len(said) < 900
