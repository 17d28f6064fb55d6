"""What a branch can be, and its shape constraints: spline and polynomial bases, cones, projections onto them.

A new basis is one file, and joins by joining `BASES`. May import `kernels`, `runtime` and `errors`.
"""

from unbraid.bases.base import Basis, NormalEquations, Placement
from unbraid.bases.natural import NaturalCubic
from unbraid.bases.polynomials import Polynomial
from unbraid.bases.ranges import RangeBasis
from unbraid.bases.smoothing import SmoothingSpline
from unbraid.bases.splines import BSpline, PiecewiseLinear

BASES: dict[str, type[Basis]] = {
    basis.__name__: basis for basis in (BSpline, NaturalCubic, PiecewiseLinear, Polynomial, SmoothingSpline)
}

__all__ = [
    "BASES",
    "BSpline",
    "Basis",
    "NaturalCubic",
    "NormalEquations",
    "PiecewiseLinear",
    "Placement",
    "Polynomial",
    "RangeBasis",
    "SmoothingSpline",
]
