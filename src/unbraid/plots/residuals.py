"""The picture of what a model leaves unexplained, output by output."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unbraid.data.magnitudes import Magnitudes
from unbraid.data.problem import Problem
from unbraid.errors import DataError
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.plots.labels import labels
from unbraid.plots.palette import BLACK, BLUE, GREY, LINES, MARKERS, QUIET
from unbraid.plots.panels import (
    axis_for,
    check_matplotlib,
    inches,
    model_of,
    remove_frame,
    samples_to_draw,
    thinning_words,
)
from unbraid.plots.scales import input_spreads, output_spreads
from unbraid.results.fit import Fit, value_errors
from unbraid.results.model import DecoupledModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW_OUTPUTS = 4
"""Outputs that are drawn point by point; more are summed up."""
MOST_POINTS = 1200
"""Points that are drawn, of all outputs together."""
JACOBIANS = 2000
"""Samples at which Jacobians are compared, at most."""


class Misfit(NamedTuple):
    """Predictions of one output, in units of its spread, residuals in % of it, and its error in %."""

    predicted: Array
    residual: Array
    error: float


def residuals(fit_or_model: Fit | DecoupledModel, problem: Problem | None = None, ax: Axes | None = None) -> Axes:
    """Draw what the model leaves of the values, in % of the standard deviation of each output.

    Parameters
    ----------
    fit_or_model
        What was found.
    problem
        The samples: those that were fitted, which the fit may remember, or others.
    ax
        Matplotlib axes; new ones if None.

    Returns
    -------
    Axes
        Up to four outputs are drawn point by point against the prediction, at most 1,200 points in all. Of more
        outputs, each has its median, its middle half, the middle nine tenths and the largest. Without values: the same
        of the Jacobians, in % of the root mean square of each output's. Of more than 100,000 samples so many are
        looked at, and the axis says so.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, truth = ub.datasets.trig(S=100, rng=0)
    >>> axes = ub.plots.residuals(ub.decouple(problem, rank=3, starts=4, rng=0))
    >>> axes.get_xlabel()
    'predicted, in standard deviations'
    """
    check_matplotlib()
    model = model_of("residuals", fit_or_model)
    samples = samples_to_draw("residuals", fit_or_model, problem)
    if samples is None:
        raise DataError("residuals needs the samples, which were not given: pass problem=ub.Problem(X, F, J).")
    some = thinning_words(fit_or_model, problem, samples)
    sizes = Magnitudes.of(samples)  # squares of very large and very small numbers would not be numbers
    model, samples = model.rescaled(-sizes.x, -sizes.f), sizes.problem(samples).counting()
    misfits = list(value_misfits(model, samples) if samples.F is not None else jacobian_misfits(model, samples))
    names = labels(samples.output_names, "f", model.n)
    panel = axis_for(ax, max(4.6, 1.2 + 0.26 * model.n))
    unit = "standard deviation" if samples.F is not None else "root mean square"
    what = "residual" if samples.F is not None else "residual of slopes"
    if model.n <= FEW_OUTPUTS:
        draw_points(panel, misfits, names)
        panel.set_xlabel(f"predicted, in {unit}s{some}", fontsize="small")
    else:
        draw_ranges(panel, misfits, names)
        panel.set_xlabel(f"output{some}")
    panel.axhline(0.0, color=QUIET, linewidth=0.8, zorder=0)
    panel.set_ylabel(f"{what}, % of {unit}", fontsize="small")
    remove_frame(panel)
    return panel


def value_misfits(model: DecoupledModel, samples: Problem) -> Iterator[Misfit]:
    """The misfit of every output, over the values that are known."""
    assert samples.F is not None
    F, predicted, spread = samples.F, model(samples.X), output_spreads(samples, model)
    errors = value_errors(samples, model)
    for i in range(model.n):
        known = ~np.isnan(F[:, i])
        centre = float(F[known, i].mean()) if known.any() else 0.0
        residual = 100.0 * (F[known, i] - predicted[known, i]) / spread[i]
        yield Misfit((predicted[known, i] - centre) / spread[i], residual, float(errors[i]))


def jacobian_misfits(model: DecoupledModel, samples: Problem) -> Iterator[Misfit]:
    """The misfit of every output, over the entries of its Jacobian in inputs of unit spread."""
    assert samples.J is not None
    some = spread_evenly(samples.S, JACOBIANS)
    spread = input_spreads(samples)
    J, predicted = samples.J[some] * spread, model.jacobian(samples.X[some]) * spread
    weights = np.ones(len(some)) if samples.weights is None else samples.weights[some]
    by_entry = np.repeat(weights[:, None], model.m, axis=1)
    for i in range(model.n):
        known = ~np.isnan(J[:, i])
        given, w = J[:, i][known], by_entry[known]
        size = float(np.sqrt(np.average(given**2, weights=w))) if w.sum() > 0.0 else 0.0
        residual = 100.0 * (given - predicted[:, i][known]) / (size or 1.0)
        error = float(np.sqrt(np.average(residual**2, weights=w))) if w.sum() > 0.0 else np.nan
        yield Misfit(predicted[:, i][known] / (size or 1.0), residual, error)


def misfit_words(one: Misfit) -> str:
    """The error of an output, '2.4 %', or why there is no such number."""
    if not one.residual.size:
        return "not known"
    return "does not vary" if np.isinf(one.error) else f"{one.error:.2g} %"


def spread_evenly(count: int, most: int) -> IndexArray:
    """At most so many of the numbers below `count`, evenly spread from the first to the last."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def draw_points(panel: Axes, misfits: list[Misfit], names: list[str]) -> None:
    """Draw residuals against predictions, a colour and a mark an output."""
    looks = zip(itertools.cycle(LINES), itertools.cycle(MARKERS), strict=False)
    for one, name, (colour, marker) in zip(misfits, names, looks, strict=False):
        some = spread_evenly(one.residual.size, MOST_POINTS // len(misfits)) if one.residual.size else slice(0)
        look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 3.2, "alpha": 0.65}
        look["label"] = f"{name}: {misfit_words(one)}"
        many = one.residual.size > MOST_POINTS
        panel.plot(
            one.predicted[some], one.residual[some], linestyle="none", markeredgewidth=0, rasterized=many, **look
        )
    panel_legend_above(panel)


def draw_ranges(panel: Axes, misfits: list[Misfit], names: list[str]) -> None:
    """Draw quantiles of the residuals, a column an output."""
    quantiles = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
    table = np.array(
        [np.quantile(one.residual, quantiles) if one.residual.size else np.full(7, np.nan) for one in misfits]
    )
    least, low, quarter, median, three_quarters, high, most = table.T
    x = np.arange(len(names))
    panel.vlines(x, low, high, color=BLUE, linewidth=1.2, label="middle 90 %")
    panel.vlines(x, quarter, three_quarters, color=BLUE, linewidth=5.0, label="middle half")
    panel.plot(x, median, "_", color=BLACK, markersize=8.0, markeredgewidth=1.2, label="median")
    for ends, label in ((least, "largest"), (most, None)):
        panel.plot(x, ends, ".", color=GREY, markersize=4.0, label=label)
    panel.set_xticks(x, names, rotation=90 if len(names) > 8 or max(map(len, names)) > 9 else 0, fontsize="small")
    panel.set_xlim(-0.7, len(names) - 0.3)
    panel_legend_above(panel)


def panel_legend_above(panel: Axes) -> None:
    """Put the legend above the panel, where it hides nothing, in as many columns as there is room for."""
    handles, names = panel.get_legend_handles_labels()
    entry = 0.3 + 0.062 * max(map(len, names))
    columns = min(len(names), max(1, int(inches(panel)[0] / entry)))
    look: dict[str, Any] = {"frameon": False, "fontsize": "small", "handletextpad": 0.4, "columnspacing": 1.0}
    panel.legend(handles, names, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, handlelength=1.3, **look)
