"""Arrays of samples that belong together, and how they are made of what a user gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unbraid.data.checks import check_shapes, samples_of
from unbraid.data.dask_arrays import Chunks, is_lazy, lazy_samples
from unbraid.data.dask_blocks import Held
from unbraid.data.encoding import Encoding
from unbraid.errors import DataError
from unbraid.kernels.arrays import Array

if TYPE_CHECKING:
    from unbraid.data.known import Known

ColumnNames = tuple[str, ...] | None
"""Names of the columns of an array; None: they have none."""


@dataclass(frozen=True, eq=False, repr=False)
class SampleArrays:
    """Arrays of samples that are known to belong together: X (S, m), F (S, n), J (S, n, m) and weights (S,).

    Attributes
    ----------
    input_names, output_names
        m and n names, or None.
    encoding
        How columns of a table became the inputs, where some of them were texts; else None.
    home
        The blocks of Dask arrays; None: the arrays are NumPy's.
    counts
        How many entries are known, where they have been counted.
    whole
        Whether it is sure that no entry of F and J is missing.
    """

    X: Array
    F: Array | None = None
    J: Array | None = None
    weights: Array | None = None
    input_names: ColumnNames = None
    output_names: ColumnNames = None
    encoding: Encoding | None = None
    home: Chunks | Held | None = None
    counts: Known | None = None
    whole: bool = False

    @property
    def S(self) -> int:
        """How many samples."""
        return int(self.X.shape[0])

    @property
    def m(self) -> int:
        """How many inputs."""
        return int(self.X.shape[1])

    @property
    def n(self) -> int:
        """How many outputs."""
        known = self.F if self.F is not None else self.J
        assert known is not None
        return int(known.shape[1])


def arrays_of(X: Any, F: Any, J: Any, weights: Any) -> dict[str, Any]:
    """The arrays that were given, by name, in their full shapes; a sentence where they do not belong together."""
    if F is None and J is None:
        raise DataError("Neither F nor J was given: pass values F (S, n), Jacobians J (S, n, m), or both.")
    points = as_samples("X", X)
    values = None if F is None else as_samples("F", F)
    jacobians = None if J is None else as_samples("J", J)
    points = points[:, None] if points.ndim == 1 else points
    values = values[:, None] if values is not None and values.ndim == 1 else values
    one_output = values is None or values.shape[-1] == 1
    if jacobians is not None and jacobians.ndim == 2 and one_output:
        jacobians = jacobians[:, None, :]
    check_shapes(points, values, jacobians)
    rows = None if weights is None else as_samples("weights", weights)
    if rows is not None and rows.shape != points.shape[:1]:
        S = points.shape[0]
        raise DataError(f"weights must be (S,) = ({S},), one a sample, got shape {rows.shape}.")
    given = {"X": points, "F": values, "weights": rows, "J": jacobians}
    return {name: array for name, array in given.items() if array is not None}


def as_samples(name: str, given: Any) -> Any:
    """An array of real numbers, one row a sample: in memory, in a file, or Dask's."""
    return lazy_samples(name, given) if is_lazy(given) else samples_of(name, given)
