"""The picture of the two matrices: which inputs a branch looks at, and which outputs it goes into."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from unbraid.data.problem import Problem
from unbraid.data.units import spreads
from unbraid.kernels.arrays import Array
from unbraid.plots.labels import labels
from unbraid.plots.palette import BLUE, QUIET, RED
from unbraid.plots.panels import axis_for, check_matplotlib, inches, model_of, samples_to_draw
from unbraid.plots.scales import input_spreads, output_spreads
from unbraid.results.carrying import superfluous
from unbraid.results.fit import Fit
from unbraid.results.model import DecoupledModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAP = 0.6
"""Between the two matrices, in columns."""
CELL = (0.40, 0.30)
"""Width and height of an entry in a new figure, in inches."""
SMALL_CELL = (0.20, 0.20)
"""Width and height of an entry where they are many."""
FEW_ENTRIES = 400
"""Entries that are written as numbers; more would be a table nobody reads, and a large file."""
NUMBER_ROOM = (0.27, 0.13)
"""Width and height that a number needs, in inches."""
SHORT = 4
"""Letters that stand upright under a column."""


def weights(
    fit_or_model: Fit | DecoupledModel,
    ax: Axes | None = None,
    problem: Problem | None = None,
    scaled: bool = True,
) -> Axes:
    """Draw W0 and W1 side by side, a row a branch: the inputs it looks at on the left, its outputs on the right.

    Parameters
    ----------
    fit_or_model
        What was found.
    ax
        Matplotlib axes; new ones if None.
    problem
        The samples, for names and units; those of the fit if None.
    scaled
        Where samples are known, show what a branch takes and gives in standard deviations: W0 for inputs in
        units of their standard deviation, rows of unit length again, and how many standard deviations of an output
        one standard deviation of the branch is. False: the entries of the model as they are.

    Returns
    -------
    Axes
        Blue is positive and orange negative, and negative entries carry a dash where there is no room for numbers. W1
        is transposed, so that a row is a branch throughout. Rows of branches that carry nothing are empty.

    Examples
    --------
    >>> import unbraid as ub
    >>> problem, truth = ub.datasets.trig(S=100, rng=0)
    >>> axes = ub.plots.weights(truth)
    >>> [label.get_text() for label in axes.get_xticklabels()]
    ['x₁', 'x₂', 'f₁', 'f₂']
    """
    check_matplotlib()
    model = model_of("weights", fit_or_model)
    samples = samples_to_draw("weights", fit_or_model, problem)
    into, out = (model.W0, model.W1.T) if samples is None or not scaled else standardised(model, samples)
    (r, m), n = into.shape, out.shape[1]
    inputs = labels(None if samples is None else samples.input_names, "x", m)
    outputs = labels(None if samples is None else samples.output_names, "f", n)
    longest = max(map(len, inputs + outputs))
    turned = 0.0 if longest <= SHORT else 0.075 * longest
    few = r * (m + n) <= FEW_ENTRIES
    wide, high = CELL if few else SMALL_CELL
    panel = axis_for(ax, max(3.0, 1.0 + wide * (m + GAP + n)), 1.1 + high * r + turned)
    numbers = few and has_room_for_numbers(panel, m + GAP + n, r)
    idle = superfluous(model)
    for matrix, start in ((into, 0.0), (out, m + GAP)):
        shown = matrix.copy()
        shown[idle] = np.nan  # directions of branches that carry nothing mean nothing
        draw_matrix(panel, shown, start, numbers)
    for j in idle:
        panel.text(m / 2, j + 0.5, "carries nothing", ha="center", va="center", fontsize=7, color=QUIET)
    panel.set_xlim(-0.02, m + GAP + n + 0.02)
    panel.set_ylim(r + 0.02, -0.02)
    columns = [*(k + 0.5 for k in range(m)), *(m + GAP + i + 0.5 for i in range(n))]
    panel.set_xticks(columns, inputs + outputs, rotation=90 if turned or not numbers else 0, fontsize="small")
    panel.set_yticks(np.arange(r) + 0.5, [f"{j + 1}" for j in range(r)], fontsize="small")
    panel.set_ylabel("branch")
    unit = scaled and samples is not None
    for start, width, title in ((0.0, m, "W₀"), (m + GAP, n, "W₁ᵀ")):
        panel.text(start + width / 2, -0.15, title, ha="center", va="bottom", fontsize="medium")
    if unit:
        panel.set_xlabel("in standard deviations", fontsize="small")
    panel.tick_params(length=0)
    panel.spines[:].set_visible(False)
    return panel


def standardised(model: DecoupledModel, samples: Problem) -> tuple[Array, Array]:
    """W0 (r, m) and W1ᵀ (r, n) for inputs, branches and outputs in units of their standard deviations."""
    into = model.W0 * input_spreads(samples)
    length = np.linalg.norm(into, axis=1, keepdims=True)
    into = into / np.where(length > 0.0, length, 1.0)
    u = samples.X @ model.W0.T
    branch = spreads(np.stack([g(u[:, j]) for j, g in enumerate(model.branches)], axis=-1), samples.weights)
    return into, (model.W1 * branch / output_spreads(samples, model)[:, None]).T


def draw_matrix(panel: Axes, matrix: Array, start: float, numbers: bool) -> None:
    """Draw a matrix from a column on, with numbers if there is room, else with a dash in negative entries."""
    rows, columns = matrix.shape
    most = float(np.nanmax(np.abs(matrix))) or 1.0
    extent = (start, start + columns, rows, 0.0)
    panel.imshow(matrix, cmap=diverging(), vmin=-most, vmax=most, extent=extent, aspect="auto", interpolation="none")
    edges: dict[str, Any] = {"color": "white", "linewidth": 0.8}
    panel.hlines(np.arange(1, rows), start, start + columns, **edges)
    panel.vlines(start + np.arange(1, columns), 0, rows, **edges)
    right = start + columns
    panel.plot([start, right, right, start, start], [0, 0, rows, rows, 0], color="0.4", linewidth=0.8)
    if numbers:
        for (j, k), entry in np.ndenumerate(matrix):
            if np.isnan(entry):
                continue
            dark = abs(entry) > 0.6 * most
            panel.text(
                start + k + 0.5, j + 0.5, short_number(entry), ha="center", va="center", fontsize=7,
                color="white" if dark else "black",
            )  # fmt: skip
        return
    j, k = np.nonzero(matrix < -0.1 * most)
    x = np.stack([start + k + 0.25, start + k + 0.75, np.full(k.size, np.nan)], axis=1).ravel()
    panel.plot(x, np.repeat(j + 0.5, 3), color="black", linewidth=0.8)  # one line with gaps: one element of a file


def has_room_for_numbers(panel: Axes, columns: float, rows: int) -> bool:
    """Whether the axes are large enough for numbers."""
    width, height = inches(panel)
    return width / columns >= NUMBER_ROOM[0] and height / rows >= NUMBER_ROOM[1]


def short_number(entry: float) -> str:
    """An entry of a matrix in at most five letters."""
    size = abs(entry)
    if size < 0.005:
        text = "0"
    elif size < 9.95:
        text = f"{entry:.2f}"
    else:
        text = f"{entry:.0f}" if size < 999.5 else f"{entry:.0e}".replace("e+0", "e")
    return text.replace("-", "\N{MINUS SIGN}")


def diverging() -> Any:
    """A colour map, orange through white to blue, as dark on either side."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("unbraid", [RED, "#FFFFFF", BLUE])
