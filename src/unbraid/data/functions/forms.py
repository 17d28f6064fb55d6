"""Functions as functions of a batch, and the point at which one fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unbraid.data.functions.answers import as_batch, as_point
from unbraid.data.functions.hosts import AnswerError, Numbers
from unbraid.errors import LONGEST_QUOTE, DataError, FileError
from unbraid.kernels.arrays import EPS, IndexArray, Shape
from unbraid.runtime.callers import call_each
from unbraid.runtime.text import printable

Failures = dict[int, DataError]
"""Samples at which a function has no answer, by their numbers, and what to say of each."""


class FailureError(DataError):
    """A function has no answer at some samples; the text tells of the first."""

    def __init__(self, failures: Failures) -> None:
        first = failures[min(failures)]
        super().__init__(str(first))
        self.failures, self.__cause__ = failures, first.__cause__


@dataclass(frozen=True)
class Form:
    """A function of a batch, (k, m) -> (k, *shape): the function itself, or the function point by point.

    `resolution` is the relative precision of the numbers it computes with, `jobs` how many calls are made at the same
    time, and `told` is called with the number of points of each call that has ended. Where `failures` is given,
    samples without an answer are entered there, and their values are NaN; else they raise an error. `before` these
    there were so many others.
    """

    name: str
    call: Callable[[Numbers], Numbers]
    batched: bool
    shape: Shape
    resolution: float = EPS
    jobs: int = 1
    told: Callable[[int], object] = lambda points: None
    failures: Failures | None = None
    before: int = 0

    def __call__(self, points: Numbers, rows: IndexArray, beside: bool = False) -> Numbers:
        """The values at points (k, m), all finite; or else an error, or an entry in `failures`, for each sample.

        `rows` (k,) says which samples of X the points are, or lie `beside`.
        """
        values = np.full((len(points), *self.shape), np.nan, points.dtype)
        causes: dict[int, Exception] = {}
        with np.errstate(all="ignore"):  # what is not finite is told of below
            (self.all_at_once if self.batched else self.one_by_one)(points, slice(0, len(points)), values, causes)
        for at in np.flatnonzero(~np.isfinite(values).reshape(len(points), -1).all(axis=1)).tolist():
            if at not in causes:
                causes[at] = AnswerError(f"gave {values[at][~np.isfinite(values[at])][0]}")
            values[at] = np.nan
        found = Failures()
        for at, cause in sorted(causes.items()):
            said = DataError(f"{self.name} {deed(cause)} at {place(points[at], self.before + rows[at], beside)}")
            said.__cause__ = cause
            found.setdefault(int(rows[at]), said)
        self.tell(found)
        return values

    def tell(self, found: Failures) -> None:
        """Enter samples without an answer into `failures`, or raise an error."""
        if self.failures is not None:
            self.failures.update(found | self.failures)  # the first of a sample stays
        elif found:
            raise FailureError(found)

    def one_by_one(self, points: Numbers, part: slice, values: Numbers, causes: dict[int, Exception]) -> None:
        """Enter the values at some points, from a function of a point, and how it fails at others."""

        def enter(at: int, answer: Numbers | Exception) -> None:
            if isinstance(answer, FileError):  # of the file that calls are kept in
                raise answer
            try:
                if isinstance(answer, Exception):
                    raise answer
                values[at] = as_point(answer, self.shape)
            except Exception as error:
                causes[at] = error
            self.told(1)

        call_each(self.call, list(points[part]), self.jobs, enter)

    def all_at_once(self, points: Numbers, part: slice, values: Numbers, causes: dict[int, Exception]) -> None:
        """The same, from a function of a batch: a batch at which it fails is halved, down to single points."""
        some = points[part]
        try:
            values[part] = as_batch(self.call(some), len(some), self.shape).astype(points.dtype)
        except FileError:
            raise
        except Exception as error:
            if len(some) == 1:
                causes[part.start] = error
                return
            middle = (part.start + part.stop) // 2
            for half in (slice(part.start, middle), slice(middle, part.stop)):
                self.all_at_once(points, half, values, causes)

    def in_chunks(self, points: Numbers, rows: IndexArray, chunk: int, beside: bool = False) -> Numbers:
        """The values at many points, those of a function of a batch in chunks of so many."""
        if not self.batched:
            return self(points, rows, beside)
        values = np.empty((len(points), *self.shape), points.dtype)
        parts = [slice(start, start + chunk) for start in range(0, len(points), chunk)]

        def enter(at: int, answer: Numbers | Exception) -> None:
            if isinstance(answer, Exception):
                raise answer
            values[parts[at]] = answer
            self.told(len(answer))

        call_each(lambda part: self(points[part], rows[part], beside), parts, self.jobs, enter)
        return values


def deed(error: BaseException) -> str:
    """What a function did instead of answering, in words."""
    if isinstance(error, AnswerError):
        return str(error)
    try:
        first_line = (str(error).strip().splitlines() or ["no message"])[0]
    except Exception:  # of the text of an error of the user's
        first_line = "no message"
    return f"raised {type(error).__name__} ({printable(first_line[:LONGEST_QUOTE]).rstrip('.')})"


def place(point: Numbers, row: int, beside: bool) -> str:
    """Where something went wrong, and what can be done beside a sample."""
    text = np.array2string(point, precision=6, threshold=8, max_line_width=10**6, separator=", ")
    if beside:
        return (
            f"{text}, beside X[{row}], where a difference was to be taken: move the sample away from the edge of where "
            "f is defined, or pass jacobian=."
        )
    return f"X[{row}] = {text}."


def try_call(call: Callable[[Numbers], object], x: Numbers) -> object:
    """Call a function: its answer, or the exception that it raised."""
    try:
        return call(x)
    except Exception as error:
        return error
