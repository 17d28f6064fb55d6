"""unbraid's default solver with smoothing splines, their smoothing chosen from the data."""

from unbraid.bases import SmoothingSpline
from unbraid.comparison.entries import Contender
from unbraid.decouple import decouple

CONTENDER = Contender(
    "smoothing",
    "unbraid, smoothing",
    lambda problem, system, rng: decouple(problem, system.rank, basis=SmoothingSpline(), rng=rng),
)
