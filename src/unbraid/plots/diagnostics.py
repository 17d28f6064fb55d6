"""Pictures of residuals that tell noise from what a model cannot follow, and which samples the model hangs on."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unbraid.data.problem import Problem
from unbraid.errors import DataError
from unbraid.inference.patterns import neighbours_alike, standardised
from unbraid.inference.residuals import normal_quantiles
from unbraid.judging.glance import Glance, glance_at
from unbraid.kernels.arrays import Array, IndexArray
from unbraid.plots.branches import panels_for
from unbraid.plots.labels import labels
from unbraid.plots.palette import BLUE, GREY, LINES, MARKERS, QUIET, RED
from unbraid.plots.panels import check_matplotlib, fit_of, legend_above, remove_frame, samples_to_draw
from unbraid.plots.residuals import spread_evenly
from unbraid.results.fit import Fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NUMBERS, MOST_INPUTS, MOST_POINTS, NAMED = 4, 4, 800, 3
"""Of a sample's numbers and of the inputs so many are drawn, so many points a panel, and so many samples are named."""
BINNED, BINS = 20, 12
"""Points that a mean is drawn of, and how many means there are at most."""
NOTICED = 4.0
"""Cook's distances so many times the mean of all are named."""


class Residuals(NamedTuple):
    """What is drawn of the residuals of a fit.

    Attributes
    ----------
    glance
        Where they come from.
    columns
        Which of a sample's numbers are drawn: values of outputs, or without them slopes, those with the largest errors.
    names
        Theirs.
    most
        Points in a panel, at most.
    """

    glance: Glance
    columns: IndexArray
    names: list[str]
    most: int

    @property
    def e(self) -> Array:
        """The residuals that are drawn, in standard deviations: (S, columns)."""
        return self.glance.residuals.residuals[:, self.columns]

    @property
    def X(self) -> Array:
        """The inputs at these residuals, (S, m)."""
        return self.glance.around.problem.X[self.glance.residuals.samples]


def diagnostics(
    fit: Fit, axes: Sequence[Axes] | npt.NDArray[Any] | None = None, problem: Problem | None = None
) -> npt.NDArray[Any]:
    """Draw what a fit leaves of its samples so that one sees whether it is noise, and which samples the fit hangs on.

    Parameters
    ----------
    fit
        What was found.
    axes
        Matplotlib axes, 4 and one for each of the inputs, of which there are four at most; new ones if None.
    problem
        What was fitted, where the fit does not remember it.

    Returns
    -------
    ndarray of Axes
        Residuals, in standard deviations, against predictions; against what normal noise would show; in the order of
        the samples; how far the fit moves without each sample (Cook's distance) against how much the sample determines
        by itself (leverage), the largest with their numbers, from 0; then residuals against each input, or against the
        four along which they are most alike. Lines are means of neighbours: those of noise stay near zero. Of more
        than four outputs, those with the largest errors are drawn; without values, slopes.

    Examples
    --------
    >>> import numpy as np, unbraid as ub
    >>> problem, truth = ub.datasets.trig(S=100, rng=0)
    >>> noisy = ub.Problem(problem.X, problem.F + 0.1 * np.random.default_rng(0).standard_normal((100, 2)))
    >>> panels = ub.plots.diagnostics(ub.decouple(noisy, rank=3, starts=4, rng=0))
    >>> [panel.get_title() for panel in panels]
    ['against predictions', 'against normal noise', 'in the order given', 'influence', 'against x₁', 'against x₂']
    """
    check_matplotlib()
    fit = fit_of("diagnostics", fit)
    samples = samples_to_draw("diagnostics", fit, problem)
    if samples is None:
        raise DataError("diagnostics needs the samples, which were not given: pass problem=ub.Problem(X, F, J).")
    glance = glance_at(fit, samples)
    if glance is None:
        raise DataError(
            f"diagnostics cannot tell much of {fit.model!r} and {samples!r}: there are too many unknowns, or too few "
            "samples. `ub.plots.residuals` draws what is left."
        )
    shown = residuals_of(glance)
    inputs = most_alike(shown)
    panels = panels_for(4 + len(inputs), axes, "panels")
    draw_against_predictions(panels[0], shown)
    draw_quantiles(panels[1], shown)
    draw_in_order(panels[2], shown)
    draw_influence(panels[3], shown)
    for panel, k in zip(panels[4:], inputs, strict=True):
        draw_against_input(panel, shown, k)
    if axes is None and len(shown.columns) > 1:
        legend_above(panels)
    return panels


def residuals_of(glance: Glance, most: int = MOST_POINTS) -> Residuals:
    """What is drawn of the residuals of a fit, with so many points in a panel at most."""
    problem, model = glance.around.problem, glance.around.tangent.model
    n, m = problem.n, problem.m
    outputs, inputs = labels(problem.output_names, "f", n), labels(problem.input_names, "x", m)
    if problem.F is not None:
        names = outputs
        sizes = np.sqrt(np.nansum((problem.F - model(problem.X)) ** 2, axis=0)) / glance.around.objective.units.f_scale
    else:
        names = [f"∂{f}/∂{x}" for f, x in itertools.product(outputs, inputs)]
        sizes = np.sqrt(np.nansum(glance.around.residuals() ** 2, axis=0)) * glance.around.row_scales
    which = np.sort(np.argsort(-sizes, kind="stable")[:MOST_NUMBERS])
    return Residuals(glance, which, [names[k] for k in which], most)


def most_alike(shown: Residuals, most: int = MOST_INPUTS) -> list[int]:
    """So many inputs, from 0, along which residuals are most alike, in their order; all where they are few."""
    X, e = shown.X, standardised(shown.e)
    if X.shape[1] <= most:
        return list(range(X.shape[1]))
    orders = (np.argsort(column, kind="stable") for column in X.T)
    z = np.array([neighbours_alike(e[order][:-1], e[order][1:]).max() for order in orders])
    return sorted(map(int, np.argsort(-z, kind="stable")[:most]))


def draw_against_predictions(panel: Axes, shown: Residuals) -> Axes:
    """Draw residuals against what the model predicts, in standard deviations of the outputs."""
    around = shown.glance.around
    units = around.objective.units
    if around.problem.F is not None:
        predicted = (around.tangent.model(shown.X) / units.f_scale)[:, shown.columns]
    else:
        J = around.tangent.model.jacobian(shown.X) * (units.x_scale / units.f_scale[:, None])
        predicted = J.reshape(len(J), -1)[:, shown.columns]
    predicted = predicted - predicted.mean(axis=0)
    draw_clouds(panel, shown, predicted.T)
    return dress(panel, "against predictions", "predicted, in standard deviations")


def draw_against_input(panel: Axes, shown: Residuals, k: int) -> Axes:
    """Draw residuals against input k, from 0."""
    problem = shown.glance.around.problem
    name = labels(problem.input_names, "x", problem.m)[k]
    draw_clouds(panel, shown, [shown.X[:, k]] * len(shown.columns))
    return dress(panel, f"against {name}", "")


def draw_in_order(panel: Axes, shown: Residuals) -> Axes:
    """Draw residuals in the order in which samples were given."""
    draw_clouds(panel, shown, [shown.glance.samples.astype(float)] * len(shown.columns))
    return dress(panel, "in the order given", "number of the sample")


def draw_quantiles(panel: Axes, shown: Residuals) -> Axes:
    """Draw ordered residuals against where those of normal noise are expected; noise follows the line."""
    ends = [0.0]
    for column, look in zip(shown.e.T, looks(shown), strict=True):
        ordered = np.sort(column[np.isfinite(column)])
        if not len(ordered):
            continue
        expected = normal_quantiles(len(ordered))
        some = spread_evenly(len(ordered), max(2, shown.most // len(shown.columns)))
        panel.plot(expected[some], ordered[some], **look)
        ends += [float(expected[0]), float(expected[-1])]
    panel.plot([min(ends), max(ends)], [min(ends), max(ends)], color=QUIET, linewidth=0.9, zorder=1.5)
    panel.set_ylabel("standardised residual", fontsize="small")
    panel.set_title("against normal noise", fontsize="medium", y=1.0)
    panel.set_xlabel("expected of normal noise", fontsize="small")
    remove_frame(panel)
    return panel


def draw_influence(panel: Axes, shown: Residuals) -> Axes:
    """Draw Cook's distance of samples against their leverage, and the numbers of those that stand out."""
    found, numbers = shown.glance.residuals, shown.glance.samples
    order = np.argsort(-found.cook, kind="stable")
    some = order if len(order) <= shown.most else order[spread_evenly(len(order), shown.most)]
    look: dict[str, Any] = {"color": BLUE, "marker": "o", "markersize": 3.2, "alpha": 0.65, "linestyle": "none"}
    panel.plot(found.leverages[some], found.cook[some], markeredgewidth=0, **look)
    for s in standing_out(shown.glance):
        right = found.leverages[s] > 0.6 * found.leverages.max()
        panel.annotate(
            str(numbers[s]),
            (found.leverages[s], found.cook[s]),
            xytext=(-4 if right else 4, 0),
            textcoords="offset points",
            ha="right" if right else "left",
            va="center",
            fontsize="small",
            color=RED,
        )
    panel.set_xlim(left=0.0)
    panel.set_ylim(bottom=0.0)
    panel.set_ylabel("Cook’s distance", fontsize="small")
    panel.set_title("influence", fontsize="medium", y=1.0)
    panel.set_xlabel("leverage", fontsize="small")
    remove_frame(panel)
    return panel


def standing_out(glance: Glance) -> list[int]:
    """The samples among those looked at that move the fit most, largest first, if they stand out; three at most."""
    cook = glance.residuals.cook
    order = np.argsort(-cook, kind="stable")[:NAMED]
    return [int(s) for s in order if cook[s] > NOTICED * cook.mean()]


def looks(shown: Residuals) -> Iterator[dict[str, Any]]:
    """How the points of each number look: a colour and a mark of its own."""
    kinds = zip(itertools.cycle(LINES), itertools.cycle(MARKERS), strict=False)
    for name, (colour, marker) in zip(shown.names, kinds, strict=False):
        look = {"color": colour, "marker": marker, "markersize": 3.2, "alpha": 0.65, "label": name}
        yield {**look, "linestyle": "none", "markeredgewidth": 0}


def draw_clouds(panel: Axes, shown: Residuals, x: Sequence[Array] | Array) -> None:
    """Draw residuals against x (S,), one for each number, with means of neighbours where there are enough of them."""
    panel.axhline(0.0, color=QUIET, linewidth=0.8, zorder=0)
    for level in (-2.0, 2.0):
        panel.axhline(level, color=GREY, linewidth=0.7, linestyle=(0, (4, 4)), zorder=0)
    for own, column, look in zip(x, shown.e.T, looks(shown), strict=True):
        known = np.flatnonzero(np.isfinite(column))
        if not len(known):
            continue
        some = known[spread_evenly(len(known), max(2, shown.most // len(shown.columns)))]
        panel.plot(own[some], column[some], **look)
        count = min(BINS, len(known) // BINNED)
        if count > 1:
            parts = np.array_split(known[np.argsort(own[known], kind="stable")], count)
            means = np.array([(own[part].mean(), column[part].mean()) for part in parts])
            panel.plot(*means.T, color=look["color"], linewidth=1.4)


def dress(panel: Axes, title: str, x: str) -> Axes:
    """Give a panel of residuals its title and its labels."""
    panel.set_title(title, fontsize="medium", y=1.0)
    panel.set_xlabel(x, fontsize="small")
    panel.set_ylabel("standardised residual", fontsize="small")
    remove_frame(panel)
    return panel
