"""What a function has answered, by its points: no point is asked for twice, and with a file not even after a kill."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from time import perf_counter, thread_time
from types import CodeType
from typing import Any

import numpy as np

from unbraid.data.fingerprint import array_mark, digest_bytes
from unbraid.data.functions.answers import as_batch, as_point, same
from unbraid.data.functions.forms import Form
from unbraid.data.functions.hosts import (
    AnswerError,
    Function,
    Host,
    Numbers,
    PlainFunction,
    hosts_for,
    is_module,
    quiet,
)
from unbraid.errors import DataError, FileError
from unbraid.kernels.arrays import EPS
from unbraid.runtime.call_file import CallFile, Calls, Facts
from unbraid.runtime.files import StrPath

COMPUTING = 0.5
"""A call of which more than this share is spent computing in this thread does not wait for something else."""
SENT_AFTER = 0.005
"""Seconds of a call from which on it is worth having another process make it."""
TRIED = 3
"""Points in the batches that a function is tried with."""
EXAMPLES = 64
"""Points that are kept where there is no file: there may be many, of thousands of inputs."""
PLAIN_VALUES = int | float | str | bool | bytes | None
RESOLUTION, BATCHED, COMPUTES, MARK = "resolution", "takes batches", "computes", "function"
"""Names of facts: the precision of answers, whether f takes batches, whether its calls compute in this process (or wait
for something), and which function it is."""


class Kept:
    """Answers (n,) of a function of m inputs by its points (m,), in memory, and in a file where one is given.

    Answers that are not finite are not kept: the function may be repaired there.
    """

    def __init__(self, file: CallFile | None = None) -> None:
        self.file, self.calls = file, Calls() if file is None else file.earlier
        self.notes: list[str] = []
        self.places = {key_of(point): at for at, point in enumerate(self.calls.points)}
        self.lock = threading.Lock()
        self.seconds = self.computing = 0.0
        self.trials: dict[bytes, Numbers | Exception] = {}

    def get(self, point: Numbers) -> Numbers | None:
        """The answer at a point, of the type that it had; None where it is not known."""
        at = self.places.get(key_of(point))
        if at is None:
            return None
        single = self.resolution > EPS
        return self.calls.answers[at].astype(np.float32 if single else np.float64)

    def add(self, point: Numbers, answer: Numbers) -> None:
        """Keep an answer; what is no row of finite numbers is not kept."""
        with suppress(AnswerError), self.lock:
            row, key = as_point(answer, None), key_of(point)
            if not np.isfinite(row).all() or row.dtype.kind == "c" or key in self.places:
                return
            if self.calls.answers and len(row) != len(self.calls.answers[0]):
                self.refuse_length(len(row))
                return
            if RESOLUTION not in self.calls.facts:
                precise = row.dtype.kind != "f" or np.finfo(row.dtype).eps <= EPS
                self.learn({RESOLUTION: EPS if precise else float(np.finfo(np.float32).eps)})
            known = row.astype(np.float64)
            if self.file is not None:
                self.file.add_call(point, known)
            self.calls.answers.append(known)  # first: Ctrl-C may come after any line
            if self.file is not None or len(self.calls.points) < EXAMPLES:
                self.calls.points.append(np.array(point))
            self.places[key] = len(self.calls.answers) - 1

    def refuse_length(self, found: int) -> None:
        """Refuse a function that has other outputs than the one whose calls are in the file."""
        if self.file is not None:
            there = len(self.calls.answers[0])
            raise FileError(
                f"{self.file.path} has calls of a function of {there} outputs, and f gave {found}: give another cache=."
            )

    @property
    def resolution(self) -> float:
        """The relative precision of answers."""
        found = self.calls.facts.get(RESOLUTION, EPS)
        return found if isinstance(found, float) else EPS

    @property
    def computes(self) -> bool:
        """Whether calls are slow and compute in this process."""
        return self.calls.facts.get(COMPUTES) is True

    def timed(self, call: Callable[[Numbers], Numbers], x: Numbers) -> Numbers:
        """Call a function, and take the time; the last call counts."""
        began, worked = perf_counter(), thread_time()
        try:
            return call(x)
        finally:
            self.seconds, self.computing = perf_counter() - began, thread_time() - worked

    def tried(self, call: Callable[[Numbers], Numbers], x: Numbers) -> Numbers:
        """The answer to a small batch, or the exception, which is asked for once."""
        key = x.tobytes()
        if key not in self.trials:
            try:
                self.trials[key] = call(x)
            except Exception as error:
                self.trials[key] = error
        answer = self.trials[key]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def example(self, X: Numbers) -> tuple[Numbers, Numbers]:
        """A point that is known, none of X if there is such a one, and the answer there."""
        samples = {key_of(point) for point in X}
        at = next((at for at, point in enumerate(self.calls.points) if key_of(point) not in samples), 0)
        return self.calls.points[at], self.calls.answers[at]

    def learn(self, facts: Facts) -> None:
        """Keep what was found out about the function."""
        self.calls.facts.update(facts)
        if self.file is not None:
            self.file.add_facts(facts)

    def form(self, f: Function) -> tuple[Form, Host] | None:
        """The form of a function of NumPy arrays, where an earlier run has found it out."""
        batched = self.calls.facts.get(BATCHED)
        if not isinstance(batched, bool) or not self.calls.answers:
            return None
        host = Remembering(PlainFunction(f), self)
        return Form("f", host, batched, self.calls.answers[0].shape, self.resolution), host

    def learn_form(self, form: Form, host: Host) -> None:
        """Keep the form of a function of NumPy arrays, and how its calls spend their time."""
        if host.takes == PlainFunction.takes and BATCHED not in self.calls.facts:
            computes = self.seconds > SENT_AFTER and self.computing > COMPUTING * self.seconds
            self.learn({BATCHED: form.batched, COMPUTES: computes})

    def check_function(self, f: Function) -> None:
        """Refuse calls of another function: where its code has changed, it must still say the same at one point.

        The code of a network says nothing of its weights: it is asked each time.
        """
        mark = mark_of(f)
        before = self.calls.facts.get(MARK)
        if before == mark and not is_module(f):
            return
        if before is not None and self.calls.points:
            self.check_answer(f)
            self.calls.facts.pop(BATCHED, None)  # it may take something else now
        self.learn({MARK: mark})

    def check_answer(self, f: Function) -> None:
        """Ask again at the first of the points that are known, and refuse the function where it says something else."""
        point, known = self.calls.points[0], self.calls.answers[0]
        with quiet():
            for host in hosts_for(f, point[None], None, self):
                for x in (point, point[None]):
                    try:
                        found = as_batch(host(x), 1, None)
                    except Exception:
                        continue
                    if same(known[None], found, self.resolution**0.5):
                        return
        where = "the cache" if self.file is None else self.file.path
        at = np.array2string(point, precision=6, threshold=8, separator=", ")
        raise DataError(
            f"{where} has calls of another function: f has changed since, and says something else at {at}. Give "
            "another cache=, or remove that file."
        )

    def close(self) -> None:
        """Write all into the file; calls that are still under way are forgotten."""
        with self.lock:
            file, self.file = self.file, None
            try:
                if file is not None:
                    file.close(self.calls)
            except FileError as error:  # the answers are worth more than the file
                self.notes.append(f"Calls were not kept: {error} The result is complete, and another run calls anew.")


@contextmanager
def keeping(f: Function, cache: StrPath | None, m: int) -> Iterator[Kept]:
    """What is kept of a function's answers, in a file or only for as long as this lasts."""
    kept = Kept(None if cache is None else CallFile(cache, m))
    try:
        kept.check_function(f)
        yield kept
    finally:
        kept.close()


@dataclass(frozen=True)
class Remembering:
    """A host that is asked for no point twice. Batches are passed on: whether they mean the same is to be found out.

    `instead` is who is asked for points in its place.
    """

    host: Host
    kept: Kept
    instead: Callable[[Numbers], Numbers] | None = None

    @property
    def takes(self) -> str:  # noqa: D102
        return self.host.takes

    def __call__(self, x: Numbers) -> Numbers:  # noqa: D102
        if x.ndim == 2 and len(x) <= TRIED:
            return self.kept.tried(self.host, x)
        if x.ndim != 1 or x.dtype != np.float64:
            return self.host(x)
        known = self.kept.get(x)
        if known is None:
            known = self.kept.timed(self.instead or self.host, x)
            self.kept.add(x, known)
        return known

    def jacobians(self, batched: bool) -> Callable[[Numbers], Numbers] | None:  # noqa: D102
        return self.host.jacobians(batched)


@dataclass(frozen=True)
class RememberingRows:
    """A function of a batch that is asked only for those points of a batch that are not known, (k, m) -> (k, n)."""

    call: Callable[[Numbers], Numbers]
    kept: Kept

    def __call__(self, x: Numbers) -> Numbers:
        """The answers to a batch."""
        if x.dtype != np.float64:
            return self.call(x)
        rows = {at: known for at, point in enumerate(x) if (known := self.kept.get(point)) is not None}
        fresh = [at for at in range(len(x)) if at not in rows]
        if fresh:
            answers = as_batch(self.kept.timed(self.call, x[fresh]), len(fresh), None)
            for at, answer in zip(fresh, answers, strict=True):
                self.kept.add(x[at], answer)
                rows[at] = answer
        return np.stack([rows[at] for at in range(len(x))])


def remember_rows(form: Form, kept: Kept) -> Form:
    """The form with its batches, too, asked for no point twice."""
    if not form.batched or not isinstance(form.call, Remembering):
        return form
    return replace(form, call=RememberingRows(form.call.host, kept))


def host_within(host: Host) -> Host:
    """The host itself, without what it remembers."""
    return host.host if isinstance(host, Remembering) else host


def key_of(point: Numbers) -> str:
    """What tells a point from all others; zeros of both signs are the same."""
    return digest_bytes((point + 0.0).tobytes())


def mark_of(f: Any) -> str:
    """A short text that changes when the code of a function does, or plain numbers and arrays that it has with it."""
    inner = getattr(f, "__func__", getattr(f, "func", f))
    code = getattr(inner, "__code__", None) or getattr(type(f).__call__, "__code__", None)
    parts = [getattr(f, "__qualname__", type(f).__qualname__)]
    if isinstance(code, CodeType):
        parts += code_marks(code)
    cells = [cell.cell_contents for cell in getattr(inner, "__closure__", None) or () if filled(cell)]
    for value in (*cells, *(getattr(inner, "__defaults__", None) or ()), *(getattr(f, "args", None) or ())):
        if isinstance(value, PLAIN_VALUES):
            parts.append(repr(value))
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            parts.append(array_mark(value))
    return f"{parts[0]} {digest_bytes(repr(parts).encode())}"


def filled(cell: Any) -> bool:
    """Whether a variable around a function has a value by now."""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def code_marks(code: CodeType) -> list[str]:
    """What a function does: its instructions, names and constants, and those of functions inside it."""
    marks = [code.co_code.hex(), repr(code.co_names)]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            marks += code_marks(constant)
        else:
            marks.append(repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant))
    return marks
