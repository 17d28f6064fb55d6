"""What a notebook shows of a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unbraid.report.packages import missing_packages

if TYPE_CHECKING:
    from unbraid.fit import Fit


def notebook_view(fit: Fit) -> str | None:
    """A small view of the fit as HTML; None where a package for it is missing."""
    if missing_packages():
        return None
    return None
