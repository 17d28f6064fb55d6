"""--json: one document on stdout that strict parsers take, and errors as ever."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from click.testing import CliRunner, Result

import unbraid as ub
from unbraid.cli import app
from unbraid.cli import fit as fit_module
from unbraid.cli.output import say_document

pytestmark = pytest.mark.usefixtures("no_formulas")


@pytest.fixture
def problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ub.Problem:
    """A folder to run in with data.npz (f_trig), and what it holds."""
    monkeypatch.chdir(tmp_path)
    drawn, _ = ub.datasets.trig(S=60, rng=0)
    assert drawn.F is not None
    assert drawn.J is not None
    np.savez("data.npz", X=drawn.X, F=drawn.F, J=drawn.J)
    return drawn


def run(line: str) -> Result:
    return CliRunner().invoke(app, line.split())


def strict(text: str) -> dict[str, Any]:
    """The document, by a parser that takes nothing that is not JSON."""

    def refuse(constant: str) -> NoReturn:
        raise AssertionError(f"{constant} is no JSON")

    document = json.loads(text, parse_constant=refuse)
    assert isinstance(document, dict)
    assert document["unbraid"] == ub.__version__
    return document


def document_of(line: str) -> dict[str, Any]:
    result = run(f"{line} --json")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return strict(result.stdout)


def test_a_fit_tells_programs_what_it_tells_people(problem: ub.Problem) -> None:
    found = document_of("fit data.npz --rank 3 --starts 4 --seed 2 -o model.npz")
    expected = ub.decouple(problem, 3, starts=4, rng=2)
    assert expected.output_errors is not None
    assert found["output_errors"] == expected.output_errors.tolist()
    assert found["jacobian_error"] == expected.jacobian_error
    assert found["objective"] == expected.objective
    assert expected.held_out is not None
    assert expected.held_out.output_errors is not None
    assert found["held_out"]["output_errors"] == expected.held_out.output_errors.tolist()
    assert (found["held_out"]["outside"], found["held_out"]["advice"]) == (expected.held_out.outside, None)
    assert (found["rank"], found["samples"], found["inputs"], found["outputs"]) == (3, 60, 2, 2)
    assert (found["status"], found["converged"]) == (expected.status.name, expected.status.converged)
    assert found["starts"] == {"asked": 4, "made": 4, "finished": 4, "agreeing": expected.agreeing}
    assert found["notes"] == list(expected.notes)
    assert found["model"] == "model.npz"
    assert ub.DecoupledModel.load("model.npz").rank == 3


def test_what_is_not_there_is_null(problem: ub.Problem) -> None:
    assert problem.F is not None
    np.savez("data.npz", X=problem.X, F=problem.F)
    found = document_of("fit data.npz --rank 1 --starts 1 -o model.npz")
    assert found["jacobian_error"] is None
    assert found["output_names"] is None
    assert found["constraint"] is None


def test_a_shape_and_names_are_told(problem: ub.Problem) -> None:
    assert problem.F is not None
    np.savetxt("data.csv", np.hstack([problem.X, problem.F]), delimiter=",", header="a,b,p,q", comments="")
    line = "fit data.csv --inputs a,b --outputs p,q --rank 1 --starts 1 --increasing -o model.npz"
    found = document_of(line)
    assert (found["output_names"], found["constraint"]) == (["p", "q"], "increasing")
    assert document_of("inspect model.npz")["branches"][0]["certified"] == ["increasing"]


def test_numbers_that_json_does_not_have_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    """The error of a constant output is infinite."""
    say_document({"errors": np.array([1.0, np.nan, np.inf]), "error": -np.inf, "deep": [{"one": (np.float64("nan"),)}]})
    found = strict(capsys.readouterr().out)
    assert found["errors"] == [1.0, None, None]
    assert found["error"] is None
    assert found["deep"] == [{"one": [None]}]


def test_a_constant_output_gives_a_strict_document(problem: ub.Problem) -> None:
    F = np.column_stack([problem.X.sum(axis=1), np.ones(problem.S)])
    np.savez("data.npz", X=problem.X, F=F)
    found = document_of("fit data.npz --rank 1 --starts 1 -o model.npz")
    assert len(found["output_errors"]) == 2


def test_inspect_gives_the_matrices_in_full(problem: ub.Problem) -> None:
    model = ub.decouple(problem, 3, starts=1, rng=0).model
    model.save("model.npz")
    found = document_of("inspect model.npz")
    for name in ("W0", "W1", "bias"):
        assert np.array_equal(found[name], getattr(model, name))
    assert [branch["domain"] for branch in found["branches"]] == [list(branch.domain) for branch in model.branches]


def test_predict_prints_values_where_no_file_is_asked_for(problem: ub.Problem) -> None:
    model = ub.decouple(problem, 3, starts=1, rng=0).model
    model.save("model.npz")
    found = document_of("predict model.npz data.npz")
    np.testing.assert_array_equal(found["F"], model(problem.X))
    np.testing.assert_array_equal(found["J"], model.jacobian(problem.X))
    assert (found["output"], found["points"], found["outside"]) == (None, 60, 0)
    found = document_of("predict model.npz data.npz -o values.npz")
    assert found["output"] == "values.npz"
    assert "F" not in found
    assert Path("values.npz").exists()
    result = run("predict model.npz data.npz")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Missing option '-o' / '--output'. Or add --json, which prints F and J." in result.stderr


def test_a_demonstration_names_its_picture(problem: ub.Problem) -> None:
    found = document_of("demo")
    assert Path(found["picture"]).exists()
    assert len(found["angles"]) == 3


def test_a_comparison_has_an_entry_a_cell(problem: ub.Problem) -> None:
    line = "compare --system dreesen_a --method default --method dreesen2015 --noise 0 --runs 2 --jobs 1"
    found = document_of(line)
    assert [(one["system"], one["noise"], one["method"]) for one in found["results"]] == [
        ("dreesen_a", 0.0, "default"),
        ("dreesen_a", 0.0, "dreesen2015"),
    ]
    assert all(one["error"] <= one["worst_error"] for one in found["results"])
    assert all(Path(path).exists() for path in found["files"])
    assert (found["cells"], found["cells_from_before"]) == (2, 0)
    again = document_of(line)
    assert again["cells_from_before"] == 2
    assert again["results"] == found["results"]
    page = (Path("unbraid-comparison") / "summary.md").read_text()
    assert "--json" not in page, "the page tells how to get the numbers, not how they were printed"


@pytest.mark.parametrize(
    "line",
    [
        "fit none.npz --rank 3 -o model.npz --json",
        "fit data.npz --rank 0 -o model.npz --json",
        "fit data.npz --rank x -o model.npz --json",
        "inspect data.npz --json",
        "predict none.npz data.npz --json",
        "compare --system none --json",
        "demo --seed x --json",
    ],
)
def test_errors_are_a_sentence_on_stderr_as_ever(problem: ub.Problem, line: str) -> None:
    result = run(line)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


def test_an_interrupted_fit_still_gives_its_document(problem: ub.Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(*arguments: Any, **settings: Any) -> ub.Fit:
        def stop(progress: ub.Progress) -> None:
            raise KeyboardInterrupt

        return ub.decouple(*arguments, **{**settings, "callback": stop})

    monkeypatch.setattr(fit_module, "decouple", cut)
    result = run("fit data.npz --rank 3 -o model.npz --json")
    assert result.exit_code == 130
    found = strict(result.stdout)
    assert (found["status"], found["converged"]) == ("INTERRUPTED", False)
    assert Path(found["model"]).exists()
