r"""Models as a struct in a `.mat` file: matrices, and functions as tables or as the parameters of a formula.

A file of the same model is the same, byte for byte: the time that SciPy puts into its head is left out.
"""

from __future__ import annotations

from io import BytesIO

import numpy as np
import numpy.typing as npt
from scipy.io import savemat

from unbraid.export.comments import safe_name
from unbraid.export.files import Options
from unbraid.export.matlab import check_free
from unbraid.export.portable import Portable, Univariate, as_portable
from unbraid.kernels.pieces import Pieces
from unbraid.results.model import DecoupledModel
from unbraid.version import __version__

HEAD = 116
"""Bytes of text with which a file of MATLAB begins."""
FIELDS = ("domain", "breaks", "middle", "rate", "powers", "form", "parameters")
"""What each function has: tables, or a form with its parameters; the others are empty."""
PIECEWISE = "piecewise polynomial"
"""The form of functions that are none of the closed ones."""


def write(model: DecoupledModel, options: Options) -> dict[str, bytes]:
    """The file."""
    check_free(options.name, set())
    buffer = BytesIO()
    savemat(buffer, {options.name: model_struct(as_portable(model))}, oned_as="row")  # type: ignore[arg-type]  # files will do
    head = f"MATLAB 5.0 MAT-file, written by unbraid {__version__}".encode("ascii")
    return {".mat": head.ljust(HEAD) + buffer.getvalue()[HEAD:]}


def model_struct(model: Portable) -> dict[str, object]:
    """The fields of the struct."""
    branches = np.empty(model.rank, dtype=[(field, object) for field in FIELDS])
    for j, function in enumerate(model.functions):
        branches[j] = (np.array(model.domains[j]), *function_fields(function))
    return {
        "W0": model.W0,
        "W1": model.W1,
        "bias": model.bias[:, None],
        "input_names": cell(model.input_names),
        "output_names": cell(model.output_names),
        "branches": branches,
    }


def function_fields(function: Univariate) -> tuple[object, ...]:
    """What a function has of `FIELDS`, but for its domain."""
    nothing = np.zeros((0, 0))
    if isinstance(function, Pieces):
        return function.breaks, function.middle, function.rate, function.powers, PIECEWISE, nothing
    return nothing, nothing, nothing, nothing, function.form.name, np.array(function.parameters)


def cell(names: tuple[str, ...]) -> npt.NDArray[np.object_]:
    """Names as a cell array: of plain letters, because SciPy and Octave do not agree on how long others are."""
    return np.array([*map(safe_name, names), None], dtype=object)[:-1]
