"""What errors a fit is expected to have on new points, for the user."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unbraid.kernels.arrays import Array

FEW_LEFT, SHARE_LEFT = 6.0, 0.15
"""Numbers, and share of the numbers, that have to be left over for noise to be told from them."""


def tells_noise(numbers: float, freedom: float) -> bool:
    """Whether enough numbers are left over by so many degrees of freedom to tell noise from."""
    return numbers - freedom >= max(FEW_LEFT, SHARE_LEFT * numbers)


@dataclass(frozen=True, repr=False)
class HeldOut:
    """Errors on samples that are left out one at a time, the model following to first order.

    Attributes
    ----------
    output_errors
        e_i in %, (n,), as new points of the same kind would have; None without values.
    jacobian_error
        Error(J) likewise; None without Jacobians.
    outside
        The share of new points that are expected to lie outside the range of a branch that was seen in training.
    inside_errors, outside_errors
        e_i in %, (n,), of those within it and of those outside; NaN where there are none to tell from. None without
        values.
    samples
        How many samples were left out, one after another.
    """

    output_errors: Array | None
    jacobian_error: float | None
    outside: float
    inside_errors: Array | None
    outside_errors: Array | None
    samples: int

    def __repr__(self) -> str:
        return f"HeldOut({self.words})"

    @property
    def worst(self) -> float | None:
        """The largest error of an output in %, or that of slopes; None where nothing is known."""
        if self.output_errors is not None and np.isfinite(self.output_errors).any():
            return float(np.max(self.output_errors, where=np.isfinite(self.output_errors), initial=0.0))
        return None if self.jacobian_error is None else 100.0 * float(np.sqrt(self.jacobian_error))

    @property
    def words(self) -> str:
        """'Error(J) 2.1e-05; output errors 0.31, 0.35 %; 4 % of new points outside the range seen, with 1.2, 0.8 %'."""
        parts = []
        if self.jacobian_error is not None:
            parts.append(f"Error(J) {self.jacobian_error:.2e}")
        if self.output_errors is not None:
            parts.append(f"output errors {percents(self.output_errors)} %")
        if self.outside > 0.0 and self.outside_errors is not None and np.isfinite(self.outside_errors).any():
            theirs = f", with {percents(self.outside_errors)} %"
            parts.append(f"{100.0 * self.outside:.2g} % of new points outside the range seen{theirs}")
        return "; ".join(parts)


def percents(errors: Array) -> str:
    """'0.31, 0.35' of errors in %, of the first six."""
    listed = ", ".join("–" if np.isnan(one) else f"{one:.2g}" if one < 99.5 else f"{one:.0f}" for one in errors[:6])
    return f"{listed}{', …' if len(errors) > 6 else ''}"
