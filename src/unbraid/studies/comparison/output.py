"""What a comparison leaves in its folder: raw numbers, a figure and a summary page."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unbraid.data.checks import counted
from unbraid.kernels.arrays import Array
from unbraid.studies.comparison.cells import FRESH, TRAINING
from unbraid.studies.comparison.entries import contenders, systems
from unbraid.studies.comparison.figures import comparison_figure, noise_words
from unbraid.studies.tables import (
    distinct,
    distinct_names,
    markdown_table,
    values,
    write_bytes,
    write_csv,
    write_figure,
)
from unbraid.studies.tasks import Rows
from unbraid.version import __version__


def write_comparison(rows: Rows, folder: Path, command: str) -> list[Path]:
    """Write the summary page, the numbers and the figure into a folder; returns the files, the page first."""
    page = folder / "summary.md"
    write_bytes(page, comparison_page(rows, command).encode())
    return [page, write_csv(folder / "compare.csv", rows), *write_figure(folder / "compare", comparison_figure(rows))]


def comparison_page(rows: Rows, command: str) -> str:
    """The summary page in Markdown: a table of errors for each noise level, then one of success, angles and time."""
    runs = 1 + max(row["run"] for row in rows)
    parts = [
        "# Methods side by side",
        f"unbraid {__version__}, {counted(runs, 'draw')} a cell, {TRAINING} samples to fit and {FRESH} fresh ones to "
        f"test. Made by `{command}`.",
        "Noise is a share of the spread of each output and of the size of its slopes; fresh points have none. Errors "
        f"are those of the worst output on fresh points, in %{over_draws(runs)}, and the dotted line is 1 %. "
        "Polynomials get the degree and splines the df that belong to the system, all methods its rank; random starts "
        "are 16, for Decuyper 2022 two.",
        "![Errors on fresh points](compare.svg)",
    ]
    for noise in distinct(rows, "noise"):
        parts += [f"## {noise_words(noise).capitalize()}", errors_table(rows, noise)]
    parts += [
        "## Success, directions and time",
        "How many draws have an error below 1 %, or below the noise if that is larger; the median angle of the worst "
        "branch to its true direction, where that is known; the median time of a fit.",
        details_table(rows),
    ]
    return "\n\n".join(parts) + "\n"


def over_draws(runs: int) -> str:
    """What tables and figure show of so many draws."""
    if runs == 1:
        return ". In the figure a mark is a draw"
    return (
        ": median over the draws, and in brackets the worst draw. In the figure marks are medians, bars reach from the "
        "best draw to the worst"
    )


def errors_table(rows: Rows, noise: float) -> str:
    """Median and worst error on fresh points, a row a system and a column a contender; the best median is bold."""
    methods, table = distinct_names(rows, "contender"), []
    for system in distinct_names(rows, "system"):
        errors = [values(rows, "fresh_error", system=system, noise=noise, contender=one) for one in methods]
        best = min(float(np.median(error)) for error in errors)
        entries = [error_entry(error, best) for error in errors]
        table.append([systems()[system].title, *entries])
    return markdown_table(["system", *(contenders()[one].title for one in methods)], table)


def error_entry(errors: Array, best: float) -> str:
    """The median of errors (draws,) and the worst, '**0.12** (0.3)'; of one draw its error. Bold: best within 5 %."""
    median = float(np.median(errors))
    shown = f"**{percents(median)}**" if median <= 1.05 * best else percents(median)
    return shown if len(errors) == 1 else f"{shown} ({percents(float(errors.max()))})"


def percents(error: float) -> str:
    """An error in %, to two digits, and no power of ten where it is large."""
    return f"{error:.2g}" if error < 99.5 else f"{error:.0f}"


def details_table(rows: Rows) -> str:
    """How many draws succeed, the median angle to the true directions, and the median time, all systems and noises."""
    table = []
    for system in distinct_names(rows, "system"):
        for noise in distinct(rows, "noise"):
            line = [systems()[system].title, noise_words(noise)]
            for one in distinct_names(rows, "contender"):
                some = [r for r in rows if (r["system"], r["noise"], r["contender"]) == (system, noise, one)]
                angles = [row["angle"] for row in some if row["angle"] is not None]
                angle = f", {np.median(angles):.2g}°" if angles else ""
                seconds = float(np.median([row["seconds"] for row in some]))
                line.append(f"{sum(row['success'] for row in some)} of {len(some)}{angle}, {seconds:.2g} s")
            table.append(line)
    titles = [contenders()[one].title for one in distinct_names(rows, "contender")]
    return markdown_table(["system", "", *titles], table)
