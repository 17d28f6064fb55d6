"""The command line: results on stdout, one sentence on stderr, and no half-written file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

import unbraid as ub
from unbraid.cli import app
from unbraid.cli import demo as demo_module
from unbraid.cli import fit as fit_module
from unbraid.cli.output import error_rows
from unbraid.report import packages

MAIN = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from unbraid.cli import main; main()"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data.npz (f_trig), paper.npz (the same, samples last) and points.npz, and the place to run in."""
    monkeypatch.chdir(tmp_path)
    problem, _ = ub.datasets.trig(S=60, rng=0)
    assert problem.F is not None
    assert problem.J is not None
    np.savez("data.npz", X=problem.X, F=problem.F, J=problem.J)
    np.savez("paper.npz", X=problem.X.T, F=problem.F.T, J=np.moveaxis(problem.J, 0, -1))
    np.savez("points.npz", X=problem.X[:7])
    return tmp_path


def run(line: str = "") -> Result:
    return CliRunner().invoke(app, line.split())


def fit(options: str) -> Result:
    return run(f"fit data.npz --rank 3 --starts 2 --max-sweeps 40 {options}")


def refusal(result: Result) -> str:
    """The one line that a refused command prints."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.stderr


def files(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


def load(path: str) -> dict[str, Any]:
    with np.load(path) as file:
        return dict(file)


# What works.


def test_version() -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"unbraid {ub.__version__}\n")


def test_without_a_command_the_help_is_shown() -> None:
    result = run()
    assert result.exit_code == 0
    assert all(name in result.stdout for name in ("demo", "fit", "predict", "inspect"))


def test_fit_predict_inspect(folder: Path) -> None:
    result = fit("-o model.npz")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert all(word in result.stdout for word in ("output 1", "output 2", "Error(J)", "Status:", "agree", "model.npz"))

    result = run("predict model.npz points.npz -o values.npz")
    assert result.exit_code == 0, result.output
    model, X, values = ub.DecoupledModel.load("model.npz"), load("points.npz")["X"], load("values.npz")
    assert np.array_equal(values["F"], model(X))
    assert np.array_equal(values["J"], model.jacobian(X))

    result = run("inspect model.npz")
    assert result.exit_code == 0, result.output
    assert "2 inputs, 3 branches, 2 outputs" in result.stdout
    assert result.stdout.count("BSpline(df=12, degree=3, of='value')") == 3


def test_the_command_line_gives_what_the_library_gives(folder: Path) -> None:
    data = load("data.npz")
    expected = ub.decouple(ub.Problem(data["X"], data["F"], data["J"]), 3, basis=ub.BSpline(9, 2), starts=2, rng=5)
    result = run("fit data.npz --rank 3 --df 9 --degree 2 --starts 2 --seed 5 -o model.npz")
    assert result.exit_code == 0, result.output
    assert np.array_equal(ub.DecoupledModel.load("model.npz").W0, expected.model.W0)


@pytest.mark.parametrize(
    ("options", "basis"),
    [
        ("--basis smoothing", "SmoothingSpline(df=28, degree=5, smoothing=None)"),
        ("--basis natural --df 7", "NaturalCubic(df=7)"),
        ("--basis linear --df 9", "PiecewiseLinear(df=9)"),
        ("--basis polynomial --degree 4", "Polynomial(degree=4)"),
        ("--basis spline --degree 2", "BSpline(df=12, degree=2, of='value')"),
        ("--method hollander2017 --degree 5", "Polynomial(degree=5)"),
        ("--method zniyed2021 --df 6", "PiecewiseLinear(df=6)"),
    ],
)
def test_a_basis_by_name(folder: Path, options: str, basis: str) -> None:
    result = run(f"fit data.npz --rank 3 --starts 1 --max-sweeps 5 {options} -o model.npz")
    assert result.exit_code == 0, result.output
    assert basis in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--basis natural --degree 2", "The basis natural has no --degree: give --df, or another --basis."),
        ("--method dreesen2015 --df 9", "The basis polynomial has no --df: give --degree"),
        ("--method dreesen2015 --coupling 1", "--coupling is for methods with a λ, and dreesen2015 has none."),
    ],
)
def test_options_that_a_basis_or_method_does_not_have_are_refused(folder: Path, options: str, says: str) -> None:
    result = run(f"fit data.npz --rank 3 {options} -o model.npz")
    assert result.exit_code == 2
    assert says in " ".join(result.stderr.replace("│", " ").split())


def test_the_rank_can_be_found(folder: Path) -> None:
    result = run("fit data.npz --rank auto --starts 8 -o model.npz")
    assert result.exit_code == 0, result.output
    assert "Note: Rank 3 has a held-out error of" in result.stdout
    assert ub.DecoupledModel.load("model.npz").rank == 3


def test_the_paper_layout_gives_the_same_model(folder: Path) -> None:
    fit("-o model.npz")
    line = "fit paper.npz --rank 3 --starts 2 --max-sweeps 40 --paper-layout -o other.npz"
    assert run(line).exit_code == 0
    assert (folder / "model.npz").read_bytes() == (folder / "other.npz").read_bytes()
    assert run("predict model.npz data.npz -o y.npz").exit_code == 0
    assert run("predict model.npz paper.npz --paper-layout -o z.npz").exit_code == 0
    assert np.array_equal(load("z.npz")["F"], load("y.npz")["F"].T)
    assert load("z.npz")["J"].shape == (2, 2, 60)


@pytest.mark.parametrize("shape", [ub.NonNegative(), ub.Increasing(), ub.Decreasing(), ub.Convex(), ub.Concave()])
def test_shapes_are_certified_and_inspect_says_so(folder: Path, shape: Any) -> None:
    assert fit(f"--{shape.means} -o model.npz").exit_code == 0
    model = ub.DecoupledModel.load("model.npz")
    assert all(branch.certified(shape) for branch in model.branches)
    assert run("inspect model.npz").stdout.count(shape.means) == 3


def test_method_and_coupling_are_passed_on() -> None:
    method = fit_module.choose_method("dejonghe2025", 0.5, 17)
    assert (method.name, method.coupling.final, method.stopping.max_sweeps) == ("dejonghe2025", 0.5, 17)


def test_jacobians_alone_will_do_and_the_constants_are_noted(folder: Path) -> None:
    data = load("data.npz")
    np.savez("data.npz", X=data["X"], J=data["J"])
    result = fit("-o model.npz")
    assert result.exit_code == 0, result.output
    assert "output 1" not in result.stdout
    assert "Jacobians alone do not determine constants" in result.stdout


def test_advice_speaks_of_options(folder: Path) -> None:
    result = run("fit data.npz --rank 3 --starts 1 --method dejonghe2025 --max-sweeps 2 -o model.npz")
    assert "OUT_OF_SWEEPS" in result.stdout
    assert "larger --max-sweeps" in result.stdout


def test_points_beyond_the_training_range_are_counted(folder: Path) -> None:
    fit("-o model.npz")
    assert "outside" not in run("predict model.npz points.npz -o y.npz").stdout
    np.savez("far.npz", X=[[0.0, 0.0], [90.0, 0.0]])
    assert "1 of 2 points lie outside" in run("predict model.npz far.npz -o y.npz").stdout


def test_many_outputs_are_summed_up() -> None:
    rows = error_rows(None, [1.0] * 29 + [7.0])
    assert len(rows) == 21
    assert rows[-1] == ("... 10 more; the worst of all is output 30", "7 %")


# What is refused.


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("nonsense", "No such command 'nonsense'"),
        ("fit", "Missing argument 'DATA'"),
        ("fit data.npz -o q.npz", "Missing option '--rank'"),
        ("fit data.npz --rank 3", "Missing option '-o'"),
        ("fit data.npz --rank x -o q.npz", "'x' is neither a whole number nor auto"),
        ("fit data.npz --rank 0 -o q.npz", "rank must be a whole number of at least 1, or"),
        ("fit data.npz --rank 3 --starts 0 -o q.npz", "starts must be a whole number"),
        ("fit data.npz --rank 3 --seed -1 -o q.npz", "-1 is not in the range"),
        ("fit data.npz --rank 3 --df 2 -o q.npz", "raise df to 3 or lower the degree"),
        ("fit data.npz --rank 3 --df 80 -o q.npz", "60 samples are too few"),
        ("fit data.npz --rank 3 --coupling -1 -o q.npz", "coupling must be a finite number of at least 0"),
        ("fit data.npz --rank 3 --max-sweeps 0 -o q.npz", "max_sweeps must be a whole number"),
        ("fit data.npz --rank 3 --method magic -o q.npz", "'magic' is not one of"),
        ("fit data.npz --rank 3 --increasing --convex -o q.npz", "got --increasing and --convex: keep one"),
        ("fit none.npz --rank 3 -o q.npz", "none.npz does not exist."),
        ("fit . --rank 3 -o q.npz", "is a folder"),
        ("fit paper.npz --rank 3 -o q.npz", "add --layout samples-last"),
        ("fit data.npz --rank 3 -o data.npz", "also an input"),
        ("fit data.npz --rank 3 -o none/q.npz", "its folder does not exist"),
        ("fit data.npz --rank 3 -o .", "it is a folder"),
        ("predict data.npz points.npz -o q.npz", "not an unbraid model: it holds the arrays X, F, J"),
        ("predict none.npz points.npz -o q.npz", "none.npz does not exist."),
        ("inspect none.npz", "none.npz does not exist."),
        ("inspect points.npz", "not an unbraid model: it holds the array X"),
        ("demo --seed x", "'x' is not a valid integer"),
        ("demo -o data.npz/picture.png", "cannot be written"),
    ],
)
def test_misuse_is_one_sentence_and_leaves_no_file(folder: Path, arguments: str, said: str) -> None:
    before = files(folder)
    assert said in refusal(run(arguments))
    assert files(folder) == before


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"A": np.ones(3), "B": np.ones(3)}, "no array named X: it holds the arrays A (3,), B (3,)"),
        ({"X": np.ones((30, 2))}, "has X but neither F nor J"),
        ({"X": np.ones((30, 2)), "F": np.full((30, 1), np.nan)}, "F has 30 entries that are NaN or infinite"),
        ({"X": np.array([["a", "b"]]), "F": np.ones((1, 1))}, "X must be an array of real numbers"),
        ({"X": np.array([{}], dtype=object), "F": np.ones((1, 1))}, "pickled Python objects"),
    ],
)
def test_data_that_cannot_be_used_is_refused(folder: Path, arrays: dict[str, Any], said: str) -> None:
    np.savez("data.npz", **arrays)
    assert said in refusal(fit("-o model.npz"))
    assert not (folder / "model.npz").exists()


def test_values_alone_are_fitted_by_default_and_refused_by_sweeps(folder: Path) -> None:
    problem, _ = ub.datasets.trig(rng=0)
    assert problem.F is not None
    np.savez("data.npz", X=problem.X, F=problem.F)
    assert "values F only" in refusal(fit("-o model.npz --method dejonghe2025"))
    assert not (folder / "model.npz").exists()
    assert "Values alone" in fit("-o model.npz").output
    assert ub.metrics.output_errors(problem.F, ub.DecoupledModel.load("model.npz")(problem.X)).max() < 2.0


@pytest.mark.parametrize(
    ("X", "said"),
    [
        (np.ones((5, 3)), "X must be (S, 2) for a model with m = 2 inputs, got shape (5, 3)."),
        (np.ones((2, 5)), "set --layout to samples-last"),
        (np.ones(2), "got shape (2,)"),
        (np.full((4, 2), np.inf), "X has 8 entries that are NaN or infinite"),
    ],
)
def test_points_that_do_not_fit_the_model_are_refused(folder: Path, X: Any, said: str) -> None:
    fit("-o model.npz")
    np.savez("points.npz", X=X)
    assert said in refusal(run("predict model.npz points.npz -o y.npz"))
    assert not (folder / "y.npz").exists()


def test_a_truncated_data_file_is_refused(folder: Path) -> None:
    whole = Path("data.npz").read_bytes()
    Path("data.npz").write_bytes(whole[: len(whole) // 2])
    assert "truncated or damaged" in refusal(fit("-o model.npz"))


def test_a_failing_write_keeps_the_old_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit("-o model.npz")
    before = Path("model.npz").read_bytes()

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    result = fit("--seed 1 -o model.npz")
    assert refusal(result) == "Error: model.npz cannot be written: no space left on device.\n"
    assert Path("model.npz").read_bytes() == before
    assert files(folder) == {"data.npz", "paper.npz", "points.npz", "model.npz"}


# The demonstration.


def test_demo_prints_a_table_and_draws_a_picture(folder: Path) -> None:
    result = run("demo --seed 1")
    assert result.exit_code == 0, result.output
    assert all(word in result.stdout for word in ("output 1", "output 2", "Error(J)", "direction 3", "time, 16 starts"))
    assert "unbraid-demo/branches.png" in result.stdout
    assert (folder / "unbraid-demo" / "branches.png").read_bytes().startswith(b"\x89PNG")
    assert result.stdout.splitlines()[-1].startswith("Report: unbraid-demo/report.html")
    assert "</html>" in (folder / "unbraid-demo" / "report.html").read_text(encoding="utf-8")
    assert files(folder / "unbraid-demo") == {"branches.png", "report.html"}


def test_demo_without_matplotlib_says_so_before_any_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    monkeypatch.delattr(demo_module, "decouple")
    assert 'pip install "unbraid[report]"' in refusal(run("demo"))
    assert not (folder / "unbraid-demo").exists()


# In earnest: a process of its own.


def process(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "unbraid", *line.split()], capture_output=True, text=True, timeout=120)


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
        timeout=60,
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
    stdout, _ = running.communicate(timeout=60)
    assert running.returncode == 130
    assert b"Searching" in drawn
    assert b"at most" in drawn
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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n"


def test_the_command_line_imports_matplotlib_only_to_draw() -> None:
    code = "import sys, unbraid.cli; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n"


def test_every_command_has_help() -> None:
    assert isinstance(app, click.Group)
    for name in app.commands:
        assert run(f"{name} --help").exit_code == 0
