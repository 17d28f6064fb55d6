r"""A fit around its model, to second order in all unknowns together: how much freedom it uses, and what is known of it.

Unknowns of a branch are turns of w1_j, turns of w0_j, and z with a_j = T_j z, in which the penalty on roughness is one
where it is not zero, so that however strong it is nothing is lost to rounding. Lengths are no unknowns: that of w0_j is
a gauge, and that of w1_j is, beside a_j. Nor is the constant of a branch where an output offset takes it, or where
there are Jacobians alone.

Beyond the solver's `dense_limit` each branch is looked at by itself, with the others given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from unbraid.bases.smoothing import PlacedSmoothing
from unbraid.data.sample_set import SampleSet
from unbraid.kernels.arrays import Array, BoolArray, IndexArray
from unbraid.kernels.decompositions import spectral_pseudo_inverse
from unbraid.kernels.restricted_likelihood import Expansion, Posterior, condition, update
from unbraid.solvers.gauss_newton import GaussNewton
from unbraid.solvers.iterates import Iterates
from unbraid.solvers.linearised import Linearised
from unbraid.solvers.local_models import change_coordinates, turning_frames


@dataclass(frozen=True)
class Surroundings:
    """The surroundings of one model, a batch of one, whose branches are penalised splines.

    Attributes
    ----------
    parts
        One expansion of all branches that are not zero, or one of each.
    known
        What is known of each part's unknowns with the strengths that the model has.
    alive
        (alive,), the numbers of the branches that are not zero.
    T
        (alive, K, k), a_j = T_j z.
    strengths
        (alive, p), those of the model, times ‖w1_j‖².
    """

    parts: tuple[Expansion, ...]
    known: tuple[Posterior, ...]
    alive: IndexArray
    T: Array
    strengths: Array

    @classmethod
    def of(cls, solver: GaussNewton, at: Linearised) -> Self:
        """The surroundings of a linearised model, from what data say about it."""
        it = at.iterates
        placement = it.placement
        assert isinstance(placement, PlacedSmoothing)
        assert placement.strength is not None
        (_, n, r), m, K = it.W1.shape, it.W0.shape[-1], it.a.shape[-1]
        alive, data = np.flatnonzero(alive_branches(it)), solver.samples
        if not len(alive):
            return cls((), (), alive, np.zeros((0, K, K)), np.zeros((0, placement.strength.shape[-1])))
        together = r * (n + m + K) <= solver.dense_limit
        count = len(alive) if together else 1  # branches of a part
        rough = placement.select(0).rough_coordinates
        T = rough.T[alive]
        frames = turning_frames(it.W1.mT)[0, alive], turning_frames(it.W0)[0, alive], T
        N = at.data_matrix[:, alive][:, :, :, alive].copy() if together else at.data_branch_matrices()[alive]
        for first, frame in zip((0, n, n + m), frames, strict=True):
            change_coordinates(N, first, frame.reshape(-1, count, *frame.shape[1:]))
        constant = int(solver.offset or not data.has_values)
        free = unknowns_in_order(count, (n, m, K), constant)
        N = N.reshape(-1, count * (n + m + K), count * (n + m + K))[:, free[:, None], free]
        T, z = T[..., constant:], (rough.inverse[alive] @ it.a[0, alive, :, None])[:, constant:, 0]
        penalties = rough.penalties.take(alive).on(slice(constant, None))
        jacobian, values = (float(one[0]) for one in at.misfits())
        equations = count_equations(data) - n * solver.offset - (len(alive) - count) * len(free) / count
        strengths = placement.strength[0, alive] * np.sum(it.W1[0][:, alive] ** 2, axis=0)[:, None]
        parts, known = [], []
        for k, matrix in enumerate(N):
            own = slice(k * count, (k + 1) * count)
            squares = jacobian + at.coupling * values
            parts.append(Expansion(matrix, squares, max(equations, 1.0), z[own], penalties.take(own)))
            known.append(condition(parts[-1], strengths[own]))
        return cls(tuple(parts), tuple(known), alive, T, strengths)

    def _by_part(self) -> list[tuple[Expansion, Array, Posterior]]:
        own = np.split(self.strengths, len(self.parts)) if self.parts else []
        return list(zip(self.parts, own, self.known, strict=True))

    def updated_strengths(self, strength: Array) -> Array:
        """Strengths (1, r, p) of a placement after one update by restricted likelihood."""
        result = strength.copy()
        if len(self.alive):
            every = np.concatenate([update(*one) for one in self._by_part()])
            result[0, self.alive] *= every / self.strengths
        return result

    def deviance(self) -> float:
        """Minus twice the logarithm of the restricted likelihood; with branches one by one, the mean of theirs."""
        return float(np.mean([one.deviance for one in self.known])) if self.known else np.inf

    @property
    def variance(self) -> float:
        """σ², the variance of the noise of an equation: of a Jacobian's entry, or λ times that of a value."""
        return float(np.mean([one.variance for one in self.known])) if self.known else np.nan

    @property
    def misfit(self) -> float:
        """The sum of squares that is left of them."""
        return self.parts[0].misfit if self.parts else np.nan

    def freedom(self, r: int) -> Array:
        """The degrees of freedom that each of r branches uses, its directions among them: (r,)."""
        result = np.zeros(r)
        if len(self.alive):
            counts = len(self.alive) // len(self.parts)
            sums = [
                sum(some.reshape(counts, -1).sum(axis=-1) for some in np.split(one.freedom, [part.others]))
                for part, one in zip(self.parts, self.known, strict=True)
            ]
            result[self.alive] = np.concatenate(sums)
        return result

    def covariances(self, r: int) -> Array:
        """The covariances (r, K, K) of the coefficients of r branches, all else being as uncertain as it is."""
        result = np.zeros((r, *2 * self.T.shape[-2:-1]))
        blocks = [one.variance * one.inverses for one in self.known]
        if blocks:
            result[self.alive] = self.T @ np.concatenate(blocks) @ self.T.mT
        return result

    def losses(self) -> Array:
        """By how much the objective would grow without each branch, all else following to first order: (alive,)."""
        told = [spectral_pseudo_inverse(one.inverses) for one in self.known]
        each = [np.einsum("rk,rkl,rl->r", part.a, P, part.a) for part, P in zip(self.parts, told, strict=True)]
        return np.concatenate([np.zeros(0), *each])


def unknowns_in_order(branches: int, sizes: tuple[int, int, int], constant: int) -> IndexArray:
    """Which of (r, n + m + K) unknowns are free, flat: turns of w1 and w0 branch by branch, then coefficients likewise.

    Without the first of w1 and of w0, their lengths, and so many of the coefficients.
    """
    n, m, K = sizes
    numbers = np.arange(branches * (n + m + K)).reshape(branches, -1)
    turns, coefficients = np.delete(numbers[:, : n + m], [0, n], axis=1), numbers[:, n + m + constant :]
    return np.concatenate([turns.ravel(), coefficients.ravel()])


def alive_branches(iterates: Iterates) -> BoolArray:
    """Which branches of a batch of one are not zero, (r,)."""
    return np.asarray(np.any(iterates.W1[0] != 0.0, axis=0) & np.any(iterates.a[0] != 0.0, axis=-1))


def count_equations(samples: SampleSet) -> int:
    """How many numbers the samples have."""
    return sum(samples.entries)
