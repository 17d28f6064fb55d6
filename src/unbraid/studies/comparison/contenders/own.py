"""unbraid's default, which has nothing to choose, and the same solver with splines of the system's df."""

from unbraid.bases import BSpline
from unbraid.decouple import decouple
from unbraid.studies.comparison.entries import Contender

CONTENDERS = [
    Contender(
        "default",
        "unbraid",
        lambda problem, system, rng: decouple(problem, system.rank, rng=rng),
    ),
    Contender(
        "splines",
        "unbraid, BSpline(df)",
        lambda problem, system, rng: decouple(problem, system.rank, basis=BSpline(system.df), rng=rng),
    ),
]
