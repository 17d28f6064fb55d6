"""Templates and files of the page, and the packages that it needs."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from unbraid.errors import MissingDependencyError, install_hint
from unbraid.report.words import small

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

NEEDED = ("jinja2", "matplotlib")


def missing_packages() -> list[str]:
    """The packages that a report needs and that are not installed."""
    return [name for name in NEEDED if find_spec(name) is None]


def check_packages() -> None:
    """Raise a sentence with advice where a package of a report is missing; cheap, so ask before long work."""
    missing = missing_packages()
    if missing:
        are = "are" if len(missing) > 1 else "is"
        raise MissingDependencyError(
            f"A report needs {' and '.join(missing)}, which {are} not installed: {install_hint('report')}."
        )


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
