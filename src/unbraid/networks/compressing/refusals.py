"""What networks raise where inputs do not suit them, and why they say they do."""

from __future__ import annotations

REFUSALS = (RuntimeError, ValueError, IndexError, TypeError, AssertionError)
"""What modules raise for tensors of a shape or type that they do not take."""


def reason(error: BaseException) -> str:
    """The first line of what an error says, or its kind where it says nothing."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
