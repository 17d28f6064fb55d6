"""Which axis runs over samples: the first, as everywhere in this library, or the last, as in MATLAB code.

Axes of length one do not count: MATLAB drops them at the end of a shape, and people drop them elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unbraid.kernels.arrays import Shape

FIRST, LAST = "samples-first", "samples-last"
LAYOUTS = (FIRST, LAST)
MEANING = {
    FIRST: {"X": "(S, m)", "F": "(S, n)", "J": "(S, n, m)"},
    LAST: {"X": "(m, S)", "F": "(n, S)", "J": "(n, m, S)"},
}


class SampleSizes(NamedTuple):
    """How many samples S, inputs m and outputs n there are."""

    S: int
    m: int
    n: int


def find_sizes(layout: str, X: Shape, F: Shape | None, J: Shape | None) -> SampleSizes | None:
    """The sizes for which the shapes are (S, m), (S, n), (S, n, m), or in the other layout; None if there are none.

    Examples
    --------
    >>> find_sizes("samples-last", (2, 100), (3, 100), (3, 2, 100))
    SampleSizes(S=100, m=2, n=3)
    >>> find_sizes("samples-last", (2, 100), (100, 1), (2, 100))
    SampleSizes(S=100, m=2, n=1)
    >>> find_sizes("samples-first", (2, 100), (3, 100), (3, 2, 100)) is None
    True
    """
    last = layout == LAST
    if len(X) == 1:
        X = (1, X[0]) if last else (X[0], 1)
    if len(X) != 2 or 0 in X:
        return None
    S, m = reversed(X) if last else X
    if F is not None:
        n = count_outputs(F, S, last)
    else:
        assert J is not None
        n = math.prod(J) // (S * m)
    if n < 1 or (J is not None and not agree(J, (n, m, S) if last else (S, n, m))):
        return None
    return SampleSizes(S, m, n)


def count_outputs(F: Shape, S: int, last: bool) -> int:
    """How many outputs there are in values of S samples, 0 where the shape is not that of S samples."""
    if math.prod(F) == max(F, default=0) == S:
        return 1
    if len(F) != 2 or F[1 if last else 0] != S:
        return 0
    return F[0 if last else 1]


def agree(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether two shapes are the same but for axes of length one."""
    return [length for length in one if length != 1] == [length for length in other if length != 1]


def samples_first(
    layout: str, sizes: SampleSizes, X: npt.NDArray[Any], F: npt.NDArray[Any] | None, J: npt.NDArray[Any] | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None, npt.NDArray[Any] | None]:
    """X, F and J of a file in the given layout, as (S, m), (S, n) and (S, n, m)."""
    S, m, n = sizes
    if layout == FIRST:
        return X.reshape(S, m), None if F is None else F.reshape(S, n), None if J is None else J.reshape(S, n, m)
    return (
        X.reshape(m, S).T,
        None if F is None else F.reshape(n, S).T,
        None if J is None else np.moveaxis(J.reshape(n, m, S), -1, 0),
    )
