"""The filtered, non-parametric method of Decuyper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from unbraid.bases import Basis, Polynomial
from unbraid.bases.projection import Projection
from unbraid.data.sample_set import SampleSet
from unbraid.errors import SettingError, check_number, shown
from unbraid.methods.base import Method, Sweeps
from unbraid.solvers.coupling import FixedCoupling
from unbraid.solvers.filtered import Filtered
from unbraid.solvers.loop import Stopping

SIDES: dict[str, tuple[str, ...]] = {"penalty": ("central",), "three": ("central", "left", "right")}
"""Of which differences the slopes of each variant are made."""


@dataclass(frozen=True, kw_only=True)
class FilteredMethod(Method):
    """Branches by their values at the samples; see `unbraid.solvers.filtered`."""

    sweeps: ClassVar[Sweeps] = "filtered"
    penalty: float
    sides: tuple[str, ...]

    def solver(self, samples: SampleSet, basis: Basis, projection: Projection) -> Filtered:
        """Filtered sweeps on the samples, with the settings of this method."""
        return Filtered(samples.gathered(), basis, projection, self.coupling.final, self.penalty, self.sides)


def decuyper2022(
    basis: Basis | None = None,
    *,
    variant: Literal["penalty", "three"] = "penalty",
    penalty: float = 1e-3,
    values: bool = True,
    max_sweeps: int = 30,
    tolerance: float = 1e-6,
    scaled: bool = True,
    max_seconds: float | None = None,
) -> FilteredMethod:
    """The method of Decuyper, Tiels, Runacres and Schoukens (2022): values at the samples, kept smooth by filters.

    Parameters
    ----------
    basis
        What is put through the values at the end: polynomials, the authors' choice, or a spline.
    variant
        ``"penalty"``: slopes by central differences, and a penalty on the difference of left and right ones;
        ``"three"``: no penalty, Jacobians are fitted by all three.
    penalty
        λ of the penalty.
    values
        Fit values beside Jacobians. Without, they only set the output offset.
    max_sweeps, tolerance, max_seconds
        Stopping rules, see `Stopping`.
    scaled
        Balance the units of inputs and outputs inside.

    Notes
    -----
    A sweep solves a dense problem with r S unknowns, O(r³ S³), where the other methods are linear in S.
    Results depend much on the start: give one by `init=` where there is one.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, truth = ub.datasets.decuyper(rng=0)
    >>> fit = ub.decouple(problem, rank=3, method=ub.methods.decuyper2022(), init=truth)
    >>> bool(fit.output_errors.max() < 1.0)
    True
    """
    if variant not in SIDES:
        raise SettingError(f"variant must be one of {', '.join(map(repr, SIDES))}, got {shown(variant)}.")
    check_number("penalty", penalty, 0.0)
    return FilteredMethod(
        name="decuyper2022",
        basis=Polynomial(3) if basis is None else basis,
        stopping=Stopping(max_sweeps, tolerance, max_seconds=max_seconds),
        coupling=FixedCoupling(0.1),
        offset=True,
        scaled=scaled,
        values=values,
        penalty=penalty if variant == "penalty" else 0.0,
        sides=SIDES[variant],
    )
