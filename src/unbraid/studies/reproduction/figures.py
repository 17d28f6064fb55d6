"""Figures in the layout of the paper's figures 2 and 3, one column a variant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from unbraid.plots.palette import BLUE, ORANGE, RED, SKY
from unbraid.studies.reproduction.readings import VARIANTS
from unbraid.studies.tables import distinct, values
from unbraid.studies.tasks import Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BOX_COLOURS = (ORANGE, SKY, BLUE)
"""In grey they differ in lightness as well."""
FEWEST = 5
"""Runs of which a box can be drawn; fewer are drawn one by one."""


def trig_figure(rows: Rows, prefix: str = "poly_") -> Figure:
    """Figure 2: Error(J), e_1 and e_2 of f_trig over df for d = 1, 2, 3, as box plots without outliers."""
    figure, panels, variants = new_grid(rows, 3)
    labels = ("Error(J)", "e₁ in %", "e₂ in %")
    degrees = distinct(rows, "degree")
    for column, variant in enumerate(variants):
        some = [row for row in rows if row["variant"] == variant]
        for axes, name in zip(panels[:, column], ("error_J", "e1", "e2"), strict=True):
            groups = [[values(some, prefix + name, degree=d, df=df) for df in distinct(rows, "df")] for d in degrees]
            draw_boxes(axes, groups, distinct(rows, "df"))
            if name != "error_J":
                axes.axhline(1.0, color=RED, linestyle=":", linewidth=1.2, zorder=0)
        panels[0, column].set_title(VARIANTS[variant])
        panels[-1, column].set_xlabel("degrees of freedom df")
    for axes, label in zip(panels[:, 0], labels, strict=True):
        axes.set_ylabel(label)
    draw_legend(figure, [f"d = {d}" for d in degrees], line="1 %")
    return figure


def monotone_figure(rows: Rows) -> Figure:
    """Figure 3: Error(J) of the monotone system over df, with and without the constraint."""
    figure, panels, variants = new_grid(rows, 1)
    for column, variant in enumerate(variants):
        some = [row for row in rows if row["variant"] == variant]
        dfs = distinct(rows, "df")
        groups = [[values(some, "error_J", constraint=c, df=df) for df in dfs] for c in ("none", "increasing")]
        draw_boxes(panels[0, column], groups, dfs, (BOX_COLOURS[0], BOX_COLOURS[2]))
        panels[0, column].set_title(VARIANTS[variant])
        panels[0, column].set_xlabel("degrees of freedom df")
    panels[0, 0].set_ylabel("Error(J)")
    draw_legend(figure, ["Unconstrained", "Monotonic (+)"], (BOX_COLOURS[0], BOX_COLOURS[2]))
    return figure


def new_grid(rows: Rows, lines: int) -> tuple[Figure, Any, list[str]]:
    """A figure with one column a variant; panels of a line share their axis."""
    from matplotlib.figure import Figure

    variants = [variant for variant in VARIANTS if any(row["variant"] == variant for row in rows)]
    figure = Figure(figsize=(0.6 + 4.0 * len(variants), 0.9 + 2.5 * lines), layout="constrained")
    panels = figure.subplots(lines, len(variants), sharex=True, sharey="row", squeeze=False)
    return figure, panels, variants


def draw_boxes(
    axes: Axes, groups: Sequence[Sequence[Any]], ticks: Sequence[int], colours: Sequence[str] = BOX_COLOURS
) -> None:
    """Draw box plots side by side, one group a colour, one place a tick, on a logarithmic scale."""
    width = 0.8 / len(groups)
    for g, group in enumerate(groups):
        places = [k + (g - (len(groups) - 1) / 2) * width for k in range(len(ticks))]
        if min(len(cell) for cell in group) < FEWEST:
            for place, cell in zip(places, group, strict=True):
                axes.plot([place] * len(cell), cell, "o", color=colours[g], markeredgecolor="black", markersize=4)
            continue
        axes.boxplot(
            group,
            positions=places,
            widths=0.85 * width,
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": colours[g], "linewidth": 0.6},
            medianprops={"color": "black", "linewidth": 1.2},
            whiskerprops={"linewidth": 0.6},
            capprops={"linewidth": 0.6},
        )
    axes.set_yscale("log")
    axes.set_xticks(range(len(ticks)), [str(tick) for tick in ticks])
    axes.grid(axis="y", alpha=0.3)


def draw_legend(
    figure: Figure, names: Sequence[str], colours: Sequence[str] = BOX_COLOURS, line: str | None = None
) -> None:
    """Draw one legend for all panels, above them; `line` is what the dotted one is called."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Patch(facecolor=colour, edgecolor="black", label=name) for name, colour in zip(names, colours, strict=False)
    ]
    if line is not None:
        handles.append(Line2D([], [], color=RED, linestyle=":", label=line))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)
