"""One branch on one axes: the curve above, where the data lie, and its slope in a strip along the bottom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unbraid.errors import DataError
from unbraid.kernels.arrays import Array
from unbraid.plots.palette import BLUE, GREY, MARGIN, ORANGE, QUIET
from unbraid.results.alignment import AlignedBranch
from unbraid.results.branch import Branch
from unbraid.results.worth.uncertainty import LEVEL, Band, Uncertainty

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SLOPE, DATA, CURVE = (0.0, 0.24), (0.27, 0.34), (0.37, 1.0)
"""From where to where the parts of a panel reach, as shares of its height."""
PANEL_POINTS, CONTINUED_POINTS, BINS = 160, 12, 48
"""Points of a curve, of its continuation on either side, and bins of the data."""
BAND_POINTS = 61
"""Points of a band: few, for in files all of them count."""
CONTINUED_ROOM = 0.4
"""How far a continuation may reach above or below the values inside, as a share of their range."""
NEARLY_CONSTANT = 0.02
"""A range of slopes is no smaller than this share of their size."""
TICK_STEPS = (1, 2, 2.5, 5, 10)
"""Between ticks, but for powers of ten."""
BAND = f"{100.0 * LEVEL:g} % band"
"""What a band is called."""


class Bands(NamedTuple):
    """The bands of a branch and of its slope."""

    curve: Band
    slope: Band


def bands_of(sure: Uncertainty | None, j: int) -> Bands | None:
    """The bands of branch j, from 0; None where there are none."""
    if sure is None:
        return None
    u = np.linspace(*sure.model.branches[j].domain, BAND_POINTS)
    found = Bands(sure.branch(j, u), sure.slope(j, u))
    return found if all(np.isfinite(one.std).all() for one in found) else None


def draw_branch(
    panel: Axes, branch: Branch, truth: AlignedBranch | None, u: Array | None, bands: Bands | None = None
) -> Axes:
    """Draw all there is to see of a branch, u (S,) being its inputs at the samples; returns the slope's axes."""
    inside, beyond = grids(branch)
    low, high = branch.domain
    curve, continued = branch(inside), branch(beyond)
    panel.plot(inside, curve, color=BLUE, linewidth=1.6, label="found")
    if truth is not None:
        panel.plot(inside, truth(inside), **TRUE, label="true")
    seen = curve if truth is None else np.append(curve, truth(inside))
    low_end, high_end = shown_range(seen, continued, None if bands is None else bands.curve)
    if bands is not None:
        lower, upper = (np.clip(one, low_end, high_end) for one in (bands.curve.low, bands.curve.high))
        panel.fill_between(bands.curve.u, lower, upper, label=BAND, **BANDED)
    shown = np.where((low_end <= continued) & (continued <= high_end), continued, np.nan)
    panel.plot(beyond, shown, color=BLUE, linewidth=1.4, linestyle=":", label="continuation")
    panel.plot([], [], **SLOPED, label="slope")  # for the legend, which looks at the panel
    knots = np.asarray(branch.knots)
    if knots.size:
        look: dict[str, Any] = {"color": BLUE, "marker": "|", "markersize": 6.5, "markeredgewidth": 0.9}
        panel.plot(knots, branch(knots), linestyle="none", label="knots", **look)
    if u is not None:
        draw_data(panel, u, low, high)
    panel.axvspan(low, high, color=GREY, alpha=0.13, linewidth=0, label="training range")
    reach = MARGIN * (high - low)
    panel.set_xlim(low - reach, high + reach)
    use_upper_part(panel, low_end, high_end)
    panel.spines[["top", "right"]].set_visible(False)
    return draw_slope(panel, branch, truth, (inside, beyond), None if bands is None else bands.slope)


TRUE: dict[str, Any] = {"color": ORANGE, "linewidth": 5.0, "alpha": 0.8, "solid_capstyle": "butt", "zorder": 1.9}
"""How a true curve looks under the found one."""
SLOPED: dict[str, Any] = {"color": QUIET, "linewidth": 1.1}
"""How a slope looks."""
BANDED: dict[str, Any] = {"facecolor": BLUE, "alpha": 0.3, "linewidth": 0, "zorder": 1.95}
"""How a band looks."""


def grids(branch: Branch) -> tuple[Array, Array]:
    """Points inside the domain, both sides of every knot among them, and points beyond with a gap at the domain."""
    low, high = branch.domain
    if not np.isfinite([low, high]).all():
        raise DataError(f"{branch!r} has no finite range to draw on: pass its model as truth beside a fitted one.")
    close = 1e-9 * (high - low)
    knots = np.asarray(branch.knots)
    inside = np.clip(np.concatenate([np.linspace(low, high, PANEL_POINTS), knots - close, knots + close]), low, high)
    reach = MARGIN * (high - low)
    before, after = np.linspace(low - reach, low, CONTINUED_POINTS), np.linspace(high, high + reach, CONTINUED_POINTS)
    return np.unique(inside), np.concatenate([before, [np.nan], after])


def shown_range(values: Array, continued: Array, band: Band | None) -> tuple[float, float]:
    """Which values are shown: all of those inside, and of continuation and band as much as leaves them room.

    A band of the usual width for the branch is shown, unless that is more than there is to see otherwise.
    """
    low, high = float(values.min()), float(values.max())
    if band is not None:
        usual = min(float(np.median(band.high - band.estimate)), max(high - low, abs(low), abs(high)))
        low, high = min(low, float(band.estimate.min()) - usual), max(high, float(band.estimate.max()) + usual)
        continued = np.concatenate([continued, band.low, band.high])
    if not high - low > 1e-12 * max(abs(low), abs(high)):
        low, high = low - 1.0, high + 1.0
    more = CONTINUED_ROOM * (high - low)
    low, high = min(low, max(np.nanmin(continued), low - more)), max(high, min(np.nanmax(continued), high + more))
    pad = 0.05 * (high - low)
    return low - pad, high + pad


def widened(low: float, high: float) -> tuple[float, float]:
    """A range of slopes, of a fiftieth of their size at least: what is constant but for rounding looks constant."""
    least = NEARLY_CONSTANT * max(abs(low), abs(high))
    more = max(0.0, 0.5 * (least - (high - low)))
    return low - more, high + more


def use_upper_part(panel: Axes, low: float, high: float) -> None:
    """Scale the axis of values so that the curve has the upper part of the panel for itself, with ticks only there."""
    from matplotlib.ticker import MaxNLocator

    unit = (high - low) / (CURVE[1] - CURVE[0])
    panel.set_ylim(low - CURVE[0] * unit, high)
    panel.set_yticks([tick for tick in MaxNLocator(5, steps=TICK_STEPS).tick_values(low, high) if low <= tick <= high])
    panel.spines["left"].set_bounds(low, high)


def draw_data(panel: Axes, u: Array, low: float, high: float) -> None:
    """Draw where the data lie: how many of the inputs u fall where, as a silhouette of no particular height."""
    bins = int(np.clip(2.0 * np.sqrt(u.size), 8, BINS))
    counts, edges = np.histogram(u, bins, (low, high))
    base, top = DATA
    heights = base + (top - base) * np.repeat(counts, 2) / max(counts.max(), 1)
    x = np.repeat(edges, 2)
    outline = np.concatenate([[base], heights, [base]])
    across = panel.get_xaxis_transform()
    panel.fill(x, outline, facecolor=QUIET, alpha=0.55, linewidth=0, transform=across, label="data")


def draw_slope(
    panel: Axes, branch: Branch, truth: AlignedBranch | None, points: tuple[Array, Array], band: Band | None
) -> Axes:
    """Draw the slope in a strip along the bottom, which has an axis of values of its own; returns the strip.

    `points` are those inside the domain and those beyond.
    """
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    inside, beyond = points
    strip = panel.inset_axes((0.0, SLOPE[0], 1.0, SLOPE[1] - SLOPE[0]), sharex=panel)
    strip.patch.set_visible(False)
    strip.xaxis.set_visible(False)
    strip.spines[["top", "right", "bottom"]].set_visible(False)
    if truth is not None:
        strip.plot(inside, truth.derivative(inside), **{**TRUE, "linewidth": 3.5})
    slope, continued = branch.derivative(inside), branch.derivative(beyond)
    if band is not None:
        strip.fill_between(band.u, band.low, band.high, **{**BANDED, "facecolor": QUIET})
    strip.plot(inside, slope, **SLOPED)
    strip.plot(beyond, continued, linestyle=":", **SLOPED)
    seen = slope if truth is None else np.append(slope, truth.derivative(inside))
    low, high = shown_range(seen, continued, band)
    low, high = widened(low, high)
    strip.set_ylim(low, high)
    if low < 0.0 < high:
        strip.axhline(0.0, color=GREY, linewidth=0.6, zorder=0)
    strip.yaxis.set_major_locator(MaxNLocator(2, steps=TICK_STEPS))
    strip.yaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:.4g}".replace("-", "−")))  # whole, no offset
    strip.tick_params(axis="y", labelsize="x-small", colors=QUIET, length=2.5)
    strip.spines["left"].set_color(QUIET)
    return strip
