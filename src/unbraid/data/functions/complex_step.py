"""Derivatives from an imaginary step: Im f(x + ih) / h, exact, if f is analytic and takes complex numbers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from unbraid.data.functions.forms import Form, deed
from unbraid.errors import DataError
from unbraid.kernels.arrays import Array, IndexArray

STEP = 2.0**-70
"""In units of an input's scale: its square is far below rounding, and nothing is subtracted."""


@dataclass(frozen=True)
class ComplexStep:
    """Jacobians of f by imaginary steps of 2^-70 times `scale` (m,)."""

    f: Form
    scale: Array

    @property
    def batched(self) -> bool:
        """Whether many points are as easy as one."""
        return self.f.batched

    def __call__(self, points: Array, rows: IndexArray) -> Array:
        """The Jacobians (k, n, m) at points (k, m), which are the samples with these numbers."""
        columns = []
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)  # f drops the imaginary part
            for k, step in enumerate(STEP * self.scale):
                moved = points.astype(np.complex128)
                moved[:, k] += 1j * step
                try:
                    columns.append(self.f(moved, rows).imag / step)
                except DataError as error:
                    raise explain(error) from error.__cause__
        return np.stack(columns, axis=-1)


def explain(error: DataError) -> DataError:
    """The error to raise: if f takes no complex numbers, nothing is wrong with the sample that it failed at."""
    cause = error.__cause__
    if not isinstance(cause, TypeError | np.exceptions.ComplexWarning):
        return error
    return DataError(f'f does not take complex numbers, it {deed(cause)}: use derivatives="differences".')
