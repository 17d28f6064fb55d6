"""unbraid's default solver."""

from unbraid.bases import BSpline
from unbraid.comparison.entries import Contender
from unbraid.decouple import decouple

CONTENDER = Contender(
    "default", "unbraid", lambda problem, system, rng: decouple(problem, system.rank, basis=BSpline(system.df), rng=rng)
)
