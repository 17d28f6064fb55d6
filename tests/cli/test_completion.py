"""The Tab key: the scripts are printed, and the command answers them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete, CompletionItem
from click.testing import CliRunner

from unbraid.cli import COMPLETION_VARIABLE, SHELLS, app
from unbraid.cli.fit import METHODS
from unbraid.cli.options.bases import BASIS_CHOICES
from unbraid.studies.comparison.entries import contenders, systems


def offers(line: str) -> list[CompletionItem]:
    """What is offered at the end of a line."""
    *words, begun = line.split(" ")
    return BashComplete(app, {}, "unbraid", COMPLETION_VARIABLE).get_completions(words, begun)


def texts(line: str) -> list[str]:
    return [one.value for one in offers(line)]


def test_commands_are_offered() -> None:
    assert texts("") == list(app.commands)
    assert texts("comp") == ["compare", "completion"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("fit data.npz --basis ", list(BASIS_CHOICES)),
        ("fit data.npz --method d", [name for name in METHODS if name.startswith("d")]),
        ("fit data.npz --layout samples-l", ["samples-last"]),
        ("fit data.npz --rank a", ["auto"]),
        ("fit data.npz --rank 3", []),
        ("fit --incr", ["--increasing"]),
        ("reproduce ", ["trig", "monotone", "all"]),
        ("compare --system ", list(systems())),
        ("compare --method default --method dr", [name for name in contenders() if name.startswith("dr")]),
        ("completion ", list(SHELLS)),
    ],
)
def test_options_and_their_values_are_offered(line: str, expected: list[str]) -> None:
    assert texts(line) == expected


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("fit sam", "file"),
        ("fit data.npz -o mod", "file"),
        ("fit X.npy --outputs F", "file"),
        ("predict mod", "file"),
        ("predict model.npz poi", "file"),
        ("inspect mod", "file"),
        ("export model.npz -o mod", "file"),
        ("demo -o pic", "file"),
        ("compare -o fol", "dir"),
        ("reproduce all -o fol", "dir"),
    ],
)
def test_files_and_folders_are_left_to_the_shell(line: str, kind: str) -> None:
    assert [(one.type, one.value) for one in offers(line)] == [(kind, line.split()[-1])]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_every_shell_asks_by_the_same_variable(shell: str) -> None:
    result = CliRunner().invoke(app, ["completion", shell])
    assert result.exit_code == 0
    assert f"{COMPLETION_VARIABLE}={shell}_complete" in result.stdout
    assert "unbraid" in result.stdout


@pytest.mark.parametrize(
    ("shell", "words", "current", "expected"),
    [
        ("bash", "unbraid fit x --basis s", "4", "plain,spline\nplain,smoothing\n"),
        ("zsh", "unbraid fit x --basis s", "4", "plain\nspline\n_\nplain\nsmoothing\n_\n"),
        ("fish", "unbraid fit x --basis", "s", "plain,spline\nplain,smoothing\n"),
    ],
)
def test_the_command_answers_as_each_shell_asks(shell: str, words: str, current: str, expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "unbraid"],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, COMPLETION_VARIABLE: f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": current},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == expected


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_with_the_script(tmp_path: Path) -> None:
    """A command `unbraid` is put into the path, as an installation does."""
    command = tmp_path / "unbraid"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m unbraid "$@"\n')
    command.chmod(0o755)
    script = """
        eval "$(unbraid completion bash)"
        complete -p unbraid
        COMP_WORDS=(unbraid fit samples.npz --method de); COMP_CWORD=4
        _unbraid_completion unbraid de --method
        echo "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "default dejonghe2025 decuyper2022"
    assert "_unbraid_completion unbraid" in done.stdout
