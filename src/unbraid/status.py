"""How a fit ended. The text of a status is advice."""

import enum


class Status(enum.Enum):
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
        return self in (Status.CONVERGED, Status.UP_TO_CONSTANTS, Status.TARGET_REACHED)

    @property
    def advice(self) -> str:
        """What it means and what to do, in a sentence."""
        return self.value
