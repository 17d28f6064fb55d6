"""The packages that a report needs."""

from __future__ import annotations

from importlib.util import find_spec

from unbraid.errors import MissingDependencyError, install_hint

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
