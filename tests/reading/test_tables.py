"""Tables: columns are found by name, and what is wrong is found by line and column."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from unbraid.errors import FileError
from unbraid.reading import delimited, read_problem
from unbraid.reading.delimited import DelimitedTable


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(text: str | bytes, name: str = "data.csv") -> str:
    Path(name).write_bytes(text.encode() if isinstance(text, str) else text)
    return name


def refusal(text: str | bytes, inputs: str = "a", outputs: str = "b") -> str:
    """The sentence with which a text is refused."""
    with pytest.raises(FileError) as caught:
        read_problem(table(text), inputs, outputs)
    said = str(caught.value)
    assert said.startswith("data.csv")
    assert "\n" not in said
    return said


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3,4\n",
        "a,b\n1,2\n3,4",
        "a;b\n1;2\n3;4\n",
        "a\tb\r\n1\t2\r\n3\t4\r\n",
        "a|b\r1|2\r3|4",
        b"\xef\xbb\xbfa,b\n1,2\n3,4\n",
        '"a","b"\n"1","2"\n3,4\n',
        " a , b \n 1 , 2 \n 3 , 4 \n",
        "# a,b\n1,2\n3,4\n",
        "a,b\n\n1,2\n   \n3,4\n\n\n",
        "a,b\n1e0,+2.\n.3e1,4E0\n",
        'text,a,b\n"one, two",1,2\n"three\nfour",3,4\n',
        "b,other,a\n2,x,1\n4,,3\n",
        b"temp \xb0C,a,b\n?\xff,1,2\n?,3,4\n",
        ",a,b\n0,1,2\n1,3,4\n",
        "a b\n1 2\n3 4\n",
        "  a   b  \n  1.0   2.0  \n\t3\t 4\n\n",
        'text a b\n"one two" 1 2\nthree 3 4\n',
        "# made on Monday\na,b\n1,2\n3,4\n",
        "# made on Monday, by hand\n#\n\na,b\n1,2\n3,4\n",
        "# made on Monday\n# a b\n1 2\n3 4\n",
        "# a, b\n1 2\n3 4\n",
        "# a b\n#\n1 2\n3 4\n",
        "#t,a,b\nMonday,1,2\nTuesday,3,4\n",
        "# one two\na b\n1 2\n3 4\n",
        b"# \xe9t\xe9\na,b\n1,2\n3,4\n",
    ],
)
def test_tables_of_many_hands_are_read(folder: Path, text: str | bytes) -> None:
    problem = read_problem(table(text), "a", "b").problem
    assert problem.F is not None
    assert (problem.X.tolist(), problem.F.tolist()) == ([[1], [3]], [[2], [4]])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n3,x\n", 'line 3, column b, has "x", which is not a finite number'),
        ("a,b\n1,2\n,4\n", "line 3, column a, is empty: repair or remove that line."),
        ("a,b\n1,2\n3,nan\n", 'line 3, column b, has "nan"'),
        ("a,b\n1,-inf\n", 'line 2, column b, has "-inf"'),
        ("a,b\n1,1e999\n", 'line 2, column b, has "1e999"'),
        ("a,b\n1,1_000\n", 'line 2, column b, has "1_000"'),
        ("a;b\n1;2,5\n", 'has "2,5", which is not a finite number: write decimal points, not commas.'),
        ("a;b\n1;1,234,567\n", 'has "1,234,567", which is not a finite number: write nothing between thousands'),
        ("a;b\n1;1,234\n2;2,345\n", "b holds texts (1,234, 2,345): write 1,234 as 1234 if the comma separates thousa"),
        ("a;b\n1;1.234,5\n2;2,3\n", "b holds texts (1.234,5, 2,3): write nothing between thousands, 1234567.8"),
        ("a,b\n0,1\n1,2,3\n", "line 3, has 3 entries, and the first line has 2 names: repair or remove that line. Are"),
        (
            'a,b\n0,1\n"2,3\n4,5\n',
            "has 1 entry, and the first line has 2 names: repair or remove that line. Is a",
        ),
        ("a,b\n5 %,1\n7 %,2\n", "holds texts (5 %, 7 %): write the numbers alone, without %"),
        ("a,b\n1,$1.50\n2,$3\n", "b holds texts ($1.50, $3): write the numbers alone, without $"),
        (
            "a,b\n1,\u22121.5\n2,3\n3,4\n4,\u22122\n",
            "2 cells of column b are no numbers (\u22121.5, \u22122; the first in row 1): write -",
        ),
        ("a;b\n1;1'234\n2;12'345\n", "b holds texts (1'234, 12'345): write nothing between thousands"),
        ("a,b\n1,2\n3\n", "line 3, has 1 entry, and the first line has 2 names"),
        ("a,b\n1,2\n3,4,5\n", "line 3, has 3 entries"),
        ("a,b\n1,2\n\n\n3,4,5\n", "line 5, has 3 entries"),
        ('t,a,b\n"x\ny",1,2\n"z",q,2\n', 'line 4, column a, has "q"'),
        ('t,a,b\n"x,1,2\n' + "x,1,2\n" * 50_000, "line 2, cannot be split"),
        ("a,b\n", "has names in the first line but no numbers below"),
        ("a,b", "has names in the first line but no numbers below"),
        ("1.5,2\n3,4\n", "has numbers in its first line: put the names of the columns there"),
        ("\na,b\n1,2\n", "begins with an empty line"),
        ("a,b,a\n1,2,3\n", "has 2 columns named a: rename them"),
        ("x,y\n1,2\n", "has no column a, which `inputs` names: it holds the columns x, y."),
        ("ab\n12\n", "has no column a, which `inputs` names: it holds the column ab."),
        ('a,"b c"\n1,2\n', 'has no column b, which `outputs` names: it holds the columns a, "b c".'),
        ("a b\n1,5 2,5\n", "column a holds texts (1,5): write decimal points, not commas"),
        ("a b\n1 2\n3\n", "line 3, has 1 entry, and the first line has 2 names"),
        ("# one\na,b\n1,2\n3\n", "line 4, has 1 entry, and line 2 has 2 names"),
        ("# one\na,b\n1,2\n3,x\n", 'line 4, column b, has "x"'),
        ("# one\n\n# a,b\n", "has names in line 3 but no numbers below"),
        (
            "# a,b\n1,2,3\n",
            "has numbers in line 2, the first that is no comment: put the names of the columns there",
        ),
        ("a,b\n1,2\n# end\n", "line 3, has 1 entry"),
        (b"a,\xe9\n1,2\n", "columns a, ?. Its names are not in UTF-8, so that some letters cannot be read: save it as"),
        ("a,\x1b[31mb\n1,2\n", "does not begin as a .csv file does"),
        ("a," + "c," * 5000 + "b\n1,2\n", "line 2, has 2 entries, and the first line has 5002 names"),
        ("a,b\n1," + "2" * (1 << 20) + "\n", "line 2, has more than 1048576 characters"),
    ],
)
def test_what_is_wrong_is_found_by_line_and_column(folder: Path, text: str | bytes, said: str) -> None:
    assert said in refusal(text)


def test_a_culprit_is_found_behind_many_lines(folder: Path) -> None:
    lines = ["a,b"] + ["1,2"] * 50_000
    lines[43_210] = "1,oops"
    assert 'line 43211, column b, has "oops"' in refusal("\n".join(lines))
    lines[43_210] = "1,2"
    lines[100] = ""
    assert read_problem(table("\n".join(lines)), "a", "b").problem.S == 49_999


def test_quoted_text_may_go_on_where_a_block_of_lines_ends(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "LINES_AT_ONCE", 2)
    text = 't,a,b\nx,1,2\n"y\ny\ny",3,4\nz,5,6\n"w\nw",7,8\nv,9,10\n'
    problem = read_problem(table(text), "a", "b").problem
    assert problem.X[:, 0].tolist() == [1, 3, 5, 7, 9]
    assert "line 10, column b" in refusal(text + "u,11,?")


def test_both_ways_of_reading_agree(folder: Path) -> None:
    numbers = np.random.default_rng(0).standard_normal((500, 3)) * 10.0 ** np.arange(-300, 300, 200)
    body = [",".join(map(repr, row)) for row in numbers.tolist()]
    plain = read_problem(table("\n".join(["a,b,c", *body])), "a,b", "c").problem
    quoted = read_problem(table("\n".join(["a,b,c", '"0","0","0"', *body])), "a,b", "c").problem
    assert plain.X.tobytes() == np.ascontiguousarray(numbers[:, :2]).tobytes()
    assert np.array_equal(plain.X, quoted.X[1:])


def test_headers_of_bare_counters_are_names(folder: Path) -> None:
    """pandas writes them."""
    assert read_problem(table("0,1\n5,6\n7,8\n"), "0", "1").problem.X.tolist() == [[5], [7]]


def test_lines_are_counted_before_memory_is_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(delimited, "check_memory", lambda what, size: asked.append(size))
    DelimitedTable(Path(table("a,b,c\n" + "1,2,3\n" * 1000))).read(["a", "c"])
    assert asked == [8 * 2 * 1002]


@pytest.mark.parametrize("name", ["data.txt", "data.dat", "data.csv"])
def test_blanks_separate_however_the_file_is_called(folder: Path, name: str) -> None:
    numbers = np.random.default_rng(0).standard_normal((30, 3))
    np.savetxt(name, numbers, header="made on Monday\nx1 x2 y")
    problem = read_problem(name, "x1:x2", "y").problem
    assert problem.F is not None
    assert np.array_equal(np.hstack([problem.X, problem.F]), numbers)


def test_names_that_could_be_misread_are_in_quotes(folder: Path) -> None:
    samples = read_problem(table('"speed, rpm",load [N],y\n1,2,3\n'), ["speed, rpm", "load [N]"], "y")
    assert samples.taken == 'inputs "speed, rpm", "load [N]", output y'


# Naming columns.

MANY = 't,x1,x2,x10,y 1,y2,dy 1_dx1,dy 1_dx2,dy2_dx1,dy2_dx2,odd:name,"a,b",star*\n' + ",".join("1" * 13) + "\n"


@pytest.mark.parametrize(
    ("inputs", "chosen"),
    [
        ("x1", 1),
        ("x1,x2", 2),
        (" x1 , x2 ", 2),
        (["x1", "x2,x10"], 3),
        ("x*", 3),
        ("x?", 2),
        ("x[12]", 2),
        ("x1:x10", 3),
        ("x1:x1", 1),
        ("t,x1:x2", 3),
        ("odd:name", 1),
        ("x1:odd:name", 10),
        ("a,b", 1),
        (["a,b", "t"], 2),
        ("x1,", 1),
        ("y 1", 1),
    ],
)
def test_columns_are_chosen_by_name_pattern_or_range(folder: Path, inputs: Any, chosen: int) -> None:
    assert read_problem(table(MANY), inputs, "star*").problem.m == chosen


@pytest.mark.parametrize(
    ("inputs", "outputs", "jacobians", "said"),
    [
        (
            "x9",
            "y2",
            (),
            'has no column x9, which `inputs` names: it holds the columns t, x1, x2, x10, "y 1", y2',
        ),
        ("z*", "y2", (), r"has no column z*, which `inputs` names"),
        ("x2:x1", "y2", (), "`inputs` names the range x2:x1, and x2 comes after x1: turn it round, x1:x2, or name"),
        ("x1:x9", "y2", (), "has no column x9, with which the range x1:x9 of `inputs` ends: it holds"),
        ("x0:x2", "y2", (), "has no column x0, with which the range x0:x2 of `inputs` begins: it holds"),
        ("x8:x9", "y2", (), "has no column x8:x9, which `inputs` names"),
        ("x1:odd:game", "y2", (), "has no column odd:game, with which the range x1:odd:game of `inputs` ends"),
        ("x*,x1", "y2", (), "`inputs` names the column x1 twice"),
        ("x*", "*2", (), "x2 cannot be two of input, output, Jacobian and weights at once"),
        ((), (), (), "is a table: name the columns that are outputs with `outputs`"),
        ("x1", (), (), "is a table: name the columns that are outputs with `outputs`"),
        ((), "y2", "dy2*", "`jacobians` needs the names of `inputs`"),
        ("x1,x2", "y*", "dy2*", "names 2 columns, and 2 outputs and 2 inputs need 4"),
        ("x1,x2", (), "dy2*,star*", "names 3 columns, and for 2 inputs they are a multiple of 2"),
        ("x1,x2", (), "d{output}_d{input}", "needs the names of `outputs`"),
        ("x*", "y*", "d{output}_d{input}", "has no column dy 1_dx10, which `jacobians` names"),
        (" , ", "y2", (), "`inputs` names no column: it holds the columns t, x1"),
    ],
)
def test_columns_that_cannot_be_meant_are_refused(
    folder: Path, inputs: Any, outputs: Any, jacobians: Any, said: str
) -> None:
    with pytest.raises(FileError) as caught:
        read_problem(table(MANY), inputs, outputs, jacobians)
    assert said in str(caught.value)


def test_jacobians_are_named_row_after_row_or_by_a_pattern(folder: Path) -> None:
    Path("data.csv").write_text("x1,x2,y1,y2,c,d,a,b\n1,2,3,4,21,22,11,12\n5,6,7,8,0,0,0,0\n")
    problem = read_problem("data.csv", "x*", "y*", "a:b,c:d").problem
    assert problem.J is not None
    assert problem.J[0].tolist() == [[11, 12], [21, 22]]
    alone = read_problem("data.csv", "x*", jacobians=["a:b", "c", "d"]).problem
    assert alone.F is None
    assert np.array_equal(alone.J, problem.J)  # type: ignore[arg-type]


def test_a_layout_is_not_for_tables(folder: Path) -> None:
    with pytest.raises(FileError, match="with one sample a row: leave out `layout`"):
        read_problem(table("a,b\n1,2\n"), "a", "b", layout="samples-last")


# Parquet.


def parquet(columns: dict[str, Any]) -> str:
    pyarrow.parquet.write_table(pyarrow.table(columns), "data.parquet", row_group_size=2)
    return "data.parquet"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1.0, None, 3.0], "row 2, column b, is empty"),
        ([1.0, 2.0, float("nan")], "row 3, column b, is nan: repair or remove that row"),
        ([float("inf"), 2.0, 3.0], "row 1, column b, is inf"),
        (["x", "y", "z"], "column b holds texts (x, y, z): outputs, Jacobians and weights are numbers"),
        ([[1.0], [2.0], [3.0]], "column b must hold numbers, and its type is list<"),
        ([{"c": 1.0}] * 3, "column b must hold numbers, and its type is struct<"),
    ],
)
def test_parquet_columns_without_numbers_are_refused(folder: Path, values: Any, said: str) -> None:
    with pytest.raises(FileError) as caught:
        read_problem(parquet({"a": [1.0, 2.0, 3.0], "b": values}), "a", "b")
    assert said in str(caught.value)


@pytest.mark.parametrize("kind", ["int8", "uint64", "float16", "float32", "bool_"])
def test_parquet_numbers_of_any_kind_are_read(folder: Path, kind: str) -> None:
    values = pyarrow.array(np.array([1, 0, 1], kind))
    assert read_problem(parquet({"a": values, "b": values}), "a", "b").problem.X[:, 0].tolist() == [1, 0, 1]


def test_parquet_decimals_are_read(folder: Path) -> None:
    values = pyarrow.array([Decimal("1.25"), Decimal("-3.50")])
    assert read_problem(parquet({"a": values, "b": values}), "a", "b").problem.X[:, 0].tolist() == [1.25, -3.5]


def test_parquet_names_with_dots_and_twins(folder: Path) -> None:
    problem = read_problem(parquet({"a": [1.0, 2.0], "a.b": [3.0, 4.0], "b": [5.0, 6.0]}), "a", "a.b,b").problem
    assert (problem.X.tolist(), problem.F.tolist()) == ([[1], [2]], [[3, 5], [4, 6]])  # type: ignore[union-attr]
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays([pyarrow.array([1.0])] * 3, ["a", "b", "a"]), "data.parquet")
    with pytest.raises(FileError, match="has 2 columns named a: rename them"):
        read_problem("data.parquet", "a", "b")


def test_parquet_without_rows_is_refused(folder: Path) -> None:
    with pytest.raises(FileError, match="has columns but no rows"):
        read_problem(parquet({name: pyarrow.array([], pyarrow.float64()) for name in "ab"}), "a", "b")
