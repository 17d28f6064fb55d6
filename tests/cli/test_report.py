"""Reports from the command line: `unbraid report`, `unbraid fit --report`, and the demonstration's."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import unbraid as ub
from unbraid.cli import app
from unbraid.cli import fit as fit_module
from unbraid.report import templates

pytestmark = pytest.mark.usefixtures("no_formulas")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data.npz and data.csv (f_trig) and model.npz, and the place to run in."""
    monkeypatch.chdir(tmp_path)
    problem, _ = ub.datasets.trig(S=60, rng=0)
    assert problem.F is not None
    assert problem.J is not None
    np.savez("data.npz", X=problem.X, F=problem.F, J=problem.J)
    table = np.hstack([problem.X, problem.F])
    np.savetxt("data.csv", table, delimiter=",", header="<b>speed</b>,load & co,force,torque", comments="")
    ub.decouple(problem, 3, starts=2, rng=0).model.save("model.npz")
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def files(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


def test_fit_writes_a_report_beside_the_model(folder: Path) -> None:
    done = run("fit", "data.npz", "--rank", "3", "--starts", "2", "-o", "fitted.npz", "--report", "page.html")
    assert done.exit_code == 0, done.output
    assert "page.html" in done.stdout
    page = Path("page.html").read_text(encoding="utf-8")
    assert "How all starts ended" in page
    assert "unbraid fit data.npz --rank 3 --starts 2 -o fitted.npz --report page.html" in page


def test_report_is_about_a_model_and_samples(folder: Path) -> None:
    done = run("report", "model.npz", "data.npz", "-o", "page.html")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "60 samples" in done.stdout
    for row in ("output 1", "output 2", "Error(J)"):
        assert row in done.stdout
    page = Path("page.html").read_text(encoding="utf-8")
    assert "does not tell how the model was found" in page
    assert "unbraid report model.npz data.npz -o page.html" in page


def test_programs_get_a_document(folder: Path) -> None:
    done = run("report", "model.npz", "data.npz", "-o", "page.html", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["report"], told["rank"], told["samples"], len(told["output_errors"])) == ("page.html", 3, 60, 2)
    words = ["fit", "data.npz", "--rank", "3", "--starts", "2", "-o", "fitted.npz", "--json"]
    assert json.loads(run(*words).stdout)["report"] is None
    assert json.loads(run(*words, "--report", "page.html").stdout)["report"] == "page.html"


def test_names_of_columns_are_on_the_page_as_text(folder: Path) -> None:
    names = "--inputs", "<b>speed</b>,load & co", "--outputs", "force,torque"
    done = run("report", "model.npz", "data.csv", *names, "-o", "page.html")
    assert done.exit_code == 0, done.output
    page = Path("page.html").read_text(encoding="utf-8")
    assert "<b>" not in page
    assert "&lt;b&gt;speed" in page
    assert "load & co" in html.unescape(page)


def test_names_in_any_script_are_on_the_page_and_nothing_is_said_of_them(folder: Path) -> None:
    header = "速度,עומס,力,टॉर्क"
    Path("data.csv").write_text("\n".join([header, *Path("data.csv").read_text().splitlines()[1:]]), encoding="utf-8")
    names = "--inputs", "速度,עומס", "--outputs", "力,टॉर्क"
    done = run("report", "model.npz", "data.csv", *names, "-o", "page.html")
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    assert "力: " in Path("page.html").read_text(encoding="utf-8")  # the legend of the residuals


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("report model.npz data.npz -o none/page.html", "its folder does not exist"),
        ("report model.npz data.npz -o data.npz", "also an input"),
        ("report model.npz data.npz -o model.npz", "also an input"),
        ("report none.npz data.npz -o page.html", "none.npz does not exist"),
        ("report data.npz data.npz -o page.html", "not an unbraid model"),
        ("report model.npz none.npz -o page.html", "none.npz does not exist"),
        ("report model.npz data.csv --inputs force --outputs torque -o page.html", "inputs"),
        ("report model.npz data.npz", "Missing option"),
        ("fit data.npz --rank 3 -o m.npz --report none/page.html", "its folder does not exist"),
        ("fit data.npz --rank 3 -o m.npz --report data.npz", "also an input"),
        ("fit data.npz --rank 3 -o m.npz --report m.npz", "another name"),
        ("report model.npz data.npz -o page.pdf", "HTML is what is written: use page.html"),
        ("demo -o report.html", "another name"),
    ],
)
def test_misuse_is_one_sentence_before_any_work(
    folder: Path, words: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(fit_module, "decouple")
    before = files(folder)
    done = run(*words.split())
    assert done.exit_code == 2, done.output
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert files(folder) == before


@pytest.mark.parametrize(
    "words", ["fit data.npz --rank 3 -o m.npz --report page.html", "report model.npz data.npz -o page.html", "demo"]
)
def test_a_missing_package_is_told_before_any_work(folder: Path, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        return None

    monkeypatch.setattr(templates, "find_spec", missing)
    monkeypatch.delattr(fit_module, "decouple")
    before = files(folder)
    done = run(*words.split())
    assert done.exit_code == 2, done.output
    assert 'pip install -e ".[report]"' in done.stderr
    assert files(folder) == before
