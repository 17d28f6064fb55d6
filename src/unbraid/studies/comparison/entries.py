"""What a comparison is made of: systems and contenders, found in the files of two folders."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from unbraid.data.problem import Problem
from unbraid.results.fit import Fit
from unbraid.results.model import DecoupledModel

Folder = Literal["systems", "contenders"]
Drawing = Callable[[int, np.random.Generator], tuple[Problem, DecoupledModel | None]]
"""Draws so many samples of a system, with the true model where there is one."""


@dataclass(frozen=True)
class System:
    """A system to compare methods on: a function to decouple, and what its decoupling needs.

    Attributes
    ----------
    name, title
        For files and options; for readers.
    rank
        How many branches to look for.
    df
        Degrees of freedom that splines get.
    degree
        Degree that polynomials get.
    draw
        Draws S samples, with the true model where there is one.
    """

    name: str
    title: str
    rank: int
    df: int
    degree: int
    draw: Drawing


Fitting = Callable[[Problem, System, np.random.Generator], Fit]
"""Decouples samples of a system; everything random comes from the generator."""


@dataclass(frozen=True)
class Contender:
    """A method that takes part in the comparison, with its settings.

    Attributes
    ----------
    name, title
        For files and options; for readers.
    fit
        Decouples samples of a system.
    """

    name: str
    title: str
    fit: Fitting


def systems() -> dict[str, System]:
    """All systems by name, in the order of their files."""
    return {one.name: one for module in modules("systems") for one in module.SYSTEMS}


def contenders() -> dict[str, Contender]:
    """All contenders by name, in the order of their files, and within one in that of its list."""
    return {one.name: one for module in modules("contenders") for one in module.CONTENDERS}


def source_of(folder: Folder, name: str) -> str:
    """The text of the file that has the system or contender of that name.

    When it is edited, what was computed with it is outdated.
    """
    files = {one.name: module for module in modules(folder) for one in getattr(module, folder.upper())}
    return inspect.getsource(files[name])


def modules(folder: Folder) -> list[Any]:
    """The modules in a folder of this package, by name."""
    package = importlib.import_module(f"unbraid.studies.comparison.{folder}")
    names = sorted(one.name for one in pkgutil.iter_modules(package.__path__))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]
