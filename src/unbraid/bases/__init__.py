"""Bases for the internal functions. A new one is one file, and joins by joining `BASES`."""

from unbraid.bases.base import Basis, NormalEquations, Placement
from unbraid.bases.natural import NaturalCubic
from unbraid.bases.polynomials import Polynomial
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
    "SmoothingSpline",
]
