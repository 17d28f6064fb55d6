"""The types that Octave notes beside what it saves, as text or in HDF5: which are arrays of real numbers."""

from __future__ import annotations

from unbraid.reading.matlab.others import CELL, COMPLEX, HANDLE, MATLAB_OBJECT, RANGE, SPARSE, STRUCT_ARRAY, TEXT
from unbraid.reading.sources import STRUCT, Other

SCALARS = {
    "scalar",
    "bool",
    "float scalar",
    *(f"{sign}int{bits} scalar" for sign in ("", "u") for bits in (8, 16, 32, 64)),
}
"""Single real numbers."""
MATRICES = {
    "matrix",
    "bool matrix",
    "float matrix",
    *(f"{sign}int{bits} matrix" for sign in ("", "u") for bits in (8, 16, 32, 64)),
}
"""Full arrays of real numbers."""
SCALAR_STRUCT = "scalar struct"
"""A single struct, which can be looked into."""
SIGNS = {
    "cell": CELL,
    "struct": STRUCT_ARRAY,
    "complex": COMPLEX,
    "sparse": SPARSE,
    "diagonal": SPARSE._replace(what="a diagonal matrix"),
    "permutation": SPARSE._replace(what="a permutation matrix"),
    "range": RANGE,
    "string": TEXT,
    "handle": HANDLE,
}
"""Words in the names of other types."""


def other_type(kind: str) -> Other | None:
    """What a type is that is no array of real numbers, with advice; None of an array.

    Examples
    --------
    >>> other_type("int32 matrix") is None, other_type("float complex matrix").what
    (True, 'complex')
    """
    if kind in SCALARS or kind in MATRICES:
        return None
    if kind == SCALAR_STRUCT:
        return STRUCT
    return next((other for sign, other in SIGNS.items() if sign in kind), MATLAB_OBJECT)
