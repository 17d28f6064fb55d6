"""A fit that goes on where it was killed: its journal, in one file.

The file is written whole or not at all, now and then, and holds the results of all units of work that are done and the
state of the loop that is under way; never samples. It belongs to one fit: others are told by their `fingerprint`.

It is an `.npz` file of bytes, schema 3. ``checkpoint`` is JSON text::

    {"format": "unbraid-checkpoint", "schema": 3, "fit": {mark: text}, "spent": seconds, "loop": whether the last unit
     is a loop that is under way, "units": [[0], [1, 0], ...]}

and unit k = 0, 1, … is the record (`records.py`) of ``unit_k.text`` and ``unit_k.arrays``. ``digest`` is SHA-256 of
all.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.data.fingerprint import describe_differences, fingerprint
from unbraid.data.problem import Problem
from unbraid.errors import FileError, SettingError, UnbraidError, check_path
from unbraid.fitting.checkpoints.records import ObjectRecord, RecordError, read_record, write_record
from unbraid.results.outcome import Status
from unbraid.runtime.files import StrPath, check_writable, replacing
from unbraid.runtime.interrupts import Result
from unbraid.runtime.journal import NOTHING_KEPT, Journal
from unbraid.runtime.npz import ArrayFile, open_npz, write_npz
from unbraid.version import __version__

EVERY = 5.0
"""Seconds between two writings, at least."""
SHARE = 0.02
"""Of the time, at most, goes into writing."""
FORMAT, SCHEMA = "unbraid-checkpoint", 3
OLD_START = b"unbraid checkpoint"
"""How files of schemas 1 and 2 began, which were pickles."""

UnitNumber = tuple[int, ...]
"""Where a unit stands among the units: its number within the one around it, that one's number before."""


def journal_at(checkpoint: StrPath | None, problem: Problem, rng: object, settings: Mapping[str, object]) -> Journal:
    """The journal of a fit in a file, with what an earlier run has written; without a file, one that keeps nothing."""
    if checkpoint is None:
        return NOTHING_KEPT
    check_path("checkpoint", checkpoint)
    return Checkpoint(checkpoint, {"unbraid": __version__, **fingerprint(problem, rng, settings)})


class Checkpoint(Journal):
    """A journal in a file, of the fit that has these marks.

    Raises
    ------
    FileError
        Where the file cannot be written at the beginning, or is there and cannot be read as a checkpoint.
    SettingError
        Where it is the checkpoint of another fit.
    """

    def __init__(self, path: StrPath, marks: dict[str, str]) -> None:
        self.path, self.marks = path, marks
        self.finished: dict[UnitNumber, ObjectRecord] = {}
        self.loop: tuple[UnitNumber, ObjectRecord] | None = None
        self.around: UnitNumber = ()
        self.count = 0
        self.changed = self.closed = self.taken_up = False
        self.refused: FileError | None = None
        now = time.perf_counter()
        target = check_writable(path)
        spent = self._read(target) if target.exists() and target.stat().st_size else 0.0
        self.origin = now - spent
        self.written, self.pause = now, EVERY

    def unit(self, compute: Callable[[], Result]) -> Result:
        """The result of a unit: from the file if it is there, else computed, and kept unless Ctrl-C cut it short."""
        number = (*self.around, self.count)
        self.count += 1
        if number in self.finished:
            return self._understood(self.finished[number], {})  # type: ignore[no-any-return]
        outside = self.around, self.count
        self.around, self.count = number, 0
        complete = False
        try:
            result = compute()
            complete = not interrupted(result)
        finally:
            self.around, self.count = outside
            self.closed |= not complete
        if not self.closed:
            self._enter(number, result)
        return result

    def began(self, at: float) -> float:
        """Start time of a clock, moved back by the seconds spent on it in earlier runs; breaks do not count."""
        return self.origin + self.unit(lambda: at - self.origin)

    def generator(self, rng: object) -> np.random.Generator:
        """The given generator of random numbers; where none is given, the one that the first run drew."""
        given = super().generator
        return given(rng) if rng is not None else self.unit(lambda: given(None))

    def due(self) -> bool:
        """Whether it is time to write the file again."""
        return not self.closed and time.perf_counter() - self.written >= self.pause

    def keep(self, loop: object, solver: object) -> None:
        """Write the loop that is under way, and all finished units, to the file."""
        began = time.perf_counter()
        self.loop = self.around, write_record(loop, parts_of_solver(solver))
        self._write(began)

    def resumed(self, solver: object) -> Any | None:
        """The loop of the unit that is under way, as the file has it; None where the file has none."""
        if self.loop is None or self.loop[0] != self.around:
            return None
        return self._understood(self.loop[1], parts_of_solver(solver))

    def unwritten(self) -> tuple[str, ...]:
        """Write what is new to the file; a sentence where that cannot be done, as on a full disk."""
        if self.changed:
            self._write(time.perf_counter())
        self.changed = False  # there is no other try
        return () if self.refused is None else (f"{self.refused} The fit went on without its checkpoint.",)

    def excuse(self) -> None:
        """Take note that what goes wrong now is not the fault of the file."""
        self.taken_up = False

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        """Write what is new to the file after Ctrl-C; where that cannot be done, there is nothing else to lose.

        A file can be whole and still hold numbers that no fit has made: what goes wrong with them is its fault.
        """
        if self.changed and (kind is None or issubclass(kind, KeyboardInterrupt)):
            self._write(time.perf_counter())
            if self.refused is not None:
                raise self.refused
        if self.taken_up and kind is not None and issubclass(kind, Exception) and not issubclass(kind, UnbraidError):
            raise self._damaged() from error

    def _enter(self, number: UnitNumber, result: object) -> None:
        """Keep a result; those of the units that it was made of are not needed any more."""
        began, record = time.perf_counter(), write_record(result)
        self.finished = {one: kept for one, kept in self.finished.items() if one[: len(number)] != number}
        self.finished[number] = record
        if self.loop is not None and self.loop[0][: len(number)] == number:
            self.loop = None
        self.changed = True
        if self.due():
            self._write(began)

    def _write(self, began: float) -> None:
        """Replace the file, where that can be done; `began` is when the work for this writing began."""
        units = [*self.finished.items(), *([] if self.loop is None else [self.loop])]
        told = {
            "format": FORMAT,
            "schema": SCHEMA,
            "fit": self.marks,
            "spent": began - self.origin,
            "loop": self.loop is not None,
            "units": [number for number, _ in units],
        }
        parts = {"checkpoint": json.dumps(told).encode()}
        for k, (_, record) in enumerate(units):
            parts |= {f"unit_{k}.text": record.text, f"unit_{k}.arrays": record.arrays}
        parts["digest"] = digest_parts(parts)
        try:
            with replacing(self.path) as file:
                write_npz(file, {name: np.frombuffer(part, np.uint8) for name, part in parts.items()})
            self.changed, self.refused = False, None
        except FileError as error:  # the disk may be full for a while: the work goes on, and the next try is later
            self.refused = error
        self.written = time.perf_counter()
        self.pause = max(EVERY, (self.written - began) / SHARE)

    def _read(self, target: Path) -> float:
        """Take over what the file holds; the seconds spent until it was written."""
        parts = self._parts(target)
        try:
            told = json.loads(parts["checkpoint"])
            marks = {str(name): str(text) for name, text in told["fit"].items()}
            units = [
                (tuple(map(int, number)), ObjectRecord(parts[f"unit_{k}.text"], parts[f"unit_{k}.arrays"]))
                for k, number in enumerate(told["units"])
            ]
            self.loop = units.pop() if told["loop"] else None
            spent = float(told["spent"])
        except (LookupError, AttributeError, TypeError, ValueError, RecursionError) as error:
            raise self._damaged() from error
        if other := describe_differences(self.marks, marks):
            raise SettingError(
                f"{self.path} is the checkpoint of another fit ({other}): give checkpoint another path, or delete "
                "the file to begin anew."
            )
        self.finished = dict(units)
        self.taken_up = True
        return spent

    def _parts(self, target: Path) -> dict[str, bytes]:
        """The parts of the file by name, once it has proved to be a whole checkpoint of this schema."""
        parts: dict[str, bytes] = {}
        try:
            with open_npz(target) as file:
                if {"checkpoint", "digest"} <= set(file.names):
                    file.check_size(target.stat().st_size)  # nothing in it is packed
                    parts = {name: read_bytes(file, name) for name in file.names}
        except FileError as error:
            if not begins_with(target, b"PK"):  # damaged ones may say nothing of what they were
                raise self._something_else(target) from error
            raise self._damaged() from error
        if not parts:
            raise self._something_else(target)
        if parts.pop("digest") != digest_parts(parts):
            raise self._damaged()
        return parts

    def _understood(self, record: ObjectRecord, known: Mapping[str, object]) -> Any:
        """What a record of the file stands for."""
        try:
            return read_record(record, known)
        except RecordError as error:
            raise self._damaged() from error

    def _something_else(self, target: Path) -> FileError:
        if begins_with(target, OLD_START):
            return FileError(
                f"{self.path} is a checkpoint of an older version, in a form that could run code and is not read any "
                "more: delete the file to begin anew, or give checkpoint another path."
            )
        return FileError(
            f"{self.path} is there and is no checkpoint of unbraid: give checkpoint another path, or move that file "
            "away."
        )

    def _damaged(self) -> FileError:
        return FileError(f"{self.path} is a damaged checkpoint: delete the file to begin anew, or bring back a copy.")


def digest_parts(parts: Mapping[str, bytes]) -> bytes:
    """SHA-256 of the parts of a file, by which a whole file is told from a damaged one."""
    sha = hashlib.sha256()
    for name in sorted(parts):
        sha.update(f"{name} {len(parts[name])} ".encode())
        sha.update(parts[name])
    return sha.digest()


def read_bytes(file: ArrayFile, name: str) -> bytes:
    """One of the parts of a file, which are arrays of bytes."""
    array = file.read(name)
    if array.dtype != np.uint8 or array.ndim != 1:
        raise FileError(f"{file.path} is damaged.")
    return array.tobytes()


def begins_with(path: Path, start: bytes) -> bool:
    """Whether a file begins with these bytes."""
    with path.open("rb") as file:
        return file.read(len(start)) == start


def parts_of_solver(solver: object) -> dict[str, object]:
    """What a solver is made of, by name: samples, basis and so on, which loops refer to and files do not hold.

    Of one that drives another solver, the parts of that as well.
    """
    parts = {name: part for name, part in vars(solver).items() if hasattr(part, "__dict__")}
    return {**parts_of_solver(parts["solver"]), **parts} if "solver" in parts else parts


def interrupted(result: object) -> bool:
    """Whether Ctrl-C cut a result short, or one of several."""
    if isinstance(result, list | tuple):
        return any(map(interrupted, result))
    return Status.INTERRUPTED in (getattr(result, "status", None), getattr(result, "cut", None))
