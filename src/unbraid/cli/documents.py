"""The parts that the JSON documents of several commands share."""

from __future__ import annotations

from typing import Any

from unbraid.cli.errors import in_options
from unbraid.results.fit import Fit


def quality(result: Fit) -> dict[str, Any]:
    """How good a fit is and how it ended."""
    return {
        "jacobian_error": result.jacobian_error,
        "output_errors": result.output_errors,
        "objective": result.objective,
        "converged": result.status.converged,
        "status": result.status.name,
        "advice": in_options(result.status.advice),
        "method": result.method,
        "basis": repr(result.basis),
        "seconds": result.seconds,
    }
