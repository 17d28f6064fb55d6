"""The page about a dynamic model, put together and written."""

from __future__ import annotations

import platform

import numpy as np
import scipy

from unbraid.dynamics.fit import DynamicFit
from unbraid.dynamics.record import Record
from unbraid.errors import SettingError, check_callback, check_path
from unbraid.report.cards import branch_cards
from unbraid.report.diagram import NARROW_SCREEN, WIDE_SCREEN, lay_out
from unbraid.report.dynamic.figures import course_figures, linear_figures, simulated_figures, spectrum_figures
from unbraid.report.dynamic.matrices import matrices_of
from unbraid.report.dynamic.subject import DynamicSubject
from unbraid.report.dynamic.tables import fit_rows, fresh_rows
from unbraid.report.dynamic.words import badges, course_words, linear_words, model_words, python_code, verdict
from unbraid.report.figures import MOST_FIGURES, branch_figures
from unbraid.report.templates import check_packages, environment, text_file
from unbraid.report.verdict import MEANINGS
from unbraid.report.write import check_ending
from unbraid.runtime.files import StrPath, check_writable, replacing
from unbraid.runtime.progress import Callback
from unbraid.version import __version__


def write_report(
    fit: DynamicFit,
    path: StrPath,
    *,
    test: Record | list[Record] | tuple[Record, ...] = (),
    command: str | None = None,
    callback: Callback | None = None,
) -> None:
    """Write the page about the fit of a dynamic model.

    Parameters
    ----------
    fit
        What `ub.dynamics.state_space` or `ub.dynamics.narx` returns.
    path
        Where the page goes, one HTML file.
    test
        Further records, which the fit did not see, to be simulated on the page.
    command
        How a shell repeats it.
    callback
        Called with a `Progress`, whose phase is "draw", after each figure of a branch.
    """
    check_packages()
    check_path("path", path)
    check_callback(callback)
    check_ending(path)
    check_writable(path)
    if not isinstance(fit, DynamicFit):
        raise SettingError(f"A report of a dynamic model is about a DynamicFit, got a {type(fit).__name__}.")
    page = report_page(DynamicSubject.of(fit, test), command, callback).encode()
    with replacing(path) as file:
        file.write(page)


def report_page(subject: DynamicSubject, command: str | None = None, callback: Callback | None = None) -> str:
    """The page as text. The same fit gives the same text, but for the time that it took."""
    fit, nonlinear = subject.fit, subject.nonlinear
    diagrams, cards = [], []
    if nonlinear is not None:
        diagrams = [lay_out(form, nonlinear, nonlinear.shares) for form in (WIDE_SCREEN, NARROW_SCREEN)]
        cards = list(zip(branch_cards(nonlinear), branch_figures(nonlinear, callback), strict=True))
    return (
        environment()
        .get_template("dynamic.html.jinja")
        .render(
            subject=subject,
            fit=fit,
            model=fit.model,
            nonlinear=nonlinear,
            verdict=verdict(subject),
            expected_words=linear_words(subject),
            badges=list(badges(subject)),
            model_words=model_words(subject),
            diagrams=diagrams,
            cards=cards,
            most_figures=MOST_FIGURES,
            rows=fit_rows(subject),
            tests=fresh_rows(subject),
            simulated=simulated_figures(subject),
            spectra=spectrum_figures(subject),
            linear=linear_figures(subject),
            matrices=matrices_of(subject),
            course=course_figures(subject),
            course_words=course_words(fit),
            meaning=MEANINGS[fit.status],
            code=python_code(subject),
            command=command,
            settings=settings(fit),
            style=text_file("diagram.css") + text_file("page.css"),
            script=text_file("script.js"),
        )
    )


def settings(fit: DynamicFit) -> list[tuple[str, str]]:
    """What the fit was made with, as far as it is known, and the versions of what computes."""
    asked = {} if fit.asked is None else fit.asked.settings
    seed = asked.get("rng")
    shapes = ["none" if one is None else one.means for one in fit.constraints]
    records = "; ".join(repr(one).removeprefix("Record(").removesuffix(")") for one in fit.records)
    versions = f"{__version__}, Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}"
    return [
        ("records", records),
        ("basis", "not known" if fit.basis is None else repr(fit.basis)),
        ("shape asked for", ", ".join(dict.fromkeys(shapes)) or "none"),
        ("starts", str(asked.get("starts", len(fit.starts)))),
        ("seed", "not known" if seed is None else str(seed)),
        ("time", f"{fit.seconds:.2g} s"),
        ("unbraid", versions),
    ]
