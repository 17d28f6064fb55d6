"""How a fit ended, and what happened on the way: its status, and its trace sweep by sweep."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Self

from unbraid.kernels.arrays import Array


class Member(enum.Enum):
    """An enumeration whose members come back as themselves also from skops, which knows nothing of enumerations."""

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self.value,)


class Status(Member):
    """How a fit ended, and what to do about it.

    Examples
    --------
    >>> from unbraid import Status
    >>> Status.OUT_OF_SWEEPS.converged
    False
    >>> print(Status.INTERRUPTED.advice)
    Interrupted by the user: this is the best iterate found until then.
    """

    RUNNING = "Still at work."
    CONVERGED = "The stopping rule was met."
    UP_TO_CONSTANTS = (
        "The stopping rule was met. Jacobians alone do not determine constants: values of the model are known up to "
        "one constant per output, which `fit.model.through(X, F)` sets from values."
    )
    TARGET_REACHED = "The objective reached its target."
    FLAT = (
        "Steps gain next to nothing any more, less than 0.1 % in ten of them (0.5 % where smoothing "
        "follows): the minimum lies in a flat valley, along which models differ and errors hardly do."
    )
    JOINED = "Ended early, on its way to the same minimum as a better start."
    OUTRUN = "Ended early, too far behind a better start to catch up with it."
    OUT_OF_SWEEPS = (
        "The budget ran out before the stopping rule was met: give the method a larger `max_sweeps` "
        "(or `max_steps` of its polish), or use the best iterate as it is."
    )
    OUT_OF_TIME = "The time limit was reached: raise `max_seconds`, or use the best iterate as it is."
    INTERRUPTED = "Interrupted by the user: this is the best iterate found until then."
    NOT_FINITE = (
        "A step produced inf or nan and the start was given up: this is its best iterate before that. "
        "Lower `coupling`, or try other starts."
    )

    @property
    def converged(self) -> bool:
        """Whether a stopping rule was met, rather than a budget used up."""
        return self in (Status.CONVERGED, Status.UP_TO_CONSTANTS, Status.TARGET_REACHED, Status.FLAT)

    @property
    def advice(self) -> str:
        """What it means and what to do, in a sentence."""
        return self.value


class EventKind(Member):
    """Unusual things that can happen in a sweep."""

    REVIVED = "a row of W0 vanished and got a new random direction"
    REPLACED = "all coefficients of a branch were zero and a LeakyReLU took its place"
    COUPLING_RAISED = "λ was raised"
    NOT_FINITE = "a step produced inf or nan and the start was given up"


@dataclass(frozen=True, repr=False)
class Event:
    """One unusual thing that happened in a sweep: when, where and what.

    Attributes
    ----------
    sweep
        In which sweep, counted from 1.
    kind
        What happened.
    branch
        To which branch, counted from 0, or None where it concerns all. Printed, it counts from 1.
    value
        The new λ where λ was raised, else None.
    """

    sweep: int
    kind: EventKind
    branch: int | None = None
    value: float | None = None

    def __repr__(self) -> str:
        return f"Event({self})"

    def __str__(self) -> str:
        where = "" if self.branch is None else f", branch {self.branch + 1}"
        value = "" if self.value is None else f" to {self.value:g}"
        return f"sweep {self.sweep}{where}: {self.kind.value}{value}"


@dataclass(frozen=True, repr=False)
class Trace:
    """The course of one start, sweep by sweep.

    Attributes
    ----------
    objective
        (sweeps,), ‖J - Ĵ‖² + λ ‖F - F̂‖² over ‖J‖², in the solver's units, at the final λ. With values alone it is
        ‖F - F̂‖² over ‖F - mean F‖², and begins with the polish.
    jacobian_error
        (sweeps,), the first part of the objective, ‖J - Ĵ‖² over ‖J‖².
    events
        Every unusual event, in order.
    search
        How many of the sweeps belong to the search; those after it are Gauss–Newton steps. None: all of them.
    """

    objective: Array
    jacobian_error: Array
    events: tuple[Event, ...]
    search: int | None = None

    @property
    def sweeps(self) -> int:
        """How many sweeps were made."""
        return len(self.objective)

    def __repr__(self) -> str:
        if not self.sweeps:
            return "Trace(no sweeps)"
        first, last = self.objective[0], self.objective.min()
        return f"Trace({self.sweeps} sweeps, objective {first:.3g} -> {last:.3g}, {len(self.events)} events)"
