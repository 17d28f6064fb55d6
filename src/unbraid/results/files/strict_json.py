"""JSON of strangers: nothing that JSON does not have, and no key twice."""

from __future__ import annotations

import json
from typing import Any

from unbraid.runtime.text import clean_name

LONGEST_WHOLE = 18
"""Characters of a whole number that is one: longer ones, of which files of models have none, are floats."""


def parse_json(text: str) -> Any:
    """What a text says; a `ValueError` with a few words where it is not JSON."""
    try:
        return json.loads(text, parse_int=whole, parse_constant=refuse_constant, object_pairs_hook=without_copies)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"{where}: {error.msg[:1].lower()}{error.msg[1:]}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except MemoryError:
        raise ValueError("it is too large") from None


def whole(text: str) -> int | float:
    """A whole number, as a float where it is long: converting very long ones takes very long."""
    return int(text) if len(text) <= LONGEST_WHOLE else float(text)


def refuse_constant(text: str) -> float:
    """NaN and Infinity, which Python takes and JSON does not have."""
    raise ValueError(f"{text} is no number of JSON")


def without_copies(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which no key comes twice: which one counts would be anyone's guess."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {clean_name(twice)!r} comes twice")
    return found
