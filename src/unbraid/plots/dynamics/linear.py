"""Pictures of what a dynamic model does to small changes: poles, and frequency responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unbraid.dynamics.fit import DynamicFit
from unbraid.dynamics.models.linear import poles_of, response_of
from unbraid.dynamics.models.slopes import average_slopes, slopes_along, visited
from unbraid.kernels.arrays import Array
from unbraid.plots.dynamics.given import dynamic_fit, input_labels, output_labels
from unbraid.plots.dynamics.spectra import name_frequencies
from unbraid.plots.palette import BLUE, GREEN, GREY, LINES, ORANGE
from unbraid.plots.panels import axis_for, check_matplotlib, remove_frame, set_decades

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_MOMENTS = 200
"""Moments of the records at which the model is taken as linear."""
FREQUENCIES, LOWEST = 200, 1e-3
"""How many there are, and the lowest, in cycles a sample."""
MOST_LINES = 6
"""Pairs of input and output that have a line."""
SQUARE = (4.2, 4.0)


def poles(fit: DynamicFit, ax: Axes | None = None) -> Axes:
    """Draw the poles of the model in the unit circle, outside of which a linear model would be unstable.

    Parameters
    ----------
    fit
        What `ub.dynamics.state_space` or `ub.dynamics.narx` returns.
    ax
        Matplotlib axes; new ones if None.

    Returns
    -------
    Axes
        Crosses are the poles of the model with its curves replaced by their average slopes over the records, about the
        best linear approximation (BLA). Dots are the poles of small changes at single moments of the records: they
        spread as far as the curves make the dynamics change. Rings are the poles of the best linear model, where the
        fit kept it.
    """
    check_matplotlib()
    dynamic_fit("poles", fit)
    panel = axis_for(ax, *SQUARE)
    turn = np.linspace(0.0, 2.0 * np.pi, 181)
    panel.plot(np.cos(turn), np.sin(turn), color=GREY, linewidth=0.9)
    panel.axhline(0.0, color=GREY, linewidth=0.5, zorder=0)
    panel.axvline(0.0, color=GREY, linewidth=0.5, zorder=0)
    phi, feedback = visited(fit.simulations), fit.model.feedback
    if phi is not None:
        some = phi[:: max(1, len(phi) // MOST_MOMENTS)]
        mark(panel, poles_of(slopes_along(fit.model, some), feedback), "single moments", 3.0, color=ORANGE, alpha=0.45)
    if fit.linear is not None:
        mark(panel, fit.linear.poles, "best linear model", 9.0, marker="o", color=GREEN, fillstyle="none")
    mark(panel, poles_of(average_linear(fit), feedback), "on average", 8.0, marker="x", color=BLUE, markeredgewidth=2.0)
    panel.set_aspect("equal")
    panel.set_xlabel("real part")
    panel.set_ylabel("imaginary part")
    remove_frame(panel)
    panel.legend(loc="upper left", framealpha=0.8, edgecolor="none", fontsize="small", handletextpad=0.2)
    return panel


def mark(panel: Axes, at: npt.NDArray[np.complex128], label: str, size: float, marker: str = ".", **look: Any) -> None:
    """Draw marks at complex numbers."""
    points = at.ravel()
    panel.plot(points.real, points.imag, linestyle="none", marker=marker, markersize=size, label=label, **look)


def average_linear(fit: DynamicFit) -> Array:
    """The linear part (n, mφ) of a model with its curves replaced by their average slopes over the records."""
    phi = visited(fit.simulations)
    return fit.model.function.L if phi is None else average_slopes(fit.model, phi)


def frequency_response(fit: DynamicFit, ax: Axes | None = None) -> Axes:
    """Draw the gain of the model by frequency, its curves replaced by their average slopes: nearly the BLA.

    Parameters
    ----------
    fit
        What `ub.dynamics.state_space` or `ub.dynamics.narx` returns.
    ax
        Matplotlib axes; new ones if None.

    Returns
    -------
    Axes
        A line for every pair of input and output, of the first six; dashed, that of the best linear model, where the
        fit kept it. Frequencies are in 1 / the unit of time, up to half the sampling frequency.
    """
    check_matplotlib()
    model = dynamic_fit("frequency_response", fit).model
    panel = axis_for(ax)
    cycles = np.geomspace(LOWEST, 0.5, FREQUENCIES)
    gain = np.abs(response_of(average_linear(fit), model.feedback, model.input_lags, cycles))
    linear = None if fit.linear is None else np.abs(fit.linear.frequency_response(cycles / model.dt))
    names = [(i, k) for i in range(model.ny) for k in range(model.nu)]
    alone = len(names) == 1
    for (i, k), colour in zip(names[:MOST_LINES], LINES, strict=False):
        said = "on average" if alone else f"{input_labels(model)[k]} → {output_labels(model)[i]}"
        panel.plot(cycles / model.dt, gain[:, i, k], color=colour, linewidth=1.5, label=said)
        if linear is not None:
            look: dict[str, Any] = {"color": GREEN if alone else colour, "linewidth": 1.1, "linestyle": (0, (5, 2))}
            label = "best linear model" if (i, k) == names[min(len(names), MOST_LINES) - 1] else None
            panel.plot(cycles / model.dt, linear[:, i, k], label=label, **look)
    set_decades(panel, gain if linear is None else np.concatenate([gain, linear]))
    name_frequencies(panel)
    panel.set_ylabel("gain" if not alone else f"gain from {input_labels(model)[0]} to {output_labels(model)[0]}")
    remove_frame(panel)
    panel.legend(loc="best", framealpha=0.8, edgecolor="none", fontsize="small")
    return panel
