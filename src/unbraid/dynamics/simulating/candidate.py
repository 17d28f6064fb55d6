"""The unknowns of a dynamic model: f(φ) = L φ + W1 g(W0 φ) + bias, and the past of every course."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from unbraid.bases import Placement
from unbraid.dynamics.models.function import combined_slopes
from unbraid.kernels.arrays import Array


class Values(NamedTuple):
    """What a candidate gives at φ (T, mφ): outputs f (T, n), and branches and their slopes, R and G (r, T)."""

    f: Array
    R: Array
    G: Array


@dataclass(frozen=True)
class Candidate:
    """A model in a solver's units.

    Attributes
    ----------
    L, W0, W1, bias
        (n, mφ), (r, mφ), (n, r), (n,).
    placement, a
        The basis as it is placed on the branches' inputs, with a leading axis of branches, and coordinates (r, K).
        None and (0, 0) without branches.
    pasts
        One a course: what came before it, (longest, q).
    """

    L: Array
    W0: Array
    W1: Array
    bias: Array
    placement: Placement | None
    a: Array
    pasts: tuple[Array, ...]

    @property
    def rank(self) -> int:
        """How many branches there are."""
        return len(self.W0)

    def branch_inputs(self, phi: Array) -> Array:
        """U (r, T) at φ (T, mφ)."""
        return np.asarray(self.W0 @ phi.T)

    def values(self, phi: Array) -> Values:
        """Outputs and branches at φ (T, mφ)."""
        f = phi @ self.L.T + self.bias
        if self.placement is None:
            none = np.zeros((0, len(phi)))
            return Values(f, none, none)
        R, G = self.placement.value_and_slope(self.a, self.placement.at(self.branch_inputs(phi)))
        return Values(f + R.T @ self.W1.T, R, G)

    def slopes(self, outputs: Values, width: int) -> Array:
        """∂f/∂φ for the first entries of φ, (T, n, width)."""
        return combined_slopes(self.L[:, :width], self.W0[:, :width], self.W1, outputs.G)

    def with_pasts(self, pasts: tuple[Array, ...]) -> Candidate:
        """The same model with other pasts."""
        return replace(self, pasts=pasts)
