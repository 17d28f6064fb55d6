"""What a long work writes down of itself, so that it can go on after a break. A plain `Journal` keeps nothing.

The work is deterministic: what it does next follows from what it has done. So it is cut into units, which come in the
same order each time, and a journal that knows the result of a unit gives that instead of computing it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from unbraid.errors import as_generator
from unbraid.runtime.interrupts import Result


class Journal:
    """A journal that keeps nothing, at no cost; `Checkpoint` has the one that keeps all in a file."""

    def unit(self, compute: Callable[[], Result]) -> Result:
        """The result of the next unit of work; units may be made of units."""
        return compute()

    def began(self, at: float) -> float:
        """Start time of a clock (`time.perf_counter`), moved back by the seconds spent on it in earlier runs."""
        return at

    def generator(self, rng: object) -> np.random.Generator:
        """The generator of random numbers that `rng` stands for; a journal in a file draws from None only once."""
        return as_generator(rng)

    def due(self) -> bool:
        """Whether the loop that is under way should be kept now."""
        return False

    def keep(self, loop: object, solver: object) -> None:
        """Keep the loop that the unit under way consists of; what its solver has is not kept with it."""

    def resumed(self, solver: object) -> Any | None:
        """The loop as it was kept, for the same solver; None if the unit has to begin at its beginning."""
        return None

    def __enter__(self) -> Self:
        return self

    def excuse(self) -> None:
        """Take note that what goes wrong now is not the fault of what was kept, but a callback's."""

    def unwritten(self) -> tuple[str, ...]:
        """Write what is left to be written, at the end of the work; a sentence where that cannot be done."""
        return ()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        """End the journal; this one has nothing left to write."""


NOTHING_KEPT = Journal()
"""For work without a checkpoint."""
