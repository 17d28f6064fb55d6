"""λ, the weight of the values against the Jacobians: fixed, or growing sweep by sweep.

λ multiplies the *squared* norm of the values' residual, as in the paper's equation (10).
"""

from __future__ import annotations

from dataclasses import dataclass

from unbraid.errors import SettingError, check_number, check_whole, shown

MOST_STEPS = 10_000
"""λ grows so often, at most."""


@dataclass(frozen=True)
class FixedCoupling:
    """The same λ in every sweep. Where it is `open`, and smoothing is chosen from the data, so is λ then."""

    value: float
    open: bool = False

    def __post_init__(self) -> None:
        check_number("coupling", self.value, 0.0)

    def at(self, sweep: int) -> float:
        """λ in a sweep, counted from 0."""
        return self.value

    @property
    def final(self) -> float:
        """The λ that iterates are compared at."""
        return self.value


@dataclass(frozen=True)
class GrowingCoupling:
    """λ = start · factor^(sweep // every), up to `limit`.

    Examples
    --------
    >>> import unbraid as ub
    >>> schedule = ub.GrowingCoupling(start=0.01, factor=10.0, every=50, limit=1.0)
    >>> [schedule.at(sweep) for sweep in (0, 49, 50, 100, 1000)]
    [0.01, 0.01, 0.1, 1.0, 1.0]
    """

    start: float = 0.01
    factor: float = 1.1
    every: int = 5
    limit: float = 1.0

    def __post_init__(self) -> None:
        check_number("start", self.start, 0.0)
        check_number("factor", self.factor, 1.0)
        check_whole("every", self.every, 1)
        check_number("limit", self.limit, self.start)

    def at(self, sweep: int) -> float:
        """λ in a sweep, counted from 0."""
        steps = min(sweep // self.every, MOST_STEPS)
        try:
            return min(self.start * self.factor**steps, self.limit)
        except OverflowError:
            return self.limit if self.start else 0.0

    @property
    def final(self) -> float:
        """The λ that iterates are compared at: the last one, which is less than the limit where λ hardly grows."""
        return self.at(MOST_STEPS * self.every)


Coupling = FixedCoupling | GrowingCoupling


def as_coupling(given: float | Coupling) -> Coupling:
    """A schedule from a number or a schedule."""
    if isinstance(given, FixedCoupling | GrowingCoupling):
        return given
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise SettingError(f"coupling must be a number or a ub.GrowingCoupling, got {shown(given)}.")
    return FixedCoupling(float(given))
