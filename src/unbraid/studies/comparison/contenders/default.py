"""unbraid's default solver."""

from unbraid.bases import BSpline
from unbraid.decouple import decouple
from unbraid.studies.comparison.entries import Contender

CONTENDER = Contender(
    "default", "unbraid", lambda problem, system, rng: decouple(problem, system.rank, basis=BSpline(system.df), rng=rng)
)
