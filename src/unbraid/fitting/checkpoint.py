"""A fit that goes on where it was killed: its journal, in one file.

The file is written whole or not at all, now and then, and holds the results of all units of work that are done and the
state of the loop that is under way; never samples. It belongs to one fit: others are told by their `fingerprint`.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.data.problem import Problem
from unbraid.errors import FileError, SettingError
from unbraid.fitting.fingerprint import describe_differences, fingerprint
from unbraid.fitting.pickles import dumps, loads
from unbraid.results.outcome import Status
from unbraid.runtime.files import StrPath, check_writable, remove_left_over, replacing, why_refused
from unbraid.runtime.interrupts import Result
from unbraid.runtime.journal import NOTHING_KEPT, Journal
from unbraid.version import __version__

EVERY = 5.0
"""Seconds between two writings, at least."""
SHARE = 0.02
"""Of the time, at most, goes into writing."""
MAGIC = b"unbraid checkpoint 2\n"
"""The first line of a file. The second is a digest of the rest, the third says what is in it; the rest are pickles."""

UnitNumber = tuple[int, ...]
"""Where a unit stands among the units: its number within the one around it, that one's number before."""


def journal_at(checkpoint: StrPath | None, problem: Problem, rng: object, settings: Mapping[str, object]) -> Journal:
    """The journal of a fit in a file, with what an earlier run has written; without a file, one that keeps nothing."""
    if checkpoint is None:
        return NOTHING_KEPT
    if not isinstance(checkpoint, str | os.PathLike):
        raise SettingError(f"checkpoint must be the path of a file, or None, got {checkpoint!r}.")
    return Checkpoint(checkpoint, {"unbraid": __version__, **fingerprint(problem, rng, settings)})


class Checkpoint(Journal):
    """A journal in a file, of the fit that has these marks.

    Raises
    ------
    FileError
        Where the file cannot be written, or is there and cannot be read as a checkpoint.
    SettingError
        Where it is the checkpoint of another fit.
    """

    def __init__(self, path: StrPath, marks: dict[str, str]) -> None:
        self.path, self.marks = path, marks
        self.finished: dict[UnitNumber, bytes] = {}
        self.loop: tuple[UnitNumber, bytes] | None = None
        self.around: UnitNumber = ()
        self.count = 0
        self.changed = self.closed = False
        now = time.perf_counter()
        target = check_writable(path)
        remove_left_over(target)
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
        self.loop = self.around, dumps(loop, parts_of_solver(solver))
        self._write(began)

    def resumed(self, solver: object) -> Any | None:
        """The loop of the unit that is under way, as the file has it; None where the file has none."""
        if self.loop is None or self.loop[0] != self.around:
            return None
        return self._understood(self.loop[1], parts_of_solver(solver))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write what is new to the file, at the end of the work and after Ctrl-C."""
        if self.changed and (kind is None or issubclass(kind, KeyboardInterrupt)):
            self._write(time.perf_counter())

    def _enter(self, number: UnitNumber, result: object) -> None:
        """Keep a result; those of the units that it was made of are not needed any more."""
        began, data = time.perf_counter(), dumps(result)
        self.finished = {one: kept for one, kept in self.finished.items() if one[: len(number)] != number}
        self.finished[number] = data
        if self.loop is not None and self.loop[0][: len(number)] == number:
            self.loop = None
        self.changed = True
        if self.due():
            self._write(began)

    def _write(self, began: float) -> None:
        """Replace the file; `began` is when the work for this writing began."""
        pieces = [*self.finished.items(), *([] if self.loop is None else [self.loop])]
        index = [[number, len(data)] for number, data in pieces]
        told = {"fit": self.marks, "spent": began - self.origin, "loop": self.loop is not None, "index": index}
        rest = [json.dumps(told).encode(), b"\n", *(data for _, data in pieces)]
        with replacing(self.path) as file:
            file.writelines([MAGIC, digest_pieces(rest), b"\n", *rest])
        self.changed = False
        self.written = time.perf_counter()
        self.pause = max(EVERY, (self.written - began) / SHARE)

    def _read(self, target: Path) -> float:
        """Take over what the file holds; the seconds spent until it was written."""
        try:
            data = target.read_bytes()
        except OSError as error:
            raise FileError(f"{self.path} cannot be read: {why_refused(error)}.") from error
        if not data.startswith(MAGIC):
            raise FileError(
                f"{self.path} is there and is no checkpoint that this version of unbraid can read: give checkpoint "
                "another path, or move that file away."
            )
        start = len(MAGIC) + len(digest_pieces([])) + 1
        if data[len(MAGIC) : start] != digest_pieces([memoryview(data)[start:]]) + b"\n":
            raise self._damaged()
        told = json.loads(data[start : data.index(b"\n", start)])
        if other := describe_differences(self.marks, told["fit"]):
            raise SettingError(
                f"{self.path} is the checkpoint of another fit ({other}): give checkpoint another path, or delete "
                "the file to begin anew."
            )
        ends = list(accumulate((length for _, length in told["index"]), initial=data.index(b"\n", start) + 1))
        pieces = [(tuple(number), data[ends[i] : ends[i + 1]]) for i, (number, _) in enumerate(told["index"])]
        self.loop = pieces.pop() if told["loop"] else None
        self.finished = dict(pieces)
        return float(told["spent"])

    def _understood(self, data: bytes, known: Mapping[str, object]) -> Any:
        """What bytes of the file stand for."""
        try:
            return loads(data, known)
        except Exception as error:  # pickle promises none in particular
            raise self._damaged() from error

    def _damaged(self) -> FileError:
        return FileError(f"{self.path} is a damaged checkpoint: delete the file to begin anew, or bring back a copy.")


def digest_pieces(pieces: Iterable[bytes | memoryview]) -> bytes:
    """SHA-256 of pieces of a file, by which a whole file is told from a damaged one."""
    sha = hashlib.sha256()
    for piece in pieces:
        sha.update(piece)
    return sha.hexdigest().encode()


def parts_of_solver(solver: object) -> dict[str, object]:
    """What a solver is made of, by name: samples, basis and so on, which loops refer to and files do not hold."""
    return {name: part for name, part in vars(solver).items() if hasattr(part, "__dict__")}


def interrupted(result: object) -> bool:
    """Whether Ctrl-C cut a result short, or one of several."""
    if isinstance(result, list | tuple):
        return any(map(interrupted, result))
    return Status.INTERRUPTED in (getattr(result, "status", None), getattr(result, "cut", None))
