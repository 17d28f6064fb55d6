"""What a terminal shows and a pipe does not: bars, colours, and the end when nobody reads."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import unbraid as ub
from unbraid.cli import bars
from unbraid.cli.errors import CLOSED, WRONG_INPUT
from unbraid.cli.output import print_table
from unbraid.runtime.progress import Progress
from unbraid.studies.tasks import Done

WIDE_ROWS = [("a", "x" * 300), ("b", "y" * 300)]


class Terminal(io.StringIO):
    """A stream that somebody looks at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Stderr, as a terminal of 120 columns that can redraw a line."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    stream = Terminal()
    see(monkeypatch, stream)
    return stream


def see(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO | None) -> None:
    """Let it be stderr for the bars; sys.stderr itself is set anew by pytest before the test."""
    monkeypatch.setattr(bars, "sys", SimpleNamespace(stderr=stream))


def shown(stream: Terminal, pattern: str) -> bool:
    """Whether it comes to stand on the terminal, which another thread draws on."""
    end = time.monotonic() + 300.0
    while not re.search(pattern, stream.getvalue()) and time.monotonic() < end:
        time.sleep(0.01)
    return re.search(pattern, stream.getvalue()) is not None


# Bars.


def test_quick_work_draws_nothing(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "DRAWN_AFTER", 600.0)  # on any machine this is quick
    with bars.progress_bar("Working") as callback:
        assert callback is not None
        callback(Progress("search", 1, 2))
    with bars.task_bar("Working") as tell:
        assert tell is not None
        tell(Done(1, 2, 3.0))
    assert terminal.getvalue() == ""


def test_longer_work_draws_a_bar_with_the_time_left_and_takes_it_away(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bars, "DRAWN_AFTER", 0.01)
    with bars.progress_bar("Decoupling") as callback:
        assert callback is not None
        assert shown(terminal, "Decoupling"), "before anything was told"
        callback(Progress("search", 1, 100, 4, 0.5))
        time.sleep(0.02)
        callback(Progress("search", 50, 100, 4, 0.25))
        assert shown(terminal, r"at most \d+:\d\d left, best 0\.25, Ctrl-C keeps the best")
        assert "0:00 left" not in terminal.getvalue()
        assert "Searching" in terminal.getvalue()
    assert terminal.getvalue().endswith("\x1b[2K"), "the line is erased"


def test_cells_are_counted_with_the_time_left(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "DRAWN_AFTER", 0.01)
    with bars.task_bar("Comparing") as tell:
        assert tell is not None
        tell(Done(3, 8, 125.0))
        assert shown(terminal, "3 of 8, about 2:05 left")


def test_no_bar_where_nobody_looks_or_lines_cannot_be_redrawn(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with bars.progress_bar("Working") as callback:
        assert callback is None
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    see(monkeypatch, io.StringIO())
    with bars.progress_bar("Working") as callback:
        assert callback is None
    see(monkeypatch, None)
    with bars.task_bar("Working") as tell:
        assert tell is None


def test_a_bar_goes_when_the_work_fails(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "DRAWN_AFTER", 0.01)

    def fail() -> None:
        with bars.progress_bar("Decoupling"):
            assert shown(terminal, "Decoupling")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert terminal.getvalue().endswith("\x1b[2K")


def test_words_are_left_out_on_a_narrow_terminal() -> None:
    progress = Progress("polish", 5, 10, 1, 0.125)
    assert bars.in_words(progress, 61.0, wide=False) == "at most 1:01 left, best 0.125"
    assert bars.in_words(Progress("read", 5, 10), 3.0) == "about 0:03 left"
    assert bars.in_words(Progress("select", 5, 10, 1, 0.5), None) == "held-out error 0.5"
    assert bars.in_words(Progress("select", 5, 10, 1, 0.5), 3.0) == "at least 0:03 left, held-out error 0.5"
    assert bars.in_words(Progress("select", 5, 10, 1, 0.5, 4), 3.0) == "rank 4, at least 0:03 left, held-out error 0.5"


# Colours, pipes.


def test_no_color_is_respected_on_a_terminal(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", terminal)
    print_table("Title", ("name", "value"), [("a", "1")])
    assert "\x1b" in terminal.getvalue(), "a head in bold"
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Terminal()
    monkeypatch.setattr(sys, "stdout", plain)
    print_table("Title", ("name", "value"), [("a", "1")])
    assert "\x1b" not in plain.getvalue()


@pytest.mark.parametrize("variable", ["", "FORCE_COLOR", "COLUMNS"])
def test_a_pipe_gets_plain_tables_that_are_neither_folded_nor_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    if variable:
        monkeypatch.setenv(variable, "20")
    print_table("Title", ("name", "value"), WIDE_ROWS)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5, "title, head, rule and two rows"
    assert all(value in line for (_, value), line in zip(WIDE_ROWS, lines[3:], strict=True))
    assert "\x1b" not in "".join(lines)


# In earnest.


@pytest.fixture
def model(tmp_path: Path) -> Path:
    problem, _ = ub.datasets.trig(S=40, rng=0)
    ub.decouple(problem, 2, starts=1, rng=0).model.save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


def inspect(model: Path, stdout: int, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "unbraid", "inspect", str(model), *options],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=600,
    )


@pytest.mark.skipif(os.name != "posix", reason="needs pipes as Unix has them")
@pytest.mark.parametrize("options", [[], ["--json"], ["--help"]], ids=" ".join)
def test_a_reader_that_has_gone_is_no_error(model: Path, options: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = inspect(model, writing, *options)
    os.close(writing)
    assert (done.returncode, done.stderr) == (CLOSED, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_sentence(model: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = inspect(model, full.fileno())
    assert done.returncode == WRONG_INPUT
    assert done.stderr == "Error: The system refused: no space left on device.\n"


def test_ctrl_c_while_python_is_importing_is_one_sentence(tmp_path: Path) -> None:
    """NumPy is the first thing that takes its time; here it brings Ctrl-C."""
    (tmp_path / "numpy.py").write_text("raise KeyboardInterrupt")
    source = Path(ub.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "unbraid_command", "--help"],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(source)])},
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.strip() == "Error: Interrupted before there was anything to keep: no file was written."


def test_an_error_of_unbraid_itself_is_a_traceback_and_exit_code_1() -> None:
    code = "from unbraid.cli import inspect, main; inspect.is_dynamic = None; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "inspect", "model.npz"], capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Traceback")


def test_the_command_starts_where_the_launcher_says() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "unbraid_command", "--version"], capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stdout) == (0, f"unbraid {ub.__version__}\n")


def test_an_output_named_like_another_format_is_refused_and_one_without_an_ending_is_kept(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner

    from unbraid.cli import app

    monkeypatch.chdir(model.parent)
    np.savez("points.npz", X=np.zeros((3, 2)))
    result = CliRunner().invoke(app, ["predict", "model.npz", "points.npz", "-o", "values.h5"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "values.h5 cannot be written: predictions are written as .npz, .npy, .mat, .csv or .parquet" in result.stderr
    fit = ["fit", "points.npz", "--rank", "1", "-o", "values.csv"]
    result = CliRunner().invoke(app, fit)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "values.csv would not be a .csv file, for .npz is what is written: use -o values.npz." in result.stderr
    assert CliRunner().invoke(app, ["predict", "model.npz", "points.npz", "-o", "values"]).exit_code == 0
    assert {path.name for path in model.parent.iterdir()} == {"model.npz", "points.npz", "values"}
    with np.load("values") as values:
        assert values["F"].shape == (3, 2)
