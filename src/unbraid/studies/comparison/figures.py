"""The figure of a comparison: errors on fresh points, system by system and method by method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from unbraid.plots.palette import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY
from unbraid.studies.comparison.entries import contenders, systems
from unbraid.studies.tables import distinct, distinct_names, values
from unbraid.studies.tasks import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOOKS = ((BLUE, "o"), (ORANGE, "s"), (SKY, "^"), (GREEN, "v"), (PURPLE, "D"), (RED, "X"), (BLACK, "P"))
"""Colours and markers of the contenders: no two differ by colour alone."""


def comparison_figure(rows: Rows) -> Figure:
    """Errors on fresh points: a panel a noise level, a line a system, a mark a contender; median and range."""
    from matplotlib.figure import Figure

    noises, names = distinct(rows, "noise"), distinct_names(rows, "system")
    methods: Sequence[str] = distinct_names(rows, "contender")
    figure = Figure(figsize=(1.5 + 4.0 * len(noises), 1.2 + 0.55 * len(names)), layout="constrained")
    panels = figure.subplots(1, len(noises), sharey=True, squeeze=False)[0]
    for axes, noise in zip(panels, noises, strict=True):
        for k, one in enumerate(methods):
            for line, system in enumerate(names):
                errors = np.maximum(values(rows, "fresh_error", system=system, noise=noise, contender=one), 1e-12)
                height = line + 0.8 * ((k + 0.5) / len(methods) - 0.5)
                colour, marker = LOOKS[k % len(LOOKS)]
                axes.plot([errors.min(), errors.max()], [height, height], linewidth=1.0, color=colour)
                axes.plot(
                    np.median(errors), height, marker, markersize=5, color=colour,
                    label=contenders()[one].title if line == 0 else None,
                )  # fmt: skip
        axes.set_xscale("log")
        axes.axvline(1.0, color="0.5", linestyle=":", linewidth=1.0)
        axes.set_title(noise_words(noise))
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


def noise_words(noise: float) -> str:
    """A share of noise in words: 'without noise', '1 % noise'."""
    return f"{100 * noise:g} % noise" if noise else "without noise"
