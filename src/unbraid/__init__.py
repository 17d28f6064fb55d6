"""unbraid: pull a multivariate function apart into univariate strands, f(x) ≈ W1 g(W0 x)."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from unbraid import datasets, methods, metrics
from unbraid.bases import BSpline, NaturalCubic, PiecewiseLinear, Polynomial, SmoothingSpline
from unbraid.bases.constraints import Concave, Convex, Decreasing, Increasing, NonNegative
from unbraid.data.problem import Problem
from unbraid.decouple import decouple
from unbraid.errors import UnbraidError
from unbraid.inference.importance.result import Importance
from unbraid.judging.diagnostics import Diagnostics, diagnose
from unbraid.judging.importance import importance
from unbraid.results.fit import Fit
from unbraid.results.model import DecoupledModel
from unbraid.results.outcome import Status
from unbraid.runtime.progress import Progress
from unbraid.sample import Sampling, sample
from unbraid.solvers.coupling import GrowingCoupling
from unbraid.version import __version__ as __version__

EARLIER_PATHS = {
    "branch": "unbraid.results.branch",
    "diagnostics": "unbraid.judging.diagnostics",
    "fit": "unbraid.results.fit",
    "stopping": "unbraid.solvers.loop",
    "trace": "unbraid.results.outcome",
}
"""Modules that were documented under another path, by that path; `import unbraid.branch` goes on to work."""

for earlier, path in EARLIER_PATHS.items():
    sys.modules[f"{__name__}.{earlier}"] = import_module(path)

LAZY = {
    "DecouplingRegressor": "unbraid.estimator",
    "Formulas": "unbraid.closed",
    "Selection": "unbraid.selection.answer",
    "formulas": "unbraid.closed",
    "select": "unbraid.selection.select",
}
LAZY_MODULES = ("dynamics", "networks", "plots")
"""Names whose modules import other packages or many modules, and are imported when they are first asked for."""

if TYPE_CHECKING:
    from unbraid import dynamics as dynamics
    from unbraid import networks as networks
    from unbraid import plots as plots
    from unbraid.closed import Formulas as Formulas
    from unbraid.closed import formulas as formulas
    from unbraid.estimator import DecouplingRegressor as DecouplingRegressor
    from unbraid.selection.answer import Selection as Selection
    from unbraid.selection.select import select as select
else:

    def __getattr__(name: str) -> Any:
        if name in EARLIER_PATHS:
            return sys.modules[f"{__name__}.{name}"]
        if name in LAZY_MODULES:
            return import_module(f"{__name__}.{name}")
        if name not in LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *LAZY, "__version__"})


__all__ = [
    "BSpline",
    "Concave",
    "Convex",
    "DecoupledModel",
    "Decreasing",
    "Diagnostics",
    "Fit",
    "Formulas",
    "GrowingCoupling",
    "Importance",
    "Increasing",
    "NaturalCubic",
    "NonNegative",
    "PiecewiseLinear",
    "Polynomial",
    "Problem",
    "Progress",
    "Sampling",
    "Selection",
    "SmoothingSpline",
    "Status",
    "UnbraidError",
    "datasets",
    "decouple",
    "diagnose",
    "dynamics",
    "formulas",
    "importance",
    "methods",
    "metrics",
    "networks",
    "plots",
    "sample",
    "select",
]
