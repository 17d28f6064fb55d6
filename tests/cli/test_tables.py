"""Tables on a terminal of 80 columns: they fit, and no number is broken over lines."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import unbraid as ub
from unbraid.cli import compare, demo, inspect, output, reproduce
from unbraid.cli.columns import lay_columns, width_of
from unbraid.kernels.arrays import Array
from unbraid.results.outcome import Status
from unbraid.studies.comparison.entries import contenders, systems
from unbraid.studies.reproduction.claims import Verdict
from unbraid.studies.reproduction.readings import VARIANTS

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?: %| degrees)?")
LONG = "temperature_of_the_left_bearing_in_kelvin_and_more"


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    def console(stream: object) -> Console:
        return Console(file=io.StringIO(), width=80, color_system=None, highlight=False)

    monkeypatch.setattr(output, "console_on", console)


def printed_table(printed: str) -> list[str]:
    """The lines of the table; sentences around it are wrapped by the terminal."""
    lines = [line for line in printed.splitlines() if "│" in line or "┃" in line or "━" in line]
    assert lines
    assert max(map(len, lines)) <= 80
    return lines


def assert_whole(numbers: list[str], printed: str) -> None:
    cells = [cell.strip() for line in printed_table(printed) for cell in line.split("│")]
    for number in numbers:
        assert any(number in cell for cell in cells), number


def model(m: int, n: int, r: int) -> ub.DecoupledModel:
    problem, _ = ub.datasets.random_system(n=n, m=m, r=r, S=200, rng=0)
    return ub.decouple(problem, r, starts=1, rng=0).model


@pytest.mark.parametrize("sizes", [(2, 2, 2), (8, 9, 3)], ids=str)
def test_inspect_fits(sizes: tuple[int, int, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = model(*sizes)
    one.save(tmp_path / "model.npz")
    inspect.command.main([str(tmp_path / "model.npz")], standalone_mode=False)
    shown = [f"{entry:.4g}" for entry in (*one.W0[:, :6].ravel(), *one.W1[:6].ravel())]
    assert_whole([*shown, *(f"{end:.4g}" for g in one.branches for end in g.domain)], capsys.readouterr().out)


def test_errors_of_outputs_with_long_names_fit(capsys: pytest.CaptureFixture[str]) -> None:
    errors = [1.23e-13, 123456.7, 0.135, float("inf")]
    rows = output.error_rows(1.5e-30, errors, [LONG, f"{LONG} 2", "y", "WWWW " * 12])
    output.print_table("Errors on the samples, rank 3", ("", ""), rows)
    assert_whole(["1.23e-13 %", "1.23e+05 %", "0.135 %", "1.50e-30"], capsys.readouterr().out)


def test_compare_fits_with_all_methods(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"system": system, "noise": noise, "contender": one, "run": 0, "fresh_error": 10.0 ** rng.uniform(-14, 3)}
        for system in systems()
        for noise in (0.0, 0.01, 0.05)
        for one in contenders()
    ]
    compare.print_errors(rows)
    printed = capsys.readouterr().out
    assert_whole([f"{row['fresh_error']:.2g}" for row in rows], printed)
    for title in ("unbraid", "Hollander", "BSpline(df)"):
        assert title in printed


def test_verdicts_fit(capsys: pytest.CaptureFixture[str]) -> None:
    claim = "Quadratic and cubic splines reach errors below 1 % from df 12 on, and linear ones do not."
    verdicts = [
        Verdict(claim, "median below 1 %", one, "median 0.0123 % at df 12, 4 of 30 runs", "holds") for one in VARIANTS
    ]
    reproduce.print_verdicts("f_trig", verdicts)
    assert_whole(["0.0123"], capsys.readouterr().out)


def test_demo_fits(capsys: pytest.CaptureFixture[str]) -> None:
    problem, truth = ub.datasets.trig(S=60, rng=0)
    fit = ub.decouple(problem, 3, starts=1, rng=0)
    assert fit.status is not Status.NOT_FINITE
    angles: Array = ub.metrics.direction_angles(fit.model.W0, truth.W0)
    demo.print_demo(fit, 60, angles, Path("branches.png"))
    assert_whole([f"{angle:.2g} degrees" for angle in angles], capsys.readouterr().out)


words = st.text("abc0.5 ", min_size=1, max_size=30)


@given(st.lists(st.tuples(words, words, words, words), min_size=1, max_size=5), st.integers(60, 120))
def test_every_column_is_in_one_block_that_fits(rows: list[tuple[str, ...]], room: int) -> None:
    blocks = lay_columns(("name", "one", "two", "three"), rows, 1, room)
    assert [k for block in blocks for k in block.which if k] == [1, 2, 3]
    assert all(block.which[0] == 0 for block in blocks)
    assert all(width_of(block.widths) <= room for block in blocks if len(block.which) > 2)
