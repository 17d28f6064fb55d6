"""`methods.hollander2017` with its authors' settings."""

from unbraid.bases import Polynomial
from unbraid.decouple import decouple
from unbraid.methods import hollander2017
from unbraid.studies.comparison.entries import Contender

CONTENDER = Contender(
    "hollander2017",
    "Hollander 2017",
    lambda problem, system, rng: decouple(
        problem, system.rank, basis=Polynomial(system.degree), method=hollander2017(), starts=16, rng=rng
    ),
)
