"""Which inputs lie beyond a range."""

import numpy as np

from unbraid.kernels.ranges import ROUNDING, beyond_ends


def test_points_lie_beyond_an_end_by_more_than_rounding() -> None:
    low, high = np.array([-1.0, 10.0]), np.array([3.0, 11.0])
    length = high - low
    for k in range(2):
        for off, wanted in ((-1.0, True), (-2.0 * ROUNDING, True), (-0.5 * ROUNDING, False), (0.5, False)):
            assert beyond_ends(low + off * length, low, high)[0][k] == wanted
            assert beyond_ends(high - off * length, low, high)[1][k] == wanted
    assert not any(beyond_ends(np.array([np.nan]), 0.0, 1.0))  # nobody knows
