"""Polynomial systems of earlier papers."""

from unbraid import datasets
from unbraid.studies.comparison.entries import System

SYSTEMS = [
    System("decuyper", "Decuyper's toy", 3, 8, 3, lambda S, rng: datasets.decuyper(S, rng)),
    System("dreesen_a", "Dreesen (a)", 2, 8, 3, lambda S, rng: datasets.dreesen_a(S, rng)),
    System("dreesen_b", "Dreesen (b)", 4, 8, 3, lambda S, rng: datasets.dreesen_b(S, rng)),
]
