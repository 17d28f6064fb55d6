"""What reading a file gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unbraid.arrays import Array
from unbraid.checks import counted
from unbraid.printable import quoted
from unbraid.problem import Problem


@dataclass(frozen=True)
class Samples:
    """The samples in a file.

    Attributes
    ----------
    problem
        The samples themselves.
    taken
        What was taken for what, in a few words.
    """

    problem: Problem
    taken: str


def described(problem: Problem, taken: str, weights: str | None) -> Samples:
    """The samples, with a word on weights, by the name that the file has for them, and on what is missing."""
    more = [] if weights is None else [f"weighted by {quoted(weights)}"]
    gaps = sum(int(np.count_nonzero(np.isnan(array))) for array in (problem.F, problem.J) if array is not None)
    more += [f"{counted(gaps, 'number')} missing"] if gaps else []
    return Samples(problem, ", ".join([taken, *more]))


@dataclass(frozen=True)
class Points:
    """The points in a file.

    Attributes
    ----------
    X
        (S, m), the points.
    layout
        Where samples stand in the file, "samples-first" or "samples-last".
    taken
        What was taken for what, in a few words.
    """

    X: Array
    layout: str
    taken: str
