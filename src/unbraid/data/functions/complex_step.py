"""Derivatives from an imaginary step: Im f(x + ih) / h, exact, if f is analytic and takes complex numbers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from unbraid.data.functions.forms import Failures, Form, deed
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
        columns, found = [], Failures()
        f = replace(self.f, failures=found)
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)  # f drops the imaginary part
            for k, step in enumerate(STEP * self.scale):
                moved = points.astype(np.complex128)
                moved[:, k] += 1j * step
                columns.append(f(moved, rows).imag / step)
        for cause in (said.__cause__ for said in found.values()):
            if isinstance(cause, TypeError | np.exceptions.ComplexWarning):  # nothing is wrong with the sample
                raise DataError(
                    f'f does not take complex numbers, it {deed(cause)}: use derivatives="differences".'
                ) from cause
        self.f.tell(found)
        return np.stack(columns, axis=-1)
