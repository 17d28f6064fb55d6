"""Tables as people keep them: texts, gaps, columns that are not wanted; and models that know their columns by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import unbraid as ub
from command_lines import run
from unbraid.data.encoding import EncodedColumn, Encoding
from unbraid.errors import DataError, FileError, ModelFileError
from unbraid.reading import read_points, read_problem
from unbraid.reading.cells import Cells


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(text: str, name: str = "data.csv") -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


KEPT = (
    "id,a,kind,b,remark,y\nr1,1,red,2,good,3\nr2,4,blue,,fine,6\nr3,7,red,8,bad,9\nr4,2,green,3,new,n/a\n"
    "r5,3,red,1,x,2\n"
)


def kept_rows(S: int = 120, seed: int = 0, gaps: float = 0.0) -> str:
    """A table of a function of two numbers and a text, with gaps."""
    rng = np.random.default_rng(seed)
    a, b, kind = (
        rng.uniform(-1, 1, S),
        rng.uniform(-1, 1, S),
        rng.choice(["red", "blue", "green"], S, p=[0.5, 0.3, 0.2]),
    )
    u = a + 0.5 * b + np.array([{"red": 0.0, "blue": 0.7, "green": -0.4}[one] for one in kind])
    lines = ["a,kind,b,y"]
    for k in range(S):
        cells = [repr(float(a[k])), str(kind[k]), repr(float(b[k])), repr(float(np.sin(u[k])))]
        lines.append(",".join("" if rng.random() < gaps else cell for cell in cells))
    return "\n".join(lines) + "\n"


def test_cells_are_numbers_texts_and_gaps() -> None:
    cells = Cells.of("a", ["1", " 2.5 ", "", "n/a", "NaN", "red", "inf", "1_000"])
    np.testing.assert_array_equal(cells.numbers, [1.0, 2.5, *4 * [np.nan], np.inf, np.nan])
    assert cells.texts == {5: "red", 7: "1_000"}
    np.testing.assert_array_equal(np.flatnonzero(cells.is_gap), [2, 3, 4])
    assert cells.is_infinite.sum() == 1
    assert not cells.of_texts
    assert Cells.of("b", ["x", "y", "1"]).of_texts


def test_all_other_columns_of_numbers_are_inputs() -> None:
    samples = read_problem(table("t,a,b,y\n0,1,2,3\n1,4,5,6\n2,7,8,1\n"), outputs="y")
    assert samples.problem.input_names == ("t", "a", "b")
    assert samples.problem.output_names == ("y",)
    assert samples.problem.encoding is None


def test_everything_in_the_way_is_told_at_once() -> None:
    with pytest.raises(FileError) as caught:
        read_problem(table(KEPT), outputs="y")
    said = str(caught.value)
    assert "2 rows of 5 have gaps (by column: b 1, y 1; the first is row 2)" in said
    assert 'pass missing="drop" to leave them out' in said
    assert "left out for being text: id, kind, remark (pass categories=True to encode id, kind, remark)" in said
    code = run("fit data.csv --outputs y --rank 1 -o m.npz")
    assert code.exit_code == 2
    assert "add --missing drop to leave them out; left out for being text" in code.stderr
    assert "(add --categories to encode id, kind, remark)" in code.stderr


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_predict_takes_the_table_that_fit_took_and_gives_its_own_columns_back(suffix: str) -> None:
    """What `--missing drop` left out keeps its place, empty: gaps, texts among numbers, infinite ones, lone levels."""
    lines = kept_rows().splitlines()
    lines[3], lines[5], lines[8], lines[9] = "0.1,,0.2,1", "x7,red,0.3,1", "inf,red,0,1", "1,=odd,,2"
    lines[12] = "1,red,1,"  # which has all inputs
    table("\n".join(lines) + "\n")
    assert run("fit data.csv --outputs y --missing drop --categories --rank 1 --starts 2 -o m.npz").exit_code == 0
    done = run(f"predict m.npz data.csv -o p{suffix}")
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith(
        "Note: 4 of 120 points cannot be predicted and are left empty (NaN in arrays): column a"
    )
    assert "inputs a, kind, b, output y" in done.stdout
    assert run(f"predict m.npz p{suffix} -o again.csv").exit_code == 0  # and it reads back as it was
    rows = [line.split(",") for line in Path("again.csv").read_text().splitlines()]
    assert rows[0] == ["a", "kind", "b", "y"]
    assert [k for k, row in enumerate(rows) if not row[3]] == [3, 5, 8, 9]
    assert (rows[3][1:3], rows[5][0], rows[9][1]) == (["", "0.2"], "x7", "'=odd")
    assert [row[1] for row in rows[13:]] == [line.split(",")[1] for line in lines[13:]]


def test_rows_with_gaps_are_left_out_on_request() -> None:
    samples = read_problem(table(KEPT), outputs="y", missing="drop")
    np.testing.assert_array_equal(samples.problem.X, [[1.0, 2.0], [7.0, 8.0], [3.0, 1.0]])
    np.testing.assert_array_equal(samples.problem.F[:, 0], [3.0, 9.0, 2.0])  # type: ignore[index]
    assert "2 rows with gaps left out" in samples.taken


def test_texts_become_indicators_on_request() -> None:
    samples = read_problem(table(KEPT), inputs="a,kind", outputs="y", missing="drop", categories=True)
    assert samples.problem.input_names == ("a", "kind=blue")  # green goes with its row, and red is most frequent
    np.testing.assert_array_equal(samples.problem.X, [[1.0, 0.0], [4.0, 1.0], [7.0, 0.0], [3.0, 0.0]])
    assert samples.problem.encoding == Encoding((EncodedColumn("a"), EncodedColumn("kind", ("red", "blue"))))
    assert samples.problem.take([0, 1]).encoding == samples.problem.encoding


def test_a_number_among_texts_is_a_text_as_well() -> None:
    """A shop that is called 12 among A1 and B7, as it is spelled; its row is not left out."""
    rows = "".join(f"{k},{('A1', 'B7', '012')[k % 3]},{k % 4}\n" for k in range(30))
    samples = read_problem(table(f"a,shop,y\n{rows}"), outputs="y", missing="drop", categories=True)
    assert samples.problem.input_names == ("a", "shop=A1", "shop=B7")
    assert samples.problem.S == 30
    points = read_points("data.csv", 3, encoding=samples.problem.encoding)
    np.testing.assert_array_equal(points.X, samples.problem.X)
    assert not points.told
    assert points.cells[1].written()[:3].tolist() == ["A1", "B7", "012"]
    points = read_points(table("a,shop\n1,012\n2,012\n"), 3, encoding=samples.problem.encoding)
    np.testing.assert_array_equal(points.X, [[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    assert points.cells[1].written().tolist() == ["012", "012"]


def test_a_text_column_that_is_named_is_refused_with_the_cure() -> None:
    with pytest.raises(FileError, match=r"column kind holds texts \(blue, green, red\): pass categories=True"):
        read_problem(table(KEPT), inputs="a,kind", outputs="y", missing="drop")
    with pytest.raises(FileError, match=r"kind holds texts \(blue, green, red\): outputs, Jacobians and weights are"):
        read_problem(table(KEPT), inputs="a", outputs="kind", missing="drop", categories=True)


def test_texts_among_numbers_are_counted() -> None:
    rows = "".join(f"{k},{k * k}\n" for k in range(20))
    with pytest.raises(FileError, match=r"2 cells of column a are no numbers \(odd, x7; the first in row 21\): repair"):
        read_problem(table(f"a,y\n{rows}x7,1\nodd,2\n"), outputs="y")
    assert read_problem(table(f"a,y\n{rows}x7,1\nodd,2\n"), outputs="y", missing="drop").problem.S == 20


@pytest.mark.parametrize("large", ['"1,234"', "\u22121.5", "5 kg", "7 %"])
def test_numbers_that_are_written_otherwise_are_never_left_out(large: str) -> None:
    """Neither their rows, which would be the large ones or those below zero, nor their column."""
    rows = "".join(f"{k},{k * k}\n" for k in range(9))
    for text in (f"a,y\n{rows}{large},1\n{large},2\n", f"a,b,y\n{large},1,2\n{large},2,3\n"):
        for categories in (False, True):
            with pytest.raises(FileError, match=r"column a .*: write"):
                read_problem(table(text), outputs="y", missing="drop", categories=categories)


def test_gaps_of_outputs_may_be_masked_beside_texts() -> None:
    samples = read_problem(table("a,kind,y\n1,x,2\n2,y,\n3,x,4\n"), outputs="y", missing="mask", categories=True)
    assert samples.problem.S == 3
    assert np.isnan(samples.problem.F[1, 0])  # type: ignore[index]


def test_one_gap_is_masked_as_two_are_whatever_word_it_has() -> None:
    for text in ("a,y\n1,2\n2,NA\n3,4\n", "a,y\n1,2\n2,NA\n3,\n4,1\n"):
        samples = read_problem(table(text), inputs="a", outputs="y", missing="mask")
        assert np.isnan(samples.problem.F[1, 0])  # type: ignore[index]


def test_a_category_of_which_one_level_is_left_is_left_out() -> None:
    rows = "1,red,1\n2,red,2\n3,red,3\n4,blue,\n"
    samples = read_problem(table(f"a,kind,y\n{rows}"), outputs="y", missing="drop", categories=True)
    assert samples.problem.input_names == ("a",)
    assert "left out for saying the same in all rows that are left: kind" in samples.taken
    with pytest.raises(FileError, match="no input that varies"):
        read_problem(table(f"a,kind,y\n{rows}"), inputs="kind", outputs="y", missing="drop", categories=True)


def test_names_as_many_as_rows_are_no_category() -> None:
    rows = "".join(f"name{k},{k},{k % 7}\n" for k in range(60))
    samples = read_problem(table(f"who,a,y\n{rows}"), outputs="y", categories=True)
    assert samples.problem.input_names == ("a",)
    assert "left out for being text: who" in samples.taken


def test_samples_with_nan_in_arrays_are_dropped_on_request() -> None:
    X, F = np.arange(12.0).reshape(6, 2), np.arange(6.0)
    F[1], X[4, 0] = np.nan, np.nan
    problem = ub.Problem(X, F, missing="drop")
    assert problem.S == 4
    np.testing.assert_array_equal(problem.F[:, 0], [0.0, 2.0, 3.0, 5.0])  # type: ignore[index]
    with pytest.raises(DataError, match="leaves nothing"):
        ub.Problem(X, np.full(6, np.nan), missing="drop")
    np.savez("data.npz", X=X, F=F)
    assert "2 samples with gaps left out" in read_problem("data.npz", missing="drop").taken


def test_a_table_with_texts_and_gaps_is_fitted_and_predicted_by_name_in_two_commands() -> None:
    table(kept_rows(gaps=0.02))
    fitted = run("fit data.csv --outputs y --missing drop --categories --rank 1 -o m.npz")
    assert fitted.exit_code == 0, fitted.output
    model = ub.DecoupledModel.load("m.npz")
    assert model.input_names == ("a", "kind=blue", "kind=green", "b")
    assert model.output_names == ("y",)
    text = kept_rows(seed=1).splitlines()
    turned = [",".join([row.split(",")[k] for k in (3, 1, 2, 0)] + ["7"]) for row in text]  # another order, one more
    table("\n".join(turned) + "\n", "new.csv")
    done = run("predict m.npz new.csv -o p.npz")
    assert done.exit_code == 0, done.output
    F = np.load("p.npz")["F"]
    truth = np.array([float(row.split(",")[3]) for row in text[1:]])
    assert np.sqrt(np.mean((F[:, 0] - truth) ** 2)) < 0.1 * truth.std()


def test_a_report_finds_the_columns_that_the_model_knows() -> None:
    table(kept_rows(gaps=0.02))
    assert run("fit data.csv --outputs y --missing drop --categories --rank 1 -o m.npz").exit_code == 0
    done = run("report m.npz data.csv --missing drop -o r.html")
    assert done.exit_code == 0, done.output
    table("\n".join(row for row in kept_rows(seed=2).splitlines() if "green" not in row) + "\n", "less.csv")
    assert run("report m.npz less.csv -o r.html").exit_code == 0
    table(kept_rows(seed=2).replace("green", "pink"), "more.csv")
    assert "says pink, which the model does not know" in run("report m.npz more.csv -o r.html").stderr


def test_predict_keeps_rows_that_it_cannot_predict_and_refuses_where_that_is_all() -> None:
    encoding = Encoding((EncodedColumn("a"), EncodedColumn("kind", ("red", "blue"))))
    points = read_points(table("kind,a\nred,1\n,2\nblue,\nblue,4\npink,5\n7,x\n"), 2, encoding=encoding)
    known = [[1.0, 0.0], [2.0, np.nan], [np.nan, 1.0], [4.0, 1.0], [5.0, np.nan], [np.nan, np.nan]]
    np.testing.assert_array_equal(points.X, known)
    assert points.told == (
        "column a has 1 gap; column a holds what is no finite number, x (the first in row 6)",
        "column kind has 1 gap; column kind says pink, 7 (the first in row 5), and the model knows red, blue",
    )
    with pytest.raises(FileError, match=r"kind says green \(the first in row 1\), and the model knows red, blue"):
        read_points(table("kind,a\ngreen,1\n"), 2, encoding=encoding)
    with pytest.raises(FileError, match=r"lacks 1 column that the model needs, kind: it holds the columns a, b"):
        read_points(table("a,b\n1,2\n"), 2, encoding=encoding)
    with pytest.raises(FileError, match=r"no row that can be predicted: column a holds what is no finite number, many"):
        read_points(table("kind,a\nred,many\n"), 2, encoding=encoding)


def test_a_frame_with_a_text_where_the_model_has_numbers_is_refused_by_column() -> None:
    pandas = pytest.importorskip("pandas")
    encoding = Encoding((EncodedColumn("a"), EncodedColumn("kind", ("red", "blue"))))
    model = ub.datasets.trig(S=5, rng=0)[1].changed(input_names=encoding.input_names, encoding=encoding)
    assert model(pandas.DataFrame({"a": [1.0], "kind": ["blue"]})).shape == (1, 2)
    with pytest.raises(DataError, match=r"X\['a'\] must be an array of real numbers.*encode texts"):
        model(pandas.DataFrame({"a": ["x", 1.0], "kind": ["red", "blue"]}))


def test_models_know_their_columns_in_files_and_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    problem, _ = ub.datasets.random_system(2, 3, 1, 50, rng=0)
    frame = pandas.DataFrame(problem.X, columns=["a", "b", "c"])
    fit = ub.decouple(ub.Problem(frame, problem.F, output_names=["u", "v"]), 1, starts=2, rng=0)
    fit.model.save("m.npz")
    model = ub.DecoupledModel.load("m.npz")
    assert (model.input_names, model.output_names) == (("a", "b", "c"), ("u", "v"))
    np.testing.assert_allclose(model(frame[["c", "a", "b"]]), fit.model(problem.X), rtol=1e-12)
    np.testing.assert_allclose(model(frame.assign(more=1.0)), fit.model(problem.X), rtol=1e-12)
    with pytest.raises(DataError, match="X lacks the column 'b'"):
        model(frame[["a", "c"]])
    np.testing.assert_array_equal(model(problem.X), fit.model(problem.X))
    assert "inputs: a, b, c" in run("inspect m.npz").stdout


def test_an_encoding_comes_back_from_json_and_nothing_else_does() -> None:
    encoding = Encoding((EncodedColumn("a"), EncodedColumn("kind", ("red", "blue"))))
    assert Encoding.from_json(encoding.as_json()) == encoding
    for wrong in (
        3,
        [3],
        [{"name": 1, "levels": None}],
        [{"name": "a", "levels": ["x"]}],
        [{"name": "a", "levels": "x"}],
    ):
        with pytest.raises(DataError):
            Encoding.from_json(wrong)
    with pytest.raises(DataError, match="encoding must give the inputs"):
        ub.datasets.trig(S=5, rng=0)[1].changed(input_names=("a", "b"), encoding=encoding)


@pytest.mark.parametrize("key", ["input_names", "output_names", "encoding"])
def test_a_model_file_with_strange_names_is_damaged(key: str) -> None:
    import json

    problem, _ = ub.datasets.trig(S=50, rng=0)
    ub.decouple(problem, 1, basis=ub.BSpline(4), starts=1, rng=0).model.save("m.npz")
    with np.load("m.npz") as file:
        arrays = dict(file)
    metadata = json.loads(str(arrays["metadata"]))
    metadata[key] = [1, 2]
    np.savez("n.npz", **{**arrays, "metadata": np.array(json.dumps(metadata))})
    with pytest.raises(ModelFileError, match="is not a usable unbraid model: its"):
        ub.DecoupledModel.load("n.npz")


def test_what_is_the_matter_with_many_columns_is_told_of_the_first_of_them() -> None:
    names, rows = [f"x{k}" for k in range(500)], [",".join(["red"] * 500), ",".join(["blue"] * 500)]
    table(f"{','.join(names)},y\n{rows[0]},1\n{rows[1]},2\n")
    with pytest.raises(FileError, match=r"x7 holds texts .* and 492 more") as caught:
        read_problem("data.csv", inputs="x*", outputs="y")
    assert len(str(caught.value)) < 1000
    table(f"{','.join(names)},y\n" + "".join(f"{k}{',1' * 499},{k * k}\n" for k in range(9)))
    done = run("look data.csv --outputs y")
    assert "x8 is 1 in all samples" in done.stdout
    assert "491 more findings of this kind, constant: --json lists all." in done.stdout


def test_look_is_a_command() -> None:
    table("a,b,y\n" + "".join(f"{k},7,{k * k}\n" for k in range(50)))
    done = run("look data.csv --outputs y")
    assert done.exit_code == 0
    assert "The input b is 7 in all samples." in done.stdout
    assert "nothing is odd" not in done.stdout
    table("a,y\n" + "".join(f"{k},{(k * 37) % 50}\n" for k in range(50)))
    assert "nothing is odd about them" in run("look data.csv --outputs y").stdout
    assert '"odd": []' in run("look data.csv --outputs y --json").stdout
