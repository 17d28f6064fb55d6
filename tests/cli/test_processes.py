"""The command line in earnest: processes of their own, Ctrl-C, and what is imported when."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from command_lines import fit, run
from unbraid.cli import fit as fit_module

MAIN = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from unbraid.cli import main; main()"


def process(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "unbraid", *line.split()], capture_output=True, text=True, timeout=600)


def test_a_piped_fit_is_quiet(folder: Path) -> None:
    done = process("fit data.npz --rank 3 --starts 2 --max-sweeps 20 -o model.npz")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "Model:  model.npz" in done.stdout


def test_a_failing_process_prints_no_traceback(folder: Path) -> None:
    done = process("fit none.npz --rank 3 -o model.npz")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "Error: none.npz does not exist.\n")


def test_names_that_the_terminal_cannot_show_are_no_trouble(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "unbraid", "inspect", "modèle λ.npz"],
        capture_output=True,
        timeout=600,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 2
    assert b"does not exist" in done.stderr


def until_seen(terminal: int, wanted: bytes) -> bytes:
    """What is drawn on a terminal until it shows the wanted text, or closes."""
    drawn = b""
    while wanted not in drawn:
        try:
            drawn += os.read(terminal, 1 << 16)
        except OSError:  # the other end is closed
            break
    return drawn


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_somebody_at_a_terminal_is_asked_which_columns_are_outputs(folder: Path) -> None:
    import pty

    Path("data.csv").write_text("a,b,y\n" + "".join(f"{k % 7},{k % 5},{k % 7 + 1}\n" for k in range(35)))
    ours, theirs = pty.openpty()
    line = "fit data.csv --rank 1 --starts 2 -o model.npz"
    running = subprocess.Popen(
        [sys.executable, "-c", MAIN, *line.split()], stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, text=True
    )
    os.close(theirs)
    drawn = until_seen(ours, b"between them)")
    os.write(ours, b"y\n")
    drawn += until_seen(ours, b"never drawn")
    os.close(ours)
    stdout, _ = running.communicate(timeout=600)
    assert b"it holds the columns a, b, y" in drawn
    assert running.returncode == 0
    assert "inputs a, b, output y" in stdout


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_ctrl_c_saves_the_best_so_far(folder: Path) -> None:
    """Interrupted once the progress bar shows a first result; the bar goes to the terminal, the rest to stdout."""
    import pty

    problem, _ = ub.datasets.random_system(n=3, m=4, r=5, S=400, kind="sine", rng=0)
    assert problem.F is not None
    assert problem.J is not None
    np.savez("long.npz", X=problem.X, F=problem.F, J=problem.J)
    line = "fit long.npz --rank 5 --starts 5000 --max-sweeps 100000 -o model.npz"
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-c", MAIN, *line.split()],
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "160"},
    )
    os.close(theirs)
    drawn = until_seen(ours, b" left, best")
    running.send_signal(signal.SIGINT)
    drawn += until_seen(ours, b"never drawn")
    os.close(ours)
    stdout, _ = running.communicate(timeout=600)
    assert running.returncode == 130
    assert b"Searching" in drawn
    assert b"about" in drawn
    assert b"Ctrl-C keeps the best" in drawn
    assert b"Traceback" not in drawn
    assert "Searching" not in stdout
    assert "of 5000 starts were finished, and this is the best model found until then" in stdout
    assert ub.DecoupledModel.load("model.npz").rank == 5


def test_an_interrupted_fit_counts_the_starts_it_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A selection that is interrupted ends with a quick fit, from fewer starts than were asked for."""

    def interrupted(problem: ub.Problem, rank: Any, **settings: Any) -> ub.Fit:
        found = ub.decouple(problem, 3, starts=3, rng=0)
        return replace(found, status=ub.Status.INTERRUPTED)

    monkeypatch.setattr(fit_module, "decouple", interrupted)
    result = run("fit data.npz --rank auto --starts 16 -o model.npz")
    assert result.exit_code == 130
    assert "\nStarts: 3: 3 agree on the directions.\n" in result.stdout
    assert "\nInterrupted: 3 of 3 starts were finished, and this is the best model found until then.\n" in result.stdout
    assert (
        '"starts": {"asked": 16, "made": 3, "finished": 3,'
        in run("fit data.npz --rank auto --starts 16 -o model.npz --json").stdout
    )


def test_ctrl_c_with_nothing_found_is_one_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(fit_module, "decouple", interrupted)
    result = fit("-o model.npz")
    assert result.exit_code == 130
    assert result.stderr.strip() == "Error: Interrupted before there was anything to keep: no file was written."
    assert not (folder / "model.npz").exists()


def test_ctrl_c_in_the_report_keeps_the_model_and_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(fit_module, "write_report", interrupted)
    result = fit("-o model.npz --report page.html")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == "Error: Interrupted while the report was made: the model is there, in model.npz.\n"
    assert ub.DecoupledModel.load("model.npz").rank == 3
    assert not (folder / "page.html").exists()


def test_importing_the_library_imports_no_command_line_and_no_plots() -> None:
    code = "import sys, unbraid; print([m for m in ('click', 'rich', 'matplotlib', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.stdout == "[]\n"


def test_the_command_line_imports_matplotlib_only_to_draw() -> None:
    code = "import sys, unbraid.cli; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.stdout == "False\n"
