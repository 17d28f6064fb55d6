"""The picture of what a model leaves unexplained, output by output."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unbraid.arrays import Array, IndexArray
from unbraid.errors import DataError
from unbraid.fit import Fit
from unbraid.model import DecoupledModel
from unbraid.plots.labels import labels
from unbraid.plots.palette import BLUE, GREY, LINES, MARKERS, QUIET
from unbraid.plots.panels import axis_for, bare, check_matplotlib, model_of, samples_of
from unbraid.problem import Problem
from unbraid.units import positive, spreads

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 4
"""Outputs that are drawn point by point; more are summed up."""
MOST = 1200
"""Points that are drawn, of all outputs together."""
JACOBIANS = 2000
"""Samples at which Jacobians are compared, at most."""


class Misfit(NamedTuple):
    """Predictions of one output, in units of its spread, residuals in % of it, and the root of their mean square."""

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
        of the Jacobians, in % of the root mean square of each output's.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, truth = ub.datasets.trig(S=100, rng=0)
    >>> axes = ub.plots.residuals(ub.decouple(problem, rank=3, starts=4, rng=0), problem=problem)
    >>> axes.get_xlabel()
    'predicted, in standard deviations'
    """
    check_matplotlib()
    model = model_of("residuals", fit_or_model)
    samples = samples_of("residuals", fit_or_model, problem)
    if samples is None:
        raise DataError("residuals needs the samples, which were not given: pass problem=ub.Problem(X, F, J).")
    samples = samples.counting()
    misfits = list(of_values(model, samples) if samples.F is not None else of_jacobians(model, samples))
    names = labels(samples.output_names, "f", model.n)
    panel = axis_for(ax, max(4.6, 1.2 + 0.26 * model.n))
    unit = "standard deviation" if samples.F is not None else "root mean square"
    what = "residual" if samples.F is not None else "residual of slopes"
    if model.n <= FEW:
        draw_points(panel, misfits, names)
        panel.set_xlabel(f"predicted, in {unit}s")
    else:
        draw_ranges(panel, misfits, names)
        panel.set_xlabel("output")
    panel.axhline(0.0, color=QUIET, linewidth=0.8, zorder=0)
    panel.set_ylabel(f"{what}, % of the {unit}")
    bare(panel)
    return panel


def of_values(model: DecoupledModel, samples: Problem) -> Iterator[Misfit]:
    """Of every output, over the values that are known."""
    assert samples.F is not None
    F, predicted = samples.F, model(samples.X)
    largest = np.nanmax(np.abs(F), axis=0)
    spread = positive(spreads(F, samples.weights), otherwise=1.0, noise=largest)
    centre = np.nanmean(F, axis=0)
    for i in range(model.n):
        known = ~np.isnan(F[:, i])
        yield misfit(F[known, i], predicted[known, i], centre[i], spread[i])


def of_jacobians(model: DecoupledModel, samples: Problem) -> Iterator[Misfit]:
    """Of every output, over the entries of its Jacobian in inputs of unit spread."""
    assert samples.J is not None
    some = evenly(samples.S, JACOBIANS)
    x_spread = positive(spreads(samples.X, samples.weights), otherwise=1.0, noise=np.abs(samples.X).max(axis=0))
    J, predicted = samples.J[some] * x_spread, model.jacobian(samples.X[some]) * x_spread
    for i in range(model.n):
        known = ~np.isnan(J[:, i])
        size = float(np.sqrt(np.mean(J[:, i][known] ** 2))) if known.any() else 0.0
        yield misfit(J[:, i][known], predicted[:, i][known], 0.0, size or 1.0)


def misfit(given: Array, predicted: Array, centre: float, spread: float) -> Misfit:
    """In units of the spread."""
    residual = 100.0 * (given - predicted) / spread
    error = float(np.sqrt(np.mean(residual**2))) if residual.size else np.nan
    return Misfit((predicted - centre) / spread, residual, error)


def evenly(count: int, most: int) -> IndexArray:
    """Some of so many, from the first to the last."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def draw_points(panel: Axes, misfits: list[Misfit], names: list[str]) -> None:
    """Residual against prediction, a colour and a mark an output."""
    looks = zip(itertools.cycle(LINES), itertools.cycle(MARKERS), strict=False)
    for one, name, (colour, marker) in zip(misfits, names, looks, strict=False):
        some = evenly(one.residual.size, MOST // len(misfits)) if one.residual.size else slice(0)
        look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 3.2, "alpha": 0.65}
        panel.plot(
            one.predicted[some], one.residual[some], linestyle="none", markeredgewidth=0,
            label=f"{name}: {one.error:.2g} %", rasterized=one.residual.size > MOST, **look,
        )  # fmt: skip
    above(panel, len(misfits))


def draw_ranges(panel: Axes, misfits: list[Misfit], names: list[str]) -> None:
    """Quantiles of the residuals, a column an output."""
    quantiles = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
    table = np.array(
        [np.quantile(one.residual, quantiles) if one.residual.size else np.full(7, np.nan) for one in misfits]
    )
    least, low, quarter, median, three_quarters, high, most = table.T
    x = np.arange(len(names))
    panel.vlines(x, low, high, color=BLUE, linewidth=1.2, label="middle 90 %")
    panel.vlines(x, quarter, three_quarters, color=BLUE, linewidth=5.0, label="middle half")
    panel.plot(x, median, "_", color="white", markersize=5.0, markeredgewidth=1.5)
    for ends, label in ((least, "largest"), (most, None)):
        panel.plot(x, ends, ".", color=GREY, markersize=4.0, label=label)
    panel.set_xticks(x, names, rotation=90 if len(names) > 8 or max(map(len, names)) > 9 else 0, fontsize="small")
    panel.set_xlim(-0.7, len(names) - 0.3)
    above(panel, 3)


def above(panel: Axes, columns: int) -> None:
    """The legend above the panel, where it hides nothing."""
    look: dict[str, Any] = {"frameon": False, "fontsize": "small", "handletextpad": 0.4, "columnspacing": 1.2}
    panel.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, **look)
