"""Functions as functions of a batch, and the point at which one fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unbraid.data.functions.answers import as_batch, as_point
from unbraid.data.functions.hosts import AnswerError, Numbers
from unbraid.errors import DataError, FileError
from unbraid.kernels.arrays import EPS, IndexArray, Shape
from unbraid.runtime.callers import call_each


@dataclass(frozen=True)
class Form:
    """A function of a batch, (k, m) -> (k, *shape): the function itself, or the function point by point.

    `resolution` is the relative precision of the numbers it computes with, `jobs` how many calls are made at the same
    time, and `told` is called with the number of points of each call that has ended.
    """

    name: str
    call: Callable[[Numbers], Numbers]
    batched: bool
    shape: Shape
    resolution: float = EPS
    jobs: int = 1
    told: Callable[[int], object] = lambda points: None

    def __call__(self, points: Numbers, rows: IndexArray, beside: bool = False) -> Numbers:
        """The values at points (k, m), all finite; an error names the first point that has none.

        `rows` (k,) says which samples of X the points are, or lie `beside`.
        """
        answer = self.all_at_once if self.batched else self.one_by_one
        with np.errstate(all="ignore"):  # what is not finite is refused below
            values = answer(points, rows, beside)
        finite = np.isfinite(values).reshape(len(points), -1).all(axis=1)
        if not finite.all():
            bad = int(np.argmin(finite))
            entry = values[bad][~np.isfinite(values[bad])][0]
            raise DataError(f"{self.name} gave {entry} at {place(points[bad], rows[bad], beside)}")
        return values

    def one_by_one(self, points: Numbers, rows: IndexArray, beside: bool) -> Numbers:
        """The values, from a function of a point."""
        values = np.empty((len(points), *self.shape), points.dtype)

        def enter(at: int, answer: Numbers | Exception) -> None:
            if isinstance(answer, FileError):  # of the file that calls are kept in
                raise answer
            try:
                if isinstance(answer, Exception):
                    raise answer
                values[at] = as_point(answer, self.shape)
            except Exception as error:
                raise DataError(f"{self.name} {deed(error)} at {place(points[at], rows[at], beside)}") from error
            self.told(1)

        call_each(self.call, list(points), self.jobs, enter)
        return values

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

    def all_at_once(self, points: Numbers, rows: IndexArray, beside: bool) -> Numbers:
        """The values, from a function of a batch."""
        try:
            return as_batch(self.call(points), len(points), self.shape).astype(points.dtype)
        except Exception as error:
            found = first_failure(lambda part: as_batch(self.call(part), len(part), self.shape), points, error)
            if found is None:
                raise DataError(
                    f"{self.name} {deed(error)}, but had an answer to both halves of that batch of {len(points)} "
                    "points: lower `chunk`."
                ) from error
            at, cause = found
            raise DataError(f"{self.name} {deed(cause)} at {place(points[at], rows[at], beside)}") from cause


def deed(error: Exception) -> str:
    """What a function did instead of answering, in words."""
    if isinstance(error, AnswerError):
        return str(error)
    first_line = (str(error).strip().splitlines() or ["no message"])[0]
    return f"raised {type(error).__name__} ({first_line[:200].rstrip('.')})"


def place(point: Numbers, row: int, beside: bool) -> str:
    """Where something went wrong, and what to do."""
    text = np.array2string(point, precision=6, threshold=8, max_line_width=10**6, separator=", ")
    if beside:
        return (
            f"{text}, beside X[{row}], where a difference was to be taken: move the sample away from the edge of where "
            "f is defined, or pass jacobian=."
        )
    return f"X[{row}] = {text}: remove that sample, or repair the function there."


def first_failure(call: Callable[[Numbers], object], points: Numbers, cause: Exception) -> tuple[int, Exception] | None:
    """The first point at which a function of a batch fails, by halving, and how; None if it fails on no half.

    `cause` is how it fails on all points.
    """
    low, high = 0, len(points)  # it fails on points[low:high]
    while high - low > 1:
        middle = (low + high) // 2
        for part in (slice(low, middle), slice(middle, high)):
            answer = try_call(call, points[part])
            if isinstance(answer, Exception):
                low, high, cause = part.start, part.stop, answer
                break
        else:
            return None
    return low, cause


def try_call(call: Callable[[Numbers], object], x: Numbers) -> object:
    """Call a function: its answer, or the exception that it raised."""
    try:
        return call(x)
    except Exception as error:
        return error
