"""The page, put together and written."""

from __future__ import annotations

from pathlib import Path

from unbraid.data.problem import Problem
from unbraid.errors import FileError, check_callback, check_path
from unbraid.report.cards import MANY, branch_cards, output_rows, shape_badges
from unbraid.report.diagram import NARROW_SCREEN, WIDE_SCREEN, lay_out
from unbraid.report.figures import MOST_FIGURES, branch_figures, course_figures, noise_figures, residual_figure
from unbraid.report.formulas import in_formulas
from unbraid.report.repeat import python_code, settings
from unbraid.report.steps import next_steps
from unbraid.report.subject import Subject
from unbraid.report.templates import check_packages, environment, text_file
from unbraid.report.trust import (
    answers,
    bias_words,
    chosen_words,
    course_words,
    error_words,
    jacobian_words,
    left_out_words,
    residual_words,
    samples_words,
)
from unbraid.report.verdict import MEANINGS, badges, verdict
from unbraid.report.worth import expected_words, figure_words, held_out_advice, noise_words
from unbraid.results.fit import Fit
from unbraid.results.model import DecoupledModel
from unbraid.runtime.files import StrPath, check_writable, replacing
from unbraid.runtime.progress import Callback


def write_report(
    about: Fit | DecoupledModel,
    path: StrPath,
    *,
    truth: DecoupledModel | None = None,
    problem: Problem | None = None,
    command: str | None = None,
    callback: Callback | None = None,
) -> Subject:
    """Write the page about a fit, or about a model and samples, and return what it is about, errors among it.

    `command` is how a shell repeats it.
    """
    check_packages()
    check_path("path", path)
    check_callback(callback)
    check_ending(path)
    check_writable(path)
    subject = Subject.of(about, truth, problem)
    page = report_page(subject, command, callback).encode()
    with replacing(path) as file:
        file.write(page)
    return subject


def check_ending(path: StrPath) -> None:
    """Refuse a name that promises anything but HTML."""
    page = Path(path)
    if page.suffix.lower() not in ("", ".html", ".htm"):
        name = page.with_suffix(".html")
        raise FileError(f"{page} would not be a {page.suffix} file, for HTML is what is written: use {name}.")


def report_page(subject: Subject, command: str | None = None, callback: Callback | None = None) -> str:
    """The page as text. The same fit gives the same text, but for the time that it took."""
    left = noise_words(subject)
    return (
        environment()
        .get_template("report.html.jinja")
        .render(
            subject=subject,
            verdict=verdict(subject),
            expected_words=expected_words(subject),
            held_out_advice=held_out_advice(subject),
            noise_words=left,
            noise_figures=noise_figures(subject) if left else [],
            figure_words=figure_words(subject) if left else "",
            badges=[*badges(subject), *shape_badges(subject)],
            diagrams=[lay_out(form, subject, subject.shares) for form in (WIDE_SCREEN, NARROW_SCREEN)],
            cards=list(zip(branch_cards(subject), branch_figures(subject, callback), strict=True)),
            in_formulas=in_formulas(subject),
            rows=output_rows(subject),
            error_words=error_words(subject),
            jacobian_words=jacobian_words(subject),
            residuals=residual_figure(subject),
            residual_words=residual_words(subject),
            course=[] if subject.fit is None else course_figures(subject.fit),
            course_words=course_words(subject),
            chosen_words=chosen_words(subject),
            left_out_words=left_out_words(subject),
            samples_words=samples_words(subject),
            answers=list(answers(subject)),
            many=MANY,
            most_figures=MOST_FIGURES,
            bias=bias_words(subject),
            longest=max(map(len, subject.inputs + subject.outputs)),
            meanings=MEANINGS,
            steps=list(next_steps(subject)),
            code=python_code(subject),
            command=command,
            settings=settings(subject),
            style=text_file("diagram.css") + text_file("page.css"),
            script=text_file("script.js"),
        )
    )
