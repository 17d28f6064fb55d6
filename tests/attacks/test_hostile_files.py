"""Files of strangers: truncated, flipped and crafted ones of every kind are read, or refused in a sentence at once."""

from __future__ import annotations

import os
import random
import warnings
import zipfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from click.testing import CliRunner

import unbraid as ub
from command_lines import run
from killed_fits import fitted
from model_files import a_model, a_model_of_formulas, refusal, rewritten, with_metadata
from sample_files import MATLAB, SAMPLES_FIRST, TABLES, parts
from unbraid.cli import app
from unbraid.reading import read_problem

KINDS = {**{name: write for name, write in SAMPLES_FIRST.items() if "." in name}, **MATLAB, **TABLES}
FEW, MANY = 150, 2500


def write_samples(kind: str, path: Path) -> Path:
    """Samples in a file of some kind."""
    problem, _ = ub.datasets.trig(S=12, rng=0)
    KINDS[kind](path / kind, parts(problem))
    return path / kind


def read_table(path: Path) -> object:
    """Samples of a file, with columns named where it is a table."""
    return read_problem(path, inputs="x*", outputs="y*") if path.name in TABLES else read_problem(path)


def read_and_evaluate(path: Path) -> object:
    """A model, and its values, which may be beyond floating point: no checksum guards the digits of a text."""
    with np.errstate(all="ignore"):
        return ub.DecoupledModel.load(path)(np.ones(2))


@cache
def whole_files() -> dict[str, tuple[bytes, Callable[[Path], object]]]:
    """Files as they should be, by name, and what reads them."""
    with TemporaryDirectory() as folder:
        place = Path(folder)
        for ending in (".npz", ".json"):
            a_model([ub.BSpline(df=5), ub.SmoothingSpline(df=6), ub.Polynomial(3)]).save(place / f"model{ending}")
            a_model_of_formulas().save(place / f"formulas{ending}")
        fitted("dejonghe2025", place / "fit.checkpoint")
        found: dict[str, tuple[bytes, Callable[[Path], object]]] = {
            "model.npz": ((place / "model.npz").read_bytes(), lambda path: ub.DecoupledModel.load(path)(np.ones(2))),
            "formulas.npz": ((place / "formulas.npz").read_bytes(), read_and_evaluate),
            "model.json": ((place / "model.json").read_bytes(), read_and_evaluate),
            "formulas.json": ((place / "formulas.json").read_bytes(), read_and_evaluate),
            "fit.checkpoint": (
                (place / "fit.checkpoint").read_bytes(),
                lambda path: fitted("dejonghe2025", path),
            ),
        }
        for kind in KINDS:
            found[kind] = write_samples(kind, place).read_bytes(), read_table
        return found


def damaged(content: bytes, chance: random.Random) -> bytes:
    """The bytes with something wrong."""
    data = bytearray(content)
    how = chance.choice(["cut", "flip", "flips", "zeros", "swap", "insert", "ones"])
    at, length = chance.randrange(len(data)), chance.choice([1, 2, 4, 8, 64])
    if how == "cut":
        return bytes(data[:at])
    if how == "flip":
        data[at] ^= 1 << chance.randrange(8)
    elif how == "flips":
        for _ in range(20):
            data[chance.randrange(len(data))] = chance.randrange(256)
    elif how == "swap":
        other = chance.randrange(len(data))
        data[at : at + length], data[other : other + length] = data[other : other + length], data[at : at + length]
    elif how == "insert":
        data[at:at] = chance.randbytes(length)
    else:
        data[at : at + length] = (b"\0" if how == "zeros" else b"\xff") * len(data[at : at + length])
    return bytes(data)


def attack(seeds: Iterable[int]) -> int:
    """How many of the damaged files were refused; whatever else may happen is that they are read."""
    refused = 0
    files = whole_files()
    with TemporaryDirectory() as folder:
        for seed in seeds:
            chance = random.Random(seed)
            name = chance.choice(list(files))
            content, read = files[name]
            path = Path(folder, name)
            path.write_bytes(damaged(content, chance))
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    read(path)
            except ub.UnbraidError as error:
                refused += 1
                said = str(error)
                assert said.isprintable(), (seed, said)
                assert len(said) < 900, (seed, said)
            except Exception as error:
                raise AssertionError(f"seed {seed}, {name}") from error
    return refused


@pytest.mark.parametrize("part", range(2))
def test_damaged_files_are_read_or_refused(part: int) -> None:
    assert attack(range(part, FEW, 2)) > FEW // 8


@pytest.mark.verify
@pytest.mark.parametrize("part", range(10))
def test_thousands_of_damaged_files_are_read_or_refused(part: int) -> None:
    assert attack(range(1000 + part, 1000 + MANY, 10)) > MANY // 50


# %% Crafted models


@pytest.fixture
def path(tmp_path: Path) -> Path:
    a_model([ub.BSpline(df=5), ub.Polynomial(3)]).save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


def forge(path: Path, name: str, claimed: int, packed: int | None = None) -> None:
    """Let the directory of an archive claim that a member unpacks to so many bytes."""
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        start = archive.start_dir
    at = data.index(name.encode(), start) - 46
    data[at + 24 : at + 28] = min(claimed, 2**32 - 2).to_bytes(4, "little")
    if packed is not None:
        data[at + 20 : at + 24] = min(packed, 2**32 - 2).to_bytes(4, "little")
    path.write_bytes(data)


@pytest.mark.parametrize("packed", [None, 2**32 - 2])
def test_a_bomb_is_refused_before_it_is_unpacked(packed: int | None, path: Path) -> None:
    forge(path, "W0.npy", 2**32 - 2, packed)
    assert "unpacks to" in refusal(path) or "unpack" in refusal(path)


def test_deflated_zeros_are_refused_by_their_size(path: Path) -> None:
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open("W9.npy", "w", force_zip64=True) as bomb,
    ):
        for _ in range(300):
            bomb.write(bytes(1 << 20))
    assert "unpacks to" in refusal(path)


def test_degrees_and_sizes_beyond_use_are_refused(path: Path) -> None:
    with_metadata(path, lambda told: told["branches"][1].update(settings={"degree": 3000}))
    assert "degree" in refusal(path)


def test_a_basis_of_another_size_is_refused_before_it_is_placed(path: Path) -> None:
    with_metadata(path, lambda told: told["branches"][0]["settings"].update(df=10**9))
    assert "branch_0.coordinates has shape" in refusal(path)


def test_millions_of_outputs_are_refused(path: Path) -> None:
    rewritten(path, lambda arrays: arrays.update(W1=np.zeros((10**7, 2)), bias=np.zeros(10**7)))
    assert "at most 1000000 inputs or outputs" in refusal(path)


@pytest.mark.parametrize(
    "knots", [[0.0, 1e-300, 1.0], [-1e300, 0.0, 1e300], [0.0, np.inf, np.inf], [0.0, np.nan, 1.0], [np.nan] * 3]
)
def test_knots_that_cannot_be_computed_with_are_refused(knots: list[float], path: Path) -> None:
    rewritten(path, lambda arrays: arrays.update({"branch_0.breakpoints": np.array(knots)}))
    assert "branch_0.breakpoints" in refusal(path)


HOSTILE_TEXT = "\x1b[2J\u202e" + "long " * 100


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told.update(schema=99, unbraid=HOSTILE_TEXT),
        lambda told: told.update(schema=HOSTILE_TEXT),
        lambda told: told.update(schema=10**3000),
        lambda told: told["branches"][0]["settings"].update(df=10**3000),
        lambda told: told["branches"][1]["settings"].update(degree=10**3000),
        lambda told: told["branches"][0].update(basis=HOSTILE_TEXT),
        lambda told: told["branches"][0]["settings"].update(of=HOSTILE_TEXT),
        lambda told: told["branches"][0]["settings"].update(df=HOSTILE_TEXT),
        lambda told: told["branches"][0]["settings"].update({HOSTILE_TEXT: 1}),
        lambda told: told.update(branches=HOSTILE_TEXT),
    ],
)
def test_what_a_file_says_is_quoted_briefly_and_without_escapes(
    change: Callable[[dict[str, object]], object], path: Path
) -> None:
    said = refusal(with_metadata(path, change))
    assert said.isprintable()
    assert "long " * 21 not in said
    assert "0" * 100 not in said


def test_a_dtype_is_quoted_briefly(path: Path) -> None:
    rewritten(path, lambda arrays: arrays.update(W0=np.zeros((2, 2), [("long" * 100, "f8")])))
    said = refusal(path)
    assert "W0 has dtype" in said
    assert "long" * 25 not in said


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
@pytest.mark.parametrize(
    "line", ["inspect pipe.npz", "predict pipe.npz pipe.npz -o F.npz", "fit pipe.npz --rank 1 -o m"]
)
def test_pipes_are_refused_and_not_waited_for(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.npz")
    result = run(line)
    assert result.exit_code == 2
    assert "pipe.npz is a device or a pipe" in result.stderr


HOSTILE_NAME = "\x1b[2J\u202ename.npz"


@pytest.mark.parametrize(
    "line", ["inspect NAME", "predict NAME NAME -o F.npz", "fit NAME --rank 1 -o m", "report NAME NAME -o r"]
)
def test_names_of_files_do_not_steer_the_terminal(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(HOSTILE_NAME).write_bytes(b"no archive")
    result = CliRunner().invoke(app, [HOSTILE_NAME if word == "NAME" else word for word in line.split()], color=True)
    assert result.exit_code == 2
    assert result.stderr.rstrip("\n").isprintable()
    assert "?[2J?name.npz" in result.stderr


def test_a_file_of_a_hostile_name_is_inspected_all_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    path.rename(HOSTILE_NAME)
    result = CliRunner().invoke(app, ["inspect", HOSTILE_NAME], color=True)
    assert result.exit_code == 0
    assert "?[2J?name.npz: 2 inputs" in result.stdout
    assert result.stdout.replace("\n", "").isprintable()
