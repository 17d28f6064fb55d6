r"""What changes θ of a model's unknowns mean for what a user sees: branches, W0, W1 and bias in the model's gauge.

In that gauge rows of W0 have length one, and the values R_j of a branch at the samples have mean zero and standard
deviation one; W1 takes up their scale, the bias their mean. With δR_j the change of the values at the samples, c the
centre that directions turn around, and ε = w0·δw0,

    δg(u)  = g'(u) (u ε - c·δw0) + B(u) δa - mean(δR) - g(u) ⟨R, δR⟩ / ⟨R, R⟩,
    δw1    = outer θ + w1 ⟨R, δR⟩ / ⟨R, R⟩,        δb = θ_b + Σ_j w1_j mean(δR_j),        δw0 - ε w0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from unbraid.inference.tangent import Tangent
from unbraid.kernels.arrays import Array
from unbraid.results.branch import FittedBranch


@dataclass(frozen=True, eq=False)
class Gauged:
    """A tangent in the model's gauge; rows are linear in θ (U,).

    `means` and `scales` (alive, U) are the rows of mean(δR_j) and of ⟨R_j, δR_j⟩ / ⟨R_j, R_j⟩, R_j centred, for each of
    the moves.
    """

    tangent: Tangent
    means: Array
    scales: Array

    @classmethod
    def of(cls, t: Tangent, X: Array, weights: Array) -> Self:
        """The gauge of the samples X (S, m) of weights (S,)."""
        means, scales = np.zeros((len(t.moves), t.size)), np.zeros((len(t.moves), t.size))
        share = weights / weights.sum()
        for k, one in enumerate(t.moves):
            branch = branch_of(t, k)
            _, inner, curves = t.parts(k)
            u = X @ t.model.W0[one.branch]
            R = branch(u)
            R = R - share @ R
            rows = np.zeros((len(u), t.size))
            rows[:, inner] = branch.derivative(u)[:, None] * ((X - t.center) @ one.inner)
            rows[:, curves] = branch.design(u) @ one.curves
            means[k] = share @ rows
            scales[k] = (share * R) @ rows / max(float((share * R) @ R), np.finfo(float).tiny)
        return cls(t, means, scales)

    def curve(self, k: int, u: Array, derivative: int = 0) -> Array:
        """What θ does to the branch of the k-th of the moves, or to its slope, at u (P,): (P, U)."""
        t, one, branch = self.tangent, self.tangent.moves[k], branch_of(self.tangent, k)
        _, inner, curves = t.parts(k)
        stretch = t.model.W0[one.branch] @ one.inner
        shift = u[:, None] * stretch - t.center @ one.inner
        rows = -branch_at(branch, u, derivative)[:, None] * self.scales[k]
        rows[:, inner] += branch_at(branch, u, derivative + 1)[:, None] * shift
        if derivative:
            rows[:, inner] += branch.derivative(u)[:, None] * stretch
        else:
            rows -= self.means[k]
        rows[:, curves] += branch.design(u, derivative) @ one.curves
        return np.asarray(rows)

    @cached_property
    def W0(self) -> Array:
        """What θ does to W0, (r, m, U)."""
        t = self.tangent
        result = np.zeros((*t.model.W0.shape, t.size))
        for k, one in enumerate(t.moves):
            w0 = t.model.W0[one.branch]
            result[one.branch][:, t.parts(k)[1]] = one.inner - np.outer(w0, w0 @ one.inner)
        return result

    @cached_property
    def W1(self) -> Array:
        """What θ does to W1, (n, r, U)."""
        t = self.tangent
        result = np.zeros((*t.model.W1.shape, t.size))
        for k, one in enumerate(t.moves):
            result[:, one.branch] = t.model.W1[:, one.branch, None] * self.scales[k]
            result[:, one.branch, t.parts(k)[0]] += one.outer
        return result

    @cached_property
    def bias(self) -> Array:
        """What θ does to the bias, (n, U)."""
        t = self.tangent
        result = t.model.W1[:, [one.branch for one in t.moves]] @ self.means
        if t.offset:
            result[:, t.size - t.model.n :] += np.eye(t.model.n)
        return result


def branch_of(tangent: Tangent, k: int) -> FittedBranch:
    """The branch of the k-th of the moves."""
    branch = tangent.model.branches[tangent.moves[k].branch]
    assert isinstance(branch, FittedBranch)
    return branch


def branch_at(branch: FittedBranch, u: Array, derivative: int) -> Array:
    """A branch, or one of its first two derivatives, at u."""
    return branch.derivative(u, derivative) if derivative else branch(u)
