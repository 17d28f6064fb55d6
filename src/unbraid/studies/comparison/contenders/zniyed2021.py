"""`methods.zniyed2021` with its authors' settings."""

from unbraid.bases import PiecewiseLinear
from unbraid.decouple import decouple
from unbraid.methods import zniyed2021
from unbraid.studies.comparison.entries import Contender

CONTENDER = Contender(
    "zniyed2021",
    "Zniyed 2021",
    lambda problem, system, rng: decouple(
        problem, system.rank, basis=PiecewiseLinear(system.df), method=zniyed2021(), starts=16, rng=rng
    ),
)
