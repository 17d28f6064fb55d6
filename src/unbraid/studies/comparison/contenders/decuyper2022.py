"""`methods.decuyper2022` with its authors' settings."""

from unbraid.bases import Polynomial
from unbraid.decouple import decouple
from unbraid.methods import decuyper2022
from unbraid.studies.comparison.entries import Contender

CONTENDER = Contender(
    "decuyper2022",
    "Decuyper 2022",
    lambda problem, system, rng: decouple(
        problem, system.rank, basis=Polynomial(system.degree), method=decuyper2022(), starts=2, rng=rng
    ),
)
