"""What tests of pictures share: fits to draw, and what stands in a picture."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import matplotlib as mpl
import numpy as np

import unbraid as ub


@cache
def trig() -> tuple[ub.Fit, ub.DecoupledModel]:
    """A fit of f_trig, and the truth."""
    problem, truth = ub.datasets.trig(S=100, rng=1)
    return ub.decouple(problem, 3, basis=ub.BSpline(20), starts=6, rng=0), truth


@cache
def large() -> ub.Fit:
    """Twenty branches, thirty inputs and outputs; of few sweeps, because only its size matters."""
    problem, _ = ub.datasets.random_system(n=30, m=30, r=20, S=400, rng=0)
    names = [f"a rather long name {k}" for k in range(30)]
    problem = ub.Problem(problem.X, problem.F, problem.J, input_names=names, output_names=names)
    return ub.decouple(problem, 20, method=ub.methods.dejonghe2025(max_sweeps=3), starts=1, rng=0)


def line(panel: Any, label: str) -> tuple[Any, Any]:
    """The x and y of the one line of that name."""
    [one] = [line for line in panel.get_lines() if line.get_label() == label]
    return np.asarray(one.get_xdata(), dtype=float), np.asarray(one.get_ydata(), dtype=float)


def as_svg(panel: Any) -> str:
    """The figure of a panel as the report embeds it."""
    file = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        panel.get_figure(root=True).savefig(file, format="svg")
    return file.getvalue()
