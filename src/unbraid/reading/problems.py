"""From a file of any kind to a `Problem`, or to the points at which a model is to be evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from unbraid.data.checks import Missing, check_missing
from unbraid.errors import FileError, SettingError
from unbraid.reading import arrays, tables
from unbraid.reading.kinds import opener
from unbraid.reading.layout import LAYOUTS
from unbraid.reading.samples import Points, Samples
from unbraid.reading.sources import ArraySource, Table
from unbraid.runtime.files import StrPath, reason
from unbraid.runtime.progress import Callback

Names = str | Sequence[str]


def read_problem(
    path: StrPath,
    inputs: Names = (),
    outputs: Names = (),
    jacobians: Names = (),
    layout: str | None = None,
    callback: Callback | None = None,
    *,
    weights: str | None = None,
    missing: Missing = "error",
) -> Samples:
    r"""The samples in a file: `.npz`, `.mat`, HDF5, `.csv`, Parquet, or a folder of `.npy` files.

    Parameters
    ----------
    path
        The file, or the folder.
    inputs, outputs, jacobians
        In a table, which columns; `unbraid.reading.columns` says how to name them. Elsewhere the names of the arrays,
        if they are not X, F and J.
    layout
        "samples-first", X (S, m), F (S, n), J (S, n, m), or "samples-last", X (m, S), F (n, S), J (n, m, S). If None,
        MATLAB's files are read in the layout that their shapes fit, and all others samples first.
    callback
        Called with a `Progress`, whose phase is "read", after each part of the file.
    weights
        Which column has the weights of the samples, or which array; if None, an array named weights has, where there is
        one.
    missing
        "error" refuses NaN, and empty cells of a table; "mask" takes them for what is not known, in outputs and
        Jacobians.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "samples.csv"
    ...     _ = path.write_text("time,speed,load,force\n0,1.5,2,3.5\n1,2.5,3,5\n")
    ...     samples = read_problem(path, inputs="speed,load", outputs="force")
    >>> samples.problem
    Problem(S=2 samples, m=2 inputs, n=1 output, values only)
    """
    given = as_names(inputs), as_names(outputs), as_names(jacobians)
    check_missing(missing)
    with opened(path, layout) as source:
        if isinstance(source, Table):
            return tables.read_problem(source, *given, callback, weights, missing)
        return arrays.read_problem(source, *given, layout, callback, weights, missing)


def read_points(
    path: StrPath, m: int, inputs: Names = (), layout: str | None = None, callback: Callback | None = None
) -> Points:
    """The points in a file, for a function of m inputs; see `read_problem`."""
    with opened(path, layout) as source:
        if isinstance(source, Table):
            return tables.read_points(source, as_names(inputs), m, callback)
        return arrays.read_points(source, as_names(inputs), m, layout)


@contextmanager
def opened(path: StrPath, layout: str | None) -> Iterator[ArraySource | Table]:
    """The open file, once the layout is one that it can have."""
    if layout is not None and layout not in LAYOUTS:
        raise SettingError(f"layout must be None, {' or '.join(map(repr, LAYOUTS))}, got {layout!r}.")
    path = Path(path)
    try:
        with opener(path)(path) as source:
            if isinstance(source, Table) and layout is not None:
                raise FileError(f"{path} is a table, with one sample a row: leave out `layout`.")
            yield source
    except OSError as error:
        raise FileError(f"{path} cannot be read: {reason(error)}.") from error


def as_names(given: Names) -> tuple[str, ...]:
    """One text or several, as several."""
    return (given,) if isinstance(given, str) else tuple(given)
