"""A model to start from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from unbraid.arrays import Array
from unbraid.gauge import row_lengths
from unbraid.model import DecoupledModel
from unbraid.units import Units


@dataclass(frozen=True)
class GivenModel:
    """A model in the solver's units: W0 (r, m), W1 (n, r), and what gives slopes and values (S, r) at inputs (S, m)."""

    W0: Array
    W1: Array
    at: Callable[[Array], tuple[Array, Array]]

    @classmethod
    def of(cls, model: DecoupledModel, units: Units) -> Self:
        """A model in the user's units.

        With V = W0 x_scale and β the lengths of its rows, the solver's branch inputs are V z / β, in which slopes
        are β times as large.
        """
        V = model.W0 * units.x_scale
        length = row_lengths(V)
        length = np.where(length > 0.0, length, 1.0)
        return cls(V / length[:, None], model.W1 / units.f_scale[:, None], Branches(model, units, length))


@dataclass(frozen=True)
class Branches:
    """Slopes and values of a model's branches at inputs in the solver's units."""

    model: DecoupledModel
    units: Units
    length: Array

    def __call__(self, X: Array) -> tuple[Array, Array]:
        """Both (S, r), at X (S, m)."""
        u = (X * self.units.x_scale + self.units.center) @ self.model.W0.T
        G = np.stack([g.derivative(u[:, j]) for j, g in enumerate(self.model.branches)], axis=-1)
        R = np.stack([g(u[:, j]) for j, g in enumerate(self.model.branches)], axis=-1)
        return G * self.length, R
