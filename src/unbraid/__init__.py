"""unbraid: pull a multivariate function apart into univariate strands, f(x) ≈ W1 g(W0 x)."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from unbraid.bases import BSpline, NaturalCubic, PiecewiseLinear, Polynomial, SmoothingSpline
from unbraid.bases.constraints import Concave, Convex, Decreasing, Increasing, NonNegative
from unbraid.data.problem import Problem
from unbraid.decouple import decouple
from unbraid.earlier_paths import EARLIER_PATHS, EarlierPaths
from unbraid.errors import UnbraidError
from unbraid.results.fit import Fit
from unbraid.results.model import DecoupledModel
from unbraid.results.outcome import Status
from unbraid.runtime.progress import Progress
from unbraid.sample import Sampling, sample
from unbraid.version import __version__ as __version__

sys.meta_path.append(EarlierPaths())

LAZY = {
    "DecouplingRegressor": "unbraid.estimator",
    "Diagnostics": "unbraid.judging.diagnostics",
    "Formulas": "unbraid.closed",
    "GrowingCoupling": "unbraid.solvers.coupling",
    "Importance": "unbraid.inference.importance.result",
    "Selection": "unbraid.selection.answer",
    "diagnose": "unbraid.judging.diagnostics",
    "formulas": "unbraid.closed",
    "importance": "unbraid.judging.importance",
    "select": "unbraid.selection.select",
}
LAZY_MODULES = ("datasets", "dynamics", "methods", "metrics", "networks", "plots", *EARLIER_PATHS)
"""Names whose modules import other packages or many modules, and are imported when they are first asked for."""

if TYPE_CHECKING:
    from unbraid import datasets as datasets
    from unbraid import dynamics as dynamics
    from unbraid import methods as methods
    from unbraid import metrics as metrics
    from unbraid import networks as networks
    from unbraid import plots as plots
    from unbraid.closed import Formulas as Formulas
    from unbraid.closed import formulas as formulas
    from unbraid.estimator import DecouplingRegressor as DecouplingRegressor
    from unbraid.inference.importance.result import Importance as Importance
    from unbraid.judging.diagnostics import Diagnostics as Diagnostics
    from unbraid.judging.diagnostics import diagnose as diagnose
    from unbraid.judging.importance import importance as importance
    from unbraid.selection.answer import Selection as Selection
    from unbraid.selection.select import select as select
    from unbraid.solvers.coupling import GrowingCoupling as GrowingCoupling
else:

    def __getattr__(name: str) -> Any:
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
