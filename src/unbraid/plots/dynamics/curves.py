"""The picture of the curves of a dynamic model: one panel each."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from unbraid.dynamics.fit import DynamicFit
from unbraid.dynamics.models.slopes import visited
from unbraid.plots.branch_panel import draw_branch
from unbraid.plots.branches import name_panel, panels_for
from unbraid.plots.certificates import certain_shapes
from unbraid.plots.dynamics.given import dynamic_fit
from unbraid.plots.labels import indexed
from unbraid.plots.panels import check_matplotlib, legend_above


def curves(fit: DynamicFit, axes: Any = None) -> npt.NDArray[Any]:
    """Draw the branches of a dynamic model, one panel each.

    Parameters
    ----------
    fit
        What `ub.dynamics.state_space` or `ub.dynamics.narx` returns.
    axes
        One matplotlib axes per branch; new ones if None.

    Returns
    -------
    ndarray of Axes
        The r axes drawn on, as `ub.plots.branches` has them: the shaded ground is the range seen in training, beyond it
        the branch is continued and drawn dotted; the silhouette shows where the simulations of the records were.
    """
    check_matplotlib()
    model = dynamic_fit("curves", fit).model.nonlinearity
    phi = visited(fit.simulations)
    panels = panels_for(model.rank, axes)
    for j, (panel, branch) in enumerate(zip(panels, model.branches, strict=True)):
        strip = draw_branch(panel, branch, None, None if phi is None else phi @ model.W0[j])
        name_panel(panel, strip, j, certain_shapes(branch))
        panel.set_xlabel(f"{indexed('u', j + 1)} = {indexed('(W₀φ)', j + 1)}")
    if axes is None:
        legend_above(panels)
    return panels
