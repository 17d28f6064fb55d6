"""A problem in a solver's units: what the linear steps work on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from unbraid.arrays import Array, IndexArray, blocks
from unbraid.problem import Problem
from unbraid.units import Units


@dataclass(frozen=True)
class Samples:
    """The data as the solver's equations see them, for all starts, or `stacked` for each.

    Attributes
    ----------
    X
        (S, m), in the solver's units.
    F
        (S, n), in the solver's units, or None.
    J
        (S, n·m): the user's own memory, or None. J · weight is what the equations call J.
    weight
        (n·m,).
    jacobian_norm
        ‖J‖² in the solver's units, 0 without Jacobians.
    """

    X: Array
    F: Array | None
    J: Array | None
    weight: Array
    jacobian_norm: Array | float

    @cached_property
    def norm(self) -> Array:
        """What objectives are measured in: ‖J‖², or without Jacobians ‖F - mean F‖²; 1 where that is 0."""
        square = np.asarray(self.jacobian_norm)
        if self.J is None and self.F is not None:
            square = np.sum(np.square(self.F - self.F.mean(axis=-2, keepdims=True)), axis=(-2, -1))
        return np.where(square > 0.0, square, 1.0)

    @classmethod
    def stacked(cls, several: Sequence[Self]) -> Self:
        """Several problems of one shape as one, with a leading axis: every start has samples of its own."""
        F = None if several[0].F is None else np.stack([one.F for one in several if one.F is not None])
        J = None if several[0].J is None else np.stack([one.J for one in several if one.J is not None])
        norms = np.array([one.jacobian_norm for one in several])
        return cls(np.stack([one.X for one in several]), F, J, np.stack([one.weight for one in several]), norms)

    def take(self, index: IndexArray) -> Self:
        """The samples of some of the starts: the same for all unless they are stacked."""
        if self.X.ndim == 2:
            return self
        return type(self)(
            self.X[index],
            None if self.F is None else self.F[index],
            None if self.J is None else self.J[index],
            self.weight[index],
            np.asarray(self.jacobian_norm)[index],
        )

    def jacobian(self, part: slice) -> Array:
        """J of a block of samples in the solver's units: a copy, (block, n·m)."""
        return self.jacobians[part] * self.weight

    @property
    def jacobians(self) -> Array:
        """J, for solvers that cannot do without."""
        assert self.J is not None
        return self.J

    def with_jacobians(self, J: Array) -> Self:
        """The same with Jacobians (S, n, m), given in the solver's units."""
        flat = J.reshape(len(J), -1)
        return replace(self, J=flat, weight=np.ones(flat.shape[1]), jacobian_norm=float(np.sum(flat * flat)))

    @classmethod
    def of(cls, problem: Problem, units: Units) -> Self:
        """The problem in those units. J is not copied."""
        J = None if problem.J is None else problem.J.reshape(problem.S, -1)
        weight = (units.x_scale / units.f_scale[:, None]).ravel()
        norm = 0.0
        if J is not None:
            norm = sum(float(np.einsum("sk,sk,k->", J[p], J[p], weight**2)) for p in blocks(*J.shape))
        X = (problem.X - units.center) / units.x_scale
        constant = np.abs(X).max(axis=0) <= 1e-12 * np.abs(units.center / units.x_scale)
        X[:, constant] = 0.0  # what centring leaves of a constant input is rounding, not data
        return cls(X, None if problem.F is None else problem.F / units.f_scale, J, weight, norm)
