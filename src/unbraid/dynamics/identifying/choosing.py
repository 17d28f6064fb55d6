r"""What is chosen from the data: the basis of the branches and how they go on, their number, the order of a model.

Records are cut into blocks, some of which do not count while candidates are fitted, and tell how good they are. The
record is simulated as a whole, so nothing has to be known of states where a block begins. *Inside*, the last quarter of
every record is held out, or of short ones each quarter but the first in turn; that judges ranks, orders and bases.
*Beyond*, the blocks with the largest outputs are: of the bases that do about as well as the best inside, the one is
chosen, and the way to go on, that does best beyond what it was fitted to. A dynamic model has to go on sensibly, or its
simulation leaves for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unbraid.bases import Basis, BSpline, Polynomial, SmoothingSpline
from unbraid.bases.constraints import Constraint
from unbraid.dynamics.models.feedback import Course, Feedback
from unbraid.dynamics.models.trajectory import Trajectory
from unbraid.kernels.arrays import Array

BLOCKS, BEYOND = 16, 3
"""Into so many blocks the samples are cut, of which so many are held out beyond."""
QUARTERS, SHORT = 4, 2048
"""Into so many stretches records are cut, one of which is held out inside; each in turn up to so many samples."""
AS_GOOD = 1.03
"""Candidates whose error inside is at most so many times the least are as good as the best."""
WORTH, SURELY = 0.97, 1.0
"""A further branch, or state, is worth it where the error inside falls to at most so many times what it was, and the
mean square error falls by so many standard errors of the difference, at least."""
PARTS = 8
"""What is held out of a course is looked at in so many parts, whose differences tell that standard error."""
FREE_LADDER: tuple[Basis, ...] = (
    Polynomial(3),
    Polynomial(5),
    Polynomial(7),
    BSpline(6),
    BSpline(10),
    BSpline(16),
)
"""What branches may be made of, where nothing is asked for."""
FEW: tuple[Basis, ...] = (BSpline(3), BSpline(8))
"""What ranks and orders are compared with, where the basis is open."""
SHAPED_LADDER: tuple[Basis, ...] = (BSpline(3), BSpline(5), BSpline(8), BSpline(12), BSpline(18))
"""The same, where branches are constrained."""
STRENGTHS = tuple((10.0 ** np.arange(-9.0, 0.0, 1.5)).tolist())
"""Of the penalty of a `SmoothingSpline`, where it is open."""


@dataclass(frozen=True)
class Split:
    """Courses of which some blocks do not count, and these blocks.

    Attributes
    ----------
    courses
        With weight 0 where they are held out.
    held
        One a course: the weights (T, ny) of what is held out.
    """

    courses: tuple[Course, ...]
    held: tuple[Array, ...]

    @classmethod
    def inside(cls, courses: Sequence[Course]) -> tuple[Split, ...]:
        """Hold out the last quarter of every course; of short ones each but the first in turn."""
        turns = range(1, QUARTERS) if sum(map(len, courses)) <= SHORT else [QUARTERS - 1]
        return tuple(
            cls.without(courses, [(k, quarter(len(course), turn)) for k, course in enumerate(courses)])
            for turn in turns
        )

    @classmethod
    def beyond(cls, courses: Sequence[Course]) -> Split:
        """Hold out the blocks with the largest outputs."""
        places = blocks_of(courses)
        peaks = np.array([np.abs(courses[k].y[some] * courses[k].weight[some]).max(initial=0.0) for k, some in places])
        highest = np.argsort(-peaks, kind="stable")[: min(BEYOND, len(places) // 3)]
        return cls.without(courses, [places[k] for k in highest])

    @classmethod
    def without(cls, courses: Sequence[Course], places: Sequence[tuple[int, slice]]) -> Split:
        """Hold out some stretches of courses."""
        held, kept = [np.zeros_like(course.weight) for course in courses], [course.weight.copy() for course in courses]
        for k, some in places:
            held[k][some] = courses[k].weight[some]
            kept[k][some] = 0.0
        cut = tuple(replace(course, weight=own) for course, own in zip(courses, kept, strict=True))
        return cls(cut, tuple(held))

    def error(self, trajectories: Sequence[Trajectory] | None, feedback: Feedback) -> HeldOutError:
        """The error on what is held out; infinite where nothing was simulated."""
        if trajectories is None:
            return LOST
        ny, squares, counts = feedback.observed, [], []
        for course, one, weight in zip(self.courses, trajectories, self.held, strict=True):
            square = np.sum((weight * (one.values.f[:, -ny:] - course.y)) ** 2, axis=1)
            some = np.flatnonzero(weight.any(axis=1))
            for part in np.array_split(some, min(PARTS, max(len(some), 1))):
                squares.append(float(square[part].sum()))
                counts.append(float(np.count_nonzero(weight[part])))
        return HeldOutError(tuple(squares), tuple(counts))


@dataclass(frozen=True)
class HeldOutError:
    """Errors on what was held out, part by part: sums of squares in units of the spread, and of how many numbers."""

    squares: tuple[float, ...]
    counts: tuple[float, ...]

    @property
    def size(self) -> float:
        """The root of the mean square."""
        return float(np.sqrt(sum(self.squares) / max(sum(self.counts), 1.0)))

    def __str__(self) -> str:
        """'1.04 %' of the spread, or 'diverged'."""
        return f"{100.0 * self.size:.3g} %" if np.isfinite(self.size) else "diverged"

    def is_better(self, other: HeldOutError) -> bool:
        """Whether it is smaller than another by enough to be worth something, and surely so."""
        if not np.isfinite(self.size) or not np.isfinite(other.size):
            return bool(np.isfinite(self.size))
        if len(self.squares) != len(other.squares):  # one of them was cut short
            return self.size < WORTH * other.size
        gains = (np.array(other.squares) - np.array(self.squares)) / max(np.mean(self.counts), 1.0)
        doubt = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
        return bool(self.size < WORTH * other.size and gains.mean() > SURELY * doubt)


def joined(errors: Sequence[HeldOutError]) -> HeldOutError:
    """The error over several splits."""
    return HeldOutError(
        tuple(one for error in errors for one in error.squares), tuple(one for error in errors for one in error.counts)
    )


LOST = HeldOutError((np.inf,), (1.0,))
"""Where nothing was simulated."""


def quarter(length: int, number: int) -> slice:
    """One of the quarters of so many samples."""
    return slice(length * number // QUARTERS, length * (number + 1) // QUARTERS)


def blocks_of(courses: Sequence[Course]) -> list[tuple[int, slice]]:
    """Courses cut into blocks: which course, and which of its samples."""
    length = max(1, -(-sum(map(len, courses)) // BLOCKS))
    return [
        (k, slice(begin, min(begin + length, len(course))))
        for k, course in enumerate(courses)
        for begin in range(0, len(course), length)
    ]


def ladder(basis: Basis | None, constraints: Sequence[Constraint | None]) -> tuple[Basis, ...]:
    """The bases to choose from: all that may be where None was asked for, strengths where that is open."""
    if basis is None:
        return FREE_LADDER if all(one is None for one in constraints) else SHAPED_LADDER
    if isinstance(basis, SmoothingSpline) and basis.smoothing is None:
        return tuple(replace(basis, smoothing=strength) for strength in STRENGTHS[::-1])
    return (basis,)


def some_stretches(lengths: Sequence[int], peaks: Sequence[Array], most: int) -> list[tuple[int, slice]]:
    """Which stretches of which records to work on first, of so many samples in all: those with the largest outputs.

    `peaks` has for each record the size of its outputs (T,).
    """
    if sum(lengths) <= most:
        return [(k, slice(0, length)) for k, length in enumerate(lengths)]
    each = max(most // len(lengths), min(most, 500))
    windows = []
    for k, (length, peak) in enumerate(zip(lengths, peaks, strict=True)):
        begin = int(np.clip(int(np.argmax(peak)) - each // 2, 0, max(length - each, 0)))
        windows.append((float(peak.max(initial=0.0)), k, slice(begin, min(begin + each, length))))
    windows.sort(key=lambda window: -window[0])
    chosen = [(k, some) for _, k, some in windows[: max(1, most // each)]]
    return sorted(chosen, key=lambda window: window[0])
