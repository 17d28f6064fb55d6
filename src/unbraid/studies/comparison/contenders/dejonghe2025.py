"""`methods.dejonghe2025` with its authors' settings."""

from unbraid.bases import BSpline
from unbraid.decouple import decouple
from unbraid.methods import dejonghe2025
from unbraid.studies.comparison.entries import Contender

CONTENDER = Contender(
    "dejonghe2025",
    "De Jonghe 2025",
    lambda problem, system, rng: decouple(
        problem, system.rank, basis=BSpline(system.df), method=dejonghe2025(), starts=16, rng=rng
    ),
)
