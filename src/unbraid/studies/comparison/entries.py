"""What a comparison is made of: systems and contenders, each from a file of its own."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unbraid.data.problem import Problem
from unbraid.results.fit import Fit
from unbraid.results.model import DecoupledModel

Draw = Callable[[int, np.random.Generator], tuple[Problem, DecoupledModel | None]]


@dataclass(frozen=True)
class System:
    """A function to decouple.

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
        S samples of it, and the true model where there is one.
    """

    name: str
    title: str
    rank: int
    df: int
    degree: int
    draw: Draw


@dataclass(frozen=True)
class Contender:
    """A method with its settings.

    Attributes
    ----------
    name, title
        For files and options; for readers.
    fit
        Decouples samples of a system.
    """

    name: str
    title: str
    fit: Callable[[Problem, System, np.random.Generator], Fit]


def systems() -> dict[str, System]:
    """All systems, by name, in the order of their files."""
    return {one.name: one for module in modules("systems") for one in module.SYSTEMS}


def contenders() -> dict[str, Contender]:
    """All contenders, by name, in the order of their files."""
    return {module.CONTENDER.name: module.CONTENDER for module in modules("contenders")}


def source_of(part: str, name: str) -> str:
    """The text of the file that an entry comes from: when it is edited, what was computed with it is outdated."""
    for module in modules(part):
        names = [one.name for one in module.SYSTEMS] if part == "systems" else [module.CONTENDER.name]
        if name in names:
            return inspect.getsource(module)
    return ""


def modules(part: str) -> list[Any]:
    """The modules of a package of this one."""
    package = importlib.import_module(f"unbraid.studies.comparison.{part}")
    names = sorted(one.name for one in pkgutil.iter_modules(package.__path__))
    return [importlib.import_module(f"{package.__name__}.{name}") for name in names]
