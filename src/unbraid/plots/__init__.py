"""Pictures: axes in, axes out. Needs matplotlib, which the extra `report` brings.

May import `dynamics`, `sample`, `selection` and what lies below; computes nothing.
"""

from unbraid.plots import dynamics
from unbraid.plots.branches import branches
from unbraid.plots.convergence import convergence
from unbraid.plots.diagnostics import diagnostics
from unbraid.plots.inputs.effects import effects
from unbraid.plots.inputs.importance import importance
from unbraid.plots.learning import learning_curve
from unbraid.plots.residuals import residuals
from unbraid.plots.selection import selection
from unbraid.plots.sizes import sizes
from unbraid.plots.starts import starts
from unbraid.plots.weights import weights

__all__ = [
    "branches",
    "convergence",
    "diagnostics",
    "dynamics",
    "effects",
    "importance",
    "learning_curve",
    "residuals",
    "selection",
    "sizes",
    "starts",
    "weights",
]


def __dir__() -> list[str]:
    return __all__
