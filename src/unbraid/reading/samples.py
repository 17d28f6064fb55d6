"""What reading a file gives."""

from __future__ import annotations

from dataclasses import dataclass

from unbraid.arrays import Array
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
