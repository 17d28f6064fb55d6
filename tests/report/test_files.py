"""Reports are written whole or not at all, and what cannot be one is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import unbraid as ub
from report_pages import written
from unbraid.errors import DataError, FileError, MissingDependencyError, SettingError
from unbraid.fitting.request import Request
from unbraid.report import templates
from unbraid.report.repeat import call, method_code


def test_the_same_fit_gives_the_same_bytes(found: tuple[ub.Fit, ub.DecoupledModel], page: str, tmp_path: Path) -> None:
    assert written(found[0], tmp_path, truth=found[1]) == page
    other = ub.decouple(cast(ub.Problem, found[0].problem), 3, basis=ub.BSpline(df=16), starts=6, rng=0)
    assert written(replace(other, seconds=found[0].seconds), tmp_path, truth=found[1]) == page


def test_the_code_on_the_page_repeats_the_fit(found: tuple[ub.Fit, ub.DecoupledModel], page: str) -> None:
    [code] = re.findall(r"import unbraid as ub.*?(?=fit\.report)", re.sub("<[^>]+>", "", page), re.DOTALL)
    problem = cast(ub.Problem, found[0].problem)
    names: dict[str, Any] = {"X": problem.X, "F": problem.F, "J": problem.J}
    exec(code.replace("&#39;", "'").replace("&#34;", '"'), names)
    np.testing.assert_array_equal(names["fit"].model.W0, found[0].model.W0)


@pytest.mark.parametrize(
    ("method", "code"),
    [
        (ub.methods.default(), "ub.methods.default()"),
        (ub.methods.default(max_sweeps=7, tolerance=1e-4, max_steps=3), "max_sweeps=7, tolerance=0.0001, max_steps=3"),
        (ub.methods.default(polish=False), "polish=False"),
        (ub.methods.default(coupling=0.5, max_seconds=20.0), "coupling=0.5, max_seconds=20.0"),
        (ub.methods.dejonghe2025(coupling=1e-4, scaled=False), "coupling=0.0001, scaled=False"),
        (ub.methods.hollander2017(), "ub.methods.hollander2017()"),
    ],
    ids=["default", "budget", "sweeps", "coupling", "paper", "other"],
)
def test_a_method_is_written_as_the_call_that_makes_it(method: Any, code: str) -> None:
    written, complete = method_code(method)
    assert complete
    assert code in written
    assert eval(written, {"ub": ub}) == method


def test_a_continuation_that_was_asked_for_is_written() -> None:
    assert not any("continuation" in line for line in call(Request(rank=2)))
    assert any('continuation="linear"' in line for line in call(Request(rank=2, continuation="linear")))


def test_a_method_that_no_call_makes_is_said_to_have_further_settings() -> None:
    assert not method_code(replace(ub.methods.default(), offset=False))[1]


def test_a_fit_that_forgot_its_samples_needs_them(found: tuple[ub.Fit, ub.DecoupledModel], tmp_path: Path) -> None:
    forgetful = found[0].without_problem()
    with pytest.raises(DataError, match="pass the problem that was fitted"):
        forgetful.report(tmp_path / "report.html")
    forgetful.report(tmp_path / "report.html", problem=found[0].problem)
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize("truth", [3, "model"])
def test_a_truth_that_is_no_model_is_refused(
    found: tuple[ub.Fit, ub.DecoupledModel], truth: Any, tmp_path: Path
) -> None:
    with pytest.raises(SettingError, match="truth must be a DecoupledModel"):
        found[0].report(tmp_path / "report.html", truth=truth)
    assert list(tmp_path.iterdir()) == []


def test_a_truth_of_another_rank_is_refused(found: tuple[ub.Fit, ub.DecoupledModel], tmp_path: Path) -> None:
    _, other = ub.datasets.random_system(n=2, m=2, r=2, rng=0)
    with pytest.raises(DataError, match="as many branches"):
        found[0].report(tmp_path / "report.html", truth=other)


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib"])
def test_a_missing_package_is_named_with_what_to_install(
    found: tuple[ub.Fit, ub.DecoupledModel], missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(templates, "find_spec", lambda name: None if name == missing else True)
    with pytest.raises(MissingDependencyError, match=rf'{missing}.*pip install -e "\.\[report\]"'):
        found[0].report(tmp_path / "report.html")
    assert found[0]._repr_html_() is None
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_cannot_be_written_is_refused(found: tuple[ub.Fit, ub.DecoupledModel], tmp_path: Path) -> None:
    with pytest.raises(FileError, match="its folder does not exist"):
        found[0].report(tmp_path / "none" / "report.html")


def test_a_failure_leaves_the_old_page(
    found: tuple[ub.Fit, ub.DecoupledModel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    monkeypatch.setattr("unbraid.report.write.report_page", lambda *_: cast(Any, None))
    with pytest.raises(AttributeError):
        found[0].report(path)
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize("name", ["report.pdf", "report.txt"])
def test_a_name_that_promises_another_format_is_refused(
    found: tuple[ub.Fit, ub.DecoupledModel], name: str, tmp_path: Path
) -> None:
    with pytest.raises(FileError, match=r"HTML is what is written: use .*report\.html"):
        found[0].report(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
