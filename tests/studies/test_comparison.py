"""`unbraid compare`: fair, resumable, and open to new systems and methods."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from click.testing import CliRunner

import unbraid as ub
from unbraid.cli import app
from unbraid.studies.comparison import cells
from unbraid.studies.comparison.cells import FRESH, TRAINING, comparison_cell, with_noise
from unbraid.studies.comparison.entries import contenders, systems


def compare(folder: Path, *options: str) -> str:
    result = CliRunner().invoke(app, ["compare", "-o", str(folder), *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("name", list(systems()))
def test_every_system_has_samples_of_the_size_it_says(name: str) -> None:
    system = systems()[name]
    problem, truth = system.draw(30, np.random.default_rng(0))
    assert problem.S == 30
    assert problem.F is not None
    assert problem.J is not None
    assert truth is None or truth.rank == system.rank


@pytest.mark.parametrize("name", list(contenders()))
def test_every_contender_fits_and_is_tested_on_fresh_points(name: str) -> None:
    (row,) = comparison_cell("dreesen_a", 0.0, name, runs=1, seed=0)
    assert 0.0 <= row["fresh_error"] < 50.0
    assert row["contender"] == name
    assert row["seconds"] > 0.0


def test_all_contenders_see_the_same_samples() -> None:
    seen: list[ub.Problem] = []
    for name in ("dreesen2015", "hollander2017"):
        rows = comparison_cell("dreesen_a", 0.05, name, runs=2, seed=3)
        assert [row["run"] for row in rows] == [0, 1]
    for _ in range(2):
        whole, _ = systems()["dreesen_a"].draw(TRAINING + FRESH, np.random.default_rng([3, 0, 0]))
        seen.append(with_noise(whole.take(slice(TRAINING)), 0.05, np.random.default_rng([3, 1, 0])))
    np.testing.assert_array_equal(seen[0].J, seen[1].J)


def test_noise_has_the_size_it_says() -> None:
    problem, _ = ub.datasets.trig(S=5000, rng=0)
    noisy = with_noise(problem, 0.05, np.random.default_rng(0))
    assert problem.F is not None
    assert problem.J is not None
    assert noisy.F is not None
    assert noisy.J is not None
    np.testing.assert_allclose(ub.metrics.output_errors(problem.F, noisy.F), 5.0, rtol=0.1)
    assert ub.metrics.jacobian_error(problem.J, noisy.J) == pytest.approx(0.05**2, rel=0.1)
    assert with_noise(problem, 0.0, np.random.default_rng(0)) is problem


def test_a_comparison_leaves_a_table_a_figure_and_numbers(tmp_path: Path) -> None:
    options = ("--system", "dreesen_a", "--method", "default", "--method", "dreesen2015", "--noise", "0", "--runs", "2")
    said = compare(tmp_path, *options, "--jobs", "1")
    assert {"summary.md", "compare.csv", "compare.svg", "compare.png"} <= {path.name for path in tmp_path.iterdir()}
    page = (tmp_path / "summary.md").read_text()
    assert "unbraid compare --system dreesen_a --method default --method dreesen2015 --noise 0.0 --runs 2" in page
    assert "| Dreesen (a) |" in page
    assert "unbraid" in said
    again = compare(tmp_path, *options, "--jobs", "1")
    assert "2 of them from before" in again


@pytest.mark.parametrize("broken", ["method", "system"])
def test_a_method_or_system_that_fails_is_named_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fail(*_: Any) -> NoReturn:
        raise RuntimeError("the matrix is\nsingular")

    contender, system = contenders()["default"], systems()["dreesen_a"]
    if broken == "method":
        monkeypatch.setattr(cells, "contenders", lambda: {"default": replace(contender, fit=fail)})
        expected = "The method 'default' failed on the system 'dreesen_a', noise 0, draw 0"
    else:
        monkeypatch.setattr(cells, "systems", lambda: {"dreesen_a": replace(system, draw=fail)})
        expected = "The system 'dreesen_a' cannot be drawn"
    line = f"compare --system dreesen_a --method default --noise 0 --runs 1 --jobs 1 -o {tmp_path}"
    result = CliRunner().invoke(app, line.split())
    assert (result.exit_code, result.stdout) == (2, "")
    said = "RuntimeError: the matrix is singular. What was finished is kept: repair it, or leave it out."
    assert result.stderr == f"Error: {expected}: {said}\n"


def test_unknown_names_are_refused_with_those_there_are() -> None:
    result = CliRunner().invoke(app, ["compare", "--system", "none"])
    assert result.exit_code == 2
    assert f"There is no system 'none': there are {', '.join(systems())}." in result.output


def test_methods_are_in_a_readers_order() -> None:
    """As in the README: unbraid first, and then the papers."""
    titles = [one.title for one in contenders().values()]
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    [header] = [line for line in readme.splitlines() if line.startswith("| system |")]
    assert titles == [cell.strip().replace("`", "") for cell in header.strip("|").split("|")][1:]


def test_one_draw_is_one_draw_and_has_no_median(tmp_path: Path) -> None:
    one = ("--system", "dreesen_a", "--noise", "0", "--method", "default", "--jobs", "1")
    said = compare(tmp_path, *one, "--runs", "1")
    page = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "1 cell of 1 draw." in said
    assert "median" not in said
    assert "1 draw a cell" in page
    [row] = [line for line in page.splitlines() if line.startswith("| Dreesen (a) | **")]
    assert "(" not in row.removeprefix("| Dreesen (a)")
    several = compare(tmp_path, *one, "--runs", "2")
    assert "1 cell of 2 draws" in several
    assert "median" in several
