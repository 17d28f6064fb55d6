"""Which inputs of a branch lie beyond the ends of a range: decided here, so that all say the same of a point."""

from unbraid.kernels.arrays import Array, BoolArray

ROUNDING = 1e-9
"""Share of a range by which a point may seem to lie beyond it, because it was computed in another way."""


def beyond_ends(u: Array, low: Array | float, high: Array | float) -> tuple[BoolArray, BoolArray]:
    """Which of u lie below `low` and which above `high` by more than rounding; all broadcast against each other."""
    slack = ROUNDING * (high - low)
    below: BoolArray = u < low - slack
    above: BoolArray = u > high + slack
    return below, above
