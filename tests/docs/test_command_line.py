"""The page about the command line: its commands run and print what the page shows, and its keys are those there are."""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from unbraid.cli import app

PAGE = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")
SETUP = re.findall(r"^```python setup\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
BLOCKS = re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
KEYS = {
    command: set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE))))
    for command, table in re.findall(r"^`unbraid (\w+)(?: …)? --json`\n\n(.*?)\n\n", PAGE, re.MULTILINE | re.DOTALL)
}
"""What the page says of the documents."""


def typed(line: str) -> str:
    """What a shell prints, errors first. A line without pipes and the like needs none, nor a new process."""
    if not re.search(r"[|;$]", line):
        ended = CliRunner().invoke(app, shlex.split(line)[1:])
        assert ended.exit_code == 0, (line, ended.output)
        return ended.stderr + ended.stdout
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (line, done.stderr)
    return done.stderr + done.stdout


@pytest.mark.usefixtures("no_formulas", "no_layout")
def test_the_page_runs_and_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One test: commands follow one another, and tests may be spread over processes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("unbraid.cli.reproduce.QUICK_TRIG_DFS", (12,))  # a quarter of the cells
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    for code in SETUP:
        exec(code.replace("T=1000", "T=300"), {})  # a record that is identified in less time
    checker, last = doctest.OutputChecker(), {}
    for block in BLOCKS:
        for part in block.split("$ ")[1:]:
            line, _, expected = part.partition("\n")
            printed = typed(line)
            assert not expected or checker.check_output(expected, printed, doctest.ELLIPSIS), (line, printed)
            if not expected:
                last[line.split()[1]] = line.removesuffix(" --json")
    written = {"unbraid-demo", "branches.svg", "model.npz", "values.npz", "unbraid-comparison", "unbraid-reproduction"}
    assert written <= {path.name for path in tmp_path.iterdir()}
    assert set(last) == set(KEYS)
    for command, line in last.items():  # cells of compare and reproduce are there
        document = json.loads(typed(f"{line} --json"))
        assert document.pop("unbraid")
        assert set(document) == KEYS[command]


def test_the_page_lists_every_command_in_order() -> None:
    assert re.findall(r"^\| \[`(\w+)`\]", PAGE, re.MULTILINE) == list(app.commands)


def test_every_command_but_completion_has_a_table_of_keys() -> None:
    assert set(app.commands) == {*KEYS, "completion"}
