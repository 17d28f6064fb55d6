"""What a file of a model can be asked for, whatever it is: metadata, and arrays by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any

import numpy as np

from unbraid.data.checks import read_only
from unbraid.errors import ModelFileError
from unbraid.kernels.arrays import Array
from unbraid.runtime.files import StrPath

NARROWEST_KNOTS, FARTHEST_KNOTS = 1e-60, 1e60
"""Knots that are closer to each other, or farther from zero, cannot be computed with."""


class Container(ABC):
    """An open file that may hold a model.

    Attributes
    ----------
    path
        The file, as it was named.
    names
        The names of its arrays.
    """

    path: StrPath
    names: Collection[str]

    @abstractmethod
    def metadata(self) -> dict[str, Any]:
        """What describes the model, its schema and its branches among it; refused where the file is something else."""

    @abstractmethod
    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, which is not unpacked."""

    @abstractmethod
    def numbers(self, name: str, shape: tuple[int | None, ...]) -> Array:
        """An array of float64; refused, before it is unpacked, where it has another shape (None: any length)."""

    def floats(self, name: str, shape: tuple[int | None, ...]) -> Array:
        """The array of this name, of finite float64 and of this shape (None: any length), read-only."""
        if name not in self.names:
            raise self.damage(f"the array {name} is missing")
        array = self.numbers(name, shape)
        if not np.isfinite(array).all():
            raise self.damage(f"{name} has entries that are NaN or infinite")
        return read_only(array)

    def points(self, name: str, shape: tuple[int | None, ...]) -> Array:
        """An array of points that increase, and can be computed with."""
        points = self.floats(name, shape)
        if not np.all(points[:-1] < points[1:]):
            raise self.damage(f"{name} is not strictly increasing")
        gap, reach = np.diff(points).min(initial=1.0), np.abs(points).max(initial=0.0)
        if gap < NARROWEST_KNOTS or reach > FARTHEST_KNOTS:
            raise self.damage(f"{name} has entries {gap:.3g} apart, or as far out as {reach:.3g}")
        return points

    def damage(self, what: str) -> ModelFileError:
        """The error about a model file that contradicts itself."""
        return ModelFileError(f"{self.path} is not a usable unbraid model: {what}.")
