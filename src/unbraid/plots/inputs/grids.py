"""What both pictures need: panels for inputs or outputs, and the uncertainty of a fit where it is quickly told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unbraid.data.problem import Problem
from unbraid.errors import DataError
from unbraid.inference.linearised import LinearisedUncertainty
from unbraid.judging.importance import uncertainty_for
from unbraid.plots.panels import new_axes
from unbraid.results.fit import Fit, given_problem
from unbraid.results.model import DecoupledModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PANELS = 12
"""Panels of a picture, at most."""
QUICK = 2e10
"""Multiplications that a picture may take for bands; where more are needed, it has none."""


def uncertainty_to_draw(given: Fit | DecoupledModel, problem: Problem | None) -> LinearisedUncertainty | None:
    """How far a fit is known; None of a model, and where it takes long."""
    if not isinstance(given, Fit) or (given.problem is None and problem is None):
        return None
    return uncertainty_for(given, given_problem(given, problem), QUICK)


def panels_for(count: int, axes: Axes | Sequence[Axes] | npt.NDArray[Any] | None, each: str) -> npt.NDArray[Any]:
    """The axes given, as an array of so many, or new ones."""
    from matplotlib.axes import Axes

    if axes is None:
        return new_axes(count)
    panels = np.atleast_1d(np.array(axes, dtype=object)).ravel()
    strange = next((panel for panel in panels if not isinstance(panel, Axes)), None)
    if strange is not None:
        raise DataError(f"axes must hold matplotlib axes, got a {type(strange).__name__}.")
    if len(panels) != count:
        raise DataError(f"axes must hold {count} axes, one for each {each} that is drawn, got {len(panels)}.")
    return panels
