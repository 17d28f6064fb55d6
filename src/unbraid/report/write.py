"""The page, put together and written."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from unbraid.files import StrPath, check_writable, replacing
from unbraid.fit import Fit
from unbraid.model import DecoupledModel
from unbraid.problem import Problem
from unbraid.report.cards import MANY, branch_cards, output_rows
from unbraid.report.diagram import NARROW, WIDE, Diagram, Form, diagram
from unbraid.report.figures import branch_figures
from unbraid.report.packages import check_packages
from unbraid.report.repeat import python_code, versions
from unbraid.report.subject import Subject, input_weights, output_weights
from unbraid.report.verdict import MEANINGS, badges, next_steps, verdict
from unbraid.report.words import small

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


def write_report(
    about: Fit | DecoupledModel,
    path: StrPath,
    *,
    truth: DecoupledModel | None = None,
    problem: Problem | None = None,
    command: str | None = None,
) -> None:
    """Write the page about a fit, or about a model and samples; `command` is how a shell repeats it."""
    check_packages()
    check_writable(path)
    page = report_page(Subject.of(about, truth, problem), command).encode()
    with replacing(path) as file:
        file.write(page)


def report_page(subject: Subject, command: str | None = None) -> str:
    """The page as text. The same fit gives the same text, but for the time that it took."""
    return environment().get_template("report.html.jinja").render(
        subject=subject,
        verdict=verdict(subject),
        badges=list(badges(subject)),
        diagrams=diagrams(subject, (WIDE, NARROW)),
        cards=list(zip(branch_cards(subject), branch_figures(subject), strict=True)),
        rows=output_rows(subject),
        many=MANY,
        meanings=MEANINGS,
        steps=list(next_steps(subject)),
        code=python_code(subject),
        command=command,
        versions=versions(),
        style=text_file("style.css"),
        script=text_file("script.js"),
    )


def diagrams(subject: Subject, forms: tuple[Form, ...]) -> list[Diagram]:
    """The block diagram in some forms."""
    W0, W1 = input_weights(subject.model, subject.problem), output_weights(subject.model, subject.problem)
    importance = subject.diagnostics.importance
    return [
        diagram(form, subject.model.branches, W0, W1, importance, subject.inputs, subject.outputs) for form in forms
    ]


@cache
def environment() -> Environment:
    """Templates that escape whatever they are given, and refuse what they are not."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("unbraid.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {"with_code": with_code, "small": small}
    made.filters.update(filters)
    return made


def with_code(text: str) -> Markup:
    """Text, escaped, with what stands in backticks as code."""
    from markupsafe import Markup, escape

    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if i % 2 and i < len(parts) - 1 else escape(part)
        for i, part in enumerate(parts)
    )


def text_file(name: str) -> Markup:
    """A file of this package that goes into the page as it is."""
    from markupsafe import Markup

    return Markup((files("unbraid.report") / "page" / name).read_text(encoding="utf-8"))
