"""Weights and missing values in files: in every format, and refused by name where they cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result

import unbraid as ub
from sample_files import MATLAB, SAMPLES_FIRST, TABLES, Writer, parts, samples_last, write_npz
from unbraid.cli import app
from unbraid.cli import fit as fit_module
from unbraid.errors import DataError, FileError
from unbraid.reading import delimited, read_problem
from unbraid.results.fit import errors_on

ARRAYS = {**SAMPLES_FIRST, **MATLAB}
COLUMNS = ("--inputs", "x*", "--outputs", "y*", "--jacobians", "d{output}/d{input}")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def gappy() -> ub.Problem:
    """f_trig with a value and a slope that are not known, and weights."""
    problem, _ = ub.datasets.trig(S=40, rng=0)
    assert problem.F is not None
    assert problem.J is not None
    F, J = problem.F.copy(), problem.J.copy()
    F[3, 1] = J[5, 0, 1] = np.nan
    return ub.Problem(problem.X, F, J, weights=1.0 + np.arange(40.0) % 3, missing="mask")


def same(one: ub.Problem, other: ub.Problem) -> bool:
    """Whether two problems have the same numbers, gaps and weights."""
    pairs = [(one.X, other.X), (one.F, other.F), (one.J, other.J), (one.weights, other.weights)]
    return all(
        (a is None and b is None) or (a is not None and b is not None and np.array_equal(a, b, equal_nan=True))
        for a, b in pairs
    )


def table(text: str, name: str = "data.csv") -> str:
    Path(name).write_text(text)
    return name


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def fit(data: str, *options: str) -> Result:
    return run("fit", data, "--rank", "3", "--starts", "1", "--max-sweeps", "10", "-o", "model.npz", *options)


def refusal(result: Result) -> str:
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr


# Arrays.


@pytest.mark.parametrize(("name", "write"), ARRAYS.items(), ids=ARRAYS)
def test_weights_and_gaps_are_read_from_arrays(folder: Path, gappy: ub.Problem, name: str, write: Writer) -> None:
    write(Path(name), {**parts(gappy), "weights": gappy.weights})
    samples = read_problem(name, missing="mask")
    assert same(samples.problem, gappy)
    assert samples.taken == "samples first, weighted by weights, 2 numbers missing"


@pytest.mark.parametrize(("name", "write"), MATLAB.items(), ids=MATLAB)
def test_weights_may_lie_in_a_row_or_a_column(folder: Path, gappy: ub.Problem, name: str, write: Writer) -> None:
    assert gappy.weights is not None
    for weights in (gappy.weights[None, :], gappy.weights[:, None]):
        write(Path(name), {**samples_last(parts(gappy)), "weights": weights})
        assert same(read_problem(name, missing="mask").problem, gappy)


def test_weights_may_have_another_name_or_a_file_of_their_own(folder: Path, gappy: ub.Problem) -> None:
    write_npz(Path("named.npz"), {**parts(gappy), "w": gappy.weights, "weights": np.ones(40)})
    samples = read_problem("named.npz", weights="w", missing="mask")
    assert same(samples.problem, gappy)
    assert "weighted by w," in samples.taken
    write_npz(Path("w.npz"), {**parts(gappy), "w": gappy.weights})
    assert read_problem("w.npz", missing="mask").problem.weights is None
    for name, array in {**parts(gappy), "w": gappy.weights}.items():
        np.save(name, np.asarray(array))
    given: Any = {"outputs": "F.npy", "jacobians": "J.npy", "weights": "w.npy", "missing": "mask"}
    assert same(read_problem("X.npy", **given).problem, gappy)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (
            np.ones((3, 2)),
            "weights must be (S,), one weight a sample, got shape (3, 2) beside X (40, 2). If it is",
        ),
        (np.ones(41), "weights must be (S,), one weight a sample, got shape (41,)"),
        (np.ones(2), "weights must be (S,) = (40,), one a sample, got shape (2,)"),
        (-np.ones(40), "weights must be ≥ 0, got -1"),
        (np.full(40, np.nan), "weights has 40 entries that are NaN or infinite"),
        (np.array(["a"] * 40), "weights must be an array of real numbers"),
        (np.ones(0), "weights must"),
    ],
)
def test_weights_that_are_none_are_refused_and_never_ignored(
    folder: Path, gappy: ub.Problem, weights: Any, said: str
) -> None:
    write_npz(Path("data.npz"), {**parts(gappy), "weights": weights})
    with pytest.raises((DataError, FileError)) as caught:
        read_problem("data.npz", missing="mask")
    assert said in str(caught.value)


def test_weights_that_are_not_there_are_said_with_what_is(folder: Path, gappy: ub.Problem) -> None:
    write_npz(Path("data.npz"), parts(gappy))
    with pytest.raises(DataError, match=r"has no array named w: it holds the arrays X .* to use with `weights`"):
        read_problem("data.npz", weights="w", missing="mask")


def test_another_way_to_deal_with_gaps_is_refused(folder: Path) -> None:
    with pytest.raises(DataError, match="missing must be 'error', 'mask' or 'drop', got 'other'"):
        read_problem(table("a,b\n1,2\n"), "a", "b", missing="other")  # type: ignore[arg-type]


# Tables.


@pytest.mark.parametrize(("name", "write"), TABLES.items(), ids=TABLES)
def test_weights_and_gaps_are_read_from_tables(folder: Path, gappy: ub.Problem, name: str, write: Writer) -> None:
    write(Path(name), {**parts(gappy), "weights": gappy.weights})
    samples = read_problem(name, "x*", "y*", "d{output}/d{input}", weights="w", missing="mask")
    assert same(samples.problem, gappy)
    assert samples.taken.endswith("outputs y1, y2, Jacobians in 4 columns, weighted by w, 2 numbers missing")


@pytest.mark.parametrize("gap", ["", "nan", "NaN", " ", '""'])
def test_an_empty_cell_or_nan_is_missing_where_that_is_allowed(folder: Path, gap: str) -> None:
    problem = read_problem(table(f"a,b,c\n1,{gap},0\n2,3,\n"), "a", "b", missing="mask").problem
    assert problem.F is not None
    assert np.array_equal(problem.F, [[np.nan], [3.0]], equal_nan=True)


def test_gaps_cost_only_their_block_of_lines(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "LINES_AT_ONCE", 3)
    lines = [f"{k},{k + 0.5}" for k in range(20)]
    lines[7], lines[13] = "7,", "13,nan"
    problem = read_problem(table("\n".join(["a,b", *lines])), "a", "b", missing="mask").problem
    assert problem.F is not None
    assert np.flatnonzero(np.isnan(problem.F[:, 0])).tolist() == [7, 13]
    assert problem.F[19, 0] == 19.5


@pytest.mark.parametrize(
    ("text", "missing", "said"),
    [
        ("a,b,w\n1,,1\n", "error", 'is empty: repair or remove that line, or pass missing="mask" where that stands'),
        ("a,b,w\n1,nan,1\n", "error", 'has "nan", which is not a finite number: repair or remove that line, or pass'),
        ("a,b,w\n1,x,1\n", "error", 'has "x", which is not a finite number: repair or remove that line.'),
        ("a,b,w\n,2,1\n", "error", "line 2, column a, is empty: repair or remove that line."),
        ("a,b,w\n,2,1\n", "mask", "line 2, column a, is empty: repair or remove that line."),
        ("a,b,w\n1,2,\n", "mask", "line 2, column w, is empty: repair or remove that line."),
        ("a,b,w\n1,inf,1\n", "mask", 'line 2, column b, has "inf", which is not a finite number'),
        ("a,b,w\n1,x,1\n", "mask", 'line 2, column b, has "x"'),
    ],
)
def test_only_outputs_and_jacobians_have_gaps(folder: Path, text: str, missing: Any, said: str) -> None:
    with pytest.raises(FileError) as caught:
        read_problem(table(text), "a", "b", weights="w", missing=missing)
    assert said in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ("v", "has no column v, which `weights` names"),
        ("a:b", "`weights` names 2 columns, a, b: name one"),
        ("b", "b cannot be two of input, output, Jacobian and weights at once"),
    ],
)
def test_one_other_column_has_the_weights(folder: Path, weights: str, said: str) -> None:
    with pytest.raises(FileError, match=said):
        read_problem(table("a,b,w\n1,2,3\n"), "a", "b", weights=weights)


def test_parquet_says_what_may_be_missing(folder: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"a": [1.0, 2.0], "b": [None, 3.0]}), "data.parquet")
    with pytest.raises(FileError, match='row 1, column b, is empty: repair or remove that row, or pass missing="mask"'):
        read_problem("data.parquet", "a", "b")
    with pytest.raises(FileError, match=r"row 1, column b, is empty: repair or remove that row\.$"):
        read_problem("data.parquet", "b", "a", missing="mask")
    assert not read_problem("data.parquet", "a", "b", missing="mask").problem.complete


# The command line.


def test_the_command_line_names_the_option_and_takes_it(folder: Path, gappy: ub.Problem) -> None:
    write_npz(Path("data.npz"), {**parts(gappy), "weights": gappy.weights})
    assert "or add --missing mask where NaN stands for what is not known." in refusal(fit("data.npz"))
    assert not Path("model.npz").exists()
    result = fit("data.npz", "--missing", "mask")
    assert result.exit_code == 0, result.output
    assert "Data:   40 samples, samples first, weighted by weights, 2 numbers missing.\n" in result.stdout
    method = fit_module.choose_method("default", None, 10)
    expected = ub.decouple(gappy, 3, method=method, starts=1, rng=0).model
    assert np.array_equal(ub.DecoupledModel.load("model.npz").W0, expected.W0)
    assert "do not know: leave out --method." in refusal(
        fit("data.npz", "--missing", "mask", "--method", "dreesen2015")
    )


def test_tables_have_the_options_too(folder: Path, gappy: ub.Problem) -> None:
    TABLES["samples.csv"](Path("data.csv"), {**parts(gappy), "weights": gappy.weights})
    assert "or add --missing mask where that stands" in refusal(fit("data.csv", *COLUMNS, "--weights", "w"))
    assert fit("data.csv", *COLUMNS, "--weights", "w", "--missing", "mask").exit_code == 0
    from_table = ub.DecoupledModel.load("model.npz")
    write_npz(Path("data.npz"), {**parts(gappy), "weights": gappy.weights})
    assert fit("data.npz", "--missing", "mask").exit_code == 0
    again = ub.DecoupledModel.load("model.npz")
    np.testing.assert_array_equal(again.W0, from_table.W0)
    np.testing.assert_array_equal(again.W1, from_table.W1)


def test_reports_count_what_is_known_with_its_weight(folder: Path, gappy: ub.Problem) -> None:
    write_npz(Path("data.npz"), {**parts(gappy), "weights": gappy.weights})
    assert fit("data.npz", "--missing", "mask").exit_code == 0
    assert "add --missing mask" in refusal(run("report", "model.npz", "data.npz", "-o", "page.html"))
    result = run("report", "model.npz", "data.npz", "--missing", "mask", "-o", "page.html", "--json")
    assert result.exit_code == 0, result.output
    _, expected = errors_on(gappy, ub.DecoupledModel.load("model.npz"))
    assert expected is not None
    assert json.loads(result.stdout)["output_errors"] == expected.tolist()
    assert "--missing mask" in Path("page.html").read_text()


def test_an_output_that_is_not_known_at_all_is_to_be_left_out(folder: Path, gappy: ub.Problem) -> None:
    write_npz(Path("data.npz"), {**parts(gappy), "F": np.full((40, 2), np.nan)})
    assert "F holds nothing but NaN: leave F out." in refusal(fit("data.npz", "--missing", "mask"))


def test_a_file_of_weights_is_not_overwritten(folder: Path, gappy: ub.Problem) -> None:
    np.save("X.npy", gappy.X)
    np.save("w.npy", np.ones(40))
    said = refusal(run("fit", "X.npy", "--weights", "w.npy", "--rank", "1", "-o", "w.npy"))
    assert "also an input" in said
