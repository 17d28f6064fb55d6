"""The picture of a learning curve: held-out errors against the number of samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from unbraid.errors import DataError
from unbraid.plots.palette import BLUE, GREY, ORANGE
from unbraid.plots.panels import DRAWN_ZERO, axis_for, check_matplotlib, remove_frame, set_decades
from unbraid.sample import Sampling

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def learning_curve(sampling: Sampling, ax: Axes | None = None) -> Axes:
    """Draw held-out errors in % against the number of samples that a fit knew.

    Parameters
    ----------
    sampling
        What `sample` returns.
    ax
        Matplotlib axes; new ones if None.

    Returns
    -------
    Axes
        The error of the worst output, and, where there are several outputs, a thin line for each of them.
    """
    check_matplotlib()
    if not isinstance(sampling, Sampling):
        raise DataError(f"learning_curve draws what ub.sample returns, got a {type(sampling).__name__}.")
    if not sampling.curve:
        raise DataError("learning_curve has nothing to draw: no fit was judged by further samples. Raise the budget.")
    panel = axis_for(ax)
    samples = np.array([one.samples for one in sampling.curve])
    errors = np.maximum([one.errors for one in sampling.curve], DRAWN_ZERO)
    for i, line in enumerate(errors.T if errors.shape[1] > 1 else ()):
        panel.plot(samples, line, color=GREY, linewidth=0.9, label="single outputs" if i == 0 else None)
    look: dict[str, Any] = {"color": BLUE, "marker": "o", "markersize": 4.5, "linewidth": 1.8}
    panel.plot(samples, errors.max(axis=1), label="worst output" if errors.shape[1] > 1 else "held-out error", **look)
    panel.set_xscale("log", base=2)
    panel.set_xticks(samples, [str(count) for count in samples])
    panel.axvline(sampling.problem.S, color=ORANGE, linestyle=":", linewidth=1.2, label="samples of the fit")
    set_decades(panel, errors[np.isfinite(errors)])
    panel.set_xlabel("samples")
    panel.set_ylabel("held-out error, %")
    remove_frame(panel)
    panel.legend(loc="best", framealpha=0.8, edgecolor="none", fontsize="small")
    return panel
