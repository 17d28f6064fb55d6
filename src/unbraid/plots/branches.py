"""The picture of the branches: one panel each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from unbraid.data.problem import Problem
from unbraid.errors import DataError, SettingError, shown
from unbraid.judging.diagnostics import branch_shares
from unbraid.judging.findings import TWICE
from unbraid.judging.glance import glance_at
from unbraid.plots.branch_panel import CURVE, SLOPE, bands_of, draw_branch
from unbraid.plots.certificates import FAILED, certain_shapes, certificate_words
from unbraid.plots.labels import indexed
from unbraid.plots.palette import QUIET, RED
from unbraid.plots.panels import check_matplotlib, legend_above, model_of, new_axes, samples_to_draw
from unbraid.results.alignment import AlignedBranch, lay_truth
from unbraid.results.carrying import superfluous
from unbraid.results.fit import Fit
from unbraid.results.model import DecoupledModel
from unbraid.results.worth.uncertainty import Uncertainty

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def branches(
    fit_or_model: Fit | DecoupledModel,
    truth: DecoupledModel | None = None,
    axes: Axes | Sequence[Axes] | npt.NDArray[Any] | None = None,
    problem: Problem | None = None,
    uncertainty: Uncertainty | Literal["auto"] | None = "auto",
) -> npt.NDArray[Any]:
    """Draw the branches, one panel each.

    Parameters
    ----------
    fit_or_model
        What was found.
    truth
        A known model to compare with. The true branch of the matching direction is laid under each found one: sign
        and length of the direction, scale and constant of the values are the found branch's. It has as many branches
        as the model, or as those of the model that carry something.
    axes
        One matplotlib axes per branch; new ones if None.
    problem
        The samples, to show where the data lie and how much each branch matters; those of the fit if None.
    uncertainty
        What bands of branches and of their slopes are of: what `fit.uncertainty()` gave, from a bootstrap for one; None
        draws none. "auto": of a fit that remembers its samples, from the fit to first order, unless what is left is
        plainly no noise or that would take long; then a remark below new figures says why there are none.

    Returns
    -------
    ndarray of Axes
        The r axes drawn on, in the order of `model.branches`: the first is g₁. Or as many as `truth` has branches,
        those that carry something. A branch that carries nothing has no curve. The shaded ground is the range seen in
        training; outside it a branch is continued and drawn dotted. Around the curve is its 95 % band, point by point.
        The strip along the bottom is the slope, the silhouette above it shows where the data lie, ticks on the curve
        are knots. Above a panel: what coefficients certify of the shape (for a fit: of the constraint asked for), and
        the share of the branch in the outputs' variance, as `diagnose` has it.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, truth = ub.datasets.trig(S=100, rng=0)
    >>> fit = ub.decouple(problem, rank=3, starts=4, rng=0)
    >>> panels = ub.plots.branches(fit, truth)
    >>> panels.shape, panels[0].get_title(loc="left")
    ((3,), 'branch 1')
    """
    check_matplotlib()
    model = model_of("branches", fit_or_model)
    if truth is not None and not isinstance(truth, DecoupledModel):
        raise DataError(f"truth must be a DecoupledModel, got a {type(truth).__name__}.")
    samples = samples_to_draw("branches", fit_or_model, problem)
    sure, remark = what_is_sure(fit_or_model, samples if problem is None else None, uncertainty)
    samples = None if samples is None else samples.counting()
    panels = panels_for(model.rank if truth is None else truth.rank, axes)
    idle = superfluous(model)
    laid: dict[int, AlignedBranch | None] = dict.fromkeys(range(model.rank))
    if truth is not None:
        laid = dict(lay_truth(model, truth))
    shares = None if samples is None else branch_shares(model, samples).values
    asked = fit_or_model.constraints if isinstance(fit_or_model, Fit) else None
    for panel, (j, true) in zip(panels, laid.items(), strict=True):
        branch = model.branches[j]
        if truth is None and j in idle:
            leave_empty(panel, j)
            continue
        u = None if samples is None else samples.X @ model.W0[j]
        strip = draw_branch(panel, branch, true, u, bands_of(sure, j))
        shape = certain_shapes(branch) if asked is None else certificate_words(branch, asked[j])
        share = "" if shares is None else f"{share_label(shares[j])} of the variance"
        name_panel(panel, strip, j, *((NOTHING,) if j in idle else (shape, share)))
    if axes is None:
        legend_above(panels)
        if remark:
            panels[0].figure.supxlabel(remark, fontsize="x-small", color=QUIET)
    elif truth is not None:
        handles, labels = panels[0].get_legend_handles_labels()
        kept = [(handle, label) for handle, label in zip(handles, labels, strict=True) if label in ("true", "found")]
        panels[0].legend(*zip(*kept, strict=True), loc="best", framealpha=0.8, edgecolor="none", fontsize="small")
    return panels


def what_is_sure(
    given: Fit | DecoupledModel, samples: Problem | None, asked: Uncertainty | Literal["auto"] | None
) -> tuple[Uncertainty | None, str]:
    """The uncertainty to draw bands of, if any, and a remark on why there are none where that may surprise."""
    if asked is None or isinstance(asked, Uncertainty):
        if asked is not None and asked.model.rank != model_of("branches", given).rank:
            raise DataError(f"uncertainty must be that of the model that is drawn, got that of {asked.model!r}.")
        return asked, ""
    if not (isinstance(asked, str) and asked == "auto"):
        raise SettingError(f"uncertainty must be what fit.uncertainty() gives, 'auto' or None, got {shown(asked)}.")
    if not isinstance(given, Fit) or samples is None:
        return None, ""
    found = glance_at(given, samples)
    if found is None:
        return None, TOO_MANY if given.minimised is not None else ""
    return (found.uncertainty, "") if found.uncertainty.reliable else (None, NO_NOISE)


NO_NOISE = "No bands: what the model leaves of the samples is no noise, and bands know of noise alone."
TOO_MANY = "No bands, which would take a while: uncertainty=fit.uncertainty() has them."
"""Why there are no bands."""
NOTHING = "carries nothing"
"""What is said of a branch that data do not support."""


def leave_empty(panel: Axes, j: int) -> None:
    """A panel without a curve, which says that branch j carries nothing."""
    panel.set_axis_off()
    panel.set_title(f"branch {j + 1}", fontsize="medium", loc="left", y=1.0, color=QUIET)
    panel.text(0.5, 0.5, NOTHING, transform=panel.transAxes, ha="center", va="center", color=QUIET)


def panels_for(
    count: int, axes: Axes | Sequence[Axes] | npt.NDArray[Any] | None, what: str = "branches"
) -> npt.NDArray[Any]:
    """The axes given, as an array of so many, or new ones."""
    from matplotlib.axes import Axes

    if axes is None:
        return new_axes(count)
    panels = np.atleast_1d(np.array(axes, dtype=object)).ravel()
    if len(panels) != count:
        raise DataError(f"axes must hold one axes for each of the {count} {what}, got {len(panels)}.")
    strange = next((panel for panel in panels if not isinstance(panel, Axes)), None)
    if strange is not None:
        raise DataError(f"axes must hold matplotlib axes, got a {type(strange).__name__}.")
    return panels


def name_panel(panel: Axes, strip: Axes, j: int, *remarks: str) -> None:
    """Write the labels and the title of branch j; remarks stand beside the title in small print."""
    u, g = indexed("u", j + 1), indexed("g", j + 1)
    panel.set_xlabel(f"{u} = {indexed('(W₀x)', j + 1)}")
    panel.set_ylabel(f"{g}({u})", y=sum(CURVE) / 2)
    strip.set_ylabel(f"{g}′", color=QUIET, fontsize="small", y=sum(SLOPE) / 2 / SLOPE[1])
    panel.set_title(f"branch {j + 1}", fontsize="medium", loc="left", y=1.0)
    small = "\n".join(filter(None, remarks))
    panel.set_title(small, fontsize="x-small", color=RED if FAILED in small else QUIET, loc="right", y=1.0)
    strip.set_title("", y=1.0)  # a place of its own: matplotlib is slow to find one


def share_label(share: float) -> str:
    """A share in the small print above a panel: '62 %', '0.4 %', 'under 0.1 %', 'over 200 %' where branches cancel."""
    if share > TWICE:
        return f"over {100.0 * TWICE:g} %"
    if abs(share) < 1e-3:
        return "under 0.1 %"
    return f"{100.0 * share:.1f} %" if abs(share) < 0.0995 else f"{100.0 * share:.0f} %"
