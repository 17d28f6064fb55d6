"""The command line gives what the library gives, with results on stdout."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import unbraid as ub
from command_lines import files, fit, load, refusal, run
from unbraid.cli import app
from unbraid.cli import demo as demo_module
from unbraid.cli import fit as fit_module
from unbraid.cli.output import error_rows
from unbraid.report import templates

pytestmark = pytest.mark.usefixtures("no_formulas", "no_layout")


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
    assert result.stdout.count("SmoothingSpline(df=28, degree=5, smoothing=None)") == 3


def test_the_command_line_gives_what_the_library_gives(folder: Path) -> None:
    data = load("data.npz")
    expected = ub.decouple(ub.Problem(data["X"], data["F"], data["J"]), 3, basis=ub.BSpline(9, 2), starts=2, rng=5)
    result = run("fit data.npz --rank 3 --df 9 --degree 2 --starts 2 --seed 5 -o model.npz")
    assert result.exit_code == 0, result.output
    assert np.array_equal(ub.DecoupledModel.load("model.npz").W0, expected.model.W0)


def test_the_continuation_is_passed_on(folder: Path) -> None:
    for choice, far in (("linear", 0.0), ("polynomial", 0.125)):
        result = run(f"fit data.npz --rank 2 --starts 1 --continuation {choice} -o model.npz")
        assert result.exit_code == 0, result.output
        assert all(np.all(one.reach == far) for one in ub.DecoupledModel.load("model.npz").branches)  # type: ignore[attr-defined]
    assert run("fit data.npz --rank 2 --continuation cubic -o other.npz").exit_code == 2


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
    assert "Note: Rank 3 fits the samples to 0.01 % or better" in result.stdout
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
    carrying = np.any(model.W1 != 0.0, axis=0)
    assert run("inspect model.npz").stdout.count(shape.means) == np.sum(carrying) > 0


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


def test_notes_speak_of_options_too(folder: Path) -> None:
    x = np.linspace(-2.0, 2.0, 80)[:, None]
    np.savez("bent.npz", X=x, F=np.cos(2.0 * x))
    said = run("fit bent.npz --rank 1 --increasing --starts 2 -o bent-model.npz").stdout
    assert "A shape was asked for" in said
    assert "fit without the shape and compare" in said


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


def test_demo_numbers_branches_alike_in_table_picture_and_report(folder: Path) -> None:
    """The true curves are laid under the found branches, whatever their order is: table and report have one angle."""
    done = json.loads(run("demo --seed 1 --json").stdout)
    page = (folder / "unbraid-demo/report.html").read_text(encoding="utf-8")
    told = [f"{angle:.2g}° from the true direction." for angle in done["angles"]]
    assert re.findall(r"[\d.e-]+° from the true direction\.", page) == told


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
    monkeypatch.setattr(templates, "find_spec", lambda name: None)
    monkeypatch.delattr(demo_module, "decouple")
    assert 'pip install -e ".[report]"' in refusal(run("demo"))
    assert not (folder / "unbraid-demo").exists()


def test_every_command_has_help() -> None:
    assert isinstance(app, click.Group)
    for name in app.commands:
        assert run(f"{name} --help").exit_code == 0
