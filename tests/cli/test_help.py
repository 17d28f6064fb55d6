"""The help: a front page that fits a screen, and examples that work."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

import unbraid as ub
from sample_files import MATLAB, SAMPLES_FIRST, TABLES, parts
from unbraid.cli import app, compare, reproduce
from unbraid.dynamics import Record

COLUMNS, LINES = 80, 24
COMMANDS = list(app.commands)


def help_of(*command: str) -> str:
    result = CliRunner().invoke(app, [*command, "--help"], terminal_width=COLUMNS)
    assert result.exit_code == 0
    return result.stdout


def examples(command: str) -> list[str]:
    """The lines of a help that begin with the command, continued lines joined."""
    text = help_of(command).replace("\\\n", " ")
    return [" ".join(line.split()) for line in re.findall(rf"^    (unbraid {command}\b.*)$", text + "\n", re.MULTILINE)]


def test_the_front_page_fits_a_screen_with_the_command_above_and_a_prompt_below() -> None:
    lines = help_of().splitlines()
    assert len(lines) <= LINES - 2
    assert max(map(len, lines)) <= COLUMNS


def test_the_front_page_has_commands_in_the_order_of_use_examples_and_where_to_read_on() -> None:
    page = help_of()
    order = [re.search(rf"^  {name} ", page, re.MULTILINE) for name in ("demo", "fit", "inspect", "predict", "compare")]
    places = [found.start() for found in order if found is not None]
    assert len(places) == 5
    assert places == sorted(places)
    assert page.count("    unbraid ") >= 3
    assert all(said in page for said in ("--help", "--version", "docs/command_line.md", "130 interrupted"))
    assert (Path(__file__).parents[2] / "docs" / "command_line.md").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_examples(command: str) -> None:
    assert "Examples" in help_of(command)
    assert len(examples(command)) >= 2


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_is_plain_text_of_80_columns(command: str) -> None:
    page = help_of(*command.split())
    assert all(letter == "\n" or letter.isprintable() for letter in page)
    long = [line for line in page.splitlines() if len(line) > COLUMNS]
    assert all(line.lstrip().startswith("--") for line in long), "only a list of choices may be longer"


@pytest.mark.parametrize(
    "line", [line for command in COMMANDS if command != "completion" for line in examples(command)]
)
@pytest.mark.usefixtures("no_formulas", "no_layout")
def test_the_examples_are_accepted(line: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments are read and checked, and files are found; long work is not done."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)

    def enough(*_: Any, **__: Any) -> None:
        raise click.exceptions.Exit(0)

    for module in (compare, reproduce):
        monkeypatch.setattr(module, "run_cells", enough)
    words = shlex.split(line)[1:]
    quick = {"fit": "--starts 1 --max-sweeps 5", "identify": "--starts 1 --basis polynomial --degree 3"}.get(
        words[0], ""
    )
    result = CliRunner().invoke(app, words + quick.split())
    assert result.exit_code == 0, result.output


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that examples name."""
    folder = tmp_path_factory.mktemp("files")
    problem, _ = ub.datasets.trig(S=40, rng=0)
    arrays = parts(problem)
    SAMPLES_FIRST["samples.npz"](folder / "samples.npz", arrays)
    SAMPLES_FIRST["samples.npz"](folder / "points.npz", arrays)
    SAMPLES_FIRST["samples"](folder / "folder", arrays)
    for letter, array in arrays.items():
        np.save(folder / f"{letter}.npy", array)
    many = {"X": arrays["X"], "F": np.tile(arrays["F"], (1, 5))[:, :9]}
    few = {"X": arrays["X"], "F": arrays["F"]}
    named = {**few, "U": arrays["X"], "Y": arrays["F"], "data": {"train": few}}
    next(iter(MATLAB.values()))(folder / "samples.mat", named)
    next(iter(MATLAB.values()))(folder / "points.mat", {**arrays, "data": {"test": few}})
    TABLES["samples.csv"](folder / "samples.csv", many)
    TABLES["samples.csv"](folder / "points.csv", arrays)
    TABLES["samples.csv"](folder / "fresh.csv", arrays)
    TABLES["samples.parquet"](folder / "samples.parquet", arrays)
    record, _ = ub.dynamics.systems.duffing(T=300, rng=0)
    np.savez(folder / "record.npz", u=record.u, y=record.y)
    columns = np.column_stack([record.time, record.u, record.y])
    np.savetxt(folder / "record.csv", columns, delimiter=",", header="t,u,y", comments="")
    own = Record(record.u, record.y, input_names=["u"])
    dynamic = ub.dynamics.state_space(own, 2, 1, basis=ub.Polynomial(3), starts=1)
    dynamic.model.save(folder / "dynamic.npz")
    model = ub.decouple(problem, 2, starts=1, rng=0).model
    model.changed(input_names=["x1", "x2"], output_names=["y1", "y2"]).save(folder / "model.npz")
    return folder
