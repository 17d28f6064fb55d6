"""Random systems with more branches than outputs."""

from unbraid import datasets
from unbraid.studies.comparison.entries import Drawing, System


def drawing(n: int, m: int, r: int, kind: datasets.Kind) -> Drawing:
    """How to draw a random system of n outputs, m inputs and r branches of a kind, with S samples of it."""
    return lambda S, rng: datasets.random_system(n, m, r, S, kind, rng)


SYSTEMS = [
    System("cubic_2_3_4", "cubics, n 2, m 3, r 4", 4, 8, 3, drawing(2, 3, 4, "cubic")),
    System("sine_3_3_5", "sines, n 3, m 3, r 5", 5, 12, 9, drawing(3, 3, 5, "sine")),
    System("sine_1_4_3", "sines, n 1, m 4, r 3", 3, 12, 9, drawing(1, 4, 3, "sine")),
]
