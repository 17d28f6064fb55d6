"""`unbraid reproduce`: the same numbers however it is run, survival of a kill, and verdicts that follow the numbers."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import unbraid as ub
from unbraid.cli import app
from unbraid.studies.reproduction import claims
from unbraid.studies.reproduction.cells import monotone_cell, trig_cell, with_polynomials
from unbraid.studies.reproduction.output import drawn_words
from unbraid.studies.reproduction.readings import Readings
from unbraid.studies.tasks import Rows

SMALL = ["reproduce", "trig", "--quick", "--runs", "1", "--sweeps", "20"]


DFS = (12,)
PATCHED = f"from unbraid.cli import app, reproduce; reproduce.QUICK_TRIG_DFS = {DFS}; app()"
"""A program with these dfs."""


@pytest.fixture(autouse=True, scope="module")
def few_dfs() -> Iterator[None]:
    """A quarter of the cells, a third of those of the monotone experiment, and no layout: the claims need no more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unbraid.cli.reproduce.QUICK_TRIG_DFS", DFS)
        patch.setattr("unbraid.cli.reproduce.QUICK_MONOTONE_DFS", (8,))
        patch.setattr("unbraid.studies.tables.settle_layout", lambda figure: figure.set_layout_engine("none"))
        yield


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers only: figures take longer than they do."""
    monkeypatch.setattr("unbraid.studies.reproduction.output.write_figure", lambda *_: [])


def reproduce(folder: Path, *options: str) -> str:
    result = CliRunner().invoke(app, [*SMALL, "-o", str(folder), *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one process that nobody disturbs."""
    folder = tmp_path_factory.mktemp("whole")
    reproduce(folder, "--jobs", "1")
    return folder


def test_a_run_leaves_figures_numbers_and_a_summary(whole: Path) -> None:
    names = {path.name for path in whole.iterdir()}
    assert {"summary.md", "trig.csv", "figure2.svg", "figure2.png", "figure2-splines.svg", "cells"} <= names
    page = (whole / "summary.md").read_text()
    assert "Made by `unbraid reproduce trig --quick --runs 1 --sweeps 20`." in page
    assert "λ = 0.01" in page
    assert page.count("**") == 2 * 4 * 3, "a verdict for each of four claims and three variants"
    rows = table(whole / "trig.csv")
    assert len(rows) == 3 * 3 * len(DFS)
    assert {row["variant"] for row in rows} == {"printed", "anchored", "default"}


def test_the_same_seed_gives_the_same_csv_with_two_jobs(whole: Path, tmp_path: Path) -> None:
    reproduce(tmp_path, "--jobs", "2")
    assert (tmp_path / "trig.csv").read_bytes() == (whole / "trig.csv").read_bytes()
    assert (tmp_path / "figure2.svg").read_bytes() == (whole / "figure2.svg").read_bytes()
    assert (tmp_path / "summary.md").read_bytes() == (whole / "summary.md").read_bytes()


@pytest.mark.usefixtures("undrawn")
def test_another_seed_gives_other_numbers(whole: Path, tmp_path: Path) -> None:
    reproduce(tmp_path, "--jobs", "1", "--seed", "1")
    assert (tmp_path / "trig.csv").read_bytes() != (whole / "trig.csv").read_bytes()


@pytest.mark.usefixtures("undrawn")
def test_killed_and_started_again_it_computes_only_the_rest(whole: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PATCHED, *SMALL, "-o", str(tmp_path), "--jobs", "2"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    cells = tmp_path / "cells"
    deadline = time.monotonic() + 600.0
    while len(finished(cells)) < 5 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = {path: path.stat().st_mtime_ns for path in finished(cells)}
    assert 5 <= len(kept) < 3 * 3 * len(DFS), "killed in the middle"
    reproduce(tmp_path, "--jobs", "2")
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items()), "finished cells are not touched"
    assert (tmp_path / "trig.csv").read_bytes() == (whole / "trig.csv").read_bytes()


def finished(cells: Path) -> list[Path]:
    return sorted(cells.glob("*.json")) if cells.is_dir() else []


def test_the_monotone_experiment_runs(tmp_path: Path) -> None:
    options = ["reproduce", "monotone", "--quick", "--runs", "1", "--sweeps", "20", "-o", str(tmp_path)]
    result = CliRunner().invoke(app, options, catch_exceptions=False)
    assert result.exit_code == 0
    assert "--quick False" not in (tmp_path / "summary.md").read_text()
    rows = table(tmp_path / "monotone.csv")
    assert len(rows) == 3 * 2
    assert all(row["certified"] == "True" for row in rows if row["constraint"] == "increasing")
    assert {"figure3.svg", "figure3.png", "table1.csv"} <= {path.name for path in tmp_path.iterdir()}
    assert "The constraint lowers Error(J)." in result.output


def test_bad_readings_are_refused() -> None:
    for option, value in (("--coupling", "-1"), ("--box", "0"), ("--sweeps", "0")):
        result = CliRunner().invoke(app, [*SMALL, option, value])
        assert result.exit_code == 2
        assert option.removeprefix("--") in result.output
    with pytest.raises(ub.UnbraidError, match="degree_of"):
        Readings(degree_of="g")  # type: ignore[arg-type]


def test_the_degree_may_be_the_splines() -> None:
    by_function = monotone_cell("printed", True, 8, 1, 0, **Readings(sweeps=5).settings())
    by_spline = monotone_cell("printed", True, 8, 1, 0, **Readings(sweeps=5, degree_of="spline").settings())
    assert by_function[0]["error_J"] != by_spline[0]["error_J"]


def test_all_variants_see_the_same_samples() -> None:
    settings: dict[str, Any] = {"degree": 3, "df": 8, "runs": 1, "seed": 0, **Readings(sweeps=1).settings()}
    (printed,), (default,) = trig_cell("printed", **settings), trig_cell("default", **settings)
    assert default["error_J"] < printed["error_J"]


def test_polynomials_through_polynomial_branches_change_nothing() -> None:
    problem, truth = ub.datasets.decuyper(rng=0)
    smooth = with_polynomials(truth, problem, 10)
    np.testing.assert_allclose(smooth(problem.X), truth(problem.X), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(smooth.jacobian(problem.X), truth.jacobian(problem.X), rtol=1e-7, atol=1e-7)


# Verdicts on made-up numbers.


def trig_rows(error: dict[int, float], angle: float = 0.1) -> Rows:
    """Runs whose outputs have the errors that `error` gives for each degree, falling with df."""
    return [
        {"variant": "printed", "degree": d, "df": df, "run": run, "angle": angle}
        | dict.fromkeys(("poly_e1", "poly_e2"), error[d] * 12.0 / df)
        for d in (1, 2, 3)
        for df in (12, 20, 28)
        for run in range(4)
    ]


def judged(rows: Rows) -> list[str]:
    return [one.verdict for one in claims.trig_verdicts(rows)]


def test_verdicts_on_the_first_experiment_follow_the_numbers() -> None:
    assert judged(trig_rows({1: 9.0, 2: 1.5, 3: 0.9})) == [claims.HOLDS] * 4
    assert judged(trig_rows({1: 9.0, 2: 1.5, 3: 1.1}))[0] == claims.FAILS
    assert judged(trig_rows({1: 9.0, 2: 0.5, 3: 0.5}))[1] == claims.FAILS
    assert judged(trig_rows({1: 0.1, 2: 1.5, 3: 0.9}))[2] == claims.FAILS
    assert judged(trig_rows({1: 9.0, 2: 1.5, 3: 0.9}, angle=40.0))[3] == claims.FAILS
    assert judged(trig_rows({1: 9.0, 2: 9.0, 3: 9.0}))[3] == claims.FAILS


def monotone_rows(free: float, constrained: float, certified_free: int, certified: int = 3) -> Rows:
    rows: Rows = []
    for name, error, count in (("none", free, certified_free), ("increasing", constrained, certified)):
        for df in (8, 14):
            for run in range(3):
                row = {"variant": "printed", "constraint": name, "df": df, "run": run, "error_J": error}
                rows.append({**row, "certified": run < count})
    return rows


def test_verdicts_on_the_second_experiment_follow_the_numbers() -> None:
    def judge(rows: Rows) -> list[str]:
        return [one.verdict for one in claims.monotone_verdicts(rows)]

    assert judge(monotone_rows(1e-4, 1e-5, 1)) == [claims.HOLDS] * 3
    assert judge(monotone_rows(1e-5, 1e-4, 1))[0] == claims.FAILS
    assert judge(monotone_rows(1e-4, 1e-5, 3))[1:] == [claims.IN_PART, claims.FAILS]
    assert judge(monotone_rows(1e-4, 1e-5, 1, certified=2))[1] == claims.FAILS


def test_the_page_says_what_is_drawn_of_few_and_of_many_runs() -> None:
    assert drawn_words(4) == "every dot is a run"
    assert drawn_words(30) == "outliers are not drawn"
