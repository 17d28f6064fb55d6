"""The picture of spectra: an output, what the model leaves of it, and what the best linear model leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from unbraid.dynamics.fit import DynamicFit, runs_on
from unbraid.dynamics.models.spectra import spectrum_of
from unbraid.dynamics.record import Record
from unbraid.errors import DataError
from unbraid.kernels.arrays import Array
from unbraid.plots.dynamics.given import check_signal, dynamic_fit, output_labels
from unbraid.plots.labels import power
from unbraid.plots.palette import BLUE, GREEN, ORANGE
from unbraid.plots.panels import axis_for, check_matplotlib, remove_frame, set_decades

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINEAR = "left by the best linear model"
"""What its line is called."""


def spectra(
    fit: DynamicFit, output: int = 0, records: Record | list[Record] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the spectrum of an output, and of what the model leaves of it.

    Parameters
    ----------
    fit
        What `ub.dynamics.state_space` or `ub.dynamics.narx` returns.
    output
        Which output, from 0.
    records
        Other records than the fit's, simulated from their first outputs.
    ax
        Matplotlib axes; new ones if None.

    Returns
    -------
    Axes
        The roots of power spectral densities by frequency, which is in 1 / the unit of time: of the output, of what the
        model leaves of it in simulation, and, where the fit kept the best linear model (BLA), of what that leaves.
    """
    check_matplotlib()
    i = check_signal(output, dynamic_fit("spectra", fit).model)
    panel = axis_for(ax)
    runs = fit.runs if records is None else runs_on(fit.model, records)
    courses: dict[str, list[Array]] = {
        output_labels(fit.model)[i]: [counting(one.record.y, one.skip)[:, i] for one in runs]
    }
    if fit.linear is not None:
        again = runs_on(fit.linear, [one.record for one in runs])
        courses[LINEAR] = [one.residual[:, i] for one in again]
    courses["left by the model"] = [one.residual[:, i] for one in runs]
    looks: list[dict[str, Any]] = [
        {"color": ORANGE, "linewidth": 2.4},
        {"color": GREEN, "linewidth": 1.2, "linestyle": (0, (5, 2))},
        {"color": BLUE, "linewidth": 1.5},
    ]
    drawn = []
    for (name, signals), look in zip(courses.items(), looks if fit.linear is not None else looks[::2], strict=True):
        found = spectrum_of(signals, fit.model.dt)
        if found is not None:
            panel.plot(*found, label=name, **look)
            drawn.append(found.amplitude)
    if not drawn:
        raise DataError("spectra has nothing to draw: gaps leave no 16 samples in a row.")
    set_decades(panel, np.concatenate(drawn))
    name_frequencies(panel)
    panel.set_ylabel("amplitude density")
    remove_frame(panel)
    panel.legend(loc="best", framealpha=0.8, edgecolor="none", fontsize="small")
    return panel


def counting(y: Array, skip: int) -> Array:
    """Outputs (T, ny) with NaN where they do not count."""
    kept = np.array(y)
    kept[:skip] = np.nan
    return kept


def name_frequencies(panel: Axes) -> None:
    """Make the axis of frequencies logarithmic, and name it."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    panel.set_xscale("log")
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: power(value)))
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set_xlabel("frequency")
