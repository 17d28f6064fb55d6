"""The two systems of the B-spline paper."""

from unbraid import datasets
from unbraid.studies.comparison.entries import System

SYSTEMS = [
    System("trig", "f_trig", 3, 20, 10, lambda S, rng: datasets.trig(S, rng)),
    System("monotone", "monotone", 3, 14, 5, lambda S, rng: datasets.monotone(S, rng)),
]
