"""Templates and files of the page."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from unbraid.report.words import small

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


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
