"""What all pictures need: matplotlib, axes to draw on, and the model and the samples of what was given."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unbraid.data.problem import Problem
from unbraid.errors import DataError, MissingDependencyError, install_hint
from unbraid.kernels.arrays import Array
from unbraid.plots.labels import power
from unbraid.plots.palette import ALONE, COLUMNS, PANEL
from unbraid.results.fit import Fit
from unbraid.results.model import DecoupledModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DRAWN_ZERO = 1e-32
"""Where an objective of zero is drawn on a logarithmic axis."""


def check_matplotlib() -> None:
    """Raise a sentence with advice where matplotlib is missing; cheap, so ask before long work."""
    if find_spec("matplotlib") is None:
        raise MissingDependencyError(f"Pictures need matplotlib, which is not installed: {install_hint('report')}.")


def new_axes(count: int) -> npt.NDArray[Any]:
    """A figure with that many panels, at most `COLUMNS` in a row."""
    from matplotlib import pyplot

    rows = -(-count // COLUMNS)
    columns = -(-count // rows)
    size = (PANEL[0] * columns, PANEL[1] * rows + 0.3) if count > 1 else ALONE
    _, grid = pyplot.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for unused in grid.ravel()[count:]:
        unused.remove()
    panels: npt.NDArray[Any] = grid.ravel()[:count]
    return panels


def axis_for(ax: Axes | None, width: float = ALONE[0], height: float = ALONE[1]) -> Axes:
    """The axes given, or those of a new figure of that size in inches."""
    from matplotlib import pyplot
    from matplotlib.axes import Axes

    if ax is None:
        return pyplot.subplots(figsize=(width, height), layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise DataError(f"ax must be one matplotlib axes, got a {type(ax).__name__}: pass what plt.subplots()[1] is.")
    return ax


def legend_above(panels: npt.NDArray[Any]) -> None:
    """One legend for all panels, above them, where it hides nothing."""
    if panels[0].get_legend() is not None:
        panels[0].get_legend().remove()
    handles, labels = max((panel.get_legend_handles_labels() for panel in panels), key=lambda both: len(both[1]))
    columns = min(len(labels), 4 * min(len(panels), COLUMNS))
    look: dict[str, Any] = {"frameon": False, "fontsize": "small", "handlelength": 1.7, "columnspacing": 1.3}
    panels[0].figure.legend(handles, labels, loc="outside upper center", ncols=columns, **look)


def settle_layout(figure: Figure) -> None:
    """Lay a figure out for good, once: otherwise each file that it is saved to lays it out and draws it once more."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine("none")


def model_of(picture: str, given: object) -> DecoupledModel:
    """The model of what was given to a picture: of a fit, or the model itself."""
    model = given.model if isinstance(given, Fit) else given
    if not isinstance(model, DecoupledModel):
        raise DataError(f"{picture} draws a Fit or a DecoupledModel, got a {type(given).__name__}.")
    return model


def fit_of(picture: str, given: object) -> Fit:
    """What was given to a picture that draws fits, refused if it is none."""
    if isinstance(given, DecoupledModel):
        raise DataError(f"{picture} draws how a fit came about, which a DecoupledModel does not know: pass the Fit.")
    if not isinstance(given, Fit):
        raise DataError(f"{picture} draws a Fit, which ub.decouple returns, got a {type(given).__name__}.")
    return given


def samples_to_draw(picture: str, given: Fit | DecoupledModel, problem: Problem | None) -> Problem | None:
    """The problem given, or the one that the fit remembers, in memory: of very many samples, some; None: neither."""
    if problem is None:
        remembered = given.problem if isinstance(given, Fit) else None
        return None if remembered is None else remembered.thinned()
    model = model_of(picture, given)
    if not isinstance(problem, Problem):
        raise DataError(f"problem must be the ub.Problem that was fitted, got a {type(problem).__name__}.")
    if (problem.n, problem.m) != (model.n, model.m):
        raise DataError(f"problem must be the one that was fitted: {model!r} does not belong to {problem!r}.")
    return problem.thinned()


def thinning_words(given: Fit | DecoupledModel, problem: Problem | None, samples: Problem) -> str:
    """A remark, ' (100,000 of 2,000,000 samples)', where not all are drawn; else nothing."""
    whole = given.problem if problem is None and isinstance(given, Fit) else problem
    return "" if whole is None or whole.S == samples.S else f" ({samples.S:,} of {whole.S:,} samples)"


def inches(panel: Axes) -> tuple[float, float]:
    """Width and height of axes, as far as that is known before their figure is drawn."""
    box, figure = panel.get_window_extent(), panel.get_figure(root=True)
    dpi = 100.0 if figure is None else figure.dpi
    return box.width / dpi, box.height / dpi


def set_decades(panel: Axes, values: Array) -> None:
    """Make the axis of values logarithmic, over a decade at least, so that what is about the same looks the same."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    panel.set_yscale("log")
    some = values[np.isfinite(values) & (values > 0.0)]
    if not some.size:
        return
    low, high = np.log10(some.min()), np.log10(some.max())
    pad = max(0.05 * (high - low), 0.5 * (1.0 - (high - low)), 0.08)
    panel.set_ylim(10.0 ** (low - pad), 10.0 ** (high + pad))
    between = (1.0,) if high - low + 2.0 * pad > 2.0 else (1.0, 2.0, 5.0)
    panel.yaxis.set_major_locator(LogLocator(subs=between, numticks=8))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: power(value)))
    panel.yaxis.set_minor_formatter(NullFormatter())


def remove_frame(panel: Axes) -> None:
    """Hide the upper and the right line of the frame."""
    panel.spines[["top", "right"]].set_visible(False)
