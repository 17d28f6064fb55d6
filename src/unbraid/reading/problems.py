"""From a file of any kind to a `Problem`, or to the points at which a model is to be evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from unbraid.data.checks import Missing
from unbraid.data.encoding import Encoding
from unbraid.errors import FileError, check_path
from unbraid.reading.arrays import points_in_arrays, samples_in_arrays
from unbraid.reading.columns import Columns
from unbraid.reading.kinds import find_opener
from unbraid.reading.samples import Points, Samples
from unbraid.reading.sources import ArraySource, Table
from unbraid.reading.tables import points_in_table, samples_in_table
from unbraid.runtime.files import StrPath, why_refused
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
    categories: bool = False,
    exclude: Names = (),
) -> Samples:
    r"""The samples in a file: `.npz`, `.mat`, Octave's text, HDF5, `.csv`, Parquet, or a folder of `.npy` files.

    Parameters
    ----------
    path
        The file, or the folder.
    inputs, outputs, jacobians
        In a table, which columns; `unbraid.reading.columns` says how to name them. Without `inputs` all others that
        hold numbers are inputs. Elsewhere the names of the arrays, if they are not X, F and J; in a struct or a group
        they are paths, data/train/X or data.train.X, and F and J then lie beside X unless they are named.
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
        Jacobians; "drop" leaves out samples that have any.
    categories
        Whether columns of texts in a table become inputs, as indicators of what they say (`unbraid.data.encoding`).
        The problem, and models that are fitted to it, remember how.
    exclude
        Columns of a table that are no inputs, where `inputs` does not say which are.

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
    names = several(inputs), several(outputs), several(jacobians)
    return read_samples(path, Columns(*names, weights, missing, layout, categories, several(exclude)), callback)


def read_samples(path: StrPath, columns: Columns, callback: Callback | None = None) -> Samples:
    """The samples in a file, read as `columns` says; see `read_problem`."""
    with open_source(path, columns) as source:
        if isinstance(source, Table):
            return samples_in_table(source, columns, callback)
        return samples_in_arrays(source, columns, callback)


def read_points(
    path: StrPath,
    m: int,
    inputs: Names = (),
    layout: str | None = None,
    callback: Callback | None = None,
    *,
    encoding: Encoding | None = None,
) -> Points:
    """The points in a file, for a function of m inputs; see `read_problem`.

    `encoding` tells which columns of a table are the inputs where `inputs` does not, and how texts become inputs.
    """
    columns = Columns(several(inputs), layout=layout)
    with open_source(path, columns) as source:
        if isinstance(source, Table):
            return points_in_table(source, columns, m, encoding, callback)
        return points_in_arrays(source, columns, m)


@contextmanager
def open_source(path: StrPath, columns: Columns) -> Iterator[ArraySource | Table]:
    """Open a file of any kind; a table has no layout to be asked for."""
    check_path("path", path)
    path = Path(path)
    try:
        with find_opener(path)(path) as source:
            if isinstance(source, Table) and columns.layout is not None:
                raise FileError(f"{path} is a table, with one sample a row: leave out `layout`.")
            yield source
    except OSError as error:
        raise FileError(f"{path!s:.200} cannot be read: {why_refused(error)}.") from error


def several(given: Names) -> tuple[str, ...]:
    """One text or several, as a tuple of texts."""
    return (given,) if isinstance(given, str) else tuple(given)
