"""unbraid's default solver: with splines of the system's df, and with smoothing splines, which have none to choose."""

from unbraid.bases import BSpline, SmoothingSpline
from unbraid.decouple import decouple
from unbraid.studies.comparison.entries import Contender

CONTENDERS = [
    Contender(
        "default",
        "unbraid",
        lambda problem, system, rng: decouple(problem, system.rank, basis=BSpline(system.df), rng=rng),
    ),
    Contender(
        "smoothing",
        "unbraid, smoothing",
        lambda problem, system, rng: decouple(problem, system.rank, basis=SmoothingSpline(), rng=rng),
    ),
]
