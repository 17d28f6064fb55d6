"""Names of inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unbraid.errors import DataError


def as_names(argument: str, given: Sequence[str] | None, array: Any, count: int) -> tuple[str, ...] | None:
    """The given names, else those of the columns of a data frame, else None; there must be as many as columns."""
    if isinstance(given, str):
        raise DataError(f"{argument} must be a list of {count} names, got the single text {given!r}.")
    if given is None:
        columns = getattr(array, "columns", None)
        if columns is None or len(columns) != count or not all(isinstance(one, str) for one in columns):
            return None
        given = list(columns)
    names = tuple(given)
    strange = next((one for one in names if not isinstance(one, str)), None)
    if strange is not None:
        raise DataError(f"{argument} must be texts, got {strange!r} among them.")
    if len(names) != count:
        raise DataError(f"{argument} must be {count} names, one a column, got {len(names)}.")
    return names
