"""`methods.dreesen2015` with its authors' settings."""

from unbraid.bases import Polynomial
from unbraid.decouple import decouple
from unbraid.methods import dreesen2015
from unbraid.studies.comparison.entries import Contender

CONTENDER = Contender(
    "dreesen2015",
    "Dreesen 2015",
    lambda problem, system, rng: decouple(
        problem, system.rank, basis=Polynomial(system.degree), method=dreesen2015(), starts=16, rng=rng
    ),
)
