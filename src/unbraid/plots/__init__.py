"""Pictures: axes in, axes out. Needs matplotlib, which the extra `report` brings.

May import `sample`, `selection` and what lies below; computes nothing.
"""

from unbraid.plots.branches import branches
from unbraid.plots.convergence import convergence
from unbraid.plots.learning import learning_curve
from unbraid.plots.palette import (
    BLACK,
    BLUE,
    COLUMNS,
    GREEN,
    GREY,
    LINES,
    MARGIN,
    MARKERS,
    ORANGE,
    PANEL,
    PURPLE,
    RED,
    SKY,
)
from unbraid.plots.panels import check_matplotlib, legend_above, new_axes, settle_layout
from unbraid.plots.residuals import residuals
from unbraid.plots.selection import selection
from unbraid.plots.starts import starts
from unbraid.plots.weights import weights

__all__ = [
    "BLACK",
    "BLUE",
    "COLUMNS",
    "GREEN",
    "GREY",
    "LINES",
    "MARGIN",
    "MARKERS",
    "ORANGE",
    "PANEL",
    "PURPLE",
    "RED",
    "SKY",
    "branches",
    "check_matplotlib",
    "convergence",
    "learning_curve",
    "legend_above",
    "new_axes",
    "residuals",
    "selection",
    "settle_layout",
    "starts",
    "weights",
]
