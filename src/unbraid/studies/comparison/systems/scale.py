"""Two outputs of very different size."""

from unbraid import datasets
from unbraid.studies.comparison.entries import System

SYSTEMS = [System("scale", "scale test, s = 100", 4, 20, 10, lambda S, rng: datasets.scale(S, rng, factor=100.0))]
