"""What a page or a picture can tell of a fit's worth in a moment: bands, and a close look at residuals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unbraid.data.problem import Problem
from unbraid.inference.linearised import LinearisedUncertainty, linearised_uncertainty
from unbraid.inference.neighbourhood import MOST_SAMPLES, SOME_SAMPLES, Neighbourhood, neighbourhood_of
from unbraid.inference.residuals import ResidualDiagnostics, diagnose_residuals
from unbraid.inference.tangent import count_unknowns
from unbraid.kernels.arrays import IndexArray
from unbraid.results.fit import Fit
from unbraid.solvers.gauss_newton import DENSE_LIMIT

MOMENT = 1e9
"""Multiplications that take less than a second."""
ROWS = 5
"""So many numbers for every unknown tell their covariance."""
FEWEST = 4
"""Samples from which on there is something to tell."""


@dataclass(frozen=True, eq=False)
class Glance:
    """A fit and its samples to second order, and what that tells, each computed when it is first asked for.

    Attributes
    ----------
    around
        The fit and its samples.
    numbers
        (S,), what the user knows these samples by.
    """

    around: Neighbourhood
    numbers: IndexArray

    @cached_property
    def uncertainty(self) -> LinearisedUncertainty:
        """What `fit.uncertainty()` gives; of very many samples, some tell."""
        return linearised_uncertainty(self.around, MOMENT)

    @cached_property
    def residuals(self) -> ResidualDiagnostics:
        """What is left of the samples, looked at closely."""
        return diagnose_residuals(self.around)

    @property
    def samples(self) -> IndexArray:
        """(S,), what the user knows the samples of `residuals` by."""
        return self.numbers[self.residuals.samples]


def glance_at(fit: Fit, problem: Problem, numbers: IndexArray | None = None) -> Glance | None:
    """A fit and its samples, which have numbers if they are not 0, 1, …; None where it would take more than a moment.

    So it is with many unknowns. Also where there is next to nothing to tell from, or it is not known what was
    minimised.
    """
    if fit.minimised is None or problem.S < FEWEST or count_unknowns(fit.model, True) > DENSE_LIMIT:
        return None
    around = neighbourhood_of(fit, problem)
    U = around.tangent.size
    every = around.problem.S * around.numbers
    if around.problem.S < FEWEST or not around.tangent.moves or min(ROWS * U, every) * U**2 > MOMENT:
        return None
    named = np.arange(problem.S) if numbers is None else numbers
    counts = problem.which_count()
    named = named if counts is None else named[counts]
    thin = problem.counting().thinning(len(named) if len(named) <= MOST_SAMPLES else SOME_SAMPLES)
    return Glance(around, named if thin is None else named[thin])
