"""The command line on every kind of file: the same samples give the same model, and the output says what was read."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from click.testing import CliRunner, Result

import unbraid as ub
from sample_files import MATLAB, SAMPLES_FIRST, TABLES, Writer, parts, samples_last
from unbraid.cli import app
from unbraid.cli.output import error_rows
from unbraid.reading import read_problem, sources
from unbraid.reading.predictions import WRITERS

COLUMNS = ["--inputs", "x*", "--outputs", "y*", "--jacobians", "d{output}/d{input}"]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with first.npz, and model.npz, fitted to it."""
    folder = tmp_path_factory.mktemp("fitted")
    SAMPLES_FIRST["samples.npz"](folder / "first.npz", arrays())
    assert fit(str(folder / "first.npz"), output=str(folder / "model.npz")).exit_code == 0
    return folder


@pytest.fixture
def folder(fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place to run in, with both."""
    shutil.copytree(fitted, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def arrays() -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    return parts(ub.datasets.trig(S=40, rng=0)[0])


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def fit(data: str, *options: str, output: str = "other.npz") -> Result:
    return run("fit", data, "--rank", "3", "--starts", "1", "--max-sweeps", "10", "-o", output, *options)


def refusal(result: Result) -> str:
    """The one line that a refused command prints."""
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def same_model(folder: Path) -> bool:
    """All but the names of columns."""
    one, other = (np.load(folder / name) for name in ("model.npz", "other.npz"))
    numbers = set(one.files) - {"metadata"}
    return numbers == set(other.files) - {"metadata"} and all(np.array_equal(one[k], other[k]) for k in numbers)


@pytest.mark.parametrize(("name", "write"), [*SAMPLES_FIRST.items(), *MATLAB.items()])
def test_arrays_of_any_format_give_the_same_model(folder: Path, name: str, write: Writer) -> None:
    write(Path(name), arrays())
    result = fit(name)
    assert result.exit_code == 0, result.output
    assert "Data:   40 samples, samples first.\n" in result.stdout
    assert same_model(folder)
    assert run("predict", "model.npz", name, "-o", "values.npz").exit_code == 0


@pytest.mark.parametrize(("name", "write"), TABLES.items())
def test_tables_of_any_format_give_the_same_model_with_names(folder: Path, name: str, write: Writer) -> None:
    write(Path(name), arrays())
    result = fit(name, *COLUMNS)
    assert result.exit_code == 0, result.output
    assert "Data:   40 samples, inputs x1, x2, outputs y1, y2, Jacobians in 4 columns.\n" in result.stdout
    assert "\ny1 " in result.stdout
    assert "output 1" not in result.stdout
    assert same_model(folder)
    result = run("predict", "model.npz", name, "--inputs", "x1", "--inputs", "x2", "-o", "values.npz")
    assert result.exit_code == 0, result.output
    assert "Read 40 points, inputs x1, x2.\n" in result.stdout


@pytest.mark.parametrize(("name", "write"), MATLAB.items())
def test_samples_last_are_read_and_predicted_samples_last(folder: Path, name: str, write: Writer) -> None:
    write(Path(name), samples_last(arrays()))
    result = fit(name)
    assert "Data:   40 samples, samples last.\n" in result.stdout
    assert same_model(folder)
    result = run("predict", "model.npz", name, "-o", "values.npz")
    assert "Wrote F (2, 40) and J (2, 2, 40)" in result.stdout


def test_a_layout_that_had_to_be_guessed_is_said(folder: Path) -> None:
    given = {"X": arrays()["X"].T, "F": arrays()["F"].T}
    scipy.io.savemat("guess.mat", given)
    result = fit("guess.mat", "--df", "5")
    assert "samples last (the shapes fit both layouts; --layout samples-first takes the other)." in result.stdout
    assert "too few" in refusal(fit("guess.mat", "--df", "5", "--layout", "samples-first"))


def test_arrays_are_named_by_options(folder: Path) -> None:
    given = arrays()
    np.savez("named.npz", U=given["X"], Y=given["F"], D=given["J"])
    assert fit("named.npz", "--inputs", "U", "--outputs", "Y", "--jacobians", "D").exit_code == 0
    assert same_model(folder)
    for name, array in given.items():
        np.save(f"{name}{name}.npy", array)
    assert fit("XX.npy", "--outputs", "FF.npy", "--jacobians", "JJ.npy").exit_code == 0
    assert same_model(folder)


def test_an_npy_file_that_is_not_there_is_called_so(folder: Path) -> None:
    SAMPLES_FIRST["samples"](Path("set"), arrays())
    said = refusal(fit("set/X.npy", "--outputs", "nope.npy"))
    assert said == "Error: nope.npy does not exist.\n"
    said = refusal(fit("set/X.npy", "--outputs", "F"))
    assert said.endswith(
        f"has none named F. {Path('set/F.npy')} lies beside X.npy: set --outputs to {Path('set/F.npy')}.\n"
    )
    said = refusal(fit("set/X.npy", "--outputs", "F.npy"))
    assert said.startswith(f"Error: F.npy does not exist. {Path('set/F.npy')} lies beside X.npy")
    said = refusal(fit("set/X.npy", "--outputs", "Q"))
    assert said.endswith(f"has none named Q. Name a file with --outputs, such as {Path('set/Q.npy')}.\n")
    assert "set has no array named nope.npy: it holds the arrays F (40, 2)" in refusal(
        fit("set", "--outputs", "nope.npy")
    )


def test_misuse_is_one_sentence(folder: Path) -> None:
    TABLES["samples.csv"](Path("data.csv"), arrays())
    Path("wrong.csv").write_text("x1,y1\n1,2\n3,oops\n")
    said = refusal(fit("data.csv"))
    assert "is a table: name the columns that are outputs with --outputs" in said
    assert "it holds the columns x1, x2, y1, y2, dy1/dx1" in said
    assert "has no column q, which --inputs names" in refusal(fit("data.csv", "--inputs", "q", "--outputs", "y1"))
    assert "leave out --layout" in refusal(fit("data.csv", *COLUMNS, "--paper-layout"))
    assert 'wrong.csv, line 3, column y1, has "oops"' in refusal(fit("wrong.csv", "--inputs", "x1", "--outputs", "y1"))
    assert "--paper-layout contradicts --layout samples-first" in refusal(
        fit("first.npz", "--paper-layout", "--layout", "samples-first")
    )
    assert "name the 2 columns of inputs" in refusal(run("predict", "model.npz", "data.csv", "-o", "v.npz"))
    assert not Path("other.npz").exists()


def test_a_missing_package_is_one_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    TABLES["samples.parquet"](Path("data.parquet"), arrays())
    monkeypatch.setattr(sources, "find_spec", lambda name: None)
    assert 'pip install -e ".[files]"' in refusal(fit("data.parquet", *COLUMNS))


def test_no_input_is_overwritten(folder: Path) -> None:
    SAMPLES_FIRST["samples"](Path("set"), arrays())
    assert "also an input" in refusal(fit("set", output="set/F.npy"))
    assert "also an input" in refusal(fit("set/X.npy", "--outputs", "set/F.npy", output="set/F.npy"))
    assert "also an input" in refusal(run("predict", "model.npz", "set/X.npy", "-o", "set/X.npy"))


@pytest.mark.parametrize("suffix", WRITERS)
def test_predictions_are_written_by_the_ending(folder: Path, suffix: str) -> None:
    table = suffix in (".csv", ".parquet")
    result = run("predict", "model.npz", "first.npz", "-o", f"v{suffix}")
    told = "40 rows (inputs x1, x2, outputs y1, y2)" if table else "F (40, 2)"
    told += " and J (40, 2, 2)" if suffix in (".npz", ".mat") else ""
    assert result.stdout.endswith(f"Wrote {told} to v{suffix}.\n")
    if suffix == ".npy":
        said = refusal(run("predict", "model.npz", "first.npz", "-o", "v.npy", "--jacobians"))
        assert said.endswith("one array, F. Write .npz or .mat, or leave out --jacobians.\n")
        return
    result = run("predict", "model.npz", "first.npz", "-o", f"v{suffix}", "--jacobians" if table else "--no-jacobians")
    assert ("Jacobians in 4 columns" if table else "Wrote F (40, 2) to") in result.stdout


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_predictions_in_a_table_are_samples_of_the_model(folder: Path, suffix: str) -> None:
    assert run("predict", "model.npz", "first.npz", "-o", f"v{suffix}", "--jacobians").exit_code == 0
    model, X = ub.DecoupledModel.load("model.npz"), arrays()["X"]
    problem = read_problem(f"v{suffix}", "x*", "y*", "d{output}/d{input}").problem
    assert problem.F is not None
    assert problem.J is not None
    assert np.array_equal(problem.X, X)
    assert np.array_equal(problem.F, model(X))
    assert np.array_equal(problem.J, model.jacobian(X))
    assert fit(f"v{suffix}", *COLUMNS).exit_code == 0


def test_columns_of_predictions_have_the_names_of_the_model_or_of_the_points(folder: Path) -> None:
    X = arrays()["X"]
    np.savetxt("new.csv", X, delimiter=",", header="speed,load", comments="")
    assert run("predict", "model.npz", "new.csv", "--inputs", "speed,load", "-o", "v.csv").exit_code == 0
    assert Path("v.csv").read_text().startswith("speed,load,y1,y2\n")
    model = ub.DecoupledModel.load("model.npz")
    model.changed(input_names=["speed", "load"], output_names=["force", "drag"]).save("named.npz")
    assert run("predict", "named.npz", "new.csv", "--jacobians", "-o", "v.csv").exit_code == 0
    header = Path("v.csv").read_text().partition("\n")[0]
    assert header == "speed,load,force,drag,dforce/dspeed,dforce/dload,ddrag/dspeed,ddrag/dload"


def test_points_with_gaps_have_empty_cells(folder: Path) -> None:
    model = ub.DecoupledModel.load("model.npz")
    model.changed(input_names=["x1", "x2"]).save("named.npz")
    Path("gaps.csv").write_text("x1,x2\n0.5,\n0.5,0.25\n")
    for given in (["named.npz"], ["model.npz", "--inputs", "x1,x2"]):
        result = run("predict", *given, "gaps.csv", "-o", "v.csv")
        told = "Note: 1 of 2 points cannot be predicted and is left empty (NaN in arrays): column x2 has 1 gap.\n"
        assert result.stderr == told
        assert Path("v.csv").read_text().splitlines()[1] == "0.5,,,"
    assert run("predict", "named.npz", "gaps.csv", "-o", "v.parquet").exit_code == 0


@pytest.mark.parametrize("strange", [np.nan, np.inf])
def test_rows_of_arrays_that_cannot_be_predicted_keep_their_place(folder: Path, strange: float) -> None:
    X = arrays()["X"].copy()
    X[[0, 3], [1, 0]] = strange
    np.savez("some.npz", X=X)
    result = run("predict", "model.npz", "some.npz", "-o", "v.npz")
    assert "2 of 40 points cannot be predicted" in result.stderr
    whole = ub.DecoupledModel.load("model.npz")(arrays()["X"])
    whole[[0, 3]] = np.nan
    np.testing.assert_array_equal(np.load("v.npz")["F"], whole)


def test_jacobians_may_be_left_out_of_a_document(folder: Path) -> None:
    assert '"J"' in run("predict", "model.npz", "first.npz", "--json").stdout
    assert '"J"' not in run("predict", "model.npz", "first.npz", "--json", "--no-jacobians").stdout


def test_names_of_outputs_cannot_write_on_the_terminal(folder: Path) -> None:
    assert error_rows(None, [1.0], ["\x1b[2Jy"]) == [("?[2Jy", "1 %")]
    rows = error_rows(None, [1.0] * 29 + [7.0], [f"y{i}" for i in range(30)])
    assert rows[-1] == ("... 10 more; the worst of all is y29", "7 %")


def test_help_shows_every_kind() -> None:
    said = run("fit", "--help").stdout
    for data in ("samples.npz", "folder", "X.npy", "samples.mat", "samples.csv", "samples.parquet"):
        assert f"\n    unbraid fit {data}" in said
    assert "'d{output}/d{input}'" in said
    assert "\n    unbraid predict model.npz points.csv" in run("predict", "--help").stdout
