"""`methods.hollander2017` with its authors' settings."""

from unbraid.bases import Polynomial
from unbraid.comparison.entries import Contender
from unbraid.decouple import decouple
from unbraid.methods import hollander2017

CONTENDER = Contender(
    "hollander2017",
    "Hollander 2017",
    lambda problem, system, rng: decouple(
        problem, system.rank, basis=Polynomial(system.degree), method=hollander2017(), starts=16, rng=rng
    ),
)
