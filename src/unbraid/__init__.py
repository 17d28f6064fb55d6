"""unbraid: pull a multivariate function apart into univariate strands, f(x) ≈ W1 g(W0 x)."""

from unbraid import datasets, methods, metrics, plots
from unbraid.bases import BSpline, NaturalCubic, PiecewiseLinear, Polynomial, SmoothingSpline
from unbraid.constraints import Concave, Convex, Decreasing, Increasing, NonNegative
from unbraid.coupling import GrowingCoupling
from unbraid.decouple import decouple
from unbraid.diagnostics import Diagnostics, diagnose
from unbraid.errors import UnbraidError
from unbraid.fit import Fit
from unbraid.iterate import Progress
from unbraid.model import DecoupledModel
from unbraid.problem import Problem
from unbraid.selection import Selection, select
from unbraid.status import Status
from unbraid.version import __version__ as __version__

__all__ = [
    "BSpline",
    "Concave",
    "Convex",
    "DecoupledModel",
    "Decreasing",
    "Diagnostics",
    "Fit",
    "GrowingCoupling",
    "Increasing",
    "NaturalCubic",
    "NonNegative",
    "PiecewiseLinear",
    "Polynomial",
    "Problem",
    "Progress",
    "Selection",
    "SmoothingSpline",
    "Status",
    "UnbraidError",
    "datasets",
    "decouple",
    "diagnose",
    "methods",
    "metrics",
    "plots",
    "select",
]
