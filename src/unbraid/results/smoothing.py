"""What a fit chose from the data where its smoothing was open: degrees of freedom, λ and what counts as noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unbraid.kernels.arrays import Array


@dataclass(frozen=True, repr=False)
class Smoothing:
    """What was chosen, of one fit.

    Attributes
    ----------
    freedom
        (r,), the effective degrees of freedom that each branch uses, of its curve and of its directions together. 0:
        the data do not support the branch, and it was left out.
    coupling
        λ, the weight of values beside Jacobians, in the solver's balanced units; None where only one of them is given.
    left
        1 - Σ freedom / E, E being how many numbers were fitted: the share of them that is left to tell noise from.
    score
        The logarithm of the mean square of what is left unexplained, made larger for every degree of freedom that was
        used: of fits to the same data the one with the lowest score is to be preferred. See `fitting.smoothing`.
    """

    freedom: Array
    coupling: float | None
    left: float
    score: float

    @property
    def supported(self) -> int:
        """How many branches the data support."""
        return int(np.count_nonzero(self.freedom))

    def noise(self, errors: Array | float) -> Array:
        """The level of noise behind errors on the samples that were fitted, which are smaller by what was fitted."""
        return np.asarray(errors / np.sqrt(max(self.left, 0.05)))

    def __repr__(self) -> str:
        freedom = ", ".join(map(freedom_number, self.freedom[:8])) + (", …" if len(self.freedom) > 8 else "")
        coupling = "" if self.coupling is None else f"; λ {self.coupling:.3g}"
        return f"{freedom} degrees of freedom{coupling}"


def freedom_number(freedom: float) -> str:
    """'11.8' in a list of degrees of freedom, and '0' for a branch that was left out."""
    return f"{freedom:.1f}" if freedom else "0"
