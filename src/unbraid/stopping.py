"""When to stop."""

from __future__ import annotations

from dataclasses import dataclass

from unbraid.errors import SettingError, check_number, check_whole


@dataclass(frozen=True)
class Stopping:
    """Stopping rules; the first one met ends a start.

    Parameters
    ----------
    max_sweeps
        Budget of sweeps.
    tolerance
        Converged when the objective changes by at most this share of itself in `patience` sweeps in a
        row. 0 means: use all sweeps.
    target
        Done when the relative objective is at most this. None: no target.
    max_seconds
        Time limit for all starts together. None: no limit.
    patience
        See `tolerance`.
    """

    max_sweeps: int = 300
    tolerance: float = 1e-6
    target: float | None = None
    max_seconds: float | None = None
    patience: int = 3

    def __post_init__(self) -> None:
        check_whole("max_sweeps", self.max_sweeps, 1)
        check_number("tolerance", self.tolerance, 0.0)
        check_whole("patience", self.patience, 1)
        if self.target is not None:
            check_number("target", self.target, 0.0)
        if self.max_seconds is not None:
            check_number("max_seconds", self.max_seconds, 0.0)
            if self.max_seconds == 0.0:
                raise SettingError("max_seconds must be above 0, got 0: use None for no limit.")
