"""unbraid's default solver with smoothing splines, their smoothing chosen from the data."""

from unbraid.bases import SmoothingSpline
from unbraid.decouple import decouple
from unbraid.studies.comparison.entries import Contender

CONTENDER = Contender(
    "smoothing",
    "unbraid, smoothing",
    lambda problem, system, rng: decouple(problem, system.rank, basis=SmoothingSpline(), rng=rng),
)
