"""The methods that decouple into polynomials: Dreesen's, and Hollander's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from unbraid.bases import Basis, Polynomial
from unbraid.bases.projection import Projection
from unbraid.data.checks import numbers
from unbraid.data.sample_set import SampleSet
from unbraid.errors import DataError, SettingError, check_number
from unbraid.kernels.arrays import Array
from unbraid.methods.base import Method, Sweeps
from unbraid.solvers.coupling import FixedCoupling
from unbraid.solvers.decomposition import Decomposition
from unbraid.solvers.joint import JointProjection
from unbraid.solvers.loop import Stopping


@dataclass(frozen=True, kw_only=True)
class DecompositionMethod(Method):
    """An unstructured decomposition of the Jacobians, then functions through what it found."""

    sweeps: ClassVar[Sweeps] = "polynomial"

    def solver(self, samples: SampleSet, basis: Basis, projection: Projection) -> Decomposition:
        """The decomposition of the samples' Jacobians."""
        return Decomposition(samples.gathered(), basis, projection, self.coupling.final, self.offset)


def dreesen2015(
    degree: int = 3,
    *,
    max_sweeps: int = 2000,
    tolerance: float = 1e-10,
    scaled: bool = True,
    max_seconds: float | None = None,
) -> DecompositionMethod:
    """The method of Dreesen, Ishteva and Schoukens (2015): a CPD of the Jacobians, then polynomials.

    Parameters
    ----------
    degree
        Of the polynomials, which one least-squares problem fits to the values, or without values to the Jacobians.
    max_sweeps, tolerance, max_seconds
        Stopping rules of the decomposition, see `Stopping`.
    scaled
        Balance the units of inputs and outputs inside.

    Notes
    -----
    It needs a unique decomposition, generically 2 r(r - 1) ≤ m(m - 1) n(n - 1); otherwise the directions it finds are
    not those of the function, and no polynomials can mend that.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, _ = ub.datasets.dreesen_a(rng=0)
    >>> fit = ub.decouple(problem, rank=2, method=ub.methods.dreesen2015(), rng=0)
    >>> bool(fit.jacobian_error < 1e-12)
    True
    """
    return DecompositionMethod(
        name="dreesen2015",
        basis=Polynomial(degree),
        stopping=Stopping(max_sweeps, tolerance, 1e-27, max_seconds),
        coupling=FixedCoupling(1.0),
        offset=True,
        scaled=scaled,
    )


@dataclass(frozen=True, kw_only=True)
class JointMethod(Method):
    """Sweeps with one joint problem for all coefficients; `weight` (n·m, n·m), if any, weighs the entries of J."""

    sweeps: ClassVar[Sweeps] = "polynomial"
    weight: Array | None = field(default=None, compare=False)

    def solver(self, samples: SampleSet, basis: Basis, projection: Projection) -> JointProjection:
        """Sweeps on the samples with one joint problem for all coefficients."""
        if self.weight is not None and len(self.weight) != samples.weight.size:
            raise DataError(
                f"covariance must be ({samples.weight.size}, {samples.weight.size}), one row an entry of a sample's "
                f"Jacobian (n·m, outputs first), got shape {self.weight.shape}."
            )
        return JointProjection(
            samples.gathered(), basis, projection, self.coupling, False, True, self.offset, self.evenness, self.weight
        )


def hollander2017(
    degree: int = 3,
    *,
    covariance: npt.ArrayLike | None = None,
    null_weight: float = 1.0,
    max_sweeps: int = 20,
    tolerance: float = 1e-6,
    scaled: bool = True,
    max_seconds: float | None = None,
) -> JointMethod:
    """The method of Hollander (2017): a CPD of the Jacobians whose third factor is made of polynomials of u = W0 x.

    Parameters
    ----------
    degree
        Of the polynomials g.
    covariance
        (n·m, n·m) of the entries of a sample's Jacobian, outputs first, in the user's units: they are then weighed
        by its inverse.
    null_weight
        Where a covariance is rank deficient, its null space is weighed by this over its mean nonzero eigenvalue.
    max_sweeps, tolerance, max_seconds
        Stopping rules, see `Stopping`.
    scaled
        Balance the units of inputs and outputs inside. Off where a covariance is given.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, _ = ub.datasets.dreesen_a(rng=0)
    >>> fit = ub.decouple(problem, rank=2, method=ub.methods.hollander2017(max_sweeps=300), rng=0)
    >>> bool(fit.jacobian_error < 1e-4)
    True
    """
    check_number("null_weight", null_weight, 0.0)
    return JointMethod(
        name="hollander2017",
        basis=Polynomial(degree),
        stopping=Stopping(max_sweeps, tolerance, 1e-27, max_seconds),
        coupling=FixedCoupling(0.0),
        offset=True,
        scaled=scaled and covariance is None,
        values=False,
        weight=None if covariance is None else inverse_weight(numbers("covariance", covariance), null_weight),
    )


def inverse_weight(covariance: Array, null_weight: float) -> Array:
    """The inverse of a covariance; its null space is weighed by null_weight over its mean nonzero eigenvalue."""
    if covariance.ndim != 2 or covariance.shape[0] != covariance.shape[1] or not np.allclose(covariance, covariance.T):
        raise DataError(f"covariance must be a symmetric matrix (n·m, n·m), got shape {covariance.shape}.")
    values, vectors = np.linalg.eigh(covariance)
    if values[0] < -1e-10 * abs(values[-1]) or values[-1] <= 0.0:
        raise SettingError("covariance must be positive semidefinite and not zero.")
    known = values > 1e-12 * values[-1]
    weights = np.where(known, 1.0 / np.where(known, values, 1.0), null_weight / values[known].mean())
    return np.asarray((vectors * weights) @ vectors.T, dtype=np.float64)
