"""MATLAB's files of version 5 from strangers: lies, bombs and what is no array are refused, before memory is taken."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io

import unbraid as ub
from sample_files import read_columns, refusal
from unbraid.reading import read_problem
from unbraid.runtime import memory


def matlab5(*elements: bytes) -> bytes:
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + b"".join(elements)


def element(kind: int, data: bytes, length: int | None = None) -> bytes:
    return struct.pack("<II", kind, len(data) if length is None else length) + data + bytes(-len(data) % 8)


def variable(name: str, shape: tuple[int, ...], numbers: bytes, length: int | None = None) -> bytes:
    """A matrix of doubles, whose shape and length may lie."""
    flags, dimensions = element(6, struct.pack("<II", 6, 0)), element(5, struct.pack(f"<{len(shape)}i", *shape))
    return element(14, flags + dimensions + element(1, name.encode()) + element(9, numbers, length))


def packed(one: bytes) -> bytes:
    data = zlib.compress(one)
    return struct.pack("<II", 15, len(data)) + data


SOUND = np.arange(6.0).tobytes()


def test_the_hand_made_file_is_sound(tmp_path: Path) -> None:
    for wrap in (bytes, packed):
        (tmp_path / "a.mat").write_bytes(
            matlab5(wrap(variable("X", (2, 3), SOUND)), wrap(variable("F", (2, 3), SOUND)))
        )
        assert np.array_equal(scipy.io.loadmat(tmp_path / "a.mat")["X"], read_columns(tmp_path / "a.mat").X.T)


@pytest.mark.parametrize("wrap", [bytes, packed])
@pytest.mark.parametrize(
    "lie",
    [
        variable("X", (20000, 30000), SOUND),
        variable("X", (2, 3), SOUND, 2**31),
        variable("X", (2, 3), SOUND + SOUND),
        variable("X", (2, 3), SOUND[:-8]),
        variable("X", (-2, -3), SOUND),
        variable("X", (2**30, 2**30, 2**30), SOUND),
        variable("X" * 10_000, (2, 3), SOUND),
        variable("X", (), SOUND),
    ],
)
def test_a_variable_that_lies_is_refused(tmp_path: Path, lie: bytes, wrap: Callable[[bytes], bytes]) -> None:
    (tmp_path / "a.mat").write_bytes(matlab5(wrap(lie), wrap(variable("F", (2, 3), SOUND))))
    assert any(word in refusal(tmp_path / "a.mat") for word in ("damaged", "fit neither", "would take"))


def test_a_matlab_bomb_is_refused_before_it_goes_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 2**24)
    zeros = packed(variable("X", (1, 4_000_000), bytes(32_000_000)))
    (tmp_path / "a.mat").write_bytes(matlab5(zeros, packed(variable("F", (2, 3), SOUND))))
    assert (tmp_path / "a.mat").stat().st_size < 50_000
    assert "fit neither" in refusal(tmp_path / "a.mat") or "would take" in refusal(tmp_path / "a.mat")
    hidden = packed(variable("X", (2, 3), bytes(32_000_000)))
    (tmp_path / "a.mat").write_bytes(matlab5(hidden, packed(variable("F", (2, 3), SOUND))))
    assert "damaged" in refusal(tmp_path / "a.mat")


def test_a_wrong_checksum_is_noticed(tmp_path: Path) -> None:
    whole = bytearray(matlab5(packed(variable("F", (2, 3), SOUND)), packed(variable("X", (2, 3), SOUND))))
    whole[-1] ^= 1
    (tmp_path / "a.mat").write_bytes(whole)
    assert "damaged" in refusal(tmp_path / "a.mat")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"field": 1.0}, "it is a struct: name an array in it, of X/field"),
        (np.array([np.ones(2), "a"], dtype=object), "it is a cell array"),
        ("text", "it is text"),
        (1j * np.ones((2, 3)), "it is complex: save its real part"),
        (scipy.sparse.eye_array(3).tocsc(), "it is a sparse matrix: save what full makes of it"),
    ],
)
def test_what_is_no_full_real_array_is_refused(tmp_path: Path, value: Any, said: str) -> None:
    scipy.io.savemat(tmp_path / "a.mat", {"X": value, "F": np.ones((2, 3))})
    assert f"X must be an array of real numbers, and {said}" in refusal(tmp_path / "a.mat")


def test_what_is_missing_is_said_with_what_is_there(tmp_path: Path) -> None:
    scipy.io.savemat(tmp_path / "a.mat", {"U": np.ones((2, 30)), "Y": np.ones((3, 30)), "s": {"f": 1}})
    assert refusal(tmp_path / "a.mat").endswith(
        "has no array named X: it holds the arrays U (2, 30), Y (3, 30), s/f (1, 1), so name the one to use with "
        "`inputs`."
    )
    with pytest.raises(ub.UnbraidError, match="has X but neither F nor J"):
        read_problem(tmp_path / "a.mat", inputs="U")
    with pytest.raises(ub.UnbraidError, match="has no array named Z: it holds"):
        read_problem(tmp_path / "a.mat", inputs="U", outputs="Z")
    with pytest.raises(ub.UnbraidError, match="`inputs` names one of them, got U, Y"):
        read_problem(tmp_path / "a.mat", inputs=["U", "Y"])
