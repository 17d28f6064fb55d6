"""Shape constraints on branches: each is a cone on coefficients.

A spline of degree d whose k-th derivative has nonnegative B-spline coefficients has a nonnegative k-th
derivative, because B-splines are nonnegative. So "the k-th derivative ≥ 0" becomes: integrate k times, let the
k constants of integration free, and keep the other coordinates ≥ 0. That is a certificate: it speaks of
the function on its whole domain, not of a grid. (It is sufficient; for k ≥ d - 1 also necessary.)

Outside the domain a branch continues linearly, or first as a parabola that does not turn, which keeps increasing,
decreasing, convex and concave branches so, but not nonnegative ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from unbraid.errors import SettingError

if TYPE_CHECKING:
    from unbraid.bases import Basis, Placement
    from unbraid.kernels.arrays import Array


@dataclass(frozen=True)
class Constraint:
    """sign · (derivative of that order) ≥ 0. Subclasses say which."""

    order: ClassVar[int]
    sign: ClassVar[int]
    means: ClassVar[str]

    def holds(self, placement: Placement, a: Array) -> bool:
        """Whether the coefficients certify the constraint, up to the rounding they carry themselves."""
        coefficients, rounding = placement.shape_coefficients(a, self.order)
        return bool(np.all(self.sign * coefficients >= -rounding))


@dataclass(frozen=True)
class NonNegative(Constraint):
    """g ≥ 0 on the domain."""

    order, sign, means = 0, 1, "nonnegative"


@dataclass(frozen=True)
class Increasing(Constraint):
    """g' ≥ 0 everywhere."""

    order, sign, means = 1, 1, "increasing"


@dataclass(frozen=True)
class Decreasing(Constraint):
    """g' ≤ 0 everywhere."""

    order, sign, means = 1, -1, "decreasing"


@dataclass(frozen=True)
class Convex(Constraint):
    """g'' ≥ 0 everywhere."""

    order, sign, means = 2, 1, "convex"


@dataclass(frozen=True)
class Concave(Constraint):
    """g'' ≤ 0 everywhere."""

    order, sign, means = 2, -1, "concave"


CONSTRAINTS: tuple[type[Constraint], ...] = (NonNegative, Increasing, Decreasing, Convex, Concave)


def per_branch(
    constraint: Constraint | Sequence[Constraint | None] | None, rank: int, basis: Basis
) -> tuple[Constraint | None, ...]:
    """One constraint (or None) for each branch, checked against the basis."""
    if constraint is None or isinstance(constraint, Constraint):
        chosen: tuple[Constraint | None, ...] = (constraint,) * rank
    elif isinstance(constraint, Sequence) and not isinstance(constraint, str):
        chosen = tuple(constraint)
    else:
        raise SettingError(f"constraint must be {ACCEPTED_CONSTRAINTS}, got {describe(constraint)}.")
    if len(chosen) != rank:
        raise SettingError(f"constraint must have one entry for each of the {rank} branches, got {len(chosen)}.")
    for branch, one in enumerate(chosen):
        if one is not None and not isinstance(one, Constraint):
            raise SettingError(f"constraint[{branch}] must be {ACCEPTED_CONSTRAINTS}, got {describe(one)}.")
        if one is not None and (reason := basis.refusal()) is not None:
            raise SettingError(f"{basis!r} cannot carry {one!r}: {reason}.")
    return chosen


ACCEPTED_CONSTRAINTS = "a constraint such as ub.Increasing(), None, or a sequence with one of these per branch"


def describe(given: object) -> str:
    """What was given as a constraint, with a hint where a class stands for an instance."""
    if isinstance(given, type) and issubclass(given, Constraint):
        return f"the class {given.__name__}: add parentheses, {given.__name__}()"
    return repr(given)
