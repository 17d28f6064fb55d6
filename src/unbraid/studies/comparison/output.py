"""What a comparison leaves in its folder: raw numbers, a figure and a summary page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unbraid.studies.comparison.entries import contenders, systems
from unbraid.studies.comparison.run import FRESH, SAMPLES
from unbraid.studies.tables import distinct, markdown_table, values, write_bytes, write_csv, write_figure
from unbraid.studies.tasks import Rows
from unbraid.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#D55E00", "#000000")
MARKERS = ("o", "s", "^", "v", "D", "X", "P")
LEVEL = {0.0: "without noise", 0.01: "1 % noise", 0.05: "5 % noise"}


def write_comparison(rows: Rows, folder: Path, command: str) -> list[Path]:
    """Write everything; the files, the summary page first."""
    page = folder / "summary.md"
    write_bytes(page, summary(rows, command).encode())
    return [page, write_csv(folder / "compare.csv", rows), *write_figure(folder / "compare", comparison_figure(rows))]


def named(rows: Rows, column: str) -> list[str]:
    """The names in a column, each once, as they come."""
    return list(dict.fromkeys(row[column] for row in rows))


def level(noise: float) -> str:
    """'without noise', '1 % noise'."""
    return LEVEL.get(noise, f"{100 * noise:g} % noise")


def summary(rows: Rows, command: str) -> str:
    """The page: a table of errors a noise level, then one of everything."""
    runs = 1 + max(row["run"] for row in rows)
    parts = [
        "# Methods side by side",
        f"unbraid {__version__}, {runs} draws a cell, {SAMPLES} samples to fit and {FRESH} fresh ones to test. "
        f"Made by `{command}`.",
        "Noise is a share of the spread of each output and of the size of its slopes; fresh points have none. Errors "
        "are those of the worst output on fresh points, in %: median over the draws, and the worst draw. In the figure "
        "marks are medians, bars reach from the best draw to the worst, and the dotted line is 1 %. Polynomials get "
        "the degree and splines the df that belong to the system, all methods its rank; random starts are 16, for "
        "Decuyper 2022 two.",
        "![Errors on fresh points](compare.svg)",
    ]
    for noise in distinct(rows, "noise"):
        parts += [f"## {level(noise).capitalize()}", errors_table(rows, noise)]
    parts += [
        "## Success, directions and time",
        "How many draws have an error below 1 %, or below the noise if that is larger; the median angle of the worst "
        "branch to its true direction, where that is known; the median time of a fit.",
        details_table(rows),
    ]
    return "\n\n".join(parts) + "\n"


def errors_table(rows: Rows, noise: float) -> str:
    """Median and worst error on fresh points, a row a system; the best median is bold."""
    methods, table = named(rows, "contender"), []
    for system in named(rows, "system"):
        errors = [values(rows, "fresh_error", system=system, noise=noise, contender=one) for one in methods]
        best = min(float(np.median(error)) for error in errors)
        entries = [entry(float(np.median(error)), float(error.max()), best) for error in errors]
        table.append([systems()[system].title, *entries])
    return markdown_table(["system", *(contenders()[one].title for one in methods)], table)


def entry(median: float, worst: float, best: float) -> str:
    """'**0.12** (0.3)': bold if it is the best, or within 5 % of it."""
    shown = f"{median:.2g}" if median < 99.5 else f"{median:.0f}"
    return f"{f'**{shown}**' if median <= 1.05 * best else shown} ({worst:.2g})"


def details_table(rows: Rows) -> str:
    """How many draws succeed, the median angle to the true directions, and the median time, all systems and noises."""
    table = []
    for system in named(rows, "system"):
        for noise in distinct(rows, "noise"):
            line = [systems()[system].title, level(noise)]
            for one in named(rows, "contender"):
                some = [r for r in rows if (r["system"], r["noise"], r["contender"]) == (system, noise, one)]
                angles = [row["angle"] for row in some if row["angle"] is not None]
                angle = f", {np.median(angles):.2g}°" if angles else ""
                seconds = float(np.median([row["seconds"] for row in some]))
                line.append(f"{sum(row['success'] for row in some)} of {len(some)}{angle}, {seconds:.2g} s")
            table.append(line)
    titles = [contenders()[one].title for one in named(rows, "contender")]
    return markdown_table(["system", "", *titles], table)


def comparison_figure(rows: Rows) -> Figure:
    """Errors on fresh points: a panel a noise level, a line a system, a mark a contender; median and range."""
    from matplotlib.figure import Figure

    noises, names = distinct(rows, "noise"), named(rows, "system")
    methods: Sequence[str] = named(rows, "contender")
    figure = Figure(figsize=(1.5 + 4.0 * len(noises), 1.2 + 0.55 * len(names)), layout="constrained")
    panels = figure.subplots(1, len(noises), sharey=True, squeeze=False)[0]
    for axes, noise in zip(panels, noises, strict=True):
        for k, one in enumerate(methods):
            for line, system in enumerate(names):
                errors = np.maximum(values(rows, "fresh_error", system=system, noise=noise, contender=one), 1e-12)
                height = line + 0.8 * ((k + 0.5) / len(methods) - 0.5)
                look = {"color": COLOURS[k % len(COLOURS)]}
                axes.plot([errors.min(), errors.max()], [height, height], linewidth=1.0, **look)
                axes.plot(
                    np.median(errors), height, MARKERS[k % len(MARKERS)], markersize=5, **look,
                    label=contenders()[one].title if line == 0 else None,
                )  # fmt: skip
        axes.set_xscale("log")
        axes.axvline(1.0, color="0.5", linestyle=":", linewidth=1.0)
        axes.set_title(level(noise))
        axes.set_xlabel("worst output's error on fresh points, %")
        axes.grid(axis="x", alpha=0.3)
        for line in range(len(names) - 1):
            axes.axhline(line + 0.5, color="0.85", linewidth=0.8)
    panels[0].set_yticks(range(len(names)), [systems()[name].title for name in names])
    panels[0].set_ylim(len(names) - 0.5, -0.5)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=min(len(methods), 1 + 2 * len(noises)), frameon=False
    )
    return figure
