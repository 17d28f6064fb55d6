"""The page about files: its commands run, one after another, on the files that its last block writes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from unbraid.cli import app

PAGE = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ unbraid (.*)$", PAGE, re.MULTILINE)
SETUP = re.findall(r"^```python setup\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the page's files are, and a model to predict with."""
    place = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for code in SETUP:
            exec(code, {})
        CliRunner().invoke(app, shlex.split(COMMANDS[0]))
    return place


def test_the_page_has_commands_and_code() -> None:
    assert len(COMMANDS) >= 8
    assert len(SETUP) == 1
    assert BLOCKS


@pytest.mark.parametrize("line", COMMANDS)
def test_command_runs(folder: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, shlex.split(line))
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("code", BLOCKS)
def test_block_runs(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    exec(code, names)
    assert repr(names["samples"].problem) in code
