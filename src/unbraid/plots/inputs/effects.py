"""The picture of what each input does to the outputs, all branches together."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unbraid.data.problem import Problem
from unbraid.errors import DataError
from unbraid.inference.importance.partial import FEW_VALUES, Effect, partial_effect
from unbraid.kernels.arrays import Array
from unbraid.plots.inputs.grids import MOST_PANELS, panels_for, uncertainty_to_draw
from unbraid.plots.labels import labels
from unbraid.plots.palette import LINES, MARKERS, QUIET
from unbraid.plots.panels import check_matplotlib, legend_above, model_of, remove_frame, samples_to_draw
from unbraid.plots.scales import output_spreads
from unbraid.results.fit import Fit
from unbraid.results.model import DecoupledModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_OUTPUTS = 6
"""Outputs that are drawn, at most."""
TICKS = 60
"""Samples whose inputs are drawn as ticks, at most."""


def effects(
    fit_or_model: Fit | DecoupledModel,
    axes: Axes | Sequence[Axes] | npt.NDArray[Any] | None = None,
    problem: Problem | None = None,
) -> npt.NDArray[Any]:
    """Draw what each input does to the outputs, all branches together: one panel an input.

    Parameters
    ----------
    fit_or_model
        What was found. Of a fit, bands show how far effects are known.
    axes
        One matplotlib axes per input, or twelve where there are more inputs; new ones if None.
    problem
        The samples; those of the fit if None.

    Returns
    -------
    ndarray of Axes
        In the order of the inputs; of more than twelve, those with the largest effects. A line is the mean over the
        samples of an output when this input is set to the value on the axis and the others stay as they are, less its
        mean, in standard deviations of the output. Bands, where a fit knows its uncertainty, are of 95 %. Ticks
        along the bottom are samples. Of more than six outputs, the six that these inputs move most are drawn.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, truth = ub.datasets.trig(S=100, rng=0)
    >>> panels = ub.plots.effects(truth, problem=problem)
    >>> panels.shape, panels[0].get_xlabel()
    ((2,), 'x₁')
    """
    check_matplotlib()
    model = model_of("effects", fit_or_model)
    samples = samples_to_draw("effects", fit_or_model, problem)
    if samples is None:
        raise DataError("effects needs the samples, which were not given: pass problem=ub.Problem(X, F, J).")
    samples = samples.counting()
    panels = panels_for(min(model.m, MOST_PANELS), axes, "input")
    spread = output_spreads(samples, model)[:, None]
    found = [partial_effect(model, samples, k, None) for k in range(model.m)]
    sizes = np.array([np.ptp(one.values / spread, axis=1) for one in found])  # (m, n)
    inputs = np.sort(np.argsort(-sizes.max(axis=1), kind="stable")[:MOST_PANELS])
    outputs = np.sort(np.argsort(-sizes[inputs].max(axis=0), kind="stable")[:MOST_OUTPUTS])
    sure = uncertainty_to_draw(fit_or_model, problem)
    if sure is not None:
        found = [partial_effect(model, samples, k, sure) if k in inputs else one for k, one in enumerate(found)]
    names, across = labels(samples.output_names, "f", model.n), labels(samples.input_names, "x", model.m)
    wide = 0.0 if sure is None else sure.quantile(0.95)
    for panel, k in zip(panels, inputs, strict=True):
        for line, (i, colour, marker) in enumerate(zip(outputs, itertools.cycle(LINES), MARKERS, strict=False)):
            draw_effect(panel, found[k], (i, spread[i, 0], wide), names[i], (colour, marker, line))
        draw_ticks(panel, samples.X[:, k])
        panel.axhline(0.0, color=QUIET, linewidth=0.8, zorder=0)
        panel.set_xlabel(across[k])
        remove_frame(panel)
    share_heights(panels)
    panels[0].set_ylabel("effect, standard deviations", fontsize="small")
    if axes is None:
        legend_above(panels)
    return panels


def draw_effect(
    panel: Axes, one: Effect, what: tuple[int, float, float], name: str, look: tuple[str, str, int]
) -> None:
    """Draw the effect on output i, in units of its spread, and a band of so many standard deviations."""
    (i, spread, wide), (colour, marker, line) = what, look
    values = one.values[i] / spread
    few = len(one.grid) <= FEW_VALUES
    marks: Any = slice(None) if few else slice(3 * line, None, 20)
    panel.plot(
        one.grid, values, color=colour, linewidth=1.6, marker=marker, markersize=4.0, markevery=marks, label=name
    )
    if one.std is None or not np.isfinite(one.std[i]).all():
        return
    band = wide * one.std[i] / spread
    if few:
        panel.errorbar(one.grid, values, yerr=band, color=colour, linewidth=1.0, linestyle="none", capsize=2.5)
    else:
        panel.fill_between(one.grid, values - band, values + band, color=colour, alpha=0.2, linewidth=0.0)


def draw_ticks(panel: Axes, x: Array) -> None:
    """Short lines along the bottom where samples lie."""
    some = np.quantile(x, np.linspace(0.0, 1.0, min(len(x), TICKS)))
    panel.plot(some, np.zeros(len(some)), "|", transform=panel.get_xaxis_transform(), color=QUIET, markersize=5.0)


def share_heights(panels: npt.NDArray[Any]) -> None:
    """Give all panels the same range of effects, so that what is large looks large."""
    low, high = (one(panel.get_ylim()[end] for panel in panels) for one, end in ((min, 0), (max, 1)))
    for panel in panels:
        panel.set_ylim(low, high)
