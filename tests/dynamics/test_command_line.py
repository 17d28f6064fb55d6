"""`unbraid identify`, `unbraid simulate` and `unbraid inspect` on files with records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid as ub
from command_lines import load, refusal, run
from dynamic_fits import duffing_fit, narx_fit, two_by_two_fit
from sample_files import write_matlab5
from unbraid.dynamics import DynamicFit, Record
from unbraid.dynamics.reading import read_record

SAMPLES = 400


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run in with a record in several kinds of files, gaps in its output, and models."""
    monkeypatch.chdir(tmp_path)
    record = duffing_fit().records[0].take(slice(100, 100 + SAMPLES))
    np.savez("record.npz", u=record.u, y=record.y)
    table(record, "record.csv")
    for name, fit in (("dynamic", duffing_fit()), ("both", two_by_two_fit()), ("narx", narx_fit())):
        fit.model.save(f"{name}.npz")
    return tmp_path


def table(record: Record, path: str, gap: str = "") -> None:
    """Write a record as a table of time, force and position."""
    rows = zip(record.time, record.u[:, 0], record.y[:, 0], strict=True)
    lines = [f"{t:.6f},{float(u)!r},{gap if np.isnan(y) else repr(float(y))}" for t, u, y in rows]
    Path(path).write_text("\n".join(["t,force,position", *lines, ""]), encoding="utf-8")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What an identification was asked for; it finds the model of the mass on a spring at once."""
    seen: dict[str, Any] = {}

    def found(records: list[Record], **settings: Any) -> DynamicFit:
        seen.update(settings, records=records)
        return duffing_fit()

    for name in ("state_space", "narx"):
        monkeypatch.setattr(ub.dynamics, name, found)
    return seen


IDENTIFY = "identify record.csv --inputs force --outputs position --time t"


def test_a_record_becomes_a_model(folder: Path) -> None:
    result = run(f"{IDENTIFY} --order 2 --rank 1 --degree 3 --basis polynomial --starts 2 -o found.npz")
    assert result.exit_code == 0, result.output
    assert all(said in result.stdout for said in ("simulation", "one step ahead", "linear model", "Status: CONVERGED"))
    assert ": 400 samples, input force, output position, 40 numbers missing." in result.stdout
    assert result.stdout.endswith("Model:  found.npz\n")
    model = ub.dynamics.load("found.npz")
    assert (model.input_names, model.output_names) == (("force",), ("position",))
    assert model.dt == pytest.approx(0.1)


def test_options_are_what_the_library_is_asked_for(folder: Path, asked: dict[str, Any]) -> None:
    options = "--order 3 --rank auto --df 6 --convex --continuation linear --starts 4 --seed 2 --max-seconds 9"
    assert run(f"{IDENTIFY} --burn-in 10 {options} -o found.npz").exit_code == 0
    [record] = asked["records"]
    assert (record.dt, record.burn_in, record.input_names) == (pytest.approx(0.1), 10, ("force",))
    assert (asked["order"], asked["rank"], asked["rng"], asked["starts"]) == (3, "auto", 2, 4)
    assert (asked["basis"], asked["constraint"]) == (ub.BSpline(df=6), ub.Convex())
    assert (asked["continuation"], asked["max_seconds"]) == ("linear", 9.0)


def test_a_narx_model_has_lags(folder: Path, asked: dict[str, Any]) -> None:
    assert run("identify record.npz --kind narx --input-lags 0,1 --output-lags 1,2 -o found.npz").exit_code == 0
    assert (asked["input_lags"], asked["output_lags"], asked["rank"]) == ((0, 1), (1, 2), "auto")
    assert "order" not in asked


def test_several_files_are_several_records(folder: Path, asked: dict[str, Any]) -> None:
    result = run(f"{IDENTIFY.replace('record.csv', 'record.csv record.csv')} --test record.csv -o found.npz")
    assert result.exit_code == 0, result.output
    assert len(asked["records"]) == 2
    assert result.stdout.count("Data: ") == 2
    assert "On further records" in result.stdout


def test_burn_in_and_period_are_of_the_data_and_not_of_the_test(folder: Path, asked: dict[str, Any]) -> None:
    short = duffing_fit().records[0].take(slice(600, 800))
    np.savez("short.npz", u=short.u, y=short.y)
    np.savez("periodic.npz", u=np.tile(short.u, (3, 1)), y=np.tile(short.y, (3, 1)))
    line = "identify periodic.npz --dt 0.1 --burn-in 200 --period 200 --test short.npz -o found.npz --json"
    document = json.loads(run(line).stdout)
    [record] = asked["records"]
    assert (record.burn_in, record.period) == (200, 200)
    assert document["test_errors"][0]["samples"] == 180


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("record.npz short.npz --burn-in 300", "short.npz: burn_in=300, but there are only 200 samples"),
        ("short.npz record.npz --period 300", "short.npz: period=300, but only 200 samples count"),
        ("record.npz short.npz --period 100", "record.npz: period=100, but u differs from period to period by"),
        (
            "record.npz two.npz",
            "two.npz: Records must have the same signals: record 1 has 1 input and 1 output, record 2",
        ),
        ("record.npz --test two.npz", "two.npz: Records must have the same signals"),
        (
            "record.npz --test single.npz",
            "single.npz: 1 first output would set the state, but the record has only 1 sample",
        ),
        ("record.npz --test gaps.npz", "gaps.npz: y has an output of which nothing is known"),
    ],
)
def test_what_is_wrong_with_a_record_names_its_file(line: str, said: str, folder: Path, asked: dict[str, Any]) -> None:
    short = duffing_fit().records[0].take(slice(600, 800))
    np.savez("short.npz", u=short.u, y=short.y)
    np.savez("two.npz", u=np.tile(short.u, (1, 2)), y=short.y)
    np.savez("single.npz", u=short.u[:1], y=short.y[:1])
    np.savez("gaps.npz", u=short.u, y=np.full_like(short.y, np.nan))
    assert said in refusal(run(f"identify {line} --dt 0.1 -o found.npz")).replace("--burn-in=", "burn_in=")


def test_a_rank_of_none_is_repeated(folder: Path, asked: dict[str, Any]) -> None:
    line = "unbraid identify record.npz --dt 0.30000000000000004 --order 2 --rank 0 -o found.npz --report page.html"
    assert run(line.removeprefix("unbraid ")).exit_code == 0
    assert line in Path("page.html").read_text(encoding="utf-8")


def test_the_report_tells_how_a_shell_repeats_it(folder: Path, asked: dict[str, Any]) -> None:
    line = "unbraid identify record.npz --kind narx --input-lags 0,1 --output-lags 1,2 -o found.npz --report page.html"
    result = run(line.removeprefix("unbraid "))
    assert "Report: page.html" in result.stdout
    words = line.replace("-o found.npz --report page.html", "-o found.npz --report page.html")
    assert words in Path("page.html").read_text(encoding="utf-8")


def test_programs_are_told_what_people_are(folder: Path, asked: dict[str, Any]) -> None:
    result = run(f"{IDENTIFY} --test record.csv -o found.npz --json")
    document = json.loads(result.stdout)
    fit = duffing_fit()
    assert document["simulation_error"]["rmse"] == fit.simulation_error.rmse.tolist()
    assert (document["order"], document["rank"], document["records"]) == (2, 1, 1)
    assert (document["kind"], document["input_lags"], document["status"]) == ("state-space", None, "CONVERGED")
    [test] = document["test_errors"]
    assert test["status"] in ("FINISHED", "LEFT_RANGE")


REFUSED = {
    "identify record.csv --outputs position -o m.npz": "name the columns that are inputs with --inputs",
    "identify record.csv --inputs force --outputs velocity -o m.npz": "no column velocity",
    "identify record.npz --inputs v -o m.npz": "no array named v",
    "identify record.npz --order two -o m.npz": "neither a whole number nor auto",
    "identify record.npz --kind narx -o m.npz": "needs --input-lags and --output-lags",
    "identify record.npz --input-lags 0 -o m.npz": "add --kind narx",
    "identify record.npz --kind narx --order 2 -o m.npz": "--order is of state-space models",
    "identify record.npz --kind narx --input-lags 0,a --output-lags 1 -o m.npz": "no list of whole numbers",
    "identify record.npz --time y --dt 1 -o m.npz": "give one of them",
    "identify record.npz -o m.json": "written as .npz",
    "identify record.npz -o record.npz": "also an input",
    "identify record.npz --dt 0 -o m.npz": "dt must be above 0",
    "simulate dynamic.npz record.npz": "--json, which prints y",
    "simulate both.npz record.npz -o y.csv": "u must be (T, 2)",
    "simulate record.npz record.npz -o y.csv": "record.npz",
    "simulate dynamic.npz record.npz -o y.txt": "end its name in one of them",
    "predict dynamic.npz record.npz -o y.csv": "unbraid simulate",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_work_is_refused_in_a_sentence(folder: Path, line: str) -> None:
    assert REFUSED[line] in refusal(run(line))
    assert not Path("m.npz").exists()


@pytest.mark.parametrize("gap", ["", "NA", "nan"])
def test_gaps_are_for_outputs_alone(folder: Path, gap: str) -> None:
    record = duffing_fit().records[0].take(slice(100, 500))
    table(record, "gappy.csv", gap)
    read = read_record("gappy.csv", "force", "position", time="t")
    np.testing.assert_array_equal(read.y, record.y)
    said = refusal(run("identify gappy.csv --inputs position --outputs force -o m.npz"))
    assert "column position" in said
    assert "known at every moment" in said


def test_uneven_times_are_refused_with_advice(folder: Path) -> None:
    Path("uneven.csv").write_text("t,u,y\n0,1,2\n1,2,3\n3,3,4\n4,1,0\n", encoding="utf-8")
    assert "Resample u and y" in refusal(run("identify uneven.csv --inputs u --outputs y --time t -o m.npz"))


def test_times_that_are_texts_are_refused_as_a_column(folder: Path) -> None:
    rows = [f"2024-01-01 00:00:0{k},{k},{k}" for k in range(9)]
    Path("dates.csv").write_text("\n".join(["t,u,y", *rows, ""]), encoding="utf-8")
    said = refusal(run("identify dates.csv --inputs u --outputs y --time t -o m.npz"))
    assert "the column t holds texts, such as 2024-01-01 00:00:00: write numbers, times in seconds" in said
    assert "give --dt" in said


def test_arrays_of_any_orientation_are_signals(folder: Path) -> None:
    u, y = np.random.default_rng(0).standard_normal((2, 50)), np.arange(50.0)
    np.savez("arrays.npz", u=u, y=y[None], a=u[0], b=u[1], t=0.5 * y)
    read = read_record("arrays.npz", time="t")
    assert (read.u.shape, read.y.shape, read.dt) == ((50, 2), (50, 1), 0.5)
    single = read_record("arrays.npz", inputs="a,b")
    assert single.input_names == ("a", "b")
    np.testing.assert_array_equal(single.u, read.u)
    write_matlab5(Path("arrays.mat"), {"data": {"u": u, "y": y[:, None]}})
    np.testing.assert_array_equal(read_record("arrays.mat", inputs="data/u").u, read.u)


def test_a_simulation_is_that_of_the_library(folder: Path) -> None:
    result = run("simulate dynamic.npz record.csv -o y.csv")
    assert result.exit_code == 0, result.output
    assert "Wrote 400 rows (input force, output position) to y.csv." in result.stdout
    record = read_record("record.csv", "force", "position")
    simulated = np.loadtxt("y.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(simulated, np.column_stack([record.u, duffing_fit().model.simulate(record.u)]))


def test_moments_of_another_sampling_time_are_noted_and_refused_where_they_are_named(folder: Path) -> None:
    record = read_record("record.csv", "force", "position")
    table(Record(record.u, record.y, 0.3), "slow.csv")
    assert run("simulate dynamic.npz record.csv --time t -o y.csv").stderr == ""
    said = "slow.csv: The record has a sampling time of 0.3, and the model one of 0.1"
    assert f"Note: {said}" in run("simulate dynamic.npz slow.csv -o y.csv").stderr
    assert said in refusal(run("simulate dynamic.npz slow.csv --time t -o y.csv"))
    text = Path("slow.csv").read_text(encoding="utf-8").replace("0.300000,", "noon,")
    Path("text.csv").write_text(text, encoding="utf-8")
    assert run("simulate dynamic.npz text.csv -o y.csv").stderr == ""
    assert "noon" in refusal(run("simulate dynamic.npz text.csv --time t -o y.csv"))


def test_measured_outputs_set_the_initial_state(folder: Path) -> None:
    result = run("simulate dynamic.npz record.npz --start-outputs y --first 30 -o y.npz")
    assert "the first 30 measured outputs" in result.stdout
    record = read_record("record.npz")
    np.testing.assert_array_equal(load("y.npz")["y"], duffing_fit().model.simulate(record.u, record.y[:30]))


def test_a_simulation_beyond_the_range_says_so_and_one_that_diverges_ends_with_a_code(folder: Path) -> None:
    u = load("record.npz")["u"]
    np.savez("large.npz", u=1.6 * u)
    result = run("simulate dynamic.npz large.npz -o y.npz")
    assert result.exit_code == 0
    assert "outside the range seen" in result.stderr
    np.savez("huge.npz", u=1e3 * u)
    result = run("simulate dynamic.npz huge.npz -o y.npy")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: At sample ")
    y = np.load("y.npy")
    first = int(np.argmax(np.isnan(y[:, 0])))
    assert 0 < first < len(y)
    assert np.isnan(y[first:]).all()


def test_a_simulation_is_printed_as_a_document(folder: Path) -> None:
    document = json.loads(run("simulate narx.npz record.npz --json").stdout)
    record = read_record("record.npz")
    np.testing.assert_array_equal(document["y"], narx_fit().model.simulate(record.u))
    assert document["output"] is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dynamic", "a state-space model, 2 states, 1 input, 1 output, 1 branch, sampling time 0.1."),
        ("narx", "a NARX model, input lags 0 1, output lags 1 2, 1 input, 1 output, 1 branch, sampling time 0.5."),
    ],
)
def test_what_a_file_holds(folder: Path, name: str, said: str) -> None:
    shown = run(f"inspect {name}.npz").stdout
    assert shown.startswith(f"{name}.npz: {said}\npoles of the linear part: ")
    assert "±" in shown
    document = json.loads(run(f"inspect {name}.npz --json").stdout)
    model = ub.dynamics.load(f"{name}.npz")
    assert document["L"] == model.function.L.tolist()
    assert len(document["poles"]) == 2
    assert (document["inputs"], document["outputs"], len(document["branches"])) == (1, 1, 1)


def test_ctrl_c_keeps_the_best_model_and_says_so_by_the_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted = replace(duffing_fit(), status=ub.Status.INTERRUPTED)
    monkeypatch.setattr(ub.dynamics, "state_space", lambda records, **settings: interrupted)
    result = run("identify record.npz -o found.npz")
    assert result.exit_code == 130
    assert "Status: INTERRUPTED. Interrupted by the user" in result.stdout
    assert ub.dynamics.load("found.npz").rank == 1
