"""The picture of how much inputs and branches matter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unbraid.data.problem import Problem
from unbraid.errors import DataError
from unbraid.inference.importance.result import Importance
from unbraid.judging.importance import importance as importance_of
from unbraid.judging.importance import work_of
from unbraid.kernels.arrays import Array
from unbraid.plots.inputs.grids import MOST_PANELS, QUICK, panels_for
from unbraid.plots.labels import indexed, label
from unbraid.plots.palette import BLACK, BLUE, COLUMNS, GREEN, QUIET, SKY
from unbraid.plots.panels import check_matplotlib, legend_above, model_of, new_axes, remove_frame, samples_to_draw
from unbraid.results.fit import Fit
from unbraid.results.model import DecoupledModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS = 12
"""Inputs, and branches, that are drawn, at most."""
BAR = 0.22
"""The height of a bar with its room, in inches."""
GAP = 0.6
"""Between inputs and branches, in bars."""


def importance(
    given: Fit | DecoupledModel | Importance,
    axes: Axes | Sequence[Axes] | npt.NDArray[Any] | None = None,
    problem: Problem | None = None,
) -> npt.NDArray[Any]:
    """Draw the shares of inputs and branches in the variance of the outputs: one panel an output.

    Parameters
    ----------
    given
        What was found, or what `unbraid.importance` says of it, which takes no time then.
    axes
        One matplotlib axes per output, or twelve where there are more outputs; new ones if None.
    problem
        The samples; those of the fit if None.

    Returns
    -------
    ndarray of Axes
        In the order of the outputs, the first twelve. The dark part of a bar is what an input does by itself, the
        whole bar what it does in all; below them are the branches. Lines are intervals, where they are known. Of more
        than twelve inputs or branches, those are drawn that matter most.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, truth = ub.datasets.trig(S=100, rng=0)
    >>> panels = ub.plots.importance(truth, problem=problem)
    >>> [label.get_text() for label in panels[0].get_yticklabels()]
    ['x₁', 'x₂', 'branch 1', 'branch 2', 'branch 3']
    """
    check_matplotlib()
    found = given if isinstance(given, Importance) else found_of(given, problem)
    inputs = largest(found.total.max(axis=0))
    branches = largest(np.abs(found.branches).max(axis=0))
    plain = found.input_names == tuple(f"x{k + 1}" for k in range(found.total.shape[1]))
    names = [indexed("x", k + 1) if plain else label(found.input_names[k]) for k in inputs]
    names += [f"branch {j + 1}" for j in branches]
    places = np.concatenate([np.arange(len(inputs)), len(inputs) + GAP + np.arange(len(branches))])
    count = min(len(found.output_names), MOST_PANELS)
    panels = panels_for(count, axes, "output") if axes is not None else bar_panels(count, len(names))
    columns = 1 if axes is not None else -(-count // -(-count // COLUMNS))
    for i, panel in enumerate(panels):
        draw_bars(panel, found, i, (inputs, branches, places))
        panel.set_yticks(places, names if i % columns == 0 else [""] * len(names), fontsize="small")
        panel.set_ylim(places[-1] + 0.6, -0.6)
        panel.axvline(0.0, color=QUIET, linewidth=0.8)
        own = found.output_names[i]
        panel.set_title(indexed("f", i + 1) if own == f"f{i + 1}" else label(own), fontsize="medium", loc="left")
        panel.set_xlabel("share of the variance, %", fontsize="small")
        panel.tick_params(axis="y", length=0)
        remove_frame(panel)
    share_widths(panels)
    if axes is None:
        legend_above(panels)
    return panels


def bar_panels(count: int, bars: int) -> npt.NDArray[Any]:
    """New panels, at most `COLUMNS` in a row, high enough for so many bars."""
    panels = new_axes(count)
    rows = -(-count // COLUMNS)
    figure = panels[0].figure
    figure.set_size_inches(figure.get_size_inches()[0], 0.5 + rows * (0.9 + BAR * bars))
    return panels


def share_widths(panels: npt.NDArray[Any]) -> None:
    """Give all panels the same range of shares."""
    low, high = (one(panel.get_xlim()[end] for panel in panels) for one, end in ((min, 0), (max, 1)))
    for panel in panels:
        panel.set_xlim(low, high)


def found_of(given: Fit | DecoupledModel, problem: Problem | None) -> Importance:
    """The importance of what is to be drawn, with intervals where these are quickly told."""
    model = model_of("importance", given)
    samples = samples_to_draw("importance", given, problem)
    if samples is None:
        raise DataError("importance needs the samples, which were not given: pass problem=ub.Problem(X, F, J).")
    quick = isinstance(given, Fit) and work_of(given, samples) <= QUICK
    return importance_of(given if quick else model, samples, needs=False)


def largest(shares: Array) -> list[int]:
    """The numbers of the `MOST_BARS` largest shares (k,), in their order."""
    return sorted(np.argsort(-shares, kind="stable")[:MOST_BARS].tolist())


def draw_bars(panel: Axes, found: Importance, i: int, what: tuple[list[int], list[int], Array]) -> None:
    """Draw the bars of output i."""
    inputs, branches, places = what
    above, below = places[: len(inputs)], places[len(inputs) :]
    panel.barh(above, 100.0 * found.total[i, inputs], color=SKY, height=0.7, label="input in all")
    panel.barh(above, 100.0 * found.first_order[i, inputs], color=BLUE, height=0.7, label="by itself")
    panel.barh(below, 100.0 * found.branches[i, branches], color=GREEN, height=0.7, label="branch")
    if found.low is None or found.high is None:
        return
    for rows, kind, which in ((above, "total", inputs), (below, "branches", branches)):
        share = getattr(found, kind)[i, which]
        ends = np.stack([share - getattr(found.low, kind)[i, which], getattr(found.high, kind)[i, which] - share])
        name = f"{100.0 * found.level:.0f} % interval" if kind == "total" else None
        look: dict[str, Any] = {"linestyle": "none", "color": BLACK, "linewidth": 1.1, "capsize": 2.5, "label": name}
        panel.errorbar(100.0 * share, rows, xerr=100.0 * np.maximum(ends, 0.0), **look)
