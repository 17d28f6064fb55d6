"""Every error this library raises on purpose is an `UnbraidError`; the text says what to do."""

from __future__ import annotations

import os
from math import inf
from numbers import Integral, Real

import numpy as np


class UnbraidError(Exception):
    """The base of all deliberate errors: catch this one."""


class DataError(UnbraidError, ValueError):
    """Samples that cannot be used: wrong shape, wrong kind, not finite, too few."""


class SettingError(UnbraidError, ValueError):
    """A setting outside what is accepted, or a combination that cannot work."""


class FileError(UnbraidError, ValueError):
    """A file that cannot be read or written as asked."""


class ModelFileError(FileError):
    """A file that is not a model of this library or not one this version can read; or a model no file can hold."""


class TaskError(UnbraidError):
    """A piece of work that failed in code that is not this library's, or whose process was ended."""


class MemoryPlanError(UnbraidError, MemoryError):
    """A fit that would need more memory than there is, or than it was allowed."""


class MissingDependencyError(UnbraidError, ImportError):
    """An optional package is needed for what was asked."""


def install_hint(extra: str) -> str:
    """How to install the packages of an extra: unbraid is on no index, so what works is a clone.

    Examples
    --------
    >>> install_hint("report")
    'from a clone of unbraid, pip install -e ".[report]"'
    """
    return f'from a clone of unbraid, pip install -e ".[{extra}]"'


LONGEST_QUOTE = 100
"""Characters that a message quotes of what was given."""


def shown(given: object) -> str:
    """What was given, as a message quotes it: as Python writes it, on one line, and not too long.

    Examples
    --------
    >>> shown("auto"), shown(list(range(1000)))[-8:]
    ("'auto'", '5, 26...')
    """
    with np.printoptions(threshold=8, edgeitems=1):
        text = " ".join(repr(given).split())
    return text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 3] + "..."


def check_path(name: str, given: object) -> None:
    """Refuse what is not the path of a file."""
    if not isinstance(given, str | os.PathLike):
        raise SettingError(f"{name} must be the path of a file, a text or a pathlib.Path, got {shown(given)}.")


def check_callback(callback: object, told: str = "a Progress") -> None:
    """Refuse what cannot be called to tell of the progress."""
    if callback is not None and not callable(callback):
        raise SettingError(f"callback must be a function of {told}, or None, got {shown(callback)}.")


def check_whole(name: str, value: object, least: int) -> None:
    """Refuse anything but a whole number of at least `least`."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least:  # type: ignore[operator]
        raise SettingError(f"{name} must be a whole number of at least {least}, got {shown(value)}.")


def check_number(name: str, value: object, least: float, most: float = inf) -> None:
    """Refuse anything but a finite real number from `least` to `most`."""
    real = isinstance(value, Real) and not isinstance(value, bool)
    if not real or not least <= float(value) <= most or float(value) == inf:  # type: ignore[arg-type]
        accepted = f"finite number of at least {least:g}" if most == inf else f"number from {least:g} to {most:g}"
        raise SettingError(f"{name} must be a {accepted}, got {shown(value)}.")


def as_generator(rng: object) -> np.random.Generator:
    """A NumPy generator from None, a seed or a generator."""
    try:
        return np.random.default_rng(rng)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise SettingError(
            f"rng must be None, a whole number of at least 0 or a NumPy Generator, got {shown(rng)}."
        ) from None
