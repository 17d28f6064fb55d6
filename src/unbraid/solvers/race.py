"""Starts that compete: who of a batch need not go on, so that the others, and the user, need not wait for them.

Every `LAP` sweeps a race is looked at. A start on its way to where a better one is has joined it; one too far behind to
catch up is outrun; and one that gains next to nothing has come to a flat valley. The best one is never outrun.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from unbraid.kernels.arrays import Array, BoolArray, IndexArray
from unbraid.metrics import direction_angles
from unbraid.results.outcome import Status

LAP = 10
"""Sweeps between two looks at a race."""
CATCHING_UP = 10
"""A start that would not catch up with the best one in so many laps, at the pace of the last, is out of the race."""
CATCHING_UP_LATE, MAY_BE_EXACT = 100, 1e-4
"""The same where the best relative objective is below the second: exact solutions may come late, after a plateau."""
JOINED_ANGLE, JOINED_OBJECTIVE = 2.0, 0.01
"""Starts this close, in degrees and in share of the objective, are on their way to the same minimum."""
SLOW = 0.01
"""Starts that are close in the objective alone are as good as each other where both gain less than this in a lap."""
HEADING_FOR_ZERO = 1e-9
"""A start of a relative objective below this may be on its way to an exact solution, and has come to no valley."""
LOST = (Status.JOINED, Status.OUTRUN)
"""How starts end that left a race."""


@dataclass(frozen=True)
class Rules:
    """What ends a start of a race, beside that it has joined another by its directions.

    Attributes
    ----------
    flat, laps
        It has come to a flat valley when it gains less than this share of its objective in each of so many laps.
    at_rest
        Whether it has not come there before its knots have found their place.
    outruns
        Whether objectives alone end it: where it is outrun, or as good as a better one and both are slow.
    in_time
        Whether it is outrun where it would not catch up before its budget is spent.
    """

    flat: float
    laps: int
    at_rest: bool
    outruns: bool
    in_time: bool = False


TO_THE_END = Rules(1e-3, 2, at_rest=True, outruns=True)
"""Where the race is the end: what is still to be gained is not worth waiting for."""
ROUGHLY = Rules(5e-3, 1, at_rest=False, outruns=True)
"""Where the winner goes on, in another basis."""
AGAINST_A_RIVAL = Rules(0.0, 1, at_rest=True, outruns=True, in_time=True)
"""Where a start goes on for as long as it may still catch up with what there is."""
TOGETHER = Rules(0.0, 1, at_rest=False, outruns=False)
"""Where all that differ go on."""


@dataclass
class Race:
    """How a race stands: objectives (starts,) at the last look, for how many laps starts gained next to nothing, and
    what they gained in the last one: logarithms.

    Starts are compared with those of their batch, which therefore is part of the result.
    """

    objective: Array
    flat: IndexArray
    gained: Array

    @classmethod
    def first(cls, starts: int) -> Self:
        """Before the first lap, which only tells who has joined another: what is far behind may be the fastest."""
        return cls(np.full(starts, np.inf), np.zeros(starts, dtype=int), np.zeros(starts))

    def endings(
        self, rules: Rules, active: IndexArray, objective: Array, W0: Array, least: float = np.inf, laps: float = np.inf
    ) -> dict[Status, BoolArray]:
        """Which of the active starts end at this look, and how.

        `least` is the lowest objective of those that are at their end, or out of reach; `laps` are left.
        """
        gained = np.log(self.objective[active] / objective)
        self.objective[active], self.gained[active] = objective, gained
        self.flat[active] = np.where(np.abs(gained) < rules.flat, self.flat[active] + 1, 0)  # new knots may cost
        best = min(objective.min(), least)
        if not rules.in_time:
            laps = CATCHING_UP if best > MAY_BE_EXACT else CATCHING_UP_LATE
        hoped = laps * np.maximum(gained, 0.0) if laps else np.zeros(len(active))
        joined = np.zeros(len(active), dtype=bool)
        order = np.argsort(objective, kind="stable")
        for k, i in enumerate(order[1:], 1):
            near = [j for j in order[:k] if objective[i] <= (1.0 + JOINED_OBJECTIVE) * objective[j]]
            slow = rules.outruns and gained[i] < SLOW and any(gained[j] < SLOW for j in near)
            joined[i] = slow or any(float(direction_angles(W0[i], W0[j]).max()) < JOINED_ANGLE for j in near)
        return {
            Status.FLAT: (self.flat[active] >= rules.laps) & (objective > HEADING_FOR_ZERO),
            Status.OUTRUN: rules.outruns & (np.log(objective / best) > hoped + JOINED_OBJECTIVE),
            Status.JOINED: joined,
        }
