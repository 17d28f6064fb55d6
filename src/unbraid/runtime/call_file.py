"""Calls of a function kept in a file, so that a process that is killed loses none but those under way.

The file is an `.npz` with the points ``X`` (N, m), the answers ``F`` (N, n) and ``calls``, JSON text with the schema
and what else is known of the function. It is written whole when work ends. While calls are made they are added, each as
it comes, to a journal beside it, whose name has ``.partial`` at its end: a first line, and records with a checksum,

    kind (1 byte), length and CRC-32 of the payload (4 bytes each), payload,

of kind ``c``, a call (m + n numbers), or ``f``, facts (JSON text). What follows the last whole record, the half of one
that was being written when the process was killed, is dropped. Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import os
import struct
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO

import numpy as np

from unbraid.errors import FileError
from unbraid.kernels.arrays import Array
from unbraid.runtime.files import StrPath, check_writable, replacing, why_refused
from unbraid.runtime.npz import open_npz, write_npz

SCHEMA = "unbraid-calls 1"
FIRST_LINE = f"{SCHEMA}\n".encode()
RECORD = struct.Struct("<cII")
CALL, FACTS = b"c", b"f"
ENDING = ".partial"
SYNCED = 1.0
"""Seconds between two times that the journal is brought to the disk itself: a killed process loses nothing of what it
has written, a machine that loses its power what it wrote since then."""

Facts = dict[str, object]


@dataclass
class Calls:
    """Calls of a function: points (m,), answers (n,), and facts, which say what is known of the function."""

    points: list[Array] = field(default_factory=list)
    answers: list[Array] = field(default_factory=list)
    facts: Facts = field(default_factory=dict)


class CallFile:
    """The file of the calls of one function of m inputs.

    `earlier` is what it held when it was opened.
    """

    def __init__(self, path: StrPath, m: int) -> None:
        self.path, self.m = path, m
        self.target = check_writable(path)
        self.partial = self.target.with_name(self.target.name + ENDING)
        self.earlier = Calls()
        if self.target.exists() and self.target.stat().st_size:
            self._read_whole()
        try:
            self._journal = self._open_journal()
        except OSError as error:
            raise FileError(f"{path} cannot be written: {why_refused(error)}.") from error
        self._synced, self._full = time.monotonic(), False

    def add_call(self, point: Array, answer: Array) -> None:
        """Write down a call; when this returns, a process that is killed has not lost it, unless the disk is full."""
        self._add(CALL, np.concatenate([point, answer]).astype("<f8").tobytes())

    def add_facts(self, facts: Facts) -> None:
        """Write down what is known of the function."""
        self._add(FACTS, json.dumps(facts).encode())

    def close(self, calls: Calls) -> None:
        """Write all calls into the file itself; the journal goes."""
        with suppress(OSError):  # what it could not take is in `calls`
            self._journal.close()
        if calls.points:
            answers = calls.answers[: len(calls.points)]  # one more, where Ctrl-C came between the two
            head = np.array(json.dumps({"schema": SCHEMA, **calls.facts}))
            with replacing(self.path) as file:
                write_npz(file, {"calls": head, "X": np.stack(calls.points), "F": np.stack(answers)})
        with suppress(OSError):
            self.partial.unlink()

    def _add(self, kind: bytes, payload: bytes) -> None:
        """Write a record; where the disk takes no more, work goes on, and all is written in the end, if it can be."""
        if self._full:
            return
        try:
            self._journal.write(record(kind, payload))
            self._journal.flush()
            if time.monotonic() - self._synced > SYNCED:
                os.fsync(self._journal.fileno())
                self._synced = time.monotonic()
        except OSError:
            self._full = True

    def _read_whole(self) -> None:
        """Read the file itself."""
        with open_npz(self.target) as file:
            if set(file.names) != {"calls", "X", "F"}:
                raise FileError(self._not_calls(f"it holds {file.holds()}"))
            if file.header("calls")[1].kind != "U":
                raise FileError(self._not_calls("it does not say what it is"))
            facts = self._facts(str(file.read("calls")))
            if facts.pop("schema", None) != SCHEMA:
                raise FileError(self._not_calls("it is of another kind, or of another version"))
            points, answers = (file.read(name, (None, None)) for name in ("X", "F"))
        if len(points) != len(answers) or points.dtype != np.float64 or answers.dtype != np.float64:
            raise FileError(f"{self.path} is inconsistent: X and F do not belong together.")
        self._check_inputs(points.shape[1])
        self.earlier = Calls(list(points), list(answers), facts)

    def _open_journal(self) -> IO[bytes]:
        """The journal, to be added to, after what is whole of it was read."""
        file = self.partial.open("a+b")
        try:
            lock(file, self.path)
            file.seek(0)
            content = file.read()
            if not content.startswith(FIRST_LINE) and not FIRST_LINE.startswith(content):
                raise FileError(f"{self.partial} is not a journal of calls: remove it, or give another cache=.")
            end = self._read_records(content) if content.startswith(FIRST_LINE) else 0
            file.truncate(end)
            if not end:
                file.write(FIRST_LINE + record(FACTS, json.dumps({"m": self.m}).encode()))
                file.flush()
        except BaseException:
            file.close()
            raise
        return file

    def _read_records(self, content: bytes) -> int:
        """Take over whole records; where they end."""
        end = len(FIRST_LINE)
        for kind, payload in records(content, end):
            end += RECORD.size + len(payload)
            if kind == FACTS:
                self.earlier.facts.update(self._facts(payload.decode()))
                self._check_inputs(self.earlier.facts.get("m", self.m))
                continue
            numbers = np.frombuffer(payload, "<f8").astype(np.float64)
            self.earlier.points.append(numbers[: self.m])
            self.earlier.answers.append(numbers[self.m :])
        if len({len(answer) for answer in self.earlier.answers}) > 1:
            raise FileError(f"{self.path} is inconsistent: remove {self.partial.name} beside it.")
        return end

    def _facts(self, text: str) -> Facts:
        """Facts from JSON text."""
        try:
            facts = json.loads(text)
        except ValueError as error:
            raise FileError(self._not_calls("it does not say what it is")) from error
        if not isinstance(facts, dict):
            raise FileError(self._not_calls("it does not say what it is"))
        return facts

    def _check_inputs(self, m: object) -> None:
        if m != self.m:
            raise FileError(
                f"{self.path} has calls of a function of {m} inputs, and X has {self.m}: give another cache=."
            )

    def _not_calls(self, why: str) -> str:
        return f"{self.path} is not a file of calls, {why}: give another cache=, and it stays as it is."


def record(kind: bytes, payload: bytes) -> bytes:
    """A record as it is written."""
    return RECORD.pack(kind, len(payload), zlib.crc32(payload)) + payload


def records(content: bytes, start: int) -> Iterator[tuple[bytes, bytes]]:
    """Kind and payload of the whole records from a place on."""
    while start + RECORD.size <= len(content):
        kind, length, checksum = RECORD.unpack_from(content, start)
        payload = content[start + RECORD.size : start + RECORD.size + length]
        if kind not in (CALL, FACTS) or len(payload) < length or zlib.crc32(payload) != checksum:
            return
        yield kind, payload
        start += RECORD.size + length


def lock(file: IO[bytes], path: StrPath) -> None:
    """Keep other processes from writing to the same journal, where the system has a way to; it ends with this one."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FileError(f"{path} is being written by another process: wait for it, or give another cache=.") from None
    except OSError:  # some network drives have no locks
        return
