"""What a command cannot do is refused with one sentence on stderr, and no file is written or half-written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from command_lines import files, fit, refusal, run


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
        *(
            (f"{line}none/", "none/ cannot be written: it is a folder, so add a file name.")
            for line in (
                "fit data.npz --rank 3 -o ",
                "fit data.npz --rank 3 -o q.npz --report ",
                "fit data.npz --rank 3 -o q.npz --checkpoint ",
                "predict data.npz points.npz -o ",
                "report data.npz data.npz -o ",
                "export data.npz -o ",
                "formulas data.npz -o ",
                "identify data.npz -o ",
                "simulate data.npz data.npz -o ",
                "demo -o ",
            )
        ),
        ("predict data.npz points.npz -o q.npz", "not an unbraid model: it holds the arrays X, F, J"),
        (f"fit {'x' * 5000} --rank 3 -o q.npz", "file name too long"),
        ("fit one.csv --outputs y --rank 1 -o q.npz", "1 sample is too few for BSpline"),
        ("fit one.csv --outputs a,b,y --rank 1 -o q.npz", "one.csv has no inputs beside a, b, y."),
        ("fit tiny.csv --outputs y --rank 1 -o q.npz", "use other units"),
        ("fit huge.csv --outputs y --rank 1 -o q.npz", "use other units"),
        ("predict none.npz points.npz -o q.npz", "none.npz does not exist."),
        ("inspect none.npz", "none.npz does not exist."),
        ("inspect points.npz", "not an unbraid model: it holds the array X"),
        ("export none.npz -o q.c", "none.npz does not exist."),
        ("export data.npz -o q.c", "not an unbraid model: it holds the arrays X, F, J"),
        ("export data.npz -o data.npz", "also an input"),
        ("export data.npz", "Missing option '-o'"),
        ("export data.npz -o q.c --dtype half", "'half' is not one of"),
        ("demo --seed x", "'x' is not a valid integer"),
        ("demo -o data.npz/picture.png", "cannot be written"),
    ],
)
def test_misuse_is_one_sentence_and_leaves_no_file(folder: Path, arguments: str, said: str) -> None:
    Path("one.csv").write_text("a,b,y\n1,2,3\n")
    for name, power in (("tiny", "e-310"), ("huge", "e300")):
        rows = "".join(f"{k % 7}.5{power},{k},{k}.5{power}\n" for k in range(40))
        Path(f"{name}.csv").write_text(f"a,b,y\n{rows}")
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
