"""The figures of a page about a dynamic model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from unbraid.dynamics.fit import Run
from unbraid.dynamics.record import Record
from unbraid.plots import dynamics
from unbraid.report.dynamic.subject import DynamicSubject
from unbraid.report.figures import new_figure
from unbraid.report.svg import inline, page_look

if TYPE_CHECKING:
    from markupsafe import Markup

MOST_COURSES, MOST_SPECTRA = 8, 6
"""Records and outputs that have figures: more would make the page too large."""
CLOSE = 200
"""Samples of a close-up."""
WIDE, SMALL = (8.4, 3.6), (4.8, 3.4)


def simulated_figures(subject: DynamicSubject) -> list[tuple[str, Markup]]:
    """Measured and simulated courses with headings: further records first, each output, whole and close up."""
    fit = subject.fit
    runs: list[tuple[str, int | Record, Run]] = [
        (f"a record that the fit did not see{number(k, subject.tests)}", run.record, run)
        for k, run in enumerate(subject.tests)
    ]
    runs += [(f"the record of the fit{number(k, fit.records)}", k, run) for k, run in enumerate(fit.runs)]
    found: list[tuple[str, Markup]] = []
    with page_look():
        for heading, record, run in runs:
            for i in range(fit.model.ny):
                if len(found) >= MOST_COURSES:
                    return found
                said = f"{subject.outputs[i]}, {heading}" if subject.several else heading
                stretches = [("", None), *([(CLOSELY, close_up(run, i))] if len(run.record) > 3 * CLOSE else [])]
                for how, stretch in stretches:
                    title = f"{said}{how}"
                    made = draw_pair(subject, record, i, stretch, f"s{len(found)}", title)
                    found.append((title[0].upper() + title[1:] if not subject.several else title, made))
    return found


CLOSELY = f": the {CLOSE} samples about where it misses most"
"""What a close-up is called."""


def number(k: int, many: tuple[Any, ...]) -> str:
    """' 2', which of several; nothing where there is one."""
    return f" {k + 1}" if len(many) > 1 else ""


def close_up(run: Run, i: int) -> slice:
    """The stretch about the largest residual of output i."""
    left = np.abs(run.residual[:, i])
    at = int(np.nanargmax(left)) if np.isfinite(left).any() else 0
    begin = min(max(at - CLOSE // 2, 0), len(left) - CLOSE)
    return slice(begin, begin + CLOSE)


def draw_pair(
    subject: DynamicSubject, record: int | Record, i: int, stretch: slice | None, prefix: str, says: str
) -> Markup:
    """The picture of one course and of what is left of it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=WIDE, layout="constrained")
    pair = figure.subplots(2, 1, sharex=True, height_ratios=(2.4, 1.0))
    dynamics.simulated(subject.fit, record, i, stretch, pair)
    return inline(figure, prefix, says)


def spectrum_figures(subject: DynamicSubject) -> list[Markup]:
    """The spectra of every output and of what is left of it, of the first ones of many."""
    return [
        small_figure(partial(dynamics.spectra, subject.fit, i), f"f{i}", f"Spectra of {name}")
        for i, name in enumerate(subject.outputs[:MOST_SPECTRA])
    ]


def linear_figures(subject: DynamicSubject) -> list[tuple[str, Markup]]:
    """Poles and frequency response, with headings."""
    gain, poles = partial(dynamics.frequency_response, subject.fit), partial(dynamics.poles, subject.fit)
    return [
        ("Frequency response", small_figure(gain, "gain", "Gain by frequency")),
        ("Poles", small_figure(poles, "poles", "Poles in the unit circle")),
    ]


def course_figures(subject: DynamicSubject) -> list[Markup]:
    """The error step by step, where there were steps."""
    if len(subject.fit.objectives) < 2:
        return []
    return [small_figure(partial(dynamics.course, subject.fit), "course", "Errors step by step")]


def small_figure(draw: Callable[..., object], prefix: str, says: str) -> Markup:
    """One picture on axes of its own."""
    with page_look():
        figure, axes = new_figure(SMALL)
        draw(ax=axes)
        return inline(figure, prefix, says)
