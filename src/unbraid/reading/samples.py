"""What reading a file gives: samples, or points, with words on what was taken for what."""

from __future__ import annotations

from dataclasses import dataclass

from unbraid.data.checks import counted
from unbraid.data.known import all_known
from unbraid.data.problem import Problem
from unbraid.kernels.arrays import Array
from unbraid.reading.cells import Cells
from unbraid.runtime.text import quoted_name


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


def describe_samples(problem: Problem, taken: str, weights: str | None) -> Samples:
    """Samples with what was taken for what, the file's name of the weights, and how many numbers are missing."""
    more = [] if weights is None else [f"weighted by {quoted_name(weights)}"]
    gaps = all_known(problem).entries - problem.known.entries
    more += [f"{counted(gaps, 'number')} missing"] if gaps else []
    return Samples(problem, ", ".join([taken, *more]))


@dataclass(frozen=True)
class Points:
    """The points in a file.

    Attributes
    ----------
    X
        (S, m), the points, NaN where the file has no number that the model can use.
    layout
        Where samples stand in the file, "samples-first" or "samples-last".
    taken
        What was taken for what, in a few words.
    names
        Of the columns that are the inputs, or None.
    cells
        The columns as they are in the file, where X does not hold all that is written there.
    told
        Why some points cannot be predicted, a few words a column.
    """

    X: Array
    layout: str
    taken: str
    names: tuple[str, ...] | None = None
    cells: tuple[Cells, ...] = ()
    told: tuple[str, ...] = ()
